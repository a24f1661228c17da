// SPDX-License-Identifier: BSD-2-Clause
// Calls that a stop cuts short, with several buffers or a file: the rest is done by calls for one buffer each.
#include "waiting_child.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <termios.h>

/* The text, in parts of which one ends in the second page. */
#define PARTS(name) \
	struct iovec name[] = { { text, 5000 }, { text + 5000, 0 }, { text + 5000, 100 }, { text + 5100, sizeof(text) - 5100 } }

static long write_parts(int fd)
{
	PARTS(parts);

	return writev(fd, parts, 4);
}

static long send_parts(int fd)
{
	PARTS(parts);
	struct msghdr m = { .msg_iov = parts, .msg_iovlen = 4 };

	return sendmsg(fd, &m, 0);
}

static long send_file(int fd)
{
	const int file = memfd_create("kx-text", 0);
	off_t from = 0;
	long n;

	if (write(file, text, sizeof(text)) != sizeof(text))
		return -1;
	n = sendfile(fd, file, &from, sizeof(text));
	return n == from ? n : -1;
}

static long receive_parts(int fd)
{
	struct iovec parts[] = { { shared->received, 3 }, { shared->received + 3, 3 }, { shared->received + 6, 2 } };
	struct msghdr m = { .msg_iov = parts, .msg_iovlen = 3 };

	return recvmsg(fd, &m, MSG_WAITALL);
}

/* Until the thread has moved a part and waits with the rest. */
static void wait_for_part(pid_t pid, int fd, long number)
{
	for (int n = 0; !n; pause_shortly())
		assert_int_equal(ioctl(fd, FIONREAD, &n), 0);
	wait_for_sleep(pid, number);
}

static void open_unix(int ends[2])
{
	const int least = 1;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)), 0);
}

static void open_tcp(int ends[2])
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), least = 1;
	socklen_t size = sizeof(address);

	assert_int_equal(setsockopt(server, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)), 0);
	assert_int_equal(bind(server, (struct sockaddr *)&address, size), 0);
	assert_int_equal(getsockname(server, (struct sockaddr *)&address, &size), 0);
	assert_int_equal(listen(server, 1), 0);
	ends[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)), 0);
	assert_int_equal(connect(ends[1], (struct sockaddr *)&address, size), 0);
	ends[0] = accept(server, NULL, NULL);
	assert_true(ends[0] >= 0);
	close(server);
}

static void test_finish_lists(void **state)
{
	static const struct {
		long (*call)(int fd);
		long number;
		void (*open)(int ends[2]);
	} cases[] = {
		{ write_parts, SYS_writev, open_pipe }, { write_parts, SYS_writev, open_tcp },   { send_parts, SYS_sendmsg, open_unix },
		{ send_parts, SYS_sendmsg, open_tcp },  { send_file, SYS_sendfile, open_tcp },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct kx_cut_transfer cut = { 0 };
		struct user_regs_struct now;
		int ends[2], status;
		pid_t reader, writer;

		cases[i].open(ends);
		writer = begin(cases[i].call, ends[1], ends[0]);
		wait_for_part(writer, ends[0], cases[i].number);
		stop(writer, &now);
		if (!kx_remote_is_cut(writer, writer, &now, &cut))
			fail_msg("case %zu: %ld", i, (long)now.rax);
		reader = begin(read_pages, ends[0], ends[1]);
		close(ends[1]);
		kx_remote_transfers_finish(&cut, 1, kx_monotonic_seconds() + LONG);
		assert_true(cut.done);
		assert_int_equal(ptrace(PTRACE_GETREGS, cut.tid, NULL, &now), 0);
		assert_int_equal(now.rdi, cut.regs.rdi);
		assert_int_equal(now.rsi, cut.regs.rsi);
		assert_int_equal(now.rdx, cut.regs.rdx);
		assert_int_equal(now.r10, cut.regs.r10);
		assert_int_equal(now.r8, cut.regs.r8);
		assert_int_equal(now.r9, cut.regs.r9);
		if (let_go(cut.tid) != sizeof(text))
			fail_msg("case %zu returned %ld", i, shared->result);
		assert_int_equal(waitpid(reader, &status, 0), reader);
		assert_int_equal(status, 0);
		close(ends[0]);
	}
}

/* That is how it ends without a stop. */
static void test_file_into_pipe(void **state)
{
	struct kx_cut_transfer cut;
	struct user_regs_struct regs;
	int ends[2];
	pid_t pid;

	(void)state;
	open_pipe(ends);
	pid = begin(write_pages, ends[1], ends[0]);
	wait_for_part(pid, ends[0], SYS_write);
	stop(pid, &regs);
	assert_true(kx_remote_is_cut(pid, pid, &regs, &cut));
	regs.orig_rax = SYS_sendfile;
	regs.r10 = sizeof(text);
	assert_false(kx_remote_is_cut(pid, pid, &regs, &cut));
	end(pid);
	close_both(ends);
}

static long receive_least(int fd)
{
	const int least = 8;

	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least));
	return recv(fd, shared->received, sizeof(shared->received), 0);
}

static long read_least(int fd)
{
	struct termios t;

	tcgetattr(fd, &t);
	cfmakeraw(&t);
	t.c_cc[VMIN] = 8;
	tcsetattr(fd, TCSANOW, &t);
	return read(fd, shared->received, sizeof(shared->received));
}

static void open_sockets(int ends[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
}

/* It does not become anybody's controlling one. */
static void open_terminal(int ends[2])
{
	ends[1] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(ends[1] >= 0);
	assert_int_equal(unlockpt(ends[1]), 0);
	ends[0] = ioctl(ends[1], TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(ends[0] >= 0);
}

/* Calls that wait for eight bytes: with half of them they are cut, and none of what follows the eight is taken. */
static void test_finish_message(void **state)
{
	static const struct {
		long (*call)(int fd);
		long number;
		void (*open)(int ends[2]);
	} cases[] = {
		{ receive_parts, SYS_recvmsg, open_sockets },
		{ receive_least, SYS_recvfrom, open_sockets },
		{ read_least, SYS_read, open_terminal },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct kx_cut_transfer cut = { 0 };
		struct user_regs_struct now = { 0 };
		int ends[2];
		pid_t pid;

		cases[i].open(ends);
		pid = begin(cases[i].call, ends[0], ends[1]);
		wait_for_sleep(pid, cases[i].number);
		assert_int_equal(write(ends[1], "abcd", 4), 4);
		wait_for_bytes(ends[0], 0);
		wait_for_sleep(pid, cases[i].number);
		stop(pid, &now);
		if (now.rax != 4 || !kx_remote_is_cut(pid, pid, &now, &cut))
			fail_msg("case %zu: %ld", i, (long)now.rax);
		assert_int_equal(write(ends[1], "efghi", 5), 5);
		kx_remote_transfers_finish(&cut, 1, kx_monotonic_seconds() + LONG);
		assert_int_equal(let_go(pid), 8);
		assert_memory_equal(shared->received, "abcdefgh", 8);
		close_both(ends);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_finish_lists), cmocka_unit_test(test_finish_message),
					    cmocka_unit_test(test_file_into_pipe) };

	if (!set_up_sharing())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
