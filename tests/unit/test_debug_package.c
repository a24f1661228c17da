// SPDX-License-Identifier: BSD-2-Clause
/* The package that has a stripped binary's symbols, as a dpkg-query of this test's own says it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binary/debug_package.h"

static char folder[] = "/tmp/kxray-test-package.XXXXXX";

static const char *in_folder(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* A dpkg-query with this script; NULL: there is none. */
static void query_is(const char *script)
{
	const char *path = in_folder("dpkg-query");
	FILE *f;

	unlink(path);
	if (!script)
		return;
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n%s\n", script);
	fclose(f);
	assert_int_equal(chmod(path, 0700), 0);
}

static void check(const char *path, int fd, const char *want)
{
	char text[KX_DEBUG_ADVICE];

	kx_debug_package_advice(path, fd, NULL, text);
	assert_string_equal(text, want);
}

static void lines(void **state)
{
	static const struct {
		const char *line, *name;
	} rows[] = {
		{ "nginx: /usr/sbin/nginx", "nginx" },
		{ "libc6:amd64: /lib/x86_64-linux-gnu/libc.so.6", "libc6" },
		{ "nginx-core, nginx-light: /usr/sbin/nginx", "nginx-core" },
		{ "diversion by dash from: /bin/sh", NULL },
		{ "", NULL },
		{ "no package", NULL },
		{ ": x", NULL },
	};
	char name[64];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(kx_debug_package_parse(rows[i].line, name, sizeof(name)),
				 rows[i].name != NULL);
		if (rows[i].name)
			assert_string_equal(name, rows[i].name);
	}
	assert_false(kx_debug_package_parse("nginx: /usr/sbin/nginx", name, 5));
}

static void packages(void **state)
{
	const char *none =
		"install its debug symbols (Debian: the package's -dbgsym), or set DEBUGINFOD_URLS";
	int fd = open("/dev/null", O_RDONLY);

	(void)state;
	query_is("echo \"diversion by x from: $3\"; echo \"some-server:amd64: $3\"");
	check("/bin/sh", -1,
	      "install some-server-dbgsym (of the distribution's debug archive), or set "
	      "DEBUGINFOD_URLS");
	/* a file of a container is in no package of this system */
	check("/bin/sh", fd, none);
	check("relative", -1, none);
	/* the folders as packages list them that are older than the merge of /lib and /usr/lib */
	query_is("[ \"$4\" = /lib/no/such/lib.so ] && echo \"libc6:amd64: $4\"");
	check("/usr/lib/no/such/lib.so", -1, "install libc6-dbg, or set DEBUGINFOD_URLS");
	query_is("exit 1");
	check("/bin/sh", -1, none);
	/* one that does not end is given up */
	query_is("exec sleep 1000");
	check("/bin/sh", -1, none);
	query_is(NULL);
	check("/bin/sh", -1, none);
	assert_int_equal(setenv("DEBUGINFOD_URLS", "http://localhost", 1), 0);
	check("/bin/sh", -1, "install its debug symbols (Debian: the package's -dbgsym)");
	close(fd);
}

static void exports(void **state)
{
	static const struct {
		const char *source;
		bool are;
	} rows[] = { { ".dynsym", true },
		     { ".symtab and .dynsym", false },
		     { ".dynsym and .gnu_debugdata", false } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct kx_symbols syms = { .count = 1, .source = rows[i].source };

		assert_int_equal(kx_symbols_are_exports(&syms), rows[i].are);
		syms.count = 0;
		assert_false(kx_symbols_are_exports(&syms));
	}
}

static int set_up(void **state)
{
	char path[256];

	(void)state;
	unsetenv("DEBUGINFOD_URLS");
	if (!mkdtemp(folder))
		return 1;
	/* the scripts need a few programs, but not the system's dpkg-query */
	snprintf(path, sizeof(path), "ln -s \"$(command -v sleep)\" %s", folder);
	if (system(path))
		return 1;
	return setenv("PATH", folder, 1);
}

static int tear_down(void **state)
{
	(void)state;
	unlink(in_folder("sleep"));
	unlink(in_folder("dpkg-query"));
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(packages),
		cmocka_unit_test(exports),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
