// SPDX-License-Identifier: BSD-2-Clause
/* What a thread's stream tells of the scheduler. */
#include "thread_impl.h"

static int write_interval(struct kx_thread *thread, uint16_t cpu,
			  const struct kx_sched_interval *i)
{
	char text[KX_SCHED_NOTE_SIZE];
	size_t n = kx_sched_note(text, i);
	int err = i->open ? 0 : kx_fdr_cpu(thread->stream, i->to, cpu);

	return err ? err : kx_fdr_custom(thread->stream, i->to, text, n);
}

int kx_thread_sched(struct kx_thread *thread, const struct kx_thread_event *ev)
{
	uint64_t start = kx_fdr_writer_start(thread->table->o.writer);
	struct kx_sched_interval i;

	if (!kx_sched_track_feed(&thread->sched, ev, start, &i))
		return 0;
	return write_interval(thread, ev->cpu, &i);
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
