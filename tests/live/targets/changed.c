// SPDX-License-Identifier: BSD-2-Clause
/*
 * Loads the library that is its argument (changeplug.c), says "loaded", and calls its functions after another byte. With
 * TARGET_NAME in the environment it takes this name before, after a byte of its own, and says "renamed".
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "target.h"

#define CALLS 1000

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	long (*kept)(long), (*changed)(long);
	const char *name = getenv("TARGET_NAME");
	bool keeps = getenv("PLUG_KEEP");
	int wrong = 0;
	void *plug;

	target_ready(&o);
	plug = dlopen(o.rest, RTLD_NOW);
	if (!plug)
		return 2;
	kept = (long (*)(long))dlsym(plug, "plug_kept");
	changed = (long (*)(long))dlsym(plug, "plug_changed");
	printf("loaded\n");
	fflush(stdout);
	if (name) {
		target_getc();
		prctl(PR_SET_NAME, name);
		printf("renamed\n");
		fflush(stdout);
	}
	target_getc();
	for (long n = 0; n < CALLS; n++)
		wrong += kept(n) != n + 3 || changed(n) != (keeps ? n * 5 : n + 7);
	printf("{\"wrong\":%d,\"calls\":{\"plug_kept\":%d,\"plug_changed\":%d}}\n", wrong, CALLS, CALLS);
	return target_done(&o, !wrong);
}
