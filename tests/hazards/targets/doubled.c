// SPDX-License-Identifier: BSD-2-Clause
/*
 * One library loaded several times: by dlopen and, each with a C library of its own, into namespaces of dlmopen. With the argument
 * "late", the second copies come while the program is traced.
 */
#include <dlfcn.h>
#include <libgen.h>

#define HAZARD_FUNCTIONS X(hz_called) X(plugged)
#include "hazard.h"

#define COPIES 4

static long (*work[COPIES])(long (*)(long), long);

HZ long hz_called(long n)
{
	HIT(hz_called);
	return n + 1;
}

static void load(const char *path, int first, int end)
{
	for (int i = first; i < end; i++) {
		void *library = i ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL) : dlopen(path, RTLD_NOW | RTLD_LOCAL);

		if (!library)
			exit(2);
		*(void **)&work[i] = dlsym(library, "plugged");
	}
}

int main(int argc, char **argv)
{
	const int late = argc > 1 && !strcmp(argv[argc - 1], "late");
	char self[4096] = "", path[4200];
	struct target_options o;
	long answer = 0;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 2;
	snprintf(path, sizeof(path), "%s/plugin.so", dirname(self));
	load(path, 0, late ? 1 : COPIES);
	o = hazard_begin(argc, argv);
	if (late)
		load(path, 1, COPIES);
	for (long n = 0; n < 1000; n++)
		for (int i = 0; i < COPIES; i++) {
			answer += work[i](hz_called, n);
			hazard_own[N_plugged]++;
		}
	hazard_calls[N_plugged] = hazard_own[N_plugged];
	return hazard_end(&o, answer, COPIES * (999 * 1000 / 2 + 3 * 1000L));
}
