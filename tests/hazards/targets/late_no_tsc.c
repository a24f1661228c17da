// SPDX-License-Identifier: BSD-2-Clause
/* A library that the program loads while it is traced forbids it to read the time stamp counter. */
#include <dlfcn.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include "outer_leaf.h"

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	void *library = dlopen("./forbid_tsc.so", RTLD_NOW);
	int (*forbid)(void) = library ? (int (*)(void))dlsym(library, "forbid") : NULL;
	long answer = 0;

	if (!forbid || forbid())
		return 2;
	for (long n = 0; n < 2000; n++)
		answer += hz_outer(n);
	return hazard_end(&o, answer, 2000 * 2001);
}
