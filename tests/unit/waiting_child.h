// SPDX-License-Identifier: BSD-2-Clause
/* Children of a test that wait in one system call each, are stopped in it and go on. */
#ifndef KX_TEST_WAITING_CHILD_H
#define KX_TEST_WAITING_CHILD_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "tracer/remote_stop.h"
#include "tracer/remote_transfers.h"
#include "tracer/remote_waits.h"

#define PAGE  4096 /* what the pipes hold */
#define PAGES 3
#define LONG  3600.0 /* seconds that no test takes */

/* What the children share with the test. */
static struct {
	long result;
	int signals;
	char received[8];
} *shared;

static char text[PAGES * PAGE];
static int signal_pipe[2];

static inline long write_pages(int fd)
{
	return write(fd, text, sizeof(text));
}

static inline void on_signal(int number)
{
	(void)number;
	shared->signals += (int)write(signal_pipe[1], "s", 1);
}

/* @close_in_child: a descriptor that only the test keeps; -1: none. */
static inline pid_t begin(long (*call)(int fd), int fd, int close_in_child)
{
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGUSR1, on_signal);
	close(close_in_child);
	shared->result = call(fd);
	_exit(0);
}

static inline void pause_shortly(void)
{
	usleep(200);
}

static inline void wait_for_sleep(pid_t pid, long number)
{
	struct kx_remote_call_slept s;

	while (!kx_remote_sleeps_in(pid, pid, &s) || s.number != number) {
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		pause_shortly();
	}
}

/* Until so many bytes are in the pipe, or in the queue of the socket. */
static inline void wait_for_bytes(int fd, int bytes)
{
	for (int n = -1; n != bytes; pause_shortly())
		assert_int_equal(ioctl(fd, FIONREAD, &n), 0);
}

static inline void stop(pid_t pid, struct user_regs_struct *regs)
{
	struct kx_err err = { 0 };
	int got;

	assert_int_equal(kx_remote_seize(pid, pid, PTRACE_O_TRACESYSGOOD, &err), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
	while (!(got = kx_remote_has_stopped(pid)))
		pause_shortly();
	assert_int_equal(got, 1);
	assert_int_equal(ptrace(PTRACE_GETREGS, pid, NULL, regs), 0);
}

static inline void end(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Its call returns what its registers have; returns that. */
static inline long let_go(pid_t pid)
{
	int status;

	assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return shared->result;
}

static inline void open_pipe(int ends[2])
{
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fcntl(ends[1], F_SETPIPE_SZ, PAGE), PAGE);
}

static inline void close_both(const int ends[2])
{
	close(ends[0]);
	close(ends[1]);
}

/* Until not even a byte goes into it. */
static inline void fill(int fd)
{
	const int flags = fcntl(fd, F_GETFL);

	assert_int_equal(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
	while (write(fd, text, 1) == 1)
		;
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(fcntl(fd, F_SETFL, flags), 0);
}

/* Reads the writer's pages; ends with 0 if they are the same and nothing follows. */
static inline long read_pages(int fd)
{
	static char got[sizeof(text) + 1];
	size_t n = 0;
	ssize_t more;

	while (n < sizeof(got) && (more = read(fd, got + n, sizeof(got) - n)) > 0)
		n += (size_t)more;
	if (n != sizeof(text) || memcmp(got, text, n))
		_exit(1);
	_exit(0);
}

/* To be called by main. False: it cannot be. */
static inline bool set_up_sharing(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || pipe(signal_pipe))
		return false;
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(i * 7 + i / 256);
	return true;
}

#endif
