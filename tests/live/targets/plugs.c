// SPDX-License-Identifier: BSD-2-Clause
/*
 * Loads and unloads libraries as it is told:
 *     plugs LIBRARY OTHER DANGEROUS
 * Bytes on standard input: "s" starts a second thread, which calls host_spin all the time; "a"
 * loads LIBRARY, "b" OTHER, "d" DANGEROUS, "t" the same, by which it forbids itself the time stamp
 * counter; "u" unloads it; "c" makes 1,000 calls of it; "l" loads LIBRARY, calls it once and
 * unloads it, then OTHER likewise, 1,000 times; "q" ends. Each is answered by a line: "started",
 * "loaded ADDRESS", "unloaded", "called", "looped". All results are checked, and by "l" that no
 * byte of OTHER's code is another one than with the first "b". The counts are those of the calls by
 * "c", and of host_spin.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include "target.h"

#define TIMES 1000

static volatile int over;
static int spinning;
static pthread_t spinner;
static long spins, hosts, outers, wrong;
static __thread volatile long sink;
static void *library;
static unsigned char code[0x60];
static long (*work)(long (*back)(long), long n);

TRACED long host_spin(long n)
{
	spins++;
	sink = n;
	return sink + 7;
}

TRACED long host_call(long n)
{
	hosts++;
	sink = n;
	return sink * 3;
}

/* Not faster than rings of 16 MiB can hold for the length of the test, though nobody reads them. */
static void *spin(void *unused)
{
	for (long n = 0; !over; n++) {
		if (host_spin(n) != n + 7)
			abort();
		if (n % 4 == 0)
			usleep(50);
	}
	return unused;
}

static int load(const char *path)
{
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		printf("%s\n", dlerror());
		return 0;
	}
	*(void **)&work = dlsym(library, "plug_outer");
	return work != NULL;
}

static void call(long n)
{
	const long expected = 3 * (n + 1) + 3 * (n + 2) + 7, got = work(host_call, n);

	if (got == expected)
		return;
	printf("plug_outer(%ld) is %ld and not %ld\n", n, got, expected);
	wrong++;
}

/* The code of both functions. */
static const unsigned char *code_of_library(void)
{
	return dlsym(library, "plug_inner");
}

static void compare_code(const char *when, long n)
{
	const unsigned char *now = code_of_library();

	for (size_t i = 0; i < sizeof(code); i++)
		if (now[i] != code[i]) {
			printf("byte %#zx of plug_inner is %#x and not %#x, %s call %ld\n", i,
			       now[i], code[i], when, n);
			wrong++;
			return;
		}
}

static void call_other(const char *path, long n)
{
	if (!load(path)) {
		wrong++;
		return;
	}
	compare_code("before", n);
	call(n);
	compare_code("after", n);
	dlclose(library);
}

static int forbid_tsc(void)
{
	int (*forbid)(void);

	*(void **)&forbid = dlsym(library, "plug_tsc");
	return forbid && !forbid();
}

static int obey(int c, char **paths)
{
	struct link_map *map;

	switch (c) {
	case 's':
		spinning = !pthread_create(&spinner, NULL, spin, NULL);
		printf("started\n");
		return spinning;
	case 'a':
	case 'b':
	case 'd':
	case 't':
		if (!load(paths[c >= 'd' ? 2 : c - 'a']) || (c == 't' && !forbid_tsc()) || dlinfo(library, RTLD_DI_LINKMAP, &map))
			return 0;
		if (c == 'b')
			memcpy(code, code_of_library(), sizeof(code));
		printf("loaded %#lx\n", (unsigned long)map->l_addr);
		return 1;
	case 'u':
		dlclose(library);
		printf("unloaded\n");
		return 1;
	case 'c':
		for (long n = 0; n < TIMES; n++, outers++)
			call(n);
		printf("called\n");
		return 1;
	case 'l':
		for (long n = 0; n < TIMES; n++) {
			if (!load(paths[0]))
				return 0;
			call(n);
			dlclose(library);
			call_other(paths[1], n);
		}
		printf("looped\n");
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct target_options o = { .wait = 0 };
	int c, more = argc == 4;

	target_ready(&o);
	while (more && (c = target_getc()) != EOF && c != 'q') {
		more = obey(c, argv + 1);
		fflush(stdout);
	}
	over = 1;
	if (spinning)
		pthread_join(spinner, NULL);
	printf("{\"answer\":%ld,\"calls\":{\"host_spin\":%ld,\"host_call\":%ld,\"plug_outer\":%ld,"
	       "\"plug_inner\":%ld}}\n",
	       wrong, spins, hosts, outers, 2 * outers);
	return target_done(&o, more && !wrong);
}
