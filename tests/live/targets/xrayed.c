// SPDX-License-Identifier: BSD-2-Clause
/* Built with clang -fxray-instrument: has its own sleds and function ids. */
#include "target.h"

static volatile long sink;
static long calls_alpha, calls_beta, calls_gamma;

TRACED long alpha(long n)
{
	calls_alpha++;
	sink = n;
	return n + 1;
}

TRACED long beta(long n)
{
	calls_beta++;
	return alpha(n) + alpha(n);
}

/* Not instrumented, because of its attribute: it is not in the xray_instr_map. */
__attribute__((xray_never_instrument)) TRACED long uninstrumented(long n)
{
	return n + 2;
}

TRACED long gamma_(long n)
{
	calls_gamma++;
	return n ? beta(n) + gamma_(n - 1) : uninstrumented(n);
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);

	target_ready(&o);
	for (long r = 0; r < o.repeat * 100; r++)
		gamma_(4);
	printf("{\"calls\":{\"alpha\":%ld,\"beta\":%ld,\"gamma_\":%ld}}\n", calls_alpha, calls_beta,
	       calls_gamma);
	return target_done(&o, 1);
}
