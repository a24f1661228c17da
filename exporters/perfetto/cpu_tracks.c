// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/perfetto/cpu_tracks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "exporters/perfetto/bundle.h"

#define UNTRACED UINT32_MAX /* instead of a thread's index */
#define NO_CPU	 UINT32_MAX

/* The states' bits as sched_switch reports them, up to kernel 4.13 and since. */
#define UNKNOWN 3 /* asleep and blocked: no thread is both */

static const struct {
	char letter;
	uint16_t before, since;
} states[] = {
	{ 'R', 0, 0 }, { 'N', 0, 0 }, { 'S', 1, 1 },   { 'D', 2, 2 },	     { 'F', 2, 2 },
	{ 'T', 4, 4 }, { 't', 8, 8 }, { 'X', 16, 16 }, { 'P', 0x200, 0x40 }, { 'I', 0x402, 0x80 },
};

/* A thread that was walked. */
struct kx_pf_woken {
	const struct kx_spooled *runs; /* its newest begin on a CPU, while it is there */
	uint32_t cpu, last_cpu;	       /* where it runs, and where it last left; or NO_CPU */
	bool walked, has_track;
};

/* A thread's id, to find it by. */
struct identity {
	uint32_t tid, index;
};

struct cpu {
	struct kx_pf_bundle bundle;
	uint32_t current; /* thread, or UNTRACED */
	bool begun;
};

struct sweep {
	struct kx_pf_cpu_tracks *c;
	struct kx_pf_out *o;
	struct cpu *cpus;
	size_t ncpus;
	struct identity *ids;
	size_t nids;
	uint64_t flows;
	bool left_out; /* CPUs from KX_PF_MAX_CPUS on */
};

static int no_memory(struct kx_pf_out *o)
{
	return kx_err_set(o->err, -ENOMEM, "out of memory for the CPUs' tracks");
}

static int spool(struct kx_pf_cpu_tracks *c, struct kx_pf_out *o, const struct kx_spooled *record)
{
	int r = kx_spool_add(&c->spool, record);

	return r ? kx_err_set(o->err, r,
			      "cannot put the scheduler's events into a temporary file: %s",
			      strerror(-r))
		 : 0;
}

int kx_pf_cpu_thread(struct kx_pf_cpu_tracks *c, struct kx_pf_out *o,
		     const struct kx_call_thread *t)
{
	if (!c->threads) {
		c->nthreads = kx_calls_nthreads(o->x->calls);
		c->threads = calloc(c->nthreads + 1, sizeof(*c->threads));
		if (!c->threads)
			return no_memory(o);
	}
	c->threads[t->index] =
		(struct kx_pf_woken){ .cpu = NO_CPU, .last_cpu = NO_CPU, .walked = true };
	return 0;
}

int kx_pf_cpu_running(struct kx_pf_cpu_tracks *c, struct kx_pf_out *o,
		      const struct kx_call_thread *t, const struct kx_sched_slice *s)
{
	struct kx_spooled record = {
		.ns = kx_pf_ns(o, s->from),
		.thread = t->index,
		.cpu = s->cpu,
		.kind = KX_SPOOLED_IN,
	};
	int r = spool(c, o, &record);

	record.ns = kx_pf_ns(o, s->to);
	record.kind = KX_SPOOLED_OUT;
	record.state = s->left_as;
	return r ? r : spool(c, o, &record);
}

int kx_pf_cpu_interval(struct kx_pf_cpu_tracks *c, struct kx_pf_out *o,
		       const struct kx_call_thread *t, const struct kx_sched_interval *i)
{
	struct kx_spooled record = {
		.ns = kx_pf_ns(o, i->wake),
		.thread = t->index,
		.kind = KX_SPOOLED_WAKE,
		.waker = i->waker,
		.cpu = i->has_waker_cpu ? i->waker_cpu : KX_SPOOLED_NO_CPU,
		.state = i->state,
	};

	/* A wake-up at the time of the switch is one before it: Perfetto takes it only after it. */
	if (!kx_sched_could_run(i->state) && record.ns <= kx_pf_ns(o, i->from))
		record.ns = kx_pf_ns(o, i->from) + 1;
	c->threads[t->index].has_track = true; /* its slices' */
	if (!i->has_waker || record.ns > kx_pf_ns(o, i->to))
		return 0;
	return spool(c, o, &record);
}

/* Reading it in order of time */

static uint32_t raw_state(const struct kx_pf_cpu_tracks *c, char letter)
{
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (states[i].letter == letter)
			return c->new_kernel ? states[i].since : states[i].before;
	return UNKNOWN;
}

static int by_tid(const void *a, const void *b)
{
	const struct identity *x = a, *y = b;

	return x->tid != y->tid ? (x->tid < y->tid ? -1 : 1) : 0;
}

static int collect_ids(struct sweep *s)
{
	s->ids = calloc(s->c->nthreads + 1, sizeof(*s->ids));
	if (!s->ids)
		return no_memory(s->o);
	for (size_t i = 0; i < s->c->nthreads; i++)
		if (s->c->threads[i].walked)
			s->ids[s->nids++] = (struct identity){
				(uint32_t)kx_calls_thread(s->o->x->calls, i)->tid,
				(uint32_t)i,
			};
	qsort(s->ids, s->nids, sizeof(*s->ids), by_tid);
	return 0;
}

/* The thread of the trace with that id, if there is one only: UNTRACED if not. */
static uint32_t find_thread(const struct sweep *s, uint32_t tid)
{
	const struct identity key = { .tid = tid }, *at;

	at = tid ? bsearch(&key, s->ids, s->nids, sizeof(key), by_tid) : NULL;
	if (!at || (at > s->ids && at[-1].tid == tid) ||
	    (at + 1 < s->ids + s->nids && at[1].tid == tid))
		return UNTRACED;
	return at->index;
}

static int switch_to(struct sweep *s, uint32_t number, uint64_t ns, uint32_t state, uint32_t thread)
{
	struct kx_pf_task next = { .tid = (int32_t)(KX_PF_UNTRACED + number),
				   .name = "not traced" };
	struct cpu *cpu = &s->cpus[number];

	if (thread != UNTRACED) {
		const struct kx_call_thread *t = kx_calls_thread(s->o->x->calls, thread);

		next = (struct kx_pf_task){ t->tid, t->name };
	}
	cpu->current = thread;
	kx_pf_bundle_switch(&cpu->bundle, ns, state, &next);
	return kx_pf_bundle_is_full(&cpu->bundle)
		       ? kx_pf_bundle_write(&cpu->bundle, s->o, (uint16_t)number)
		       : 0;
}

/* Perfetto shows nothing of a CPU's first switch, since it does not know what ran before. */
static int begin_cpu(struct sweep *s, uint32_t number)
{
	size_t n = number + 1u;
	struct cpu *cpus;

	if (number >= s->ncpus) {
		cpus = realloc(s->cpus, n * sizeof(*cpus));
		if (!cpus)
			return no_memory(s->o);
		memset(cpus + s->ncpus, 0, (n - s->ncpus) * sizeof(*cpus));
		s->cpus = cpus;
		s->ncpus = n;
	}
	if (s->cpus[number].begun)
		return 0;
	s->cpus[number].begun = true;
	return switch_to(s, number, s->o->first_ns, UNKNOWN, UNTRACED);
}

static void leave_cpu(struct kx_pf_woken *t)
{
	t->last_cpu = t->cpu;
	t->cpu = NO_CPU;
}

static int come(struct sweep *s, const struct kx_spooled *record)
{
	struct kx_pf_woken *t = &s->c->threads[record->thread];
	struct cpu *cpu = &s->cpus[record->cpu];
	const struct kx_spooled *leaves;
	uint32_t state = UNKNOWN;

	/* The thread that ran there leaves by this switch; its own record of that is a little
	 * later. */
	if (cpu->current != UNTRACED) {
		leaves = kx_spool_after(&s->c->spool, s->c->threads[cpu->current].runs);
		state = raw_state(s->c, leaves ? leaves->state : '?');
		leave_cpu(&s->c->threads[cpu->current]);
	}
	t->cpu = record->cpu;
	t->runs = record;
	return switch_to(s, record->cpu, record->ns, state, record->thread);
}

static int go(struct sweep *s, const struct kx_spooled *record)
{
	struct kx_pf_woken *t = &s->c->threads[record->thread];

	if (t->cpu == NO_CPU)
		return 0;
	leave_cpu(t);
	return switch_to(s, record->cpu, record->ns, raw_state(s->c, record->state), UNTRACED);
}

static int write_end(struct sweep *s, const struct kx_spooled *record, uint32_t thread, bool wakes,
		     uint32_t other)
{
	struct kx_pf_out *o = s->o;
	size_t packet, event;
	int r = 0;

	if (!s->c->threads[thread].has_track)
		r = kx_pf_write_child(o, thread, KX_PF_SCHED, "scheduling");
	s->c->threads[thread].has_track = true;
	if (r)
		return r;
	event = kx_pf_begin_event(o, &packet, record->ns, TYPE_INSTANT,
				  kx_pf_uuid(o, thread, KX_PF_SCHED));
	kx_pb_number(&o->pb, EVENT_NAME_IID, wakes ? KX_PF_WAKES : KX_PF_IS_WOKEN);
	kx_pf_annotate(&o->pb, wakes ? KX_PF_WOKEN : KX_PF_WAKER, ANNOTATION_UINT, other);
	kx_pb_fixed64(&o->pb, wakes ? EVENT_FLOW : EVENT_TERMINATING_FLOW, s->flows);
	return kx_pf_end_event(o, packet, event);
}

/* An arrow between the two threads' tracks. */
static int write_flow(struct sweep *s, const struct kx_spooled *record, uint32_t waker)
{
	int r;

	if (waker == UNTRACED || waker == record->thread)
		return 0;
	s->flows++;
	r = write_end(s, record, waker, true,
		      (uint32_t)kx_calls_thread(s->o->x->calls, record->thread)->tid);
	return r ? r : write_end(s, record, record->thread, false, record->waker);
}

static int wake(struct sweep *s, const struct kx_spooled *record)
{
	const struct kx_pf_woken *t = &s->c->threads[record->thread];
	const struct kx_call_thread *task = kx_calls_thread(s->o->x->calls, record->thread);
	const struct kx_pf_waking w = { { task->tid, task->name },
					(uint16_t)t->last_cpu,
					!record->waker };
	uint32_t waker = find_thread(s, record->waker), number = record->cpu;
	struct kx_pf_bundle *b;
	int r = write_flow(s, record, waker);

	if (number == KX_SPOOLED_NO_CPU)
		number = waker == UNTRACED ? NO_CPU : s->c->threads[waker].cpu;
	/* a new thread's is another event */
	if (r || number == NO_CPU || number >= KX_PF_MAX_CPUS || t->last_cpu == NO_CPU ||
	    t->cpu != NO_CPU || record->state == 'N')
		return r;
	r = begin_cpu(s, number);
	if (r)
		return r;
	b = &s->cpus[number].bundle;
	if (!record->waker || (waker != UNTRACED && s->cpus[number].current == waker))
		kx_pf_bundle_waking(b, record->ns, &w);
	else
		kx_pf_bundle_woken_by(b, record->ns, (int32_t)record->waker, &w);
	return kx_pf_bundle_is_full(b) ? kx_pf_bundle_write(b, s->o, (uint16_t)number) : 0;
}

static int take(struct sweep *s, const struct kx_spooled *record)
{
	int32_t tid = kx_calls_thread(s->o->x->calls, record->thread)->tid;
	int r;

	/* 0 is Perfetto's idle thread; a damaged trace may have any number */
	if (tid <= 0 || tid >= KX_PF_UNTRACED || record->waker >= KX_PF_UNTRACED)
		return 0;
	if (record->kind == KX_SPOOLED_WAKE)
		return wake(s, record);
	if (record->cpu >= KX_PF_MAX_CPUS) {
		s->left_out = true;
		return 0;
	}
	r = begin_cpu(s, record->cpu);
	if (r)
		return r;
	return record->kind == KX_SPOOLED_IN ? come(s, record) : go(s, record);
}

int kx_pf_cpu_write(struct kx_pf_cpu_tracks *c, struct kx_pf_out *o)
{
	struct sweep s = { .c = c, .o = o };
	const struct kx_spooled *record;
	int r = kx_spool_rewind(&c->spool);

	if (r)
		return kx_err_set(o->err, r,
				  "cannot read the scheduler's events from a temporary file: %s",
				  strerror(-r));
	r = collect_ids(&s);
	while (!r && (record = kx_spool_next(&c->spool)))
		r = take(&s, record);
	for (size_t i = 0; i < s.ncpus; i++) {
		if (!r)
			r = kx_pf_bundle_write(&s.cpus[i].bundle, o, (uint16_t)i);
		kx_pf_bundle_free(&s.cpus[i].bundle);
	}
	if (!r && s.left_out)
		o->x->notice(o->x, "CPUs from 1024 on have no track: Perfetto does not take them");
	free(s.cpus);
	free(s.ids);
	return r;
}

void kx_pf_cpu_free(struct kx_pf_cpu_tracks *c)
{
	kx_spool_free(&c->spool);
	free(c->threads);
}
