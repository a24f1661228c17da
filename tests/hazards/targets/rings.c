// SPDX-License-Identifier: BSD-2-Clause
/*
 * Requests that the kernel works on while threads wait for them: io_uring of several kinds, with its threads, and Linux' aio. A wait must not
 * end before as many are done as it waits for, and returns how many it has submitted.
 */
#include <errno.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include "io_ring.h"
#include "outer_leaf_threads.h"

#define ROUNDS	  250
#define PAUSE_MS  3
#define FOR_EVER  (1ll << 40) /* seconds */

static struct io_uring_sqe *request(struct ring *r)
{
	unsigned *tail = at(r, r->p.sq_off.tail), n = *tail & (ENTRIES - 1);

	at(r, r->p.sq_off.array)[n] = n;
	memset(&r->requests[n], 0, sizeof(*r->requests));
	return &r->requests[n];
}

static void push(struct ring *r)
{
	__atomic_fetch_add(at(r, r->p.sq_off.tail), 1, __ATOMIC_RELEASE);
}

/* How many are done; takes them away. */
static long done(struct ring *r)
{
	unsigned *head = at(r, r->p.cq_off.head);
	const unsigned n = __atomic_load_n(at(r, r->p.cq_off.tail), __ATOMIC_ACQUIRE) - *head;

	__atomic_fetch_add(head, n, __ATOMIC_RELEASE);
	return n;
}

/* Not IORING_OP_TIMEOUT: a wait for several ends with each of these. */
static void push_time(struct ring *r, int timer, long ms)
{
	const struct itimerspec in = { .it_value = { .tv_nsec = ms * 1000000 } };
	struct io_uring_sqe *q = request(r);

	timerfd_settime(timer, 0, &in, NULL);
	q->opcode = IORING_OP_POLL_ADD;
	q->fd = timer;
	q->poll32_events = POLLIN;
	push(r);
}

static long wake_if_asleep(struct ring *r)
{
	if (!(r->p.flags & IORING_SETUP_SQPOLL))
		return 0;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return *at(r, r->p.sq_off.flags) & IORING_SQ_NEED_WAKEUP ? IORING_ENTER_SQ_WAKEUP : 0;
}

/* Submits @n that take ever longer, and waits for all of them, in one call. */
static long submit_and_wait(struct ring *r, const int *timers, long n, int limited)
{
	struct __kernel_timespec ever = { .tv_sec = FOR_EVER };
	struct io_uring_getevents_arg arg = { .ts = (unsigned long)&ever };
	long got, all;

	for (long i = 0; i < n; i++)
		push_time(r, timers[i], PAUSE_MS * (i + 1));
	got = syscall(SYS_io_uring_enter, r->fd, n, n, IORING_ENTER_GETEVENTS | wake_if_asleep(r) | (limited ? IORING_ENTER_EXT_ARG : 0),
		      limited ? (void *)&arg : NULL, limited ? sizeof(arg) : 0);
	all = done(r);
	if (got == n && all == n)
		return 1;
	printf("%ld requests: result %ld, %ld done\n", n, got < 0 ? -errno : got, all);
	for (; all < n; all += done(r)) {
		syscall(SYS_io_uring_enter, r->fd, 0, 0, IORING_ENTER_GETEVENTS, NULL, 0);
		target_pause(1);
	}
	return 0;
}

static long rounds(unsigned flags, long n, int limited)
{
	const int timers[] = { timerfd_create(CLOCK_MONOTONIC, 0), timerfd_create(CLOCK_MONOTONIC, 0) };
	struct ring r;
	long right = 0;

	if (ring_open(&r, flags))
		return ROUNDS;
	for (int i = 0; i < ROUNDS; i++)
		right += submit_and_wait(&r, timers, n, limited) && hz_outer(i) == 2 * (i + 1);
	close(r.fd);
	return right;
}

static long by_one(void)
{
	return rounds(0, 1, 0);
}

static long by_two(void)
{
	return rounds(0, 2, 0);
}

static long by_limit(void)
{
	return rounds(0, 1, 1);
}

static long by_poller(void)
{
	return rounds(IORING_SETUP_SQPOLL, 1, 0);
}

static long by_deferred(void)
{
	return rounds(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, 2, 0);
}

/* A worker of the kernel sleeps in a read, which another worker's write ends. */
static long by_workers(void)
{
	static const char *const text = "!";
	struct ring r;
	long right = 0;
	int ends[2];
	char c = 0;

	if (pipe(ends) || ring_open(&r, 0))
		return ROUNDS;
	for (int i = 0; i < ROUNDS; i++, c = 0) {
		for (int writes = 0; writes < 2; writes++) {
			struct io_uring_sqe *q = request(&r);

			q->opcode = writes ? IORING_OP_WRITE : IORING_OP_READ;
			q->flags = IOSQE_ASYNC;
			q->fd = ends[writes];
			q->addr = writes ? (unsigned long)text : (unsigned long)&c;
			q->len = 1;
			push(&r);
			if (!writes && syscall(SYS_io_uring_enter, r.fd, 1, 0, 0, NULL, 0) != 1)
				printf("not submitted\n");
			target_pause(1);
		}
		if (syscall(SYS_io_uring_enter, r.fd, 1, 2, IORING_ENTER_GETEVENTS, NULL, 0) == 1 && done(&r) == 2 && c == *text &&
		    hz_outer(i) == 2 * (i + 1))
			right++;
		else
			printf("workers: round %d\n", i);
	}
	close(r.fd);
	return right;
}

/* Of two requests, one is done at once. */
static long by_aio(void)
{
	const int first = eventfd(1, 0), timer = timerfd_create(CLOCK_MONOTONIC, 0);
	const struct itimerspec in = { .it_value = { .tv_nsec = PAUSE_MS * 1000000 } };
	aio_context_t context = 0;
	long right = 0;

	if (syscall(SYS_io_setup, 8, &context))
		return ROUNDS;
	for (int i = 0; i < ROUNDS; i++) {
		struct iocb a = { .aio_lio_opcode = IOCB_CMD_POLL, .aio_fildes = (unsigned)first, .aio_buf = POLLIN };
		struct iocb b = { .aio_lio_opcode = IOCB_CMD_POLL, .aio_fildes = (unsigned)timer, .aio_buf = POLLIN };
		struct iocb *both[] = { &a, &b };
		struct io_event events[2];
		long got;

		timerfd_settime(timer, 0, &in, NULL);
		if (syscall(SYS_io_submit, context, 2, both) != 2)
			printf("not submitted\n");
		got = syscall(SYS_io_getevents, context, 2, 2, events, NULL);
		if (got == 2 && hz_outer(i) == 2 * (i + 1))
			right++;
		else
			printf("aio: %ld\n", got < 0 ? -errno : got);
		while (got >= 0 && got < 2)
			got += syscall(SYS_io_getevents, context, 1, 1, events, NULL);
	}
	return right;
}

static long (*const kinds[])(void) = { by_one, by_two, by_limit, by_poller, by_deferred, by_workers, by_aio };

#define KINDS (long)(sizeof(kinds) / sizeof(*kinds))

static void *run(void *kind)
{
	return (void *)kinds[(long)kind]();
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	pthread_t threads[KINDS];
	long answer = 0;

	for (long i = 0; i < KINDS; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)i))
			return 2;
	for (long i = 0; i < KINDS; i++) {
		void *right;

		pthread_join(threads[i], &right);
		answer += (long)right;
	}
	fflush(stdout);
	return hazard_end(&o, answer, KINDS * ROUNDS);
}
