// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/keeper.h"

#include <errno.h>
#include <limits.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "base/stop_request.h"
#include "tracer/keeper_internal.h"
#include "tracer/self_code.h"

/* How long a request to end waits for links to be closed, in all, and how often it is looked for. */
#define CLOSE_SECONDS 1.0
#define CLOSE_POLL_MS 50

static struct {
	pid_t owner; /* a child that this process forks has no keeper */
	pid_t pid;   /* 0: there is none */
	int pidfd;
	int owner_fd;
	int socket, keepers_socket;
	double asked; /* when a request to end was first noticed */
	double until; /* kx_monotonic_seconds when it is left at the latest; 0: it is waited for */
	bool left;
} keeper;

pid_t kx_keeper_pid(void)
{
	return keeper.owner == getpid() ? keeper.pid : 0;
}

bool kx_keeper_is_left(void)
{
	return keeper.left;
}

static void close_descriptors(void)
{
	close(keeper.owner_fd);
	close(keeper.socket);
	close(keeper.keepers_socket);
}

/* Not fork(3): the descriptor table is shared, and its end sends no SIGCHLD. */
static pid_t fork_keeper(void)
{
	sigset_t all, old;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	pid = (pid_t)syscall(SYS_clone, CLONE_FILES | CLONE_PIDFD, NULL, &keeper.pidfd, NULL, NULL);
	if (!pid)
		kx_keeper_process_run(keeper.keepers_socket, keeper.owner, keeper.owner_fd);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return pid;
}

int kx_keeper_start(struct kx_err *err)
{
	int pair[2], code;

	if (kx_keeper_pid())
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return kx_err_set(err, -errno, "the process that removes the probes cannot be "
					       "reached: %s", strerror(errno));
	keeper.owner = getpid();
	keeper.socket = pair[0];
	keeper.keepers_socket = pair[1];
	keeper.owner_fd = (int)syscall(SYS_pidfd_open, keeper.owner, 0);
	keeper.pid = keeper.owner_fd < 0 ? -1 : fork_keeper();
	if (keeper.pid > 0)
		return 0;
	code = -errno;
	keeper.pid = 0;
	close_descriptors();
	return kx_err_set(err, code, "the process that removes the probes cannot be started: %s",
			  strerror(-code));
}

/* After the keeper's end. */
static void reap(void)
{
	while (waitpid(keeper.pid, NULL, __WCLONE) < 0 && errno == EINTR)
		;
	keeper.pid = 0;
	close(keeper.pidfd);
	close_descriptors();
}

static int send_part(int code, const void *data, size_t size)
{
	return code ? code : kx_keeper_send(keeper.socket, keeper.pidfd, data, size);
}

/* The answer; -EPIPE: the keeper was killed, and there is none any more. */
static int answer_of(int code)
{
	int answer;

	if (!code)
		code = kx_keeper_receive(keeper.socket, keeper.pidfd, &answer, sizeof(answer));
	if (!code)
		return answer;
	reap();
	return -EPIPE;
}

void kx_keeper_wait_at_most(double seconds)
{
	keeper.until = kx_monotonic_seconds() + seconds;
}

static int begin(struct kx_keeper_message *m)
{
	getrlimit(RLIMIT_NOFILE, &m->files);
	return send_part(0, m, sizeof(*m));
}

int kx_keeper_create(const struct kx_uprobe_request *r)
{
	struct kx_keeper_message m = { .action = KX_KEEPER_CREATE,
				       .path_size = (uint32_t)strlen(r->path) + 1,
				       .count = r->count,
				       .request = *r };
	int code;

	if (!kx_keeper_pid())
		return kx_uprobe_create(r);
	if (keeper.left)
		return -EINTR;
	code = begin(&m);
	code = send_part(code, r->path, m.path_size);
	code = send_part(code, r->offsets, r->count * sizeof(*r->offsets));
	if (r->attach_type)
		code = send_part(code, r->cookies, r->count * sizeof(*r->cookies));
	if (r->semaphores)
		code = send_part(code, r->semaphores, r->count * sizeof(*r->semaphores));
	code = answer_of(code);
	return code == -EPIPE ? kx_uprobe_create(r) : code;
}

/* The descriptors are shared: whoever waits for the end of a pipe or a terminal would wait for the keeper. */
static void close_standard_streams(void)
{
	fflush(NULL);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		close(fd);
}

/* Until the keeper has answered or ended; false: it is left alone. */
static bool wait_for_answer(void)
{
	struct pollfd fds[] = { { .fd = keeper.socket, .events = POLLIN },
				{ .fd = keeper.pidfd, .events = POLLIN } };

	while (poll(fds, 2, CLOSE_POLL_MS) <= 0) {
		double now = kx_monotonic_seconds();

		if (keeper.until > 0 && now > keeper.until)
			return false;
		if (!kx_stop_requested())
			continue;
		if (!keeper.asked)
			keeper.asked = now;
		if (now - keeper.asked > CLOSE_SECONDS)
			return false;
	}
	return true;
}

static int leave(void)
{
	keeper.left = true;
	atexit(close_standard_streams);
	return -EINTR;
}

/* -EPIPE: there is no keeper; -EINTR: it is left alone. */
static int request_close(enum kx_keeper_action action, const int *fds, size_t n)
{
	struct kx_keeper_message m = { .action = action, .count = (uint32_t)n };
	int code;

	if (!kx_keeper_pid())
		return -EPIPE;
	if (keeper.left)
		return -EINTR;
	code = send_part(begin(&m), fds, n * sizeof(*fds));
	if (!code && !wait_for_answer())
		return leave();
	return answer_of(code);
}

void kx_keeper_stop(void)
{
	const struct kx_keeper_message m = { .action = KX_KEEPER_STOP };
	int code;

	if (!kx_keeper_pid() || keeper.left)
		return;
	code = kx_keeper_send(keeper.socket, keeper.pidfd, &m, sizeof(m));
	if (!code && !wait_for_answer())
		leave();
	else if (answer_of(code) == 0)
		reap();
}

void kx_keeper_close(const int *fds, size_t n)
{
	int code = n ? request_close(KX_KEEPER_CLOSE, fds, n) : 0;

	if (code < 0 && code != -EINTR)
		kx_fds_close(fds, n);
}

int kx_keeper_close_soon(const int *fds, size_t n)
{
	int number = n ? request_close(KX_KEEPER_CLOSE_SOON, fds, n) : 0;

	if (number < 0 && number != -EINTR)
		kx_fds_close(fds, n);
	return number > 0 ? number : 0;
}

void kx_keeper_hurry(void)
{
	if (kx_keeper_pid())
		setpriority(PRIO_PROCESS, (id_t)kx_keeper_pid(), KX_KEEPER_NICE);
}

int kx_keeper_closing(void)
{
	int number = request_close(KX_KEEPER_CLOSING, NULL, 0);

	return number > 0 ? number : INT_MAX;
}

size_t kx_keeper_release(const int *fds, size_t n)
{
	int waiting = n ? request_close(KX_KEEPER_RELEASE, fds, n) : 0;

	if (waiting >= 0)
		return (size_t)waiting;
	if (waiting == -EINTR)
		return n;
	kx_fds_close(fds, n);
	return 0;
}

void kx_keeper_guard_output(const char *path)
{
	struct kx_keeper_message m = { .action = KX_KEEPER_GUARD,
				       .path_size = (uint32_t)strlen(path) + 1 };

	if (kx_keeper_pid() && !keeper.left)
		answer_of(send_part(begin(&m), path, m.path_size));
}

int kx_keeper_guard_patches(pid_t pid)
{
	struct kx_keeper_message m = { .action = KX_KEEPER_GUARD_PATCHES, .count = (uint32_t)pid };
	int code = kx_keeper_pid() && !keeper.left ? answer_of(begin(&m)) : -ENODEV;

	return code == -EPIPE ? -ENODEV : code;
}

int kx_keeper_guard_family(pid_t pid, const struct kx_patch_family *family)
{
	struct kx_keeper_message m = { .action = KX_KEEPER_GUARD_FAMILY, .count = (uint32_t)pid };
	int code = -ENODEV;

	if (kx_keeper_pid() && !keeper.left)
		code = answer_of(send_part(begin(&m), family, sizeof(*family)));
	return code == -EPIPE ? -ENODEV : code;
}

void kx_keeper_release_patches(pid_t pid)
{
	struct kx_keeper_message m = { .action = KX_KEEPER_RELEASE_PATCHES, .count = (uint32_t)pid };

	if (kx_keeper_pid() && !keeper.left)
		answer_of(begin(&m));
}

void kx_keeper_hide_code(void)
{
	struct kx_keeper_message m = { .action = KX_KEEPER_HIDE };

	kx_self_code_hide();
	if (kx_keeper_pid() && !keeper.left)
		answer_of(begin(&m));
}
