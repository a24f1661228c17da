// SPDX-License-Identifier: BSD-2-Clause
/* Runs llvm-xray, in every version found, on a trace written by a test. */
#ifndef KX_TEST_LLVM_XRAY_H
#define KX_TEST_LLVM_XRAY_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const llvm_xrays[] = {
	"/usr/lib/llvm-14/bin/llvm-xray",
	"/usr/lib/llvm-19/bin/llvm-xray",
};
#define N_LLVM_XRAYS (sizeof(llvm_xrays) / sizeof(llvm_xrays[0]))

/* The output of a shell command, including stderr; fails the test if it does not return 0. */
static inline char *run_ok(const char *command)
{
	size_t len = 0, size = 1 << 16;
	char *out = malloc(size), *shell = NULL;
	FILE *f;
	int status;

	assert_non_null(out);
	assert_true(asprintf(&shell, "%s 2>&1", command) > 0);
	f = popen(shell, "r");
	assert_non_null(f);
	for (;;) {
		size_t n = fread(out + len, 1, size - len - 1, f);

		if (!n)
			break;
		len += n;
		if (len + 1 == size) {
			size *= 2;
			out = realloc(out, size);
			assert_non_null(out);
		}
	}
	out[len] = 0;
	status = pclose(f);
	if (status != 0)
		fail_msg("status %#x from: %s\n%.2000s", status, command, out);
	free(shell);
	return out;
}

__attribute__((format(printf, 1, 2))) static inline char *run_okf(const char *fmt, ...)
{
	char *command = NULL, *out;
	va_list ap;

	va_start(ap, fmt);
	assert_true(vasprintf(&command, fmt, ap) > 0);
	va_end(ap);
	out = run_ok(command);
	free(command);
	return out;
}

/*
 * Runs every subcommand, none of which may fail; @map may be NULL. @quick: only those that differ
 * in how they read records.
 */
static inline void llvm_xray_accepts(const char *trace, const char *map, int quick)
{
	static const char *const all[] = {
		"account -f csv -o /dev/null %s %s",
		"stack %s %s",
		"fdr-dump --verify %2$s > /dev/null",
		/* not quick */
		"account -f text -sort=sum -o /dev/null %s %s",
		"graph -o /dev/null %s %s",
		"convert -f yaml -o /dev/null %s %s",
		"convert -f trace_event -o /dev/null %s %s",
		"stack -all-stacks -stack-format=flame -aggregation-type=time %s %s > /dev/null",
		"stack -per-thread-stacks %s %s > /dev/null",
		"graph -edge-label=count -color-edges=sum -o /dev/null %s %s",
		"convert -symbolize -f yaml -o /dev/null %s %s",
		"convert -symbolize -f trace_event -o /dev/null %s %s",
	};
	char m[512] = "";
	size_t n = sizeof(all) / sizeof(all[0]) - (quick ? 9 : 0);

	if (map)
		snprintf(m, sizeof(m), "-instr_map=%s", map);
	for (size_t v = 0; v < N_LLVM_XRAYS; v++) {
		if (access(llvm_xrays[v], X_OK) != 0)
			continue;
		for (size_t i = 0; i < n; i++) {
			char command[2048];
			int len = snprintf(command, sizeof(command), "%s ", llvm_xrays[v]);

			if (!map && strstr(all[i], "-symbolize"))
				continue;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			/* the only two arguments there are */
			if (strstr(all[i], "%2$s"))
				snprintf(command + len, sizeof(command) - (size_t)len,
					 "fdr-dump --verify %s > /dev/null", trace);
			else
				snprintf(command + len, sizeof(command) - (size_t)len, all[i], m,
					 trace);
#pragma GCC diagnostic pop
			free(run_ok(command));
		}
	}
}

/* Calls that `account` of one version counts of function ids 1 to n-1; -1 in count[id] if none. */
static inline void llvm_xray_counts(const char *xray, const char *trace, int64_t *count, size_t n)
{
	char *out = run_okf("%s account -f csv %s", xray, trace);
	char *save = NULL;

	for (size_t i = 0; i < n; i++)
		count[i] = -1;
	strtok_r(out, "\n", &save);
	for (char *line; (line = strtok_r(NULL, "\n", &save));) {
		unsigned id;
		long long calls;

		assert_int_equal(sscanf(line, "%u,%lld,", &id, &calls), 2);
		assert_true(id < n);
		count[id] = calls;
	}
	free(out);
}

#endif
