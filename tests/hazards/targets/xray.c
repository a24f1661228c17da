// SPDX-License-Identifier: BSD-2-Clause
/*
 * Built by clang -fxray-instrument: the program patches its own function entries and exits at run time, ten times, while
 * they hold probes, and a handler counts what the patched functions report. With the argument "before" the code is
 * patched before the first pause, so that probes come to patched code.
 */
#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include "hazard.h"

/* From xray/xray_interface.h, which is C++ */
int __xray_set_handler(void (*)(int, int));
int __xray_patch(void);
int __xray_unpatch(void);

static volatile long sink, entered, left;

__attribute__((xray_always_instrument)) HZ long hz_leaf(long n)
{
	HIT(hz_leaf);
	return n + 1;
}

__attribute__((xray_always_instrument)) HZ long hz_outer(long n)
{
	HIT(hz_outer);
	sink = hz_leaf(n);
	return sink + hz_leaf(n);
}

__attribute__((xray_never_instrument)) static void handler(int function, int type)
{
	(void)function;
	entered += type == 0;
	left += type == 1;
}

__attribute__((xray_never_instrument)) int main(int argc, char **argv)
{
	struct target_options o;
	long answer = 0;
	int before = argc > 1 && !strcmp(argv[argc - 1], "before");

	__xray_set_handler(handler);
	if (before && __xray_patch() != 1)
		return 2;
	o = hazard_begin(argc, argv);
	for (int round = 0; round < 10; round++) {
		if (!before && __xray_patch() != 1)
			return 2;
		for (long n = 0; n < 100; n++)
			answer += hz_outer(n);
		if (!before && __xray_unpatch() != 1)
			return 2;
		for (long n = 0; n < 100; n++)
			answer += hz_outer(n);
	}
	// How often the handler is called is printed, not judged: it must be the same without kxray.
	printf("{\"entered\":%ld,\"left\":%ld}\n", entered, left);
	fflush(stdout);
	return hazard_end(&o, answer, 20 * 2 * 5050);
}
