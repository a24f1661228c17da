// SPDX-License-Identifier: BSD-2-Clause
// System calls that a stop cuts short: which they are, and that they are finished.
#include "waiting_child.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <termios.h>

#include "tracer/remote_transfer_waits.h"

static long write_page(int fd)
{
	return write(fd, text, PAGE);
}

static long write_byte(int fd)
{
	return write(fd, text, 1);
}

static long write_two(int fd)
{
	return write(fd, text, 2);
}

static long write_vector(int fd)
{
	const struct iovec one = { text, 1 };

	return writev(fd, &one, 1);
}

static long send_byte(int fd)
{
	return send(fd, text, 1, 0);
}

static long send_two(int fd)
{
	return send(fd, text, 2, 0);
}

static long read_some(int fd)
{
	return read(fd, text, sizeof(text));
}

static long receive(int fd)
{
	return recv(fd, text, 8, 0);
}

static long receive_all(int fd)
{
	return recv(fd, shared->received, sizeof(shared->received), MSG_WAITALL);
}

static long receive_message(int fd, int flags)
{
	struct iovec one = { text, 8 };
	struct msghdr m = { .msg_iov = &one, .msg_iovlen = 1 };

	return recvmsg(fd, &m, flags);
}

static long receive_some_message(int fd)
{
	return receive_message(fd, 0);
}

static long receive_all_message(int fd)
{
	return receive_message(fd, MSG_WAITALL);
}

static long receive_messages(int fd, unsigned n, int flags)
{
	struct iovec one = { text, 8 };
	struct mmsghdr m[2] = { { .msg_hdr = { .msg_iov = &one, .msg_iovlen = 1 } }, { .msg_hdr = { .msg_iov = &one, .msg_iovlen = 1 } } };

	return recvmmsg(fd, m, n, flags, NULL);
}

static long receive_one_of_messages(int fd)
{
	return receive_messages(fd, 1, 0);
}

static long receive_two_messages(int fd)
{
	return receive_messages(fd, 2, 0);
}

static long receive_first_of_two(int fd)
{
	return receive_messages(fd, 2, MSG_WAITFORONE);
}

static void test_in_transfer(void **state)
{
	static const struct {
		long (*call)(int fd);
		long number;
		bool of_pipe, into, is_transfer;
	} cases[] = {
		{ write_page, SYS_write, true, true, false },
		{ write_pages, SYS_write, true, true, true },
		{ write_byte, SYS_write, false, true, false },
		{ write_two, SYS_write, false, true, true },
		{ write_vector, SYS_writev, true, true, true },
		{ send_byte, SYS_sendto, false, true, false },
		{ send_two, SYS_sendto, false, true, true },
		{ read_some, SYS_read, true, false, false },
		{ read_some, SYS_read, false, false, false },
		{ receive, SYS_recvfrom, false, false, false },
		{ receive_all, SYS_recvfrom, false, false, true },
		{ receive_some_message, SYS_recvmsg, false, false, false },
		{ receive_all_message, SYS_recvmsg, false, false, true },
		{ receive_one_of_messages, SYS_recvmmsg, false, false, false },
		{ receive_two_messages, SYS_recvmmsg, false, false, true },
		{ receive_first_of_two, SYS_recvmmsg, false, false, false },
	};
	pid_t pid = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int ends[2];

		if (cases[i].of_pipe)
			open_pipe(ends);
		else
			assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
		if (cases[i].into)
			fill(ends[1]);
		pid = begin(cases[i].call, ends[cases[i].into], -1);
		wait_for_sleep(pid, cases[i].number);
		if (kx_remote_is_in_transfer(pid, pid) != cases[i].is_transfer)
			fail_msg("case %zu", i);
		end(pid);
		close_both(ends);
	}
	assert_false(kx_remote_is_in_transfer(pid, pid)); /* it has ended */
}

/* What a read of either end of a terminal waits for; both show the settings of the one that programs have. */
static void test_terminals(void **state)
{
	static const struct {
		unsigned char least, time;
		unsigned long awaited;
	} cases[] = { { 1, 0, 1 }, { 30, 0, 30 }, { 200, 0, 64 }, { 30, 1, 0 } };
	const int other = posix_openpt(O_RDWR | O_NOCTTY);
	struct user_regs_struct regs = { .orig_rax = SYS_read };
	struct termios t;
	int own;

	(void)state;
	assert_true(other >= 0 && !unlockpt(other));
	own = ioctl(other, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	assert_true(own >= 0 && !tcgetattr(own, &t));
	regs.rdi = (unsigned long)own;
	assert_int_equal(kx_transfer_awaited(getpid(), &regs, 100), 0); /* by lines */
	cfmakeraw(&t);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		t.c_cc[VMIN] = cases[i].least;
		t.c_cc[VTIME] = cases[i].time;
		assert_int_equal(tcsetattr(own, TCSANOW, &t), 0);
		regs.rdi = (unsigned long)own;
		assert_int_equal(kx_transfer_awaited(getpid(), &regs, 100), cases[i].awaited);
		assert_int_equal(kx_transfer_awaited(getpid(), &regs, 20), cases[i].awaited > 20 ? 20 : cases[i].awaited);
		regs.rdi = (unsigned long)other;
		assert_int_equal(kx_transfer_awaited(getpid(), &regs, 100), 0);
	}
	regs.orig_rax = SYS_write;
	assert_int_equal(kx_transfer_awaited(getpid(), &regs, 100), 100);
	close(own);
	close(other);
}

/* A writer that has filled the pipe with the first of its pages. */
static pid_t stop_writer(const int ends[2], struct kx_cut_transfer *cut)
{
	const pid_t pid = begin(write_pages, ends[1], ends[0]);
	struct user_regs_struct regs;

	wait_for_bytes(ends[0], PAGE);
	wait_for_sleep(pid, SYS_write);
	stop(pid, &regs);
	assert_int_equal(regs.orig_rax, SYS_write);
	assert_int_equal(regs.rax, PAGE);
	assert_int_equal(regs.rdx, sizeof(text));
	assert_true(kx_remote_is_cut(pid, pid, &regs, cut));
	return pid;
}

/* What is cut by its result, call and flags, and what it is done to. */
static void test_cut(void **state)
{
	static const struct {
		long number, flags, result;
		bool cut;
	} cases[] = {
		{ SYS_write, 0, PAGE, true },
		{ SYS_write, 0, sizeof(text) - 1, true },
		{ SYS_write, 0, sizeof(text), false },
		{ SYS_write, 0, 0, false },
		{ SYS_write, 0, -EINTR, false },
		{ SYS_writev, 0, PAGE, false },
		{ SYS_read, 0, PAGE, false },
		{ SYS_sendto, 0, PAGE, true },
		{ SYS_sendto, MSG_DONTWAIT, PAGE, false },
		{ SYS_recvfrom, 0, PAGE, false },
		{ SYS_recvfrom, MSG_WAITALL, PAGE, true },
		{ SYS_recvfrom, MSG_WAITALL | MSG_DONTWAIT, PAGE, false },
		{ SYS_recvfrom, MSG_WAITALL | MSG_PEEK, PAGE, false },
		{ SYS_sendto, MSG_ZEROCOPY, PAGE, false },
	};
	struct user_regs_struct regs, other;
	struct kx_cut_transfer cut;
	int ends[2], streams[2], datagrams[2];
	const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	pid_t pid;

	(void)state;
	open_pipe(ends);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, streams), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams), 0);
	pid = stop_writer(ends, &cut);
	regs = cut.regs;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		other = regs;
		other.orig_rax = (unsigned long)cases[i].number;
		other.r10 = (unsigned long)cases[i].flags;
		other.rax = (unsigned long)cases[i].result;
		if (kx_remote_is_cut(pid, pid, &other, &cut) != cases[i].cut)
			fail_msg("case %zu", i);
	}
	other = regs;
	other.rip++; /* not behind a system call */
	assert_false(kx_remote_is_cut(pid, pid, &other, &cut));
	other = regs;
	other.rdi = (unsigned long)streams[0];
	assert_true(kx_remote_is_cut(pid, pid, &other, &cut));
	other.rdi = (unsigned long)datagrams[0];
	assert_false(kx_remote_is_cut(pid, pid, &other, &cut));
	other.rdi = (unsigned long)null;
	assert_false(kx_remote_is_cut(pid, pid, &other, &cut));
	assert_int_equal(fcntl(ends[1], F_SETFL, O_WRONLY | O_NONBLOCK), 0);
	assert_false(kx_remote_is_cut(pid, pid, &regs, &cut));
	end(pid);
	close_both(ends);
	close_both(streams);
	close_both(datagrams);
	close(null);
}

/* Calls that need nobody for the rest: cut by their result, number and descriptor. */
static void test_copies(void **state)
{
	const int file = memfd_create("kx-copy", MFD_CLOEXEC), zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	const struct {
		struct user_regs_struct call;
		bool cut;
	} cases[] = {
		{ { .orig_rax = SYS_getrandom, .rsi = 2 * PAGE }, true },
		{ { .orig_rax = SYS_getrandom, .rsi = PAGE }, false },
		{ { .orig_rax = SYS_copy_file_range, .rdx = (unsigned long)file, .r8 = 2 * PAGE }, true },
		{ { .orig_rax = SYS_sendfile, .rdi = (unsigned long)file, .r10 = 2 * PAGE }, true },
		{ { .orig_rax = SYS_sendfile, .rdi = (unsigned long)file, .r10 = PAGE }, false },
		{ { .orig_rax = SYS_read, .rdi = (unsigned long)zero, .rdx = 2 * PAGE }, true },
		{ { .orig_rax = SYS_read, .rdi = (unsigned long)file, .rdx = 2 * PAGE }, false },
		{ { .orig_rax = SYS_write, .rdi = (unsigned long)file, .rdx = 2 * PAGE }, false },
	};
	struct kx_cut_transfer cut;
	int ends[2];
	pid_t pid;

	(void)state;
	open_pipe(ends);
	pid = begin(write_pages, ends[1], ends[0]);
	wait_for_sleep(pid, SYS_write);
	stop(pid, &cut.regs);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct user_regs_struct regs = cases[i].call;

		regs.rip = cut.regs.rip;
		regs.rax = PAGE;
		if (kx_remote_is_cut(pid, pid, &regs, &(struct kx_cut_transfer){ 0 }) != cases[i].cut)
			fail_msg("case %zu", i);
	}
	end(pid);
	close_both(ends);
	close(file);
	close(zero);
}

/* A writer and a receiver, and a signal meanwhile, whose handler writes too. */
static void test_finish(void **state)
{
	struct kx_cut_transfer cut[2] = { 0 };
	struct user_regs_struct now;
	int ends[2], sockets[2], status;
	pid_t reader, receiver;

	(void)state;
	shared->signals = 0;
	open_pipe(ends);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	stop_writer(ends, &cut[0]);
	receiver = begin(receive_all, sockets[0], ends[1]);
	wait_for_sleep(receiver, SYS_recvfrom);
	assert_int_equal(write(sockets[1], "abc", 3), 3);
	wait_for_bytes(sockets[0], 0);
	wait_for_sleep(receiver, SYS_recvfrom);
	stop(receiver, &now);
	assert_int_equal(now.rax, 3);
	assert_true(kx_remote_is_cut(receiver, receiver, &now, &cut[1]));

	assert_int_equal(kill(cut[0].tid, SIGUSR1), 0);
	reader = begin(read_pages, ends[0], ends[1]);
	assert_int_equal(write(sockets[1], "defgh", 5), 5);
	kx_remote_transfers_finish(cut, 2, kx_monotonic_seconds() + LONG);
	for (size_t i = 0; i < 2; i++) {
		assert_true(cut[i].done);
		assert_int_equal(ptrace(PTRACE_GETREGS, cut[i].tid, NULL, &now), 0);
		assert_int_equal(now.rax, i ? 8 : sizeof(text));
		assert_int_equal(now.rsi, cut[i].regs.rsi);
		assert_int_equal(now.rdx, cut[i].regs.rdx);
		assert_int_equal(now.rip, cut[i].regs.rip);
		assert_int_equal(now.rsp, cut[i].regs.rsp);
	}
	close(ends[1]);
	assert_int_equal(let_go(cut[0].tid), sizeof(text));
	assert_int_equal(let_go(cut[1].tid), 8);
	assert_memory_equal(shared->received, "abcdefgh", 8);
	assert_int_equal(shared->signals, 1);
	assert_int_equal(waitpid(reader, &status, 0), reader);
	assert_int_equal(status, 0);
	close(ends[0]);
	close_both(sockets);
}

/* No more time: the result is what has been transferred until then. False: the machine was too busy for the end of the call. */
static bool cut_again(bool with_room)
{
	struct kx_cut_transfer cut = { 0 };
	char page[PAGE];
	long sum = 0, n;
	int ends[2];
	bool done;

	open_pipe(ends);
	stop_writer(ends, &cut);
	if (with_room)
		sum = read(ends[0], page, PAGE);
	kx_remote_transfers_finish(&cut, 1, kx_monotonic_seconds());
	done = cut.done;
	if (done) {
		const long result = let_go(cut.tid);

		close(ends[1]);
		while ((n = read(ends[0], page, PAGE)) > 0)
			sum += n;
		assert_int_equal(result, sum);
		assert_true(with_room ? result == PAGE || result == 2 * PAGE : result == PAGE);
	} else {
		end(cut.tid);
		close(ends[1]);
	}
	close(ends[0]);
	return done;
}

static void test_cut_again(void **state)
{
	(void)state;
	while (!cut_again(false))
		;
	while (!cut_again(true))
		;
}

/* It ends meanwhile. */
static void test_ended(void **state)
{
	struct kx_cut_transfer cut = { 0 };
	int ends[2];

	(void)state;
	open_pipe(ends);
	stop_writer(ends, &cut);
	end(cut.tid);
	kx_remote_transfers_finish(&cut, 1, kx_monotonic_seconds() + LONG);
	assert_true(cut.done);
	close_both(ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_transfer),
		cmocka_unit_test(test_terminals), cmocka_unit_test(test_cut),	    cmocka_unit_test(test_copies),	cmocka_unit_test(test_finish),
		cmocka_unit_test(test_cut_again),   cmocka_unit_test(test_ended),
	};

	if (!set_up_sharing())
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
