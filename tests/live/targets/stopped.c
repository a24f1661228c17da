// SPDX-License-Identifier: BSD-2-Clause
/*
 * Threads that another process stops and borrows while they do what a stop could harm:
 *
 *     stopped epoll MS      epoll_wait for MS milliseconds; a signal SIGUSR1 has a handler
 *     stopped semop         semop, until a byte comes
 *     stopped vfork         waits for a child of vfork, which ends when a byte comes; then calls as usual
 *     stopped vfork strict  the same; then strict seccomp forbids all but to read, write and end
 *     stopped threads       starts and joins threads until a byte comes
 *     stopped signals N     N queued signals to a thread that computes, then to one that sleeps
 *     stopped work          a thread computes, another waits, until a byte comes; checks signal stack and mask
 *     stopped leaderless    the same, and the main thread has ended
 *     stopped nanosleep     sleeps for 1000 s, and once more for what is left when SIGUSR1 comes; says by how many ms the rest and what had passed exceed 1000 s
 *     stopped sleeps MS     each call that only the kernel can continue, for MS milliseconds; counts those that end too early or with another result
 *     stopped pause N       N times pause, each ended by SIGUSR1; a line for each
 *     stopped seccomp       as work, with a filter that allows all
 *     stopped filtered      the same, of another thread than the main one only
 *
 * Prints one line at the end: a JSON object.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "target.h"

static atomic_long handled, wrong, rounds; /* wrong: what a thread finds changed */
static atomic_int over;

static void handle(int sig)
{
	(void)sig;
	handled++;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void wait_for_byte(void)
{
	char c;

	while (read(STDIN_FILENO, &c, 1) < 0 && errno == EINTR)
		;
}

static void say_ready(void)
{
	puts("ready");
	fflush(stdout);
}

static int run_epoll(const char *ms)
{
	const int fd = epoll_create1(0);
	struct epoll_event e;
	double begin;
	int n, code;

	say_ready();
	wait_for_byte();
	begin = seconds();
	n = epoll_wait(fd, &e, 1, atoi(ms));
	code = n < 0 ? errno : 0;
	printf("{\"result\":%d,\"errno\":%d,\"handled\":%ld,\"ms\":%.0f}\n", n, code, (long)handled, (seconds() - begin) * 1e3);
	return 0;
}

static int semaphore;

static void *post_later(void *arg)
{
	struct sembuf up = { 0, 1, 0 };

	wait_for_byte();
	semop(semaphore, &up, 1);
	return arg;
}

static int run_semop(void)
{
	struct sembuf down = { 0, -1, 0 };
	pthread_t thread;
	int n, code;

	semaphore = semget(IPC_PRIVATE, 1, 0600);
	pthread_create(&thread, NULL, post_later, NULL);
	say_ready();
	n = semop(semaphore, &down, 1);
	code = n < 0 ? errno : 0;
	pthread_join(thread, NULL);
	semctl(semaphore, 0, IPC_RMID);
	printf("{\"result\":%d,\"errno\":%d}\n", n, code);
	return 0;
}

static int run_vfork(bool strict)
{
	static volatile int fed;
	int status = -1;
	pid_t pid;
	char c;

	say_ready();
	pid = vfork();
	if (!pid) {
		while (read(STDIN_FILENO, &c, 1) < 0)
			;
		fed = 1;
		_exit(7);
	}
	if (strict) {
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
		(void)!write(STDOUT_FILENO, "strict\n", 7);
		while (read(STDIN_FILENO, &c, 1) < 0)
			;
		syscall(SYS_exit, 0);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	puts("vforked");
	fflush(stdout);
	wait_for_byte();
	printf("{\"status\":%d,\"fed\":%d}\n", WEXITSTATUS(status), fed);
	return 0;
}

static void *add_one(void *arg)
{
	atomic_fetch_add((atomic_long *)arg, 1);
	return NULL;
}

static void *wait_in_thread(void *arg)
{
	wait_for_byte();
	over = 1;
	return arg;
}

static int run_threads(void)
{
	atomic_long sum = 0;
	pthread_t waiter;
	long n = 0;

	pthread_create(&waiter, NULL, wait_in_thread, NULL);
	say_ready();
	while (!over) {
		pthread_t some[4];

		for (int i = 0; i < 4; i++)
			pthread_create(&some[i], NULL, add_one, &sum);
		for (int i = 0; i < 4; i++)
			pthread_join(some[i], NULL);
		n += 4;
	}
	pthread_join(waiter, NULL);
	printf("{\"started\":%ld,\"ran\":%ld}\n", n, (long)sum);
	return 0;
}

static void *compute(void *arg)
{
	volatile double x = 1;

	while (!over)
		x = x * 1.0000001 + 0.5;
	return arg;
}

static void *sleep_long(void *arg)
{
	const struct timespec t = { .tv_nsec = 1000000 };

	while (!over)
		nanosleep(&t, NULL);
	return arg;
}

static int run_signals(const char *count)
{
	const long n = atol(count);
	pthread_t busy, sleepy;

	pthread_create(&busy, NULL, compute, NULL);
	pthread_create(&sleepy, NULL, sleep_long, NULL);
	say_ready();
	for (long i = 0; i < n; i++) {
		while (pthread_sigqueue(i % 2 ? busy : sleepy, SIGRTMIN, (union sigval){ .sival_int = 1 }))
			sched_yield();
		usleep(100);
	}
	puts("sent");
	fflush(stdout);
	wait_for_byte();
	over = 1;
	pthread_join(busy, NULL);
	pthread_join(sleepy, NULL);
	printf("{\"sent\":%ld,\"handled\":%ld}\n", n, (long)handled);
	return 0;
}

/* What the kernel keeps of each thread, and a borrowed call must leave. */
static void check_state(const stack_t *stack, const sigset_t *mask)
{
	sigset_t now;
	stack_t s;

	sigaltstack(NULL, &s);
	pthread_sigmask(SIG_SETMASK, NULL, &now);
	wrong += s.ss_sp != stack->ss_sp || s.ss_size != stack->ss_size || s.ss_flags != stack->ss_flags;
	for (int i = 1; i < 32; i++)
		wrong += sigismember(&now, i) != sigismember(mask, i);
}

/* Registers, flags, vector registers, red zone and errno, through which nothing may be seen of a borrowed call. */
static void *check_registers(void *arg)
{
	static __thread char memory[65536];
	const stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	sigaltstack(&stack, NULL);
	while (!over) {
		unsigned long bad = 0;

		errno = 77;
		__asm__ volatile("movq $0x1111, %%r8\n movq $0x2222, %%r9\n movq $0x3333, %%r10\n movq $0x4444, %%r11\n"
				 "movq $0x5555, %%rcx\n movq $0x6666, %%rdx\n movq $0x7777, -64(%%rsp)\n movq %%r8, %%xmm3\n"
				 "movl $20000, %%eax\n stc\n"
				 "1: leal -1(%%eax), %%eax\n movl %%eax, %%esi\n jnc 2f\n incl %%esi\n decl %%esi\n jnc 2f\n"
				 "cmpq $0x1111, %%r8\n jne 2f\n cmpq $0x2222, %%r9\n jne 2f\n cmpq $0x3333, %%r10\n jne 2f\n"
				 "cmpq $0x4444, %%r11\n jne 2f\n cmpq $0x5555, %%rcx\n jne 2f\n cmpq $0x6666, %%rdx\n jne 2f\n"
				 "cmpq $0x7777, -64(%%rsp)\n jne 2f\n movq %%xmm3, %%rdi\n cmpq $0x1111, %%rdi\n jne 2f\n"
				 "stc\n testl %%esi, %%esi\n stc\n jnz 1b\n jmp 3f\n"
				 "2: movq $1, %0\n 3:\n"
				 : "+b"(bad)
				 :
				 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm3", "cc", "memory");
		wrong += (long)bad + (errno != 77);
		check_state(&stack, &mask);
		rounds++;
	}
	return arg;
}

static void *finish_work(void *arg)
{
	const pthread_t *busy = arg;
	int code;

	wait_for_byte();
	over = 1;
	code = pthread_join(*busy, NULL);
	printf("{\"wrong\":%ld,\"worked\":%d,\"joined\":%d}\n", (long)wrong, rounds > 0, code);
	return NULL;
}

static int run_work(int leaderless)
{
	static pthread_t busy;
	pthread_t last;

	pthread_create(&busy, NULL, check_registers, NULL);
	if (leaderless) {
		pthread_create(&last, NULL, finish_work, &busy);
		say_ready();
		pthread_exit(NULL); /* the status is that of the last thread to end: 0 */
	}
	say_ready();
	finish_work(&busy);
	return 0;
}

static int run_pause(const char *count)
{
	const long n = atol(count);
	const struct sigaction sa = { .sa_handler = handle };

	sigaction(SIGUSR1, &sa, NULL);
	say_ready();
	for (long i = 1; i <= n; i++) {
		while (handled < i)
			pause();
		printf("paused %ld\n", i);
		fflush(stdout);
	}
	return 0;
}

static void allow_all(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_fprog filter = { 1, &allow };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		exit(3);
}

static void *filtered_thread(void *arg)
{
	allow_all();
	atomic_store((atomic_int *)arg, 1);
	for (;;)
		pause();
	return NULL;
}

static void start_filtered(void)
{
	static atomic_int filtered;
	pthread_t thread;

	pthread_create(&thread, NULL, filtered_thread, &filtered);
	while (!filtered)
		sched_yield();
}

static int run_nanosleep(void)
{
	const struct timespec t = { .tv_sec = 1000 };
	struct sigaction sa = { .sa_handler = handle };
	struct timespec rest = { 0 };
	double begin, over_ms;
	int n, code;

	sigaction(SIGUSR1, &sa, NULL);
	say_ready();
	begin = seconds();
	n = nanosleep(&t, &rest);
	code = n < 0 ? errno : 0;
	over_ms = ((double)rest.tv_sec + (double)rest.tv_nsec / 1e9 + seconds() - begin - 1000) * 1e3;
	printf("{\"result\":%d,\"errno\":%d,\"handled\":%ld,\"over_ms\":%.3f}\n", n, code, (long)handled, over_ms);
	return 0;
}

static int sleep_by(int how, long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };
	int word = 0;

	switch (how) {
	case 0:
		return nanosleep(&t, NULL);
	case 1:
		return clock_nanosleep(CLOCK_REALTIME, 0, &t, NULL);
	case 2:
		return (int)syscall(SYS_poll, NULL, 0, (int)ms);
	case 3:
		return (int)syscall(SYS_select, 0, NULL, NULL, NULL, &tv);
	default:
		return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0) < 0 && errno == ETIMEDOUT ? 0 : -1;
	}
}

static int run_sleeps(const char *value)
{
	const long ms = atol(value);
	int bad = 0, early = 0;

	say_ready();
	for (int how = 0; how < 5; how++) {
		const double begin = seconds();

		bad += sleep_by(how, ms) != 0;
		early += seconds() - begin < (double)ms / 1e3 - 0.001; /* poll counts in another clock's ticks */
	}
	printf("{\"wrong\":%d,\"early\":%d}\n", bad, early);
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "", *value = argc > 2 ? argv[2] : "0";
	struct sigaction sa = { .sa_handler = handle, .sa_flags = SA_RESTART };

	sigaction(SIGUSR1, &sa, NULL);
	sigaction(SIGRTMIN, &sa, NULL);
	if (!strcmp(mode, "epoll"))
		return run_epoll(value);
	if (!strcmp(mode, "semop"))
		return run_semop();
	if (!strcmp(mode, "vfork"))
		return run_vfork(argc > 2);
	if (!strcmp(mode, "threads"))
		return run_threads();
	if (!strcmp(mode, "signals"))
		return run_signals(value);
	if (!strcmp(mode, "nanosleep"))
		return run_nanosleep();
	if (!strcmp(mode, "sleeps"))
		return run_sleeps(value);
	if (!strcmp(mode, "pause"))
		return run_pause(value);
	if (!strcmp(mode, "seccomp"))
		allow_all();
	if (!strcmp(mode, "filtered"))
		start_filtered();
	return run_work(!strcmp(mode, "leaderless"));
}
