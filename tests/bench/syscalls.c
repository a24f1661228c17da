// SPDX-License-Identifier: BSD-2-Clause
/*
 * The target of scripts/bench-syscalls.sh: for each line "CALLS RUNS" on stdin it prints the median
 * time of getppid over the runs, in ns of this thread's CPU time per call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_RUNS 100

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

int main(void)
{
	char line[64];

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready\n");
	while (fgets(line, sizeof(line), stdin)) {
		double times[MAX_RUNS];
		long calls;
		int runs;

		if (sscanf(line, "%ld %d", &calls, &runs) != 2 || calls < 1 || runs < 1 ||
		    runs > MAX_RUNS)
			return 2;
		for (int r = 0; r < runs; r++) {
			double start = now_ns();

			for (long i = 0; i < calls; i++)
				syscall(SYS_getppid);
			times[r] = (now_ns() - start) / (double)calls;
		}
		qsort(times, (size_t)runs, sizeof(*times), by_size);
		printf("%.1f\n", times[runs / 2]);
	}
	return 0;
}
