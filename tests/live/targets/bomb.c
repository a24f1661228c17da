// SPDX-License-Identifier: BSD-2-Clause
/*
 * Forks --repeat=N children, each of which calls bomb_child once and waits until all have started; every
 * fifth forks one more, which calls bomb_grandchild and ends at once.
 */
#include <sys/wait.h>

#include "target.h"

static volatile long sink;

TRACED void bomb_child(long n)
{
	sink = n;
}

TRACED void bomb_grandchild(long n)
{
	sink = n;
}

TRACED pid_t bomb_fork(void)
{
	pid_t pid = fork();

	sink = pid;
	return pid;
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	long forked = 0, grandchildren = 0, ended = 0;
	int gate[2], status;
	char byte;

	target_ready(&o);
	if (pipe(gate))
		return 1;
	for (long n = 0; n < o.repeat; n++) {
		pid_t pid = bomb_fork();

		if (pid < 0)
			break;
		if (pid) {
			forked++;
			grandchildren += n % 5 == 0;
			continue;
		}
		alarm(300);
		close(gate[1]);
		bomb_child(n);
		if (n % 5 == 0) {
			pid = fork();
			if (pid < 0)
				_exit(1);
			if (!pid) {
				bomb_grandchild(n);
				_exit(0);
			}
			waitpid(pid, &status, 0);
		}
		_exit(read(gate[0], &byte, 1) == 0 ? 0 : 1);
	}
	close(gate[1]);
	while (wait(&status) > 0)
		ended += status == 0;
	printf("{\"calls\":{\"bomb_fork\":%ld,\"bomb_child\":%ld,\"bomb_grandchild\":%ld}}\n", forked,
	       forked, grandchildren);
	return target_done(&o, ended == forked && forked == o.repeat);
}
