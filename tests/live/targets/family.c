// SPDX-License-Identifier: BSD-2-Clause
/*
 * A family of processes that stay. Bytes on standard input, each answered by a line:
 *     f    forks a child with a child, and one that ends when it has a child      "forked"
 *     w    forks a child by a system call that the C library does not know of     "raw PID"
 *     e    forks a child that executes this program                               "executed PID"
 *     r    all processes call fam_outer ROUNDS times                              "ran"
 *     p    nothing                                                                "pids PID..."
 *     x    the first process ends; a child answers from then on                   "heir"
 *     q    all end, after they have appended their counts to the log              "ended"
 * Usage: family LOG
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "target.h"

#define ROUNDS	  500
#define MOST	  64
#define FD_OPTION "--fd="

enum action { RUN, LEAD, QUIT };

static struct family {
	int round; /* a futex */
	enum action action;
	pid_t heir;
	int done;
	int n;
	pid_t pids[MOST];
	char log[PATH_MAX];
} * family;

static int family_fd;
static const char *program;
static volatile long sink;
static long outers, leaves;

TRACED long fam_leaf(long n)
{
	leaves++;
	sink = n;
	return n + 1;
}

TRACED long fam_outer(long n)
{
	outers++;
	return fam_leaf(n) + fam_leaf(n + 1);
}

static void serve(void);

/* Without the C library's idea of who this is: it may not know. */
static pid_t own_id(void)
{
	return (pid_t)syscall(SYS_getpid);
}

static void wait_for_round(int seen)
{
	while (__atomic_load_n(&family->round, __ATOMIC_ACQUIRE) == seen)
		syscall(SYS_futex, &family->round, FUTEX_WAIT, seen, NULL, NULL, 0);
}

static void work(void)
{
	for (long i = 0; i < ROUNDS; i++)
		if (fam_outer(i) != 2 * i + 3)
			_exit(3);
	__atomic_fetch_add(&family->done, 1, __ATOMIC_RELEASE);
}

static void end(void)
{
	char line[256];
	int fd = open(family->log, O_WRONLY | O_APPEND | O_CREAT, 0644);
	int n = snprintf(line, sizeof(line),
			 "{\"pid\":%d,\"calls\":{\"fam_outer\":%ld,\"fam_leaf\":%ld}}\n",
			 (int)own_id(), outers, leaves);

	if (write(fd, line, n) != n)
		_exit(4);
	__atomic_fetch_add(&family->done, 1, __ATOMIC_RELEASE);
	_exit(0);
}

/* The life of a new process. */
static void follow(int seen)
{
	outers = leaves = 0;
	family->pids[__atomic_fetch_add(&family->n, 1, __ATOMIC_ACQ_REL)] = own_id();
	for (;;) {
		wait_for_round(seen);
		seen = __atomic_load_n(&family->round, __ATOMIC_ACQUIRE);
		if (family->action == RUN)
			work();
		else if (family->action == QUIT)
			end();
		else if (family->heir == own_id())
			serve();
	}
}

static void begin_round(enum action action)
{
	__atomic_store_n(&family->done, 0, __ATOMIC_RELEASE);
	family->action = action;
	__atomic_fetch_add(&family->round, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &family->round, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void wait_for(const int *at, int want)
{
	while (__atomic_load_n(at, __ATOMIC_ACQUIRE) < want)
		target_pause(1);
}

static void fork_family(void)
{
	const int seen = family->round;
	pid_t passing;

	if (!fork()) {
		if (!fork())
			follow(seen);
		follow(seen);
	}
	passing = fork();
	if (!passing) {
		if (!fork())
			follow(seen);
		_exit(0);
	}
	waitpid(passing, NULL, 0);
	wait_for(&family->n, 4);
	for (int i = 0; i < 4; i++)
		wait_for(&family->pids[i], 1); /* a process counts itself, then it writes its id */
	puts("forked");
}

/* No process may change the family's list meanwhile. */
static pid_t make_child(int how)
{
	const int n = family->n, seen = family->round;
	char option[32], round[32];

	family->pids[n] = 0;
	snprintf(option, sizeof(option), FD_OPTION "%d", family_fd);
	snprintf(round, sizeof(round), "%d", seen);
	if (how == 'w' ? !syscall(SYS_fork) : !fork()) {
		if (how == 'e')
			execl(program, program, option, round, NULL);
		follow(seen);
	}
	wait_for(&family->pids[n], 1);
	return family->pids[n];
}

static void answer(int byte)
{
	switch (byte) {
	case 'f':
		fork_family();
		break;
	case 'w':
		printf("raw %d\n", (int)make_child(byte));
		break;
	case 'e':
		printf("executed %d\n", (int)make_child(byte));
		break;
	case 'r':
		begin_round(RUN);
		work();
		wait_for(&family->done, family->n);
		puts("ran");
		break;
	case 'p':
		printf("pids");
		for (int i = 0; i < family->n; i++)
			printf(" %d", (int)family->pids[i]);
		putchar('\n');
		break;
	}
	fflush(stdout);
}

static void serve(void)
{
	for (int byte; (byte = target_getc()) != EOF && byte != 'q';) {
		if (byte != 'x') {
			answer(byte);
			continue;
		}
		/* the last element takes the place of the first */
		family->heir = family->pids[1];
		family->pids[0] = family->pids[--family->n];
		puts("heir");
		fflush(stdout);
		begin_round(LEAD);
		end();
	}
	begin_round(QUIT);
	wait_for(&family->done, family->n - 1);
	puts("ended");
	fflush(stdout);
	end();
}

int main(int argc, char **argv)
{
	const int is_executed = argc > 2 && !strncmp(argv[1], FD_OPTION, strlen(FD_OPTION));

	program = "/proc/self/exe";
	signal(SIGCHLD, SIG_IGN);
	family_fd = is_executed ? atoi(argv[1] + strlen(FD_OPTION)) : memfd_create("family", 0);
	if (!is_executed && ftruncate(family_fd, sizeof(*family)))
		return 2;
	family = mmap(NULL, sizeof(*family), PROT_READ | PROT_WRITE, MAP_SHARED, family_fd, 0);
	if (family == MAP_FAILED)
		return 2;
	if (is_executed)
		follow(atoi(argv[2]));
	snprintf(family->log, sizeof(family->log), "%s", argc > 1 ? argv[1] : "/dev/null");
	family->pids[family->n++] = getpid();
	alarm(600);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	serve();
}
