// SPDX-License-Identifier: BSD-2-Clause
/*
 * Every kind of call that waits, one a thread. "time": each waits for something that never comes, 8
 * times for 150 ms and once for a second; it must end by its time limit, not earlier. "kept": the same of those
 * whose time a stop does not begin anew. "once": once
 * for 3 s, and prints to standard error how long that took. "signals": each is interrupted by
 * signals whose handler does nothing; a wait that ends with EINTR must have had one.
 */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define HAZARD_FUNCTIONS X(hz_wait) X(hz_check)
#include "hazard.h"

#define ONCE_MS	 5000
#define LONG_MS	 1000
#define SHORT_MS 150
#define SHORTS	 8
#define SIGNALS	 10

struct waiter {
	const char *name;
	int (*wait)(long ms); /* 0: by its time limit; else an errno */
	int expected;	      /* errno that says so */
	int anew;	      /* a stop begins its time anew: kxray-safety(7) */
	pthread_t thread;
	int tid, done;
	long right;
};

static __thread volatile long handled;
static long limit_ms;
static int once, kept, forever; /* waits end by signals only */

static struct timespec in_ms(long ms)
{
	return (struct timespec){ ms / 1000, ms % 1000 * 1000000 };
}

static struct timespec at_ms(clockid_t clock, long ms)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_nsec += ms % 1000 * 1000000;
	t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static int error_of(long result)
{
	return result < 0 ? errno : 0;
}

static int by_epoll(long ms)
{
	struct epoll_event event;
	const int fd = epoll_create1(0), error = error_of(epoll_wait(fd, &event, 1, ms));

	close(fd);
	return error;
}

static int by_epoll_pwait2(long ms)
{
	struct epoll_event event;
	struct timespec t = in_ms(ms);
	const int fd = epoll_create1(0),
		  error = error_of(syscall(SYS_epoll_pwait2, fd, &event, 1, &t, NULL, 0));

	close(fd);
	return error;
}

static int by_poll(long ms)
{
	return error_of(poll(NULL, 0, ms));
}

static int by_ppoll(long ms)
{
	struct timespec t = in_ms(ms);

	return error_of(ppoll(NULL, 0, &t, NULL));
}

static int by_select(long ms)
{
	struct timeval t = { ms / 1000, ms % 1000 * 1000 };

	return error_of(select(0, NULL, NULL, NULL, &t));
}

static int by_pselect(long ms)
{
	struct timespec t = in_ms(ms);

	return error_of(pselect(0, NULL, NULL, NULL, &t, NULL));
}

static int by_nanosleep(long ms)
{
	struct timespec t = in_ms(ms);

	return error_of(nanosleep(&t, NULL));
}

static int by_clock(long ms)
{
	struct timespec t = at_ms(CLOCK_MONOTONIC, ms);

	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static int by_futex(long ms)
{
	struct timespec t = in_ms(ms);
	int word = 0;

	return error_of(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0));
}

static int by_semaphore(long ms)
{
	struct timespec t = at_ms(CLOCK_REALTIME, ms);
	sem_t s;

	sem_init(&s, 0, 0);
	return error_of(sem_timedwait(&s, &t));
}

static int by_semop(long ms)
{
	struct sembuf down = { 0, -1, 0 };
	struct timespec t = in_ms(ms);
	const int id = semget(IPC_PRIVATE, 1, 0600), error = error_of(semtimedop(id, &down, 1, &t));

	semctl(id, 0, IPC_RMID);
	return error;
}

static int by_sigtimedwait(long ms)
{
	struct timespec t = in_ms(ms);
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return error_of(sigtimedwait(&set, NULL, &t));
}

static int by_socket(long ms, int accepts)
{
	struct timeval t = { ms / 1000, ms % 1000 * 1000 };
	const int fd = socket(AF_INET, accepts ? SOCK_STREAM : SOCK_DGRAM, 0);
	char c;
	int error;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	if (accepts)
		listen(fd, 1);
	error = error_of(accepts ? accept(fd, NULL, NULL) : recv(fd, &c, 1, 0));
	close(fd);
	return error;
}

static int by_recv(long ms)
{
	return by_socket(ms, 0);
}

static int by_accept(long ms)
{
	return by_socket(ms, 1);
}

/* Without a limit: "time" ends it by a byte, "signals" by a handler. */
static int by_msgrcv(long ms)
{
	struct {
		long type;
		char text[8];
	} message;
	const int id = msgget(IPC_PRIVATE, 0600),
		  error = forever ? error_of(msgrcv(id, &message, 8, 0, 0)) : by_nanosleep(ms);

	msgctl(id, IPC_RMID, NULL);
	return error;
}

static int by_pause(long ms)
{
	return forever ? error_of(pause()) : by_nanosleep(ms);
}

static struct waiter waiters[] = {
	{ "epoll_wait", by_epoll, 0, 0, 0, 0, 0, 0 },
	{ "epoll_pwait2", by_epoll_pwait2, 0, 1, 0, 0, 0, 0 },
	{ "poll", by_poll, 0, 0, 0, 0, 0, 0 },
	{ "ppoll", by_ppoll, 0, 0, 0, 0, 0, 0 },
	{ "select", by_select, 0, 0, 0, 0, 0, 0 },
	{ "pselect", by_pselect, 0, 0, 0, 0, 0, 0 },
	{ "nanosleep", by_nanosleep, 0, 0, 0, 0, 0, 0 },
	{ "clock_nanosleep", by_clock, 0, 0, 0, 0, 0, 0 },
	{ "futex", by_futex, ETIMEDOUT, 0, 0, 0, 0, 0 },
	{ "sem_timedwait", by_semaphore, ETIMEDOUT, 0, 0, 0, 0, 0 },
	{ "semtimedop", by_semop, EAGAIN, 1, 0, 0, 0, 0 },
	{ "sigtimedwait", by_sigtimedwait, EAGAIN, 1, 0, 0, 0, 0 },
	{ "recv with SO_RCVTIMEO", by_recv, EAGAIN, 1, 0, 0, 0, 0 },
	{ "accept with SO_RCVTIMEO", by_accept, EAGAIN, 1, 0, 0, 0, 0 },
	{ "msgrcv", by_msgrcv, 0, 0, 0, 0, 0, 0 },
	{ "pause", by_pause, 0, 0, 0, 0, 0, 0 },
};

#define WAITERS (long)(sizeof(waiters) / sizeof(*waiters))

HZ int hz_wait(struct waiter *w, long ms)
{
	HIT(hz_wait);
	return w->wait(ms);
}

/* 1 if it ended as it must; says on standard output what is wrong. */
HZ long hz_check(struct waiter *w, int error, long before, long took_ns, long ms)
{
	HIT(hz_check);
	if (once)
		fprintf(stderr, "%s: %ld\n", w->name, took_ns / 1000000);
	if (error == EINTR && handled > before)
		return forever;
	if (error == EINTR)
		printf("%s: EINTR without a handler, after %ld of %ld ms\n", w->name,
		       took_ns / 1000000, ms);
	else if (error != w->expected)
		printf("%s: error %d\n", w->name, error);
	else if (took_ns < ms * 1000000 - 2000000 &&
		 !forever) // poll and others count in ticks of another clock
		printf("%s: %ld of %ld ms\n", w->name, took_ns / 1000000, ms);
	else
		return 1;
	return 0;
}

static long wait_once(struct waiter *w, long ms)
{
	const long before = handled;
	struct timespec a, b;
	int error;

	clock_gettime(CLOCK_MONOTONIC, &a);
	error = hz_wait(w, ms);
	clock_gettime(CLOCK_MONOTONIC, &b);
	return hz_check(w, error, before,
			(b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec, ms);
}

static void *run(void *arg)
{
	struct waiter *w = (struct waiter *)arg;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	__atomic_store_n(&w->tid, (int)gettid(), __ATOMIC_RELEASE);
	if (forever) {
		while (handled < SIGNALS)
			w->right |= !wait_once(w, 60000);
		w->right = !w->right;
	} else {
		long right = wait_once(w, limit_ms);

		for (int i = 0; i < SHORTS && !once; i++)
			right += wait_once(w, SHORT_MS);
		w->right = right == (once ? 1 : SHORTS + 1);
	}
	__atomic_store_n(&w->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void on_signal(int signal)
{
	handled += signal == SIGUSR1;
}

/* Signals to each until it has had enough: one may come between two waits. */
static void interrupt_all(void)
{
	for (int lives = 1; lives;) {
		lives = 0;
		for (long i = 0; i < WAITERS; i++) {
			const int tid = __atomic_load_n(&waiters[i].tid, __ATOMIC_ACQUIRE);

			if (__atomic_load_n(&waiters[i].done, __ATOMIC_ACQUIRE))
				continue;
			lives = 1;
			if (tid)
				syscall(SYS_tgkill, getpid(), tid, SIGUSR1);
		}
		target_pause(100);
	}
}

static int is_left_out(const struct waiter *w)
{
	return kept && w->anew;
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	struct sigaction action = { .sa_handler = on_signal };
	long answer = 0;

	once = o.rest && !strcmp(o.rest, "once");
	limit_ms = once ? ONCE_MS : LONG_MS;
	forever = o.rest && !strcmp(o.rest, "signals");
	sigaction(SIGUSR1, &action, NULL);
	kept = o.rest && !strcmp(o.rest, "kept");
	for (long i = 0; i < WAITERS; i++)
		if (!is_left_out(&waiters[i]) && pthread_create(&waiters[i].thread, NULL, run, &waiters[i]))
			return 2;
	if (forever)
		interrupt_all();
	for (long i = 0; i < WAITERS; i++) {
		if (is_left_out(&waiters[i])) {
			answer++;
			continue;
		}
		pthread_join(waiters[i].thread, NULL);
		answer += waiters[i].right;
	}
	fflush(stdout);
	return hazard_end(&o, answer, WAITERS);
}
