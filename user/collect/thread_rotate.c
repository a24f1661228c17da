// SPDX-License-Identifier: BSD-2-Clause
/*
 * From one file of a rotated trace to the next. Each hit is written once: an entry in the file that
 * was open when it was released, its exit maybe in a later one. So that each file balances by itself,
 * calls that are open stay open at the old file's end, and the new one begins with their entries.
 * These have their true times: a call that ends in a later file has its true duration there.
 */
#include "collect/thread_internal.h"

#include <errno.h>

/* Calls @each with every thread, also after an error; returns the first error. */
static int each_thread(struct kx_thread_table *t, int (*each)(struct kx_thread *thread, void *ctx),
		       void *ctx)
{
	int first = 0;

	for (size_t i = 0; i < t->nbuckets; i++)
		for (struct kx_thread *thread = t->buckets[i]; thread;
		     thread = thread->next_in_bucket) {
			int err = each(thread, ctx);

			first = first ? first : err;
		}
	return first;
}

uint64_t kx_thread_table_oldest(const struct kx_thread_table *t, uint64_t tsc)
{
	if (t->o.delayed)
		return kx_fdr_writer_options(t->o.writer)->start_tsc;
	for (size_t i = 0; i < t->nbuckets; i++)
		for (const struct kx_thread *thread = t->buckets[i]; thread;
		     thread = thread->next_in_bucket) {
			if (thread->stack && kx_callstack_oldest(thread->stack) < tsc)
				tsc = kx_callstack_oldest(thread->stack);
			/* ends without a record of their own have the time 0 */
			for (uint32_t k = 0; k < thread->nevents; k++)
				if (thread->events[k].tsc && thread->events[k].tsc < tsc)
					tsc = thread->events[k].tsc;
		}
	return tsc;
}

static int leave_file(struct kx_thread *thread, void *ctx)
{
	const uint64_t *tsc = ctx;
	int err, end;

	if (!thread->stream)
		return 0;
	err = kx_thread_sched_cut(thread, *tsc);
	end = kx_thread_end_stream(thread);
	return err ? err : end;
}

static int continue_call(void *ctx, uint64_t tsc, uint32_t func)
{
	const struct kx_thread *thread = ctx;

	return kx_fdr_added_entry(thread->stream, tsc, thread->cpu, func);
}

static int enter_file(struct kx_thread *thread, void *ctx)
{
	struct kx_note note = { .kind = KX_NOTE_CONTINUED };
	uint64_t *continued = ctx, from;
	int err;

	if (!thread->stack || !kx_callstack_depth(thread->stack))
		return 0;
	from = kx_callstack_oldest(thread->stack);
	note.continued.calls = kx_callstack_depth(thread->stack);
	err = kx_thread_open_stream(thread, from);
	if (!err)
		err = kx_fdr_cpu(thread->stream, from, thread->cpu);
	if (!err)
		err = kx_fdr_note(thread->stream, from, &note);
	if (!err)
		err = kx_callstack_each(thread->stack, continue_call, thread);
	*continued += err ? 0 : note.continued.calls;
	return err;
}

int kx_thread_table_switch(struct kx_thread_table *t, struct kx_fdr_writer *writer, uint64_t tsc,
			   uint64_t *continued)
{
	int left = each_thread(t, leave_file, &tsc), entered;

	*continued = 0;
	t->o.writer = writer;
	t->session_note = t->o.session_note;
	entered = each_thread(t, enter_file, continued);
	return left ? left : entered;
}

uint64_t kx_thread_table_written(const struct kx_thread_table *t)
{
	uint64_t n = t->written;

	for (size_t i = 0; i < t->nbuckets; i++)
		for (const struct kx_thread *thread = t->buckets[i]; thread;
		     thread = thread->next_in_bucket)
			n += thread->stream && !thread->counted &&
			     kx_fdr_thread_has_records(thread->stream);
	return n;
}
