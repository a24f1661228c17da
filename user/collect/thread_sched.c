// SPDX-License-Identifier: BSD-2-Clause
/* The scheduler's events of a thread, into its stream. */
#include "collect/thread_internal.h"

static int write_interval(struct kx_thread *thread, uint16_t cpu,
			  const struct kx_sched_interval *i)
{
	struct kx_note note = { .kind = KX_NOTE_SCHED, .sched = *i };
	int err = i->open ? 0 : kx_fdr_cpu(thread->stream, i->to, cpu);

	/* what is before the file's start is in an earlier file of a rotated trace */
	kx_sched_cut(&note.sched, kx_fdr_writer_options(thread->table->o.writer)->start_tsc, i->to);
	return err ? err : kx_fdr_note(thread->stream, i->to, &note);
}

static struct kx_sched_base base_of(const struct kx_thread *thread)
{
	const struct kx_fdr_options *o = kx_fdr_writer_options(thread->table->o.writer);

	return (struct kx_sched_base){ o->start_tsc, o->tsc_hz };
}

int kx_thread_sched(struct kx_thread *thread, const struct kx_event *ev)
{
	const struct kx_sched_base base = base_of(thread);
	struct kx_sched_interval i;

	if (!kx_sched_track_feed(&thread->sched, ev, &base, &i))
		return 0;
	return write_interval(thread, ev->cpu, &i);
}

int kx_thread_sched_call(struct kx_thread *thread, const struct kx_event *ev)
{
	const struct kx_event *end = thread->events + thread->nevents, *next = ev + 1;
	const struct kx_sched_base base = base_of(thread);
	struct kx_sched_interval i;

	while (next < end && next->kind != KX_EVENT_SCHED_OUT && next->kind != KX_EVENT_SCHED_IN)
		next++;
	if (!kx_sched_track_call(&thread->sched, ev->tsc, next < end ? next : NULL, &base, &i))
		return 0;
	return write_interval(thread, ev->cpu, &i);
}

int kx_thread_sched_cut(struct kx_thread *thread, uint64_t tsc)
{
	struct kx_sched_track track = thread->sched;
	struct kx_sched_interval i;

	return kx_sched_track_end(&track, tsc, &i) ? write_interval(thread, 0, &i) : 0;
}

int kx_thread_table_end_sched(struct kx_thread_table *t, uint64_t tsc)
{
	for (size_t at = 0; at < t->nbuckets; at++) {
		for (struct kx_thread *thread = t->buckets[at]; thread;
		     thread = thread->next_in_bucket) {
			struct kx_sched_interval i;
			int err;

			if (!thread->stream || !kx_sched_track_end(&thread->sched, tsc, &i))
				continue;
			err = write_interval(thread, 0, &i);
			if (err)
				return err;
		}
	}
	return 0;
}
