// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/remote_threads.h"

#include <errno.h>
#include <math.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "base/array.h"
#include "base/each_number.h"
#include "base/monotonic.h"
#include "tracer/frozen_group.h"
#include "tracer/remote_able.h"
#include "tracer/remote_rings.h"
#include "tracer/remote_stop.h"
#include "tracer/remote_transfers.h"
#include "tracer/remote_waits.h"

#define POLL_US 20
/* How often a thread that has not stopped is polled before its state is read. */
#define POLLS_TO_LOOK	16

#define USER_CS		0x33 /* of 64-bit code */

enum thread_state {
	THREAD_SEIZED,
	THREAD_STOPPED,
	THREAD_GONE,
};

struct thread {
	pid_t tid;
	enum thread_state state;
	bool stuck; /* when it was seized */
	bool asked; /* to stop */
	struct kx_remote_sleep sleep;
	struct user_regs_struct regs;
	uint64_t rseq;
};

struct kx_remote_stop {
	struct kx_tracer_thread tracer;
	pid_t pid;
	unsigned wait_ms;
	struct thread *threads;
	size_t n, room;
	double since;
	struct kx_err err;
	sem_t stopped, go_on;
	int result;
	struct kx_remote_call *calls; /* that are asked for before go_on; NULL: the end */
	size_t ncalls;
};

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem) && errno == EINTR)
		;
}

static bool is_known(const struct kx_remote_stop *s, pid_t tid)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->threads[i].tid == tid)
			return true;
	return false;
}

static int add(struct kx_remote_stop *s, pid_t tid)
{
	struct thread *t;

	if (KX_ARRAY_RESERVE(s->threads, s->room, s->n))
		return kx_err_set(&s->err, -ENOMEM, "out of memory");
	t = &s->threads[s->n++];
	*t = (struct thread){ .tid = tid };
	if (kx_remote_is_worker(s->pid, tid)) {
		t->state = THREAD_GONE;
		return 0;
	}
	t->stuck = kx_remote_is_stuck(s->pid, tid);
	kx_remote_sleep_look(s->pid, tid, &t->sleep);
	switch (kx_remote_seize(s->pid, tid, PTRACE_O_TRACESYSGOOD, &s->err)) {
	case 0:
		t->state = THREAD_SEIZED;
		return 0;
	case -ESRCH:
		t->state = THREAD_GONE;
		return 0;
	}
	return s->err.code;
}

struct seizing {
	struct kx_remote_stop *s;
	int code;
};

static int seize_if_new(void *ctx, pid_t tid)
{
	struct seizing *seizing = ctx;

	if (!is_known(seizing->s, tid))
		seizing->code = add(seizing->s, tid);
	return seizing->code;
}

/* Begins to trace the threads that are new since the last time; @first: the first of them. */
static int seize_new(struct kx_remote_stop *s, size_t *first)
{
	struct seizing seizing = { .s = s };
	int code;

	*first = s->n;
	code = kx_each_thread(s->pid, seize_if_new, &seizing);
	return !code || seizing.code ? code : kx_remote_unlisted(s->pid, code, &s->err);
}

/* A thread has stopped. */
static int take_registers(struct kx_remote_stop *s, struct thread *t)
{
	if (ptrace(PTRACE_GETREGS, t->tid, NULL, &t->regs)) {
		t->state = THREAD_GONE;
		return 0;
	}
	t->state = THREAD_STOPPED;
	if (t->regs.cs != USER_CS)
		return kx_err_set(&s->err, -EOPNOTSUPP, "process %d runs 32-bit code", (int)s->pid);
	if (kx_remote_mend_wait(s->pid, t->tid, &t->regs, &t->sleep))
		ptrace(PTRACE_SETREGS, t->tid, NULL, &t->regs);
	kx_remote_mend_ring_wait(s->pid, t->tid, &t->regs);
	t->rseq = kx_remote_rseq(t->tid);
	return 0;
}

static void ask(struct thread *t)
{
	t->asked = true;
	ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL);
}

/* One look at all threads from @first on that have not stopped; *@missing: one of them, 0: there is
 * none. */
static int poll_threads(struct kx_remote_stop *s, size_t first, bool look, pid_t *missing)
{
	*missing = 0;
	for (size_t i = first; i < s->n; i++) {
		struct thread *t = &s->threads[i];
		int got, code;

		if (t->state != THREAD_SEIZED)
			continue;
		if (look && !t->asked && !s->result && !kx_remote_is_stuck(s->pid, t->tid))
			ask(t);
		got = kx_remote_has_stopped(t->tid);
		if (got < 0 || (!got && look && kx_remote_has_ended(s->pid, t->tid)))
			t->state = THREAD_GONE;
		else if (!got)
			*missing = t->tid;
		code = got == 1 ? take_registers(s, t) : 0;
		if (code)
			return code;
	}
	return 0;
}

/* One of the threads from @first on that a stop would cut a transfer of; 0: there is none. */
static pid_t in_transfer(const struct kx_remote_stop *s, size_t first)
{
	for (size_t i = first; i < s->n; i++)
		if (s->threads[i].state == THREAD_SEIZED && kx_remote_is_in_transfer(s->pid, s->threads[i].tid))
			return s->threads[i].tid;
	return 0;
}

static void let_go(struct kx_remote_stop *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->threads[i].state == THREAD_STOPPED) {
			ptrace(PTRACE_DETACH, s->threads[i].tid, NULL, 0L);
			s->threads[i].state = THREAD_GONE;
		}
}

/* Takes the threads out of the stopped ones that the stop has cut a transfer of; returns how many. */
static size_t take_cut(struct kx_remote_stop *s, struct kx_cut_transfer *cut)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		struct thread *t = &s->threads[i];

		if (t->state != THREAD_STOPPED || !kx_remote_is_cut(s->pid, t->tid, &t->regs, &cut[n]))
			continue;
		n++;
		t->state = THREAD_GONE;
	}
	return n;
}

/* Whether threads that were asked to stop have not; *@lost: all of them are, after @until (kx_remote_is_lost). */
static bool is_awaited(const struct kx_remote_stop *s, double until, bool *lost)
{
	bool awaited = false;

	*lost = true;
	for (size_t i = 0; i < s->n; i++)
		if (s->threads[i].state == THREAD_SEIZED && s->threads[i].asked) {
			awaited = true;
			*lost &= kx_remote_is_lost(s->pid, s->threads[i].tid, until);
		}
	return awaited;
}

/* All that has stopped, or will since it was asked to, goes on; last, threads in a transfer, for which others may have to run. */
static void release(struct kx_remote_stop *s)
{
	struct kx_cut_transfer *cut = calloc(s->n + 1, sizeof(*cut));
	const double until = kx_monotonic_seconds() + KX_LOST_SECONDS;
	size_t n = 0;
	pid_t missing;
	bool lost;

	for (unsigned looks = 0; looks < KX_LOST_LOOKS; looks = lost ? looks + 1 : 0) {
		if (cut)
			n += take_cut(s, cut + n);
		let_go(s);
		if (!is_awaited(s, until, &lost))
			break;
		kx_remote_pause(POLL_US);
		poll_threads(s, 0, true, &missing);
	}
	kx_remote_transfers_finish(cut, n, kx_monotonic_seconds() + KX_TRANSFER_SECONDS);
	for (size_t i = 0; i < n; i++)
		ptrace(PTRACE_DETACH, cut[i].tid, NULL, 0L);
	free(cut);
}

/* Those that have stopped go on and count as new; only those that are traced and run are known afterwards. */
static void forget_stopped(struct kx_remote_stop *s)
{
	size_t n = 0;

	release(s);
	for (size_t i = 0; i < s->n; i++)
		if (s->threads[i].state == THREAD_SEIZED)
			s->threads[n++] = s->threads[i];
	s->n = n;
	s->since = 0;
}

/*
 * They go on meanwhile, as do all others: *@first becomes 0 if some were stopped. What begins after the last look may be cut, so nothing is
 * done between that and the stop.
 */
static int wait_for_transfers(struct kx_remote_stop *s, size_t *first, double until)
{
	for (unsigned looks = 0;; kx_remote_pause(KX_TRANSFER_LOOK_US)) {
		const pid_t tid = in_transfer(s, *first);

		looks = tid ? 0 : looks + 1;
		if (looks == KX_TRANSFER_LOOKS)
			return 0;
		if (tid && kx_monotonic_seconds() > until)
			return kx_err_set(&s->err, -EBUSY,
					  "thread %d of process %d cannot be stopped: it is in the middle of a write, send or receive, "
					  "which would be cut short",
					  (int)tid, (int)s->pid);
		if (tid && *first) {
			forget_stopped(s);
			*first = 0;
		}
	}
}

static int say_missing(struct kx_remote_stop *s, pid_t tid)
{
	const bool stuck = kx_remote_is_stuck(s->pid, tid);

	if (stuck && kx_frozen_group_check(s->pid, &s->err))
		return s->err.code;
	return kx_err_set(&s->err, -EBUSY, "thread %d of process %d cannot be stopped: %s", (int)tid, (int)s->pid,
			  stuck ? "it waits in the kernel, as after vfork or for a file server" : "it gets no CPU");
}

static int stop_new(struct kx_remote_stop *s, size_t first, double until)
{
	pid_t missing;
	int code = wait_for_transfers(s, &first, until);

	if (code)
		return code;
	if (!s->since)
		s->since = kx_monotonic_seconds();
	for (size_t i = first; i < s->n; i++)
		if (s->threads[i].state == THREAD_SEIZED && !s->threads[i].stuck)
			ask(&s->threads[i]);
	for (unsigned polls = 0;; polls++) {
		code = poll_threads(s, first, polls % POLLS_TO_LOOK == POLLS_TO_LOOK - 1, &missing);
		if (code || !missing)
			return code;
		if (kx_monotonic_seconds() > until)
			return say_missing(s, missing);
		kx_remote_pause_for(missing, POLL_US);
	}
}

/* Until no thread is new: those that run may start others. */
static int stop_once(struct kx_remote_stop *s, double until)
{
	size_t first, stopped = 0;
	int code;

	do {
		code = seize_new(s, &first);
		if (!code && first < s->n)
			code = stop_new(s, first, until);
	} while (!code && first < s->n);
	for (size_t i = 0; i < s->n; i++)
		stopped += s->threads[i].state == THREAD_STOPPED;
	if (!code && !stopped)
		return kx_err_set(&s->err, -ESRCH, "process %d has ended", (int)s->pid);
	return code;
}

/*
 * All but the threads in @cut go on, then these do the rest. They stay stopped at its end, and all others count as new: one that makes such calls
 * all the time would be cut again.
 */
static void finish_transfers(struct kx_remote_stop *s, struct kx_cut_transfer *cut, size_t n, double until)
{
	let_go(s);
	kx_remote_transfers_finish(cut, n, fmax(until, kx_monotonic_seconds() + KX_TRANSFER_SECONDS));
	s->n = 0;
	for (size_t i = 0; i < n; i++) {
		struct thread *t = &s->threads[s->n];

		*t = (struct thread){ .tid = cut[i].tid };
		if (!take_registers(s, t) && t->state == THREAD_STOPPED)
			s->n++;
	}
	s->since = kx_monotonic_seconds();
}

/* Whether a transfer has been cut, and is finished. -ENOMEM. */
static int mend_transfers(struct kx_remote_stop *s, double until)
{
	struct kx_cut_transfer *cut = calloc(s->n + 1, sizeof(*cut));
	size_t n;

	if (!cut)
		return kx_err_set(&s->err, -ENOMEM, "out of memory");
	n = take_cut(s, cut);
	if (n)
		finish_transfers(s, cut, n, until);
	free(cut);
	return n > 0;
}

static int stop_all(struct kx_remote_stop *s)
{
	const double until = kx_monotonic_seconds() + s->wait_ms / 1e3;
	int code;

	do {
		code = stop_once(s, until);
		if (!code)
			code = mend_transfers(s, until);
	} while (code > 0);
	return code;
}

/* By a thread that has stopped. */
static int make_calls(struct kx_remote_stop *s)
{
	pid_t *tids = calloc(s->n + 1, sizeof(*tids));
	size_t n = 0;
	int code;

	if (!tids)
		return kx_err_set(&s->err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < s->n; i++)
		if (s->threads[i].state == THREAD_STOPPED)
			tids[n++] = s->threads[i].tid;
	code = kx_remote_calls_of_stopped(s->pid, tids, n, s->calls, s->ncalls, &s->err);
	free(tids);
	return code;
}

/* The life of the thread that traces. */
static int run_tracer(void *arg)
{
	struct kx_remote_stop *s = arg;

	s->result = stop_all(s);
	if (s->result)
		release(s);
	sem_post(&s->stopped);
	if (!s->result)
		wait_for(&s->go_on);
	for (; s->calls; wait_for(&s->go_on)) {
		s->result = make_calls(s);
		s->calls = NULL;
		sem_post(&s->stopped);
	}
	let_go(s);
	return 0;
}

static void free_stop(struct kx_remote_stop *s)
{
	sem_destroy(&s->stopped);
	sem_destroy(&s->go_on);
	free(s->threads);
	free(s);
}

static int stop_threads(pid_t pid, unsigned wait_ms, struct kx_remote_threads *out, struct kx_err *err)
{
	struct kx_remote_stop *s = calloc(1, sizeof(*s));
	int code;

	if (!s)
		return kx_err_set(err, -ENOMEM, "out of memory");
	s->pid = pid;
	s->wait_ms = wait_ms;
	sem_init(&s->stopped, 0, 0);
	sem_init(&s->go_on, 0, 0);
	code = kx_tracer_thread_start(&s->tracer, run_tracer, s);
	if (code) {
		free_stop(s);
		return kx_err_set(err, code, "process %d: no thread can be started that stops it: %s", (int)pid, strerror(-code));
	}
	wait_for(&s->stopped);
	code = s->result;
	if (!code) {
		out->stop = s;
		out->since = s->since;
		out->items = calloc(s->n, sizeof(*out->items));
		for (size_t i = 0; out->items && i < s->n; i++)
			if (s->threads[i].state == THREAD_STOPPED)
				out->items[out->n++] = (struct kx_remote_thread){ s->threads[i].tid, s->threads[i].regs, s->threads[i].rseq };
		return out->items ? 0 : kx_err_set(err, -ENOMEM, "out of memory");
	}
	kx_tracer_thread_join(&s->tracer);
	kx_err_set(err, code, "%s", s->err.text);
	free_stop(s);
	return code;
}

int kx_remote_threads_stop(pid_t pid, unsigned wait_ms, struct kx_remote_threads *out,
			   struct kx_err *err)
{
	int code;

	*out = (struct kx_remote_threads){ 0 };
	kx_patch_pause_begin(&out->pause, kx_patch_pause_priority(pid));
	code = stop_threads(pid, wait_ms, out, err);
	if (code)
		kx_remote_threads_resume(out, NULL);
	return code;
}

int kx_remote_threads_call(struct kx_remote_threads *t, struct kx_remote_call *calls, size_t n,
			   struct kx_err *err)
{
	struct kx_remote_stop *s = t->stop;

	s->err = (struct kx_err){ 0 };
	s->calls = calls;
	s->ncalls = n;
	sem_post(&s->go_on);
	wait_for(&s->stopped);
	return s->result && s->result != -EAGAIN ? kx_err_set(err, s->result, "%s", s->err.text) :
						   s->result;
}

void kx_remote_threads_resume(struct kx_remote_threads *t, double *longest_ms)
{
	const double since = t->since;
	double ms;

	if (t->stop) {
		sem_post(&t->stop->go_on);
		kx_tracer_thread_join(&t->stop->tracer);
		free_stop(t->stop);
	}
	ms = (kx_monotonic_seconds() - since) * 1e3;
	kx_patch_pause_end(&t->pause);
	free(t->items);
	*t = (struct kx_remote_threads){ 0 };
	if (longest_ms && *longest_ms < ms)
		*longest_ms = ms;
}
