// SPDX-License-Identifier: BSD-2-Clause
/*
 * The target of scripts/bench.sh: functions with the usual kinds of first instructions, called on command.
 *
 *   run NAME CALLS RUNS     answers "MEDIAN MIN TOTAL": ns a call of the runs, calls made in all
 *   code NAME               answers its first 8 bytes in hex, in which a probe shows
 *
 * Commands come in lines on stdin; the end of stdin ends it.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef XRAY
/* LLVM 14's headers are for C++: these return enums. */
int __xray_log_select_mode(const char *mode);
int __xray_log_init_mode(const char *mode, const char *options);
int __xray_log_finalize(void);
int __xray_log_flushLog(void);
int __xray_patch(void);
#endif

#define MAX_RUNS 100

#define FUNCTION(name, code)                                                                       \
	__asm__(".pushsection .text\n"                                                             \
		".globl " #name "\n"                                                               \
		".type " #name ", @function\n"                                                     \
		".balign 64\n" #name ":\n" code "	ret\n"                                           \
		".size " #name ", .-" #name "\n"                                                   \
		".popsection\n");                                                                  \
	void name(const char *argument)

FUNCTION(bench_nop5, "	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n");
FUNCTION(bench_push, "	push %rbp\n	pop %rbp\n");
FUNCTION(bench_endbr64_push, "	endbr64\n	push %rbp\n	pop %rbp\n");

/* In C, for tracers that need another build of it. */
__attribute__((noinline)) void bench_c(const char *argument)
{
	(void)argument;
	__asm__ volatile("" ::: "rbx"); /* begins with a push */
}

static const struct {
	const char *name;
	void (*call)(const char *argument);
} functions[] = {
	{ "bench_nop5", bench_nop5 },
	{ "bench_push", bench_push },
	{ "bench_endbr64_push", bench_endbr64_push },
	{ "bench_c", bench_c },
};

/* CPU time of this thread, so that other threads running in between do not count. */
static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void run(void (*call)(const char *), long calls, int runs)
{
	static const char text[] = "0123456789abcdef"; /* for values */
	double times[MAX_RUNS];

	for (int r = 0; r < runs; r++) {
		double start = now_ns();

		for (long i = 0; i < calls; i++)
			call(text);
		times[r] = (now_ns() - start) / (double)calls;
	}
	qsort(times, (size_t)runs, sizeof(*times), by_size);
	printf("%.1f %.1f %ld\n", times[runs / 2], times[0], calls * runs);
}

/* LLVM XRay records calls from here on; short ones, too. */
static void start_xray(void)
{
#ifdef XRAY
	if (__xray_log_select_mode("xray-fdr") ||
	    __xray_log_init_mode("xray-fdr", "func_duration_threshold_us=0:buffer_size=1048576:buffer_max=64") != 2 ||
	    __xray_patch() != 1)
		exit(3);
#endif
}

static void end_xray(void)
{
#ifdef XRAY
	__xray_log_finalize();
	__xray_log_flushLog();
#endif
}

int main(void)
{
	char line[256], command[16], name[64];

	start_xray();
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof(line), stdin)) {
		void (*call)(const char *) = NULL;
		long calls = 0;
		int runs = 0, n = sscanf(line, "%15s %63s %ld %d", command, name, &calls, &runs);

		for (size_t i = 0; n >= 2 && i < sizeof(functions) / sizeof(functions[0]); i++)
			if (strcmp(functions[i].name, name) == 0)
				call = functions[i].call;
		if (call && strcmp(command, "run") == 0 && calls > 0 && runs > 0 && runs <= MAX_RUNS) {
			run(call, calls, runs);
		} else if (call && strcmp(command, "code") == 0) {
			const volatile unsigned char *code =
				(const volatile unsigned char *)(uintptr_t)call;

			for (int i = 0; i < 8; i++)
				printf("%02x", code[i]);
			putchar('\n');
		} else {
			fprintf(stderr, "bench target: cannot do '%s'\n", line);
			return 2;
		}
	}
	end_xray();
	return 0;
}
