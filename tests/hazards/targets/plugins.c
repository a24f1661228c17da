// SPDX-License-Identifier: BSD-2-Clause
/* Loads and unloads a library 1,000 times and calls a function of it each time, which calls one of the program. */
#include <dlfcn.h>
#include <libgen.h>

#define HAZARD_FUNCTIONS X(hz_load) X(hz_called)
#include "hazard.h"

HZ long hz_called(long n)
{
	HIT(hz_called);
	return n + 1;
}

HZ long hz_load(const char *path, long n)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	long (*work)(long (*)(long), long);
	long result;

	HIT(hz_load);
	if (!library)
		return -1;
	*(void **)&work = dlsym(library, "plugged");
	result = work ? work(hz_called, n) : -1;
	dlclose(library);
	return result;
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	char self[4096] = "", path[4200];
	long answer = 0;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return 2;
	snprintf(path, sizeof(path), "%s/plugin.so", dirname(self));
	for (long n = 0; n < 1000; n++)
		answer += hz_load(path, n);
	return hazard_end(&o, answer, 999 * 1000 / 2 + 3 * 1000);
}
