// SPDX-License-Identifier: BSD-2-Clause
/* Traces byte by byte, walked with filters; what the visitor was told, as lines of text. Include it after cmocka's headers. */
#ifndef KX_TEST_CALLS_RIG_H
#define KX_TEST_CALLS_RIG_H

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "calls/calls.h"
#include "report/report.h"
#include "fdr_bytes.h"
#include "folder.h"

#define HZ 1000000000 /* so that ticks are nanoseconds */

static char path[64], map_path[80];

struct trace {
	struct kx_fdr_file *f;
	struct kx_symbolizer names;
	struct kx_calls *calls;
};

static inline void open_calls(struct trace *t, const struct kx_call_filter *filter)
{
	struct kx_err err = { 0 };

	if (kx_fdr_open(path, &t->f, &err) || kx_symbolizer_open(path, NULL, &t->names, &err) ||
	    kx_calls_new(t->f, &t->names, filter, &t->calls, &err))
		fail_msg("%s", err.text);
}

static inline void close_calls(struct trace *t)
{
	kx_calls_free(t->calls);
	kx_symbolizer_free(&t->names);
	kx_fdr_close(t->f);
}

/* The visitor's calls, one line each; 1000 is subtracted from times. */
struct log {
	char text[8192];
	size_t len;
	int fail_at; /* the call that returns -EXDEV */
};

__attribute__((format(printf, 2, 3))) static inline int say(struct log *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	l->len += (size_t)vsnprintf(l->text + l->len, sizeof(l->text) - l->len, fmt, ap);
	va_end(ap);
	assert_true(l->len < sizeof(l->text));
	return --l->fail_at == 0 ? -EXDEV : 0;
}

#define AT(tsc) ((int64_t)((tsc) - 1000))

static inline int on_thread(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	return say(ctx, "%" PRId64 " thread %d/%d '%s' of '%s'\n", AT(tsc), t->pid, t->tid, t->name,
		   t->process);
}

static inline int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	char args[200] = "";

	assert_ptr_equal(call, &t->stack[t->depth - 1]);
	assert_null(call->user);
	for (unsigned i = 0; i < call->nargs; i++)
		sprintf(args + strlen(args), " %" PRIx64, call->args[i]);
	if (call->has_caller)
		sprintf(args + strlen(args), " from %u:%" PRIx64, call->caller_module,
			call->caller);
	return say(ctx, "%" PRId64 " %d>%u cpu %u no %" PRIu64 " depth %u%s%s\n", AT(call->enter),
		   t->tid, call->func, call->cpu, call->number, t->depth,
		   call->outermost ? "" : " again", args);
}

static inline int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
			   enum kx_leave how)
{
	static const char *const hows[] = { "exit", "tail", "repaired", "open" };

	assert_ptr_equal(call, &t->stack[t->depth - 1]);
	return say(ctx, "%" PRId64 " %d<%u %s after %" PRIu64 " self %" PRIu64 "\n", AT(tsc),
		   t->tid, call->func, hows[how], tsc - call->enter,
		   tsc - call->enter - call->children);
}

static inline int on_cpu(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t cpu)
{
	return say(ctx, "%" PRId64 " cpu %u to %u\n", AT(tsc), t->cpu, cpu);
}

static inline int on_loss(void *ctx, struct kx_call_thread *t, uint64_t from, uint64_t to,
			  uint64_t entries, uint64_t exits)
{
	(void)t;
	return say(ctx, "lost %" PRIu64 "+%" PRIu64 " from %" PRId64 " to %" PRId64 "\n", entries,
		   exits, AT(from), AT(to));
}

static inline int on_event(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t type,
			   const uint8_t *data, uint32_t size)
{
	(void)t;
	return say(ctx, "%" PRId64 " event %u %.*s\n", AT(tsc), type, (int)size, data);
}

static inline int on_note(void *ctx, struct kx_call_thread *t, const struct kx_fdr_record *rec)
{
	assert_int_equal(rec->tid, t->tid);
	return say(ctx, "%" PRId64 " note %.*s\n", AT(rec->tsc), (int)rec->size, rec->data);
}

static inline int on_end(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	assert_int_equal(t->depth, 0);
	return say(ctx, "%" PRId64 " end %d\n", AT(tsc), t->tid);
}

static inline int walk(struct trace *t, enum kx_order order, struct log *l)
{
	const struct kx_call_visitor v = {
		.thread = on_thread, .enter = on_enter, .leave = on_leave, .cpu = on_cpu,
		.loss = on_loss, .event = on_event, .note = on_note, .end = on_end, .ctx = l,
	};
	struct kx_err err = { 0 };

	l->len = 0;
	l->text[0] = 0;
	return kx_calls_walk(t->calls, order, &v, NULL, NULL, &err);
}

/* The trace in @b, filtered, is emitted as @expected. */
static inline void check(const struct bytes *b, const struct kx_call_filter *filter, enum kx_order order,
			 const char *expected)
{
	static struct log l;
	struct trace t;

	save(path, b->data, b->size);
	open_calls(&t, filter);
	for (int i = 0; i < 2; i++) { /* a walk does not affect the next one */
		assert_int_equal(walk(&t, order, &l), 0);
		assert_string_equal(l.text, expected);
	}
	close_calls(&t);
}

static inline void begin(struct bytes *b, int32_t pid, int32_t tid, uint16_t cpu, uint64_t tsc)
{
	if (!b->size)
		header(b, 5, 1, HZ, 4096);
	preamble(b, 5, pid, tid, cpu, tsc);
}

static inline int name_files(void **state)
{
	if (make_folder(state))
		return -1;
	snprintf(path, sizeof(path), "%s/t.xray", folder);
	snprintf(map_path, sizeof(map_path), "%s/t.xray.map", folder);
	return 0;
}

/* Nothing else may be left. */
static inline int remove_files(void **state)
{
	(void)state;
	unlink(path);
	unlink(map_path);
	return rmdir(folder);
}

#endif
