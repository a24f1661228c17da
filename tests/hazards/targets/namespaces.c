// SPDX-License-Identifier: BSD-2-Clause
/* A child in a new PID and mount namespace, where it has the number 1, and /tmp is another file system. */
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#define HAZARD_FUNCTIONS X(hz_outside) X(hz_inside)
#include "hazard.h"

HZ long hz_inside(long n)
{
	HIT(hz_inside);
	return n;
}

HZ long hz_outside(void)
{
	int status;
	long sum = 0;
	pid_t pid;

	HIT(hz_outside);
	pid = fork();
	if (!pid) {
		// Without the right to mount, or below a chroot, it is a PID namespace only.
		if (!mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
			mount("none", "/tmp", "tmpfs", 0, NULL);
		for (long n = 0; n < 100; n++)
			sum += hz_inside(n);
		_exit(getpid() == 1 && sum == 4950 ? 9 : 1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	long answer = 0;

	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();
		int status;

		// The namespace is for later children of the one that unshares.
		if (!pid)
			_exit(unshare(CLONE_NEWPID | CLONE_NEWNS) ? 2 : hz_outside());
		if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
			return 2;
		answer += WEXITSTATUS(status);
	}
	return hazard_end(&o, answer, 3 * 9);
}
