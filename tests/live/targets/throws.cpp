// SPDX-License-Identifier: BSD-2-Clause
/*
 * Throws through its functions 20,000 times a round (--repeat), catches, and checks
 * that every destructor on the way ran. A tracer that hijacks return
 * addresses makes it end in terminate().
 */
#include "target.h"

static const long throws_a_round = 20000;
static long destructed;
static long calls_catcher, calls_passer, calls_thrower;

struct guard {
	~guard() { destructed++; }
};

TRACED long thrower(long n)
{
	calls_thrower++;
	if (n % 2)
		throw n;
	throw "even";
}

TRACED long passer(long n)
{
	guard g;

	calls_passer++;
	return thrower(n) + 1;
}

TRACED long catcher(long n)
{
	calls_catcher++;
	try {
		return passer(n);
	} catch (long odd) {
		return odd;
	} catch (const char *) {
		return 1;
	}
}

int main(int argc, char **argv)
{
	target_options o = target_parse(argc, argv);
	long answer = 0;

	target_ready(&o);
	for (long r = 0; r < o.repeat; r++) {
		for (long n = 0; n < throws_a_round; n++)
			answer += catcher(n);
	}
	// The odd numbers below 2 * half add up to half squared; each even one counts 1.
	const long half = throws_a_round / 2, expected = o.repeat * (half * half + half);

	printf("{\"answer\":%ld,\"expected\":%ld,\"destructed\":%ld,\"calls\":"
	       "{\"catcher\":%ld,\"passer\":%ld,\"thrower\":%ld}}\n",
	       answer, expected, destructed, calls_catcher, calls_passer, calls_thrower);
	return target_done(&o, answer == expected && destructed == o.repeat * throws_a_round);
}
