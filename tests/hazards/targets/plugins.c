// SPDX-License-Identifier: BSD-2-Clause
/*
 * Loads and unloads a library 1,000 times and calls a function of it each time, which calls one of the program. "turns": in turns with
 * another library at the same place, no byte of whose code may change.
 */
#include <dlfcn.h>
#include <libgen.h>

#define HAZARD_FUNCTIONS X(hz_load) X(hz_called)
#include "hazard.h"

#define CODE 32 /* bytes of plugged() that are compared */

HZ long hz_called(long n)
{
	HIT(hz_called);
	return n + 1;
}

HZ long hz_load(const char *path, long n, const void *code)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	long (*work)(long (*)(long), long);
	long result;

	HIT(hz_load);
	if (!library)
		return -1;
	*(void **)&work = dlsym(library, "plugged");
	result = work && !(code && memcmp(code, (void *)work, CODE)) ? work(hz_called, n) : -1;
	dlclose(library);
	return result;
}

int main(int argc, char **argv)
{
	const int turns = argc > 1 && !strcmp(argv[argc - 1], "turns");
	char self[4096] = "", path[4200], other[4200], code[CODE];
	struct target_options o;
	void *library;
	long answer = 0;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 2;
	snprintf(path, sizeof(path), "%s/plugin.so", dirname(self));
	snprintf(other, sizeof(other), "%s/plugin-other.so", self);
	library = turns ? dlopen(other, RTLD_NOW | RTLD_LOCAL) : NULL;
	if (turns && !library)
		return 2;
	if (turns) {
		memcpy(code, dlsym(library, "plugged"), CODE);
		dlclose(library);
	}
	o = hazard_begin(argc, argv);
	for (long n = 0; n < 1000; n++)
		answer += hz_load(path, n, NULL) + (turns ? hz_load(other, n, code) : 0);
	return hazard_end(&o, answer, (turns ? 2 : 1) * (999 * 1000 / 2 + 3 * 1000));
}
