// SPDX-License-Identifier: BSD-2-Clause
/*
 * Two threads make fixed numbers of system calls, some of them inside a function; one call is
 * interrupted by a signal, one is made by a child, some after an exec at the end (--exec).
 * With --alone there is no child, with --refuse a seccomp filter refuses some calls. With
 * --hang it finally blocks in a read.
 * Prints {"pid":..,"child":..,"threads":{"TID":{"NAME":count,...},...},"child_calls":{...}},
 * without the calls of the C library's startup and exit code.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "target.h"

#define GETPPIDS 1000 /* of the first thread; the second makes fewer */
#define WRITES 300
#define MISSES 50
#define CHILD_CALLS 5

static int null_fd, second_tid;
static volatile int handled;

static void on_signal(int signal)
{
	(void)signal;
	handled++;
}

static void times(long n, long number)
{
	for (long i = 0; i < n; i++)
		syscall(number, 0, 0, 0);
}

/* A system call inside a function: 7 bytes. */
TRACED void shout(void)
{
	if (syscall(SYS_write, null_fd, "hello!\n", 7) != 7)
		exit(1);
}

static void *second(void *arg)
{
	second_tid = (int)syscall(SYS_gettid);
	times(GETPPIDS - 300, SYS_getppid);
	times(40, SYS_getuid);
	times(10, SYS_sched_yield);
	return arg;
}

/* The signal is pending before the call that unblocks it, so that call never waits. */
static void be_interrupted(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	sigset_t block, none;

	sigaction(SIGUSR1, &action, NULL);
	sigemptyset(&none);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	sigprocmask(SIG_BLOCK, &block, NULL);
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
	sigsuspend(&none);
}

static int make_child(void)
{
	int child = (int)syscall(SYS_fork), status;

	if (!child) {
		times(CHILD_CALLS, SYS_getpgrp);
		syscall(SYS_exit_group, 3);
	}
	if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 3)
		exit(1);
	return child;
}

/* getpgid is refused from now on: its exits have no entry. */
static void refuse_getpgid(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0))
		exit(1);
	for (int i = 0; i < 4; i++)
		if (syscall(SYS_getpgid, 0) != -1 || errno != EPERM)
			exit(1);
}

static void hang(void)
{
	int fds[2];
	char c;

	if (!pipe(fds) && read(fds[0], &c, 1) == 1)
		exit(1);
}

int main(int argc, char **argv)
{
	int exec = 0, hangs = 0, refuse = 0, alone = 0, pid, ppid, child = 0;
	struct target_options o;
	pthread_t thread;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--after-exec")) {
			times(3, SYS_getpgrp);
			return 0;
		}
		exec |= !strcmp(argv[i], "--exec");
		hangs |= !strcmp(argv[i], "--hang");
		refuse |= !strcmp(argv[i], "--refuse");
		alone |= !strcmp(argv[i], "--alone");
	}
	argc -= exec + hangs + refuse + alone; /* these come last */
	o = target_parse(argc, argv);
	pid = getpid();
	ppid = getppid();
	null_fd = open("/dev/null", O_WRONLY);
	target_ready(&o);

	if (pthread_create(&thread, NULL, second, NULL))
		return 1;
	times(GETPPIDS, SYS_getppid);
	for (int i = 0; i < WRITES; i++)
		shout();
	for (int i = 0; i < MISSES; i++)
		if (syscall(SYS_openat, AT_FDCWD, "/nonexistent/file", O_RDONLY) != -1 ||
		    errno != ENOENT)
			return 1;
	pthread_join(thread, NULL);
	be_interrupted();
	if (!alone)
		child = make_child();
	if (refuse)
		refuse_getpgid();

	printf("{\"pid\":%d,\"ppid\":%d,\"child\":%d,\"threads\":{\"%d\":{\"getppid\":%d,\"write\":%d,"
	       "\"openat\":%d,\"rt_sigsuspend\":1,\"rt_sigreturn\":1,\"tgkill\":1,\"fork\":%d,"
	       "\"wait4\":%d},\"%d\":{\"getppid\":%d,\"getuid\":40,\"sched_yield\":10}},"
	       "\"child_calls\":{\"getpgrp\":%d,\"exit_group\":1}}\n",
	       pid, ppid, child, (int)syscall(SYS_gettid), GETPPIDS, WRITES + 1, MISSES,
	       !alone, !alone, second_tid, GETPPIDS - 300, CHILD_CALLS);
	fflush(stdout);
	if (hangs)
		hang();
	if (exec) {
		execl("/proc/self/exe", argv[0], "--after-exec", (char *)NULL);
		return 1;
	}
	return target_done(&o, handled == 1);
}
