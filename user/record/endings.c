// SPDX-License-Identifier: BSD-2-Clause
#include "record/endings.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

bool kx_pidfd_has_ended(int pidfd)
{
	struct pollfd pfd = { .fd = pidfd, .events = POLLIN };

	return poll(&pfd, 1, 0) > 0;
}

static size_t find(const struct kx_endings *e, pid_t pid)
{
	size_t i = 0;

	while (i < e->n && e->all[i].pid != pid)
		i++;
	return i;
}

static void forget(struct kx_endings *e, size_t i)
{
	close(e->all[i].pidfd);
	e->all[i] = e->all[--e->n];
}

bool kx_endings_add(struct kx_endings *e, pid_t pid)
{
	int pidfd;

	if (find(e, pid) < e->n)
		return false;
	if (e->n == KX_ENDINGS)
		return true;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return true;
	if (kx_pidfd_has_ended(pidfd)) {
		close(pidfd);
		return true;
	}
	e->all[e->n++] = (struct kx_ending){ .pid = pid, .pidfd = pidfd };
	return false;
}

bool kx_endings_take(struct kx_endings *e, pid_t pid)
{
	size_t i = find(e, pid);

	if (i == e->n)
		return false;
	forget(e, i);
	return true;
}

void kx_endings_poll(struct kx_endings *e, void (*ended)(void *ctx, pid_t pid), void *ctx)
{
	for (size_t i = e->n; i--;) {
		pid_t pid = e->all[i].pid;

		if (!kx_pidfd_has_ended(e->all[i].pidfd))
			continue;
		forget(e, i);
		ended(ctx, pid);
	}
}

void kx_endings_free(struct kx_endings *e)
{
	while (e->n)
		forget(e, e->n - 1);
}
