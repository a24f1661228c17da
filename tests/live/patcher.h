// SPDX-License-Identifier: BSD-2-Clause
/* Shared by patcher.c and patcher_threads.c: what they print, and the latter's steps. Each returns the program's status. */
#ifndef KX_PATCHER_H
#define KX_PATCHER_H

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"

static inline int fail(const struct kx_err *err)
{
	printf("error %d %s\n", -err->code, err->text);
	return 1;
}

static inline void say(const char *key, double value)
{
	printf("%s %.15g\n", key, value);
	fflush(stdout);
}

static inline void wait_for_byte(void)
{
	char c;

	while (read(STDIN_FILENO, &c, 1) < 0 && errno == EINTR)
		;
}

int patcher_stop(pid_t pid, int times, unsigned wait_ms);
int patcher_hold(pid_t pid);
int patcher_lend(pid_t pid);
int patcher_calls(pid_t pid, int times, unsigned wait_ms);

#endif
