// SPDX-License-Identifier: BSD-2-Clause
/*
 * Processes and threads come and go while the program works: "vfork" and exec, "spawn", "fork"
 * (libc's), "raw" (fork that libc does not know of), "threads" (6,000, one after another in four
 * places), "exit" (it ends at once, with a thread at work).
 */
#include <pthread.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include "outer_leaf_threads.h"

#define ROUNDS	1000
#define THREADS 1500

extern char **environ;
static volatile int stop;

static void *work(void *counter)
{
	long *n = (long *)counter;

	while (!stop) {
		*n += hz_outer(7) == 16;
		target_pause(1);
	}
	return NULL;
}

static void *nothing(void *n)
{
	return (void *)(hz_outer((long)n) - (long)n);
}

static void *create(void *unused)
{
	long right = 0;

	(void)unused;
	for (long n = 0; n < THREADS; n++) {
		pthread_t thread;
		void *result = NULL;

		if (pthread_create(&thread, NULL, nothing, (void *)n))
			return NULL;
		pthread_join(thread, &result);
		right += result == (void *)(n + 2);
	}
	return (void *)right;
}

static long threads(void)
{
	pthread_t creators[4];
	long right = 0;

	for (int i = 0; i < 4; i++)
		if (pthread_create(&creators[i], NULL, create, NULL))
			return 0;
	for (int i = 0; i < 4; i++) {
		void *result;

		pthread_join(creators[i], &result);
		right += (long)result;
	}
	return right == 4 * THREADS ? ROUNDS : 0;
}

static long child(const char *how)
{
	char *argv[] = { (char *)"/bin/true", NULL };
	pid_t pid = -1;
	int status = -1;

	if (!strcmp(how, "vfork")) {
		pid = vfork();
		if (!pid) {
			execv(argv[0], argv);
			_exit(99);
		}
	} else if (!strcmp(how, "spawn")) {
		if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ))
			return 0;
	} else {
		pid = !strcmp(how, "raw") ? (pid_t)syscall(SYS_fork) : fork();
		// The child of a raw fork cannot use libc: its locks may be held by a thread that
		// it has not.
		if (!pid)
			syscall(SYS_exit_group, hz_outer(20) == 42 && hz_outer(1) == 4 ? 0 : 1);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	const char *how = o.rest ? o.rest : "fork";
	long answer = 0, worked = 0;
	pthread_t worker;

	if (pthread_create(&worker, NULL, work, &worked))
		return 2;
	if (!strcmp(how, "exit")) {
		answer = hz_outer(1);
		return hazard_end(&o, answer, 4);
	}
	if (!strcmp(how, "threads"))
		answer = threads();
	else
		for (int i = 0; i < ROUNDS; i++)
			answer += child(how);
	stop = 1;
	pthread_join(worker, NULL);
	return hazard_end(&o, answer + !worked, ROUNDS);
}
