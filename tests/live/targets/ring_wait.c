// SPDX-License-Identifier: BSD-2-Clause
/*
 * io_uring_enter(2) with two requests, of which one is done at once and the other when a byte comes:
 *
 *     ring_wait [--deferred] together   one call submits both and waits for both
 *     ring_wait [--deferred] apart      a call submits them, another one waits for both
 *
 * --deferred: completions are counted by the waiting thread (IORING_SETUP_DEFER_TASKRUN). Prints one line at the end: a JSON object of the result
 * of the call that waits and how many are done then.
 */
#include <errno.h>
#include <poll.h>

#include "io_ring.h"
#include "target.h"

#define REQUESTS 2

static void push_both(struct ring *r)
{
	unsigned *slots = at(r, r->p.sq_off.array);

	slots[0] = 0;
	slots[1] = 1;
	memset(r->requests, 0, REQUESTS * sizeof(*r->requests));
	r->requests[0].opcode = IORING_OP_NOP;
	r->requests[1].opcode = IORING_OP_POLL_ADD;
	r->requests[1].fd = STDIN_FILENO;
	r->requests[1].poll32_events = POLLIN;
	__atomic_store_n(at(r, r->p.sq_off.tail), REQUESTS, __ATOMIC_RELEASE);
}

static long enter(const struct ring *r, long submit, long wait)
{
	return syscall(SYS_io_uring_enter, r->fd, submit, wait, wait ? IORING_ENTER_GETEVENTS : 0, NULL, 0);
}

int main(int argc, char **argv)
{
	const int deferred = argc > 1 && !strcmp(argv[1], "--deferred"), apart = !strcmp(argv[argc - 1], "apart");
	struct ring r = { 0 };
	long got;

	if (ring_open(&r, deferred ? IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN : 0)) {
		perror("io_uring");
		return 2;
	}
	push_both(&r);
	if (apart && enter(&r, REQUESTS, 0) != REQUESTS) {
		perror("io_uring_enter");
		return 2;
	}
	puts("ready");
	fflush(stdout);
	got = enter(&r, apart ? 0 : REQUESTS, REQUESTS);
	printf("{\"result\":%ld,\"done\":%u}\n", got < 0 ? -errno : got, __atomic_load_n(at(&r, r.p.cq_off.tail), __ATOMIC_ACQUIRE));
	return 0;
}
