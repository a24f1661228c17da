// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/stop_request.h"
#include "tracer/keeper.h"

static const uint64_t offset = 64, cookie = 1;

/* No such program: an error of bpf(2) wherever it is called. */
static const struct kx_uprobe_request bad_link = { .attach_type = KX_BPF_TRACE_UPROBE_MULTI,
						   .prog_fd = -1,
						   .count = 1,
						   .path = "/proc/self/exe",
						   .offsets = &offset,
						   .cookies = &cookie };

static void start(void)
{
	struct kx_err err = { 0 };

	if (kx_keeper_start(&err))
		fail_msg("%s", err.text);
	assert_true(kx_keeper_pid() > 0);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void read_name(pid_t pid, const char *file, char *name, size_t size)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(name, (int)size, f));
	name[strcspn(name, "\n")] = 0;
	fclose(f);
}

static void it_answers_and_ends(void **state)
{
	int fds[128], expected = kx_uprobe_create(&bad_link);
	char name[64];
	pid_t pid;

	(void)state;
	start();
	pid = kx_keeper_pid();
	assert_true(expected < 0);
	assert_int_equal(kx_keeper_create(&bad_link), expected);
	for (int i = 0; i < 128; i += 2)
		assert_int_equal(pipe(&fds[i]), 0);
	kx_keeper_close(fds, 127);
	for (int i = 0; i < 127; i++)
		assert_false(is_open(fds[i]));
	assert_true(is_open(fds[127]));
	close(fds[127]);
	read_name(pid, "comm", name, sizeof(name));
	assert_string_equal(name, KX_KEEPER_NAME);
	read_name(pid, "cmdline", name, sizeof(name));
	assert_string_equal(name, KX_KEEPER_NAME);
	assert_int_equal(getsid(pid), pid);
	/* it is no child that others wait for */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	kx_keeper_stop();
	assert_int_equal(kx_keeper_pid(), 0);
	assert_int_equal(kill(pid, 0), -1);
}

/* Until they are closed the number is not passed. */
static void it_closes_soon(void **state)
{
	int fds[6], first, second;

	(void)state;
	assert_int_equal(kx_keeper_close_soon(NULL, 0), 0);
	start();
	for (int i = 0; i < 6; i += 2)
		assert_int_equal(pipe(&fds[i]), 0);
	first = kx_keeper_close_soon(fds, 2);
	second = kx_keeper_close_soon(fds + 2, 3);
	assert_int_equal(first, 1);
	assert_int_equal(second, 2);
	while (kx_keeper_closing() <= second)
		sched_yield();
	for (int i = 0; i < 5; i++)
		assert_false(is_open(fds[i]));
	assert_true(is_open(fds[5]));
	close(fds[5]);
	kx_keeper_stop();
	/* without a keeper */
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(kx_keeper_close_soon(fds, 2), 0);
	assert_false(is_open(fds[0]) || is_open(fds[1]));
	assert_true(kx_keeper_closing() > 1);
}

static void many_probes_fit_into_a_request(void **state)
{
	struct kx_uprobe_request r = bad_link;
	uint64_t *many = calloc(100000, sizeof(*many));

	(void)state;
	start();
	r.offsets = r.cookies = many;
	r.count = 100000;
	assert_int_equal(kx_keeper_create(&r), kx_uprobe_create(&r));
	kx_keeper_stop();
	free(many);
}

static void a_killed_keeper_is_replaced_by_its_owner(void **state)
{
	int pair[2];

	(void)state;
	start();
	assert_int_equal(kill(kx_keeper_pid(), SIGKILL), 0);
	assert_int_equal(kx_keeper_create(&bad_link), kx_uprobe_create(&bad_link));
	assert_int_equal(kx_keeper_pid(), 0);
	assert_int_equal(pipe(pair), 0);
	kx_keeper_close(pair, 2);
	assert_false(is_open(pair[0]) || is_open(pair[1]));
	kx_keeper_stop();
}

/* A child of this process that starts a keeper and is killed. */
static void kill_owner(int ready, int held)
{
	static const char *const names[] = { "guarded", "guarded.map", "other" };
	struct kx_err err;
	sigset_t none;
	char path[64];

	if (kx_keeper_start(&err))
		_exit(1);
	kx_keeper_guard_output("guarded");
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s.%d.tmp", names[i], getpid());
		if (open(path, O_CREAT | O_WRONLY, 0600) < 0)
			_exit(1);
	}
	(void)held; /* inherited, and left open */
	if (write(ready, "", 1) != 1)
		_exit(1);
	sigemptyset(&none);
	for (;;)
		sigsuspend(&none);
}

static void what_a_killed_owner_leaves_is_cleaned_up(void **state)
{
	char folder[] = "/tmp/kx-keeper-XXXXXX", byte, path[64];
	int ready[2], held[2];
	pid_t owner;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(held), 0);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	owner = fork();
	if (!owner)
		kill_owner(ready[1], held[1]);
	close(held[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(kill(owner, SIGKILL), 0);
	assert_int_equal(waitpid(owner, NULL, 0), owner);
	/* the keeper closes the last copy of the pipe's other end, and ends */
	assert_int_equal(read(held[0], &byte, 1), 0);
	assert_true(waitpid(-1, NULL, 0) > 0);
	snprintf(path, sizeof(path), "guarded.%d.tmp", owner);
	assert_int_equal(access(path, F_OK), -1);
	snprintf(path, sizeof(path), "guarded.map.%d.tmp", owner);
	assert_int_equal(access(path, F_OK), -1);
	snprintf(path, sizeof(path), "other.%d.tmp", owner);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(rmdir(folder), 0);
	prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

/* A connection whose close(2) waits until the other end has read or gone: closing it takes as long as one likes. */
static int slow_to_close(int *peer)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = 600 };
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	static char bytes[1 << 16];

	assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, size), 0);
	*peer = accept(listener, NULL, NULL);
	assert_true(*peer >= 0);
	close(listener);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	while (write(fd, bytes, sizeof(bytes)) > 0)
		;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	return fd;
}

/* A child of this process: leaves its keeper while that closes; the exit status says whether all was as it should be. */
static void leave_keeper(int fd)
{
	struct kx_err err;
	sigset_t set;

	kx_stop_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	kx_stop_listen(true);
	if (kx_keeper_start(&err) || kx_keeper_is_left())
		_exit(1);
	raise(SIGINT);
	if (kx_keeper_release(&fd, 1) != 1 || !kx_keeper_is_left())
		_exit(2);
	kx_keeper_close(&fd, 1);
	if (kx_keeper_create(&bad_link) != -EINTR)
		_exit(3);
	kx_keeper_stop();
	exit(0);
}

static void a_keeper_that_takes_long_is_left(void **state)
{
	int peer, fd = slow_to_close(&peer), status, output[2], only[2];
	pid_t owner;
	char byte;

	(void)state;
	assert_int_equal(pipe(output), 0);
	assert_int_equal(pipe(only), 0);
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	owner = fork();
	if (!owner) {
		close(peer);
		dup2(output[1], STDOUT_FILENO);
		close(output[0]);
		close(output[1]);
		close(only[1]);
		/* else the one that waits could be this test's close, the last one */
		if (read(only[0], &byte, 1))
			_exit(4);
		leave_keeper(fd);
	}
	close(fd);
	close(only[0]);
	close(only[1]);
	close(output[1]);
	assert_int_equal(waitpid(owner, &status, 0), owner);
	assert_int_equal(status, 0);
	/* who reads its output does not wait for the keeper, which still closes */
	assert_int_equal(read(output[0], &byte, 1), 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), 0);
	close(peer);
	assert_true(waitpid(-1, NULL, 0) > 0);
	close(output[0]);
	prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_answers_and_ends),
		cmocka_unit_test(it_closes_soon),
		cmocka_unit_test(many_probes_fit_into_a_request),
		cmocka_unit_test(a_killed_keeper_is_replaced_by_its_owner),
		cmocka_unit_test(what_a_killed_owner_leaves_is_cleaned_up),
		cmocka_unit_test(a_keeper_that_takes_long_is_left),
	};

	return cmocka_run_group_tests_name("keeper", tests, NULL, NULL);
}
