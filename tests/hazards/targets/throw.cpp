// SPDX-License-Identifier: BSD-2-Clause
/* 500 exceptions through 40 frames each, with a destructor in each. */
#define HAZARD_FUNCTIONS X(hz_catch) X(hz_pass) X(hz_throw)
#include "hazard.h"

static long destructed;

struct guard {
	~guard() { destructed++; }
};

HZ long hz_throw(long n)
{
	HIT(hz_throw);
	if (n % 2)
		throw n;
	throw "even";
}

HZ long hz_pass(int depth, long n)
{
	guard g;

	HIT(hz_pass);
	return (depth ? hz_pass(depth - 1, n) : hz_throw(n)) + 1;
}

HZ long hz_catch(long n)
{
	HIT(hz_catch);
	try {
		return hz_pass(39, n);
	} catch (long odd) {
		return odd;
	} catch (const char *) {
		return 0;
	}
}

int main(int argc, char **argv)
{
	target_options o = hazard_begin(argc, argv);
	long answer = 0;

	for (long n = 0; n < 500; n++)
		answer += hz_catch(n);
	// The odd numbers below 500 add up to 250 squared.
	return hazard_end(&o, answer + destructed, 250 * 250 + 500 * 40);
}
