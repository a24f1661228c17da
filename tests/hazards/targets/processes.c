// SPDX-License-Identifier: BSD-2-Clause
/*
 * 20 rounds of fork, vfork and exec, posix_spawn, and of a fork whose parent ends at once. The started program is
 * this one with --exit=7.
 */
#include <spawn.h>
#include <sys/wait.h>

#define HAZARD_FUNCTIONS X(hz_parent) X(hz_forked) X(hz_started) X(hz_work)
#include "hazard.h"

#define ROUNDS 20

extern char **environ;
static long done;

HZ long hz_work(long n)
{
	HIT(hz_work);
	return n + 1;
}

HZ long hz_forked(long n)
{
	HIT(hz_forked);
	return hz_work(n);
}

HZ long hz_started(long n)
{
	HIT(hz_started);
	return hz_work(n);
}

static int status_of(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, __WALL) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

HZ long hz_parent(char *self)
{
	char *argv[] = { self, (char *)"--exit=7", NULL };
	volatile long right = 0;
	pid_t pid;

	HIT(hz_parent);
	pid = fork();
	if (!pid)
		_exit(hz_forked(4));
	right += status_of(pid) == 5;

	pid = vfork();
	if (!pid) {
		execv(self, argv);
		_exit(99);
	}
	right += status_of(pid) == 7;

	right += posix_spawn(&pid, self, NULL, NULL, argv, environ) == 0 && status_of(pid) == 7;

	// A child whose parent has ended
	pid = fork();
	if (!pid) {
		pid = fork();
		if (!pid) {
			hz_forked(1);
			__atomic_add_fetch(&hazard_calls[HAZARD_COUNT], 1, __ATOMIC_RELEASE);
			_exit(0);
		}
		_exit(pid < 0);
	}
	done++;
	right += status_of(pid) == 0;
	while (__atomic_load_n(&hazard_calls[HAZARD_COUNT], __ATOMIC_ACQUIRE) < done)
		target_pause(1);
	return right;
}

int main(int argc, char **argv)
{
	int started = getenv("HAZARD_FD") != NULL;
	struct target_options o = hazard_begin(argc, argv);
	long answer = 0;

	if (started)
		return hz_started(6) == 7 ? o.exit_status : 1;
	for (int i = 0; i < ROUNDS; i++)
		answer += hz_parent(argv[0]);
	return hazard_end(&o, answer, 4 * ROUNDS);
}
