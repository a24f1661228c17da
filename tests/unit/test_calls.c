// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "calls/calls.h"
#include "fdr_bytes.h"
#include "report/report.h"

#define HZ 1000000000 /* so that ticks are nanoseconds */

static char folder[] = "/tmp/kx_calls_XXXXXX";
static char path[64], map_path[80];

struct trace {
	struct kx_fdr_file *f;
	struct kx_symbolizer names;
	struct kx_calls *calls;
};

static void open_calls(struct trace *t, const struct kx_call_filter *filter)
{
	struct kx_err err = { 0 };

	if (kx_fdr_open(path, &t->f, &err) || kx_symbolizer_open(path, NULL, &t->names, &err) ||
	    kx_calls_new(t->f, &t->names, filter, &t->calls, &err))
		fail_msg("%s", err.text);
}

static void close_calls(struct trace *t)
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

__attribute__((format(printf, 2, 3))) static int say(struct log *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	l->len += (size_t)vsnprintf(l->text + l->len, sizeof(l->text) - l->len, fmt, ap);
	va_end(ap);
	assert_true(l->len < sizeof(l->text));
	return --l->fail_at == 0 ? -EXDEV : 0;
}

#define AT(tsc) ((int64_t)((tsc) - 1000))

static int on_thread(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	return say(ctx, "%" PRId64 " thread %d/%d '%s' of '%s'\n", AT(tsc), t->pid, t->tid, t->name,
		   t->process);
}

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
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

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	static const char *const hows[] = { "exit", "tail", "repaired", "open" };

	assert_ptr_equal(call, &t->stack[t->depth - 1]);
	return say(ctx, "%" PRId64 " %d<%u %s after %" PRIu64 " self %" PRIu64 "\n", AT(tsc),
		   t->tid, call->func, hows[how], tsc - call->enter,
		   tsc - call->enter - call->children);
}

static int on_cpu(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t cpu)
{
	return say(ctx, "%" PRId64 " cpu %u to %u\n", AT(tsc), t->cpu, cpu);
}

static int on_loss(void *ctx, struct kx_call_thread *t, uint64_t from, uint64_t to,
		   uint64_t entries, uint64_t exits)
{
	(void)t;
	return say(ctx, "lost %" PRIu64 "+%" PRIu64 " from %" PRId64 " to %" PRId64 "\n", entries,
		   exits, AT(from), AT(to));
}

static int on_event(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t type,
		    const uint8_t *data, uint32_t size)
{
	(void)t;
	return say(ctx, "%" PRId64 " event %u %.*s\n", AT(tsc), type, (int)size, data);
}

static int on_note(void *ctx, struct kx_call_thread *t, const struct kx_fdr_record *rec)
{
	assert_int_equal(rec->tid, t->tid);
	return say(ctx, "%" PRId64 " note %.*s\n", AT(rec->tsc), (int)rec->size, rec->data);
}

static int on_end(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	assert_int_equal(t->depth, 0);
	return say(ctx, "%" PRId64 " end %d\n", AT(tsc), t->tid);
}

static int walk(struct trace *t, enum kx_order order, struct log *l)
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
static void check(const struct bytes *b, const struct kx_call_filter *filter, enum kx_order order,
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

static void begin(struct bytes *b, int32_t pid, int32_t tid, uint16_t cpu, uint64_t tsc)
{
	if (!b->size)
		header(b, 5, 1, HZ, 4096);
	preamble(b, 5, pid, tid, cpu, tsc);
}

/* The visitor */

static void test_every_callback(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	begin(&b, 1, 70000, 65535, 1000);
	custom(&b, 5, 0, 0, "kxray:thread {\"tid\":70000,\"pid\":1,\"name\":\"a\",\"process\":\"p\"}");
	custom(&b, 5, 0, 0, "kxray:session {\"started\":\"now\"}");
	function(&b, ENTRY, 7, 10);
	function(&b, ENTRY_ARGS, 8, 10);
	call_argument(&b, 0xabc);
	call_argument(&b, 2);
	new_cpu(&b, 3, 1030);
	function(&b, ENTRY, 7, 10);
	custom(&b, 5, 5, 0, "mine");
	typed(&b, 5, 9, "yours");
	custom(&b, 5, 0, 0, "kxray:thread {\"tid\":70000,\"pid\":1,\"name\":\"b\"}");
	custom(&b, 5, 0, 0, "kxray:unheard {}");
	function(&b, TAIL_EXIT, 7, 10);
	custom(&b, 5, 10, 0, "kxray:loss {\"entries\":3,\"exits\":2,\"from\":1062,\"to\":1070}");
	function(&b, EXIT, 8, 10);
	function(&b, EXIT, 7, 20);
	end_extents(&b);
	check(&b, NULL, KX_ORDER_THREAD,
	      "10 thread 1/70000 'a' of 'p'\n"
	      "10 cpu 65535 to 65535\n"
	      "10 70000>7 cpu 65535 no 0 depth 1\n"
	      "20 70000>8 cpu 65535 no 1 depth 2 abc 2\n"
	      "30 cpu 65535 to 3\n"
	      "40 70000>7 cpu 3 no 2 depth 3 again\n"
	      "45 event 0 mine\n"
	      "50 event 9 yours\n"
	      "50 thread 1/70000 'b' of 'p'\n"
	      "50 note kxray:unheard {}\n"
	      "60 70000<7 tail after 20 self 20\n"
	      "lost 3+2 from 62 to 70\n"
	      "80 70000<8 exit after 60 self 40\n"
	      "100 70000<7 exit after 90 self 30\n"
	      "100 end 70000\n");
	release(&b);
}

static void test_totals_names_and_session(void **state)
{
	static const struct kx_call_visitor nothing;
	const struct kx_calls_totals *totals;
	struct kx_err err = { 0 };
	struct bytes b = { 0 };
	const char *session;
	struct trace t;
	size_t size;

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	custom(&b, 5, 0, 0, "kxray:thread {\"name\":\"first\",\"process\":\"p\"}");
	custom(&b, 5, 0, 0, "kxray:session {\"a\":1}  ");
	function(&b, EXIT, 9, 1);
	function(&b, ENTRY, 1, 10);
	function(&b, ENTRY, 2, 10);
	function(&b, ENTRY, 3, 10);
	custom(&b, 5, 0, 0, "kxray:repaired {\"exits\":1}");
	function(&b, EXIT, 3, 10);
	function(&b, EXIT, 1, 10);
	function(&b, ENTRY, 4, 10);
	custom(&b, 5, 0, 0, "kxray:loss {\"entries\":5,\"exits\":6,\"from\":0,\"to\":0}");
	custom(&b, 5, 9, 0, "kxray:thread {\"name\":\"last\"}");
	end_extents(&b);
	save(path, b.data, b.size);
	open_calls(&t, NULL);
	totals = kx_calls_get_totals(t.calls);
	assert_int_equal(totals->first_tsc, 1000);
	assert_int_equal(totals->last_tsc, 1070);
	assert_int_equal(kx_calls_nthreads(t.calls), 1);
	assert_string_equal(kx_calls_thread(t.calls, 0)->name, "last");
	assert_string_equal(kx_calls_thread(t.calls, 0)->process, "p");
	session = kx_calls_session(t.calls, &size);
	assert_int_equal(size, 9);
	assert_memory_equal(session, "{\"a\":1}  ", 9);
	for (int order = 0; order < 2; order++) {
		assert_int_equal(kx_calls_walk(t.calls, order, &nothing, NULL, NULL, &err), 0);
		assert_int_equal(totals->calls, 4);
		assert_int_equal(totals->orphans, 1);
		assert_int_equal(totals->repaired, 2); /* 3 by the note, 2 for want of an exit */
		assert_int_equal(totals->open, 1);
		assert_int_equal(totals->lost, 11);
	}
	close_calls(&t);
	release(&b);
}

static void test_balancing(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	function(&b, EXIT, 5, 5); /* entered before the trace */
	function(&b, ENTRY, 1, 5);
	function(&b, ENTRY, 2, 10);
	function(&b, ENTRY, 3, 10);
	function(&b, ENTRY, 2, 10);
	function(&b, EXIT, 9, 5); /* never entered */
	custom(&b, 5, 0, 0, "kxray:repaired {\"exits\":1}");
	function(&b, EXIT, 2, 5);
	function(&b, EXIT, 1, 10);  /* closes 3 and 2 */
	function(&b, EXIT, 2, 10);
	end_extents(&b);
	check(&b, NULL, KX_ORDER_THREAD,
	      "10 thread 1/2 '' of ''\n"
	      "10 cpu 0 to 0\n"
	      "10 2>1 cpu 0 no 0 depth 1\n"
	      "20 2>2 cpu 0 no 1 depth 2\n"
	      "30 2>3 cpu 0 no 2 depth 3\n"
	      "40 2>2 cpu 0 no 3 depth 4 again\n"
	      "50 2<2 repaired after 10 self 10\n"
	      "60 2<3 repaired after 30 self 30\n"
	      "60 2<2 repaired after 40 self 40\n"
	      "60 2<1 exit after 50 self 50\n"
	      "70 end 2\n");
	release(&b);
}

static void test_open_calls_end_with_the_trace(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	function(&b, ENTRY, 1, 10);
	function(&b, ENTRY, 2, 10);
	end_extents(&b);
	begin(&b, 1, 3, 1, 1000);
	function(&b, ENTRY, 3, 50);
	function(&b, EXIT, 3, 50);
	end_extents(&b);
	begin(&b, 1, 4, 1, 1000); /* without calls: not emitted */
	end_extents(&b);
	check(&b, NULL, KX_ORDER_THREAD,
	      "10 thread 1/2 '' of ''\n"
	      "10 cpu 0 to 0\n"
	      "10 2>1 cpu 0 no 0 depth 1\n"
	      "20 2>2 cpu 0 no 1 depth 2\n"
	      "100 2<2 open after 80 self 80\n"
	      "100 2<1 open after 90 self 10\n"
	      "100 end 2\n"
	      "50 thread 1/3 '' of ''\n"
	      "50 cpu 1 to 1\n"
	      "50 3>3 cpu 1 no 2 depth 1\n"
	      "100 3<3 exit after 50 self 50\n"
	      "100 end 3\n");
	check(&b, NULL, KX_ORDER_TIME,
	      "10 thread 1/2 '' of ''\n"
	      "10 cpu 0 to 0\n"
	      "10 2>1 cpu 0 no 0 depth 1\n"
	      "20 2>2 cpu 0 no 1 depth 2\n"
	      "50 thread 1/3 '' of ''\n"
	      "50 cpu 1 to 1\n"
	      "50 3>3 cpu 1 no 2 depth 1\n"
	      "100 2<2 open after 80 self 80\n"
	      "100 2<1 open after 90 self 10\n"
	      "100 end 2\n"
	      "100 3<3 exit after 50 self 50\n"
	      "100 end 3\n");
	release(&b);
}

static void test_clock_that_goes_back(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	function(&b, ENTRY, 1, 50);
	new_cpu(&b, 1, 1020);
	function(&b, ENTRY, 2, 10);
	function(&b, EXIT, 2, 30);
	function(&b, EXIT, 1, 10);
	end_extents(&b);
	check(&b, NULL, KX_ORDER_TIME,
	      "50 thread 1/2 '' of ''\n"
	      "50 cpu 0 to 0\n"
	      "50 2>1 cpu 0 no 0 depth 1\n"
	      "50 cpu 0 to 1\n"
	      "50 2>2 cpu 1 no 1 depth 2\n"
	      "60 2<2 exit after 10 self 10\n"
	      "70 2<1 exit after 20 self 10\n"
	      "70 end 2\n");
	release(&b);
}

static void test_basic_mode(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	header(&b, 3, 0, HZ, 0);
	naive(&b, ENTRY, 4, 1, 1010, 2, 1);
	naive(&b, ENTRY_ARGS, 4, 5, 1015, 3, 1);
	naive_argument(&b, 5, 3, 1, 77);
	naive(&b, EXIT, 5, 1, 1020, 2, 1);
	naive(&b, EXIT, 5, 5, 1030, 3, 1);
	check(&b, NULL, KX_ORDER_TIME,
	      "10 thread 1/2 '' of ''\n"
	      "10 cpu 4 to 4\n"
	      "10 2>1 cpu 4 no 0 depth 1\n"
	      "15 thread 1/3 '' of ''\n"
	      "15 cpu 4 to 4\n"
	      "15 3>5 cpu 4 no 1 depth 1 4d\n"
	      "20 cpu 4 to 5\n"
	      "20 2<1 exit after 10 self 10\n"
	      "20 end 2\n"
	      "30 cpu 4 to 5\n"
	      "30 3<5 exit after 15 self 15\n"
	      "30 end 3\n");
	release(&b);
}

static void test_empty_trace(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	end_extents(&b);
	check(&b, NULL, KX_ORDER_TIME, "");
	check(&b, NULL, KX_ORDER_THREAD, "");
	release(&b);
}

static void test_visitor_ends_the_walk(void **state)
{
	struct bytes b = { 0 };
	struct log l = { 0 };
	struct trace t;

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	function(&b, ENTRY, 1, 10);
	function(&b, EXIT, 1, 10);
	end_extents(&b);
	save(path, b.data, b.size);
	open_calls(&t, NULL);
	for (int order = 0; order < 2; order++) {
		for (int at = 1; at <= 5; at++) {
			l.fail_at = at; /* thread, cpu, enter, leave, end */
			assert_int_equal(walk(&t, order, &l), -EXDEV);
			assert_int_equal(l.fail_at, 0); /* no callback after it */
		}
	}
	close_calls(&t);
	release(&b);
}

/* Filters */

/* 1 from 10 to 100, in it 2 from 20 to 80 with 3 from 30 to 40 and from 50 to 70. */
static void nested(struct bytes *b)
{
	begin(b, 1, 2, 0, 1000);
	function(b, ENTRY, 1, 10);
	function(b, ENTRY, 2, 10);
	function(b, ENTRY, 3, 10);
	custom(b, 5, 5, 0, "e");
	function(b, EXIT, 3, 5);
	function(b, ENTRY, 3, 10);
	new_cpu(b, 6, 1060);
	function(b, EXIT, 3, 10);
	function(b, EXIT, 2, 10);
	function(b, EXIT, 1, 20);
	end_extents(b);
}

static void test_min_duration(void **state)
{
	const struct kx_call_filter twenty = { .min_duration_ns = 20 };
	const struct kx_call_filter sixty_one = { .min_duration_ns = 61 };
	const struct kx_call_filter endless = { .min_duration_ns = 91 };
	struct bytes b = { 0 };

	(void)state;
	nested(&b);
	for (int order = 0; order < 2; order++) {
		check(&b, &twenty, order,
		      "10 thread 1/2 '' of ''\n"
		      "10 cpu 0 to 0\n"
		      "10 2>1 cpu 0 no 0 depth 1\n"
		      "20 2>2 cpu 0 no 1 depth 2\n"
		      "35 event 0 e\n"
		      "50 2>3 cpu 0 no 2 depth 3\n"
		      "60 cpu 0 to 6\n"
		      "70 2<3 exit after 20 self 20\n"
		      "80 2<2 exit after 60 self 40\n"
		      "100 2<1 exit after 90 self 30\n"
		      "100 end 2\n");
		check(&b, &sixty_one, order,
		      "10 thread 1/2 '' of ''\n"
		      "10 cpu 0 to 0\n"
		      "10 2>1 cpu 0 no 0 depth 1\n"
		      "35 event 0 e\n"
		      "60 cpu 0 to 6\n"
		      "100 2<1 exit after 90 self 90\n"
		      "100 end 2\n");
		check(&b, &endless, order,
		      "35 thread 1/2 '' of ''\n"
		      "35 cpu 0 to 0\n"
		      "35 event 0 e\n"
		      "60 cpu 0 to 6\n"
		      "100 end 2\n");
	}
	release(&b);
}

/*
 * A call that looks long because its end was not recorded is no long call; its callees and its
 * caller are, if their ends were.
 */
static void test_min_duration_without_exit(void **state)
{
	const struct kx_call_filter f = { .min_duration_ns = 20 };
	struct bytes b = { 0 };

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	function(&b, ENTRY, 1, 10);
	function(&b, ENTRY, 2, 10);
	function(&b, ENTRY, 3, 10);
	function(&b, EXIT, 3, 30);
	function(&b, ENTRY, 4, 10);
	custom(&b, 5, 0, 0, "kxray:repaired {\"exits\":2}");
	function(&b, EXIT, 4, 30); /* 1100 */
	function(&b, EXIT, 2, 0);
	function(&b, ENTRY, 5, 10); /* as a recorder without notes leaves it */
	function(&b, EXIT, 1, 40); /* 1150 */
	function(&b, ENTRY, 2, 10);
	function(&b, EXIT, 2, 30); /* 1190 */
	end_extents(&b);
	for (int order = 0; order < 2; order++)
		check(&b, &f, order,
		      "10 thread 1/2 '' of ''\n"
		      "10 cpu 0 to 0\n"
		      "10 2>1 cpu 0 no 0 depth 1\n"
		      "30 2>3 cpu 0 no 1 depth 2\n"
		      "60 2<3 exit after 30 self 30\n"
		      "150 2<1 exit after 140 self 110\n"
		      "160 2>2 cpu 0 no 2 depth 1\n"
		      "190 2<2 exit after 30 self 30\n"
		      "190 end 2\n");
	release(&b);
}

static void test_time_range(void **state)
{
	const struct kx_call_filter middle = { .from_ns = 30, .to_ns = 60 };
	const struct kx_call_filter from = { .from_ns = 80 };
	const struct kx_call_filter to = { .to_ns = 30 };
	const struct kx_call_filter after = { .from_ns = 100 };
	struct bytes b = { 0 };

	(void)state;
	nested(&b);
	for (int order = 0; order < 2; order++) {
		check(&b, &middle, order,
		      "30 thread 1/2 '' of ''\n"
		      "30 cpu 0 to 0\n"
		      "30 2>1 cpu 0 no 0 depth 1\n"
		      "30 2>2 cpu 0 no 1 depth 2\n"
		      "30 2>3 cpu 0 no 2 depth 3\n"
		      "35 event 0 e\n"
		      "40 2<3 exit after 10 self 10\n"
		      "50 2>3 cpu 0 no 3 depth 3\n"
		      "60 cpu 0 to 6\n"
		      "60 2<3 open after 10 self 10\n"
		      "60 2<2 open after 30 self 10\n"
		      "60 2<1 open after 30 self 0\n"
		      "60 end 2\n");
		/* a call that ends at the start of the range is not in it */
		check(&b, &from, order,
		      "80 thread 1/2 '' of ''\n"
		      "80 cpu 6 to 6\n"
		      "80 2>1 cpu 0 no 0 depth 1\n"
		      "100 2<1 exit after 20 self 20\n"
		      "100 end 2\n");
		/* a call that begins at the end of the range is not in it */
		check(&b, &to, order,
		      "10 thread 1/2 '' of ''\n"
		      "10 cpu 0 to 0\n"
		      "10 2>1 cpu 0 no 0 depth 1\n"
		      "20 2>2 cpu 0 no 1 depth 2\n"
		      "30 2<2 open after 10 self 10\n"
		      "30 2<1 open after 20 self 10\n"
		      "30 end 2\n");
		check(&b, &after, order, "");
	}
	release(&b);
}

/* The duration of a call includes its part before the range. */
static void test_time_range_and_min_duration(void **state)
{
	const struct kx_call_filter f = { .from_ns = 45, .to_ns = 62, .min_duration_ns = 18 };
	struct bytes b = { 0 };

	(void)state;
	nested(&b);
	check(&b, &f, KX_ORDER_TIME,
	      "45 thread 1/2 '' of ''\n"
	      "45 cpu 0 to 0\n"
	      "45 2>1 cpu 0 no 0 depth 1\n"
	      "45 2>2 cpu 0 no 1 depth 2\n"
	      "60 cpu 0 to 6\n"
	      "62 2<2 open after 17 self 17\n"
	      "62 2<1 open after 17 self 0\n"
	      "62 end 2\n");
	release(&b);
}

static void test_depth(void **state)
{
	const struct kx_call_filter one = { .max_depth = 1 }, two = { .max_depth = 2 };
	struct bytes b = { 0 };

	(void)state;
	nested(&b);
	check(&b, &one, KX_ORDER_THREAD,
	      "10 thread 1/2 '' of ''\n"
	      "10 cpu 0 to 0\n"
	      "10 2>1 cpu 0 no 0 depth 1\n"
	      "35 event 0 e\n"
	      "60 cpu 0 to 6\n"
	      "100 2<1 exit after 90 self 90\n"
	      "100 end 2\n");
	check(&b, &two, KX_ORDER_THREAD,
	      "10 thread 1/2 '' of ''\n"
	      "10 cpu 0 to 0\n"
	      "10 2>1 cpu 0 no 0 depth 1\n"
	      "20 2>2 cpu 0 no 1 depth 2\n"
	      "35 event 0 e\n"
	      "60 cpu 0 to 6\n"
	      "80 2<2 exit after 60 self 60\n"
	      "100 2<1 exit after 90 self 30\n"
	      "100 end 2\n");
	release(&b);
}

static void test_threads_by_id(void **state)
{
	const int32_t tid = 3, pid = 9;
	const struct kx_call_filter by_tid = { .tids = &tid, .ntids = 1 };
	const struct kx_call_filter by_pid = { .pids = &pid, .npids = 1 };
	const char *expected =
		"20 thread 9/3 '' of ''\n"
		"20 cpu 0 to 0\n"
		"20 3>2 cpu 0 no 0 depth 1\n"
		"30 3<2 exit after 10 self 10\n"
		"30 end 3\n";
	struct bytes b = { 0 };

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	function(&b, ENTRY, 1, 10);
	function(&b, EXIT, 1, 10);
	end_extents(&b);
	begin(&b, 9, 3, 0, 1000);
	function(&b, ENTRY, 2, 20);
	function(&b, EXIT, 2, 10);
	end_extents(&b);
	check(&b, &by_tid, KX_ORDER_THREAD, expected);
	check(&b, &by_pid, KX_ORDER_TIME, expected);
	release(&b);
}

static void write_map(const char *session)
{
	struct kx_map_module modules[] = {
		{ .name = "prog", .path = "/bin/prog", .build_id = "" },
		{ .name = "libz.so.1", .path = "/lib/libz.so.1", .build_id = "" },
	};
	struct kx_map_function functions[] = {
		{ "main", 0x1000, 0, 16 }, { "_ZN2ns4workEi", 0x1100, 0, 16 },
		{ "inflate@@ZLIB_1", 0x1000, 1, 16 },
	};
	struct kx_map map = { .modules = modules, .nmodules = 2, .functions = functions,
			      .nfunctions = 3, .session = json_loads(session, 0, NULL) };
	struct kx_err err = { 0 };

	if (kx_map_write(map_path, &map, &err))
		fail_msg("%s", err.text);
	json_decref(map.session);
}

/* Which of the functions 1 to 4 are emitted with -f @include and -x @exclude, e.g. "134". */
static void check_patterns(const char *include, const char *exclude, const char *expected,
			   const char *unmatched)
{
	const struct kx_call_filter f = {
		.include = &include, .ninclude = include != NULL,
		.exclude = &exclude, .nexclude = exclude != NULL,
	};
	char got[16] = "";
	struct log l = { 0 };
	struct trace t;

	open_calls(&t, &f);
	assert_int_equal(walk(&t, KX_ORDER_THREAD, &l), 0);
	for (const char *p = l.text; (p = strchr(p, '>')); p++)
		sprintf(got + strlen(got), "%c", p[1]);
	assert_string_equal(got, expected);
	if (unmatched)
		assert_string_equal(kx_calls_unmatched(t.calls, 0), unmatched);
	assert_null(kx_calls_unmatched(t.calls, unmatched ? 1 : 0));
	close_calls(&t);
}

static void test_patterns(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	for (uint32_t id = 1; id <= 4; id++)
		function(&b, ENTRY, id, 10);
	for (uint32_t id = 4; id; id--)
		function(&b, EXIT, id, 10);
	end_extents(&b);
	save(path, b.data, b.size);
	write_map("{}");
	check_patterns("main", NULL, "1", NULL);
	check_patterns("inflate", NULL, "3", NULL);
	check_patterns("ns::*", NULL, "2", NULL);
	check_patterns("_ZN2ns*", NULL, "2", NULL);
	check_patterns("libz*:*", NULL, "3", NULL);
	check_patterns("/bin/*:*", NULL, "12", NULL);
	check_patterns("*", "ns::work*", "134", NULL);
	check_patterns(NULL, "main", "234", NULL);
	check_patterns("#4", NULL, "4", NULL);
	check_patterns("libz*:main", NULL, "", "libz*:main");
	check_patterns("*", "nothing", "1234", "nothing");
	assert_int_equal(unlink(map_path), 0);
	check_patterns("#[13]", NULL, "13", NULL);
	check_patterns(NULL, "#2", "134", NULL);
	release(&b);
}

/* The time of calls that are left out counts as their callers' own. */
static void test_dropped_calls_are_self_time(void **state)
{
	const char *two = "#2", *both[] = { "#1", "#3" };
	const struct kx_call_filter without = { .exclude = &two, .nexclude = 1 };
	const struct kx_call_filter shallow = { .include = both, .ninclude = 2, .max_depth = 1 };
	struct bytes b = { 0 };

	(void)state;
	nested(&b);
	check(&b, &without, KX_ORDER_THREAD,
	      "10 thread 1/2 '' of ''\n"
	      "10 cpu 0 to 0\n"
	      "10 2>1 cpu 0 no 0 depth 1\n"
	      "30 2>3 cpu 0 no 1 depth 2\n"
	      "35 event 0 e\n"
	      "40 2<3 exit after 10 self 10\n"
	      "50 2>3 cpu 0 no 2 depth 2\n"
	      "60 cpu 0 to 6\n"
	      "70 2<3 exit after 20 self 20\n"
	      "100 2<1 exit after 90 self 60\n"
	      "100 end 2\n");
	check(&b, &shallow, KX_ORDER_THREAD,
	      "10 thread 1/2 '' of ''\n"
	      "10 cpu 0 to 0\n"
	      "10 2>1 cpu 0 no 0 depth 1\n"
	      "35 event 0 e\n"
	      "60 cpu 0 to 6\n"
	      "100 2<1 exit after 90 self 90\n"
	      "100 end 2\n");
	release(&b);
}

/* Run-time addresses in modules of the map become addresses of the module's ELF file. */
static void test_callers(void **state)
{
	static const uint64_t callers[] = {
		0x401234, 0x7f0000001000, 0x7f0000001fff, 0x7f0000002000, 0x7f0000000fff,
		0x7f0000003010,
	};
	struct bytes b = { 0 };

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	for (uint32_t i = 0; i < 6; i++) {
		function(&b, ENTRY_ARGS, i + 1, 10);
		call_argument(&b, 7);
		call_argument(&b, callers[i]);
	}
	function(&b, ENTRY, 7, 10);
	end_extents(&b);
	begin(&b, 3, 4, 0, 1000); /* the library has another address in this process */
	function(&b, ENTRY_ARGS, 1, 70);
	call_argument(&b, 0x7f0000001000);
	function(&b, ENTRY_ARGS, 2, 0);
	call_argument(&b, 0x500010);
	end_extents(&b);
	write_map("{\"callers\":true,\"processes\":["
		  "{\"pid\":3,\"mappings\":[{\"path\":\"/lib/libz.so.1\",\"start\":\"0x500000\","
		  "\"end\":\"0x501000\",\"load_bias\":\"0x4ff000\"}]},"
		  "{\"pid\":1,\"mappings\":["
		  "{\"path\":\"/lib/other\",\"start\":\"0x400000\",\"end\":\"0x402000\","
		  "\"load_bias\":\"0x0\"},"
		  "{\"path\":\"/bin/prog\",\"start\":\"0x7f0000003000\",\"end\":"
		  "\"0x7f0000004000\",\"load_bias\":\"0x7f0000003000\"},"
		  "{\"path\":\"/lib/libz.so.1\",\"start\":\"0x7f0000001000\",\"end\":"
		  "\"0x7f0000002000\",\"load_bias\":\"0x7f0000000000\"}]}]}");
	check(&b, NULL, KX_ORDER_THREAD,
	      "10 thread 1/2 '' of ''\n"
	      "10 cpu 0 to 0\n"
	      "10 2>1 cpu 0 no 0 depth 1 7 from 0:401234\n"
	      "20 2>2 cpu 0 no 1 depth 2 7 from 2:1000\n"
	      "30 2>3 cpu 0 no 2 depth 3 7 from 2:1fff\n"
	      "40 2>4 cpu 0 no 3 depth 4 7 from 0:7f0000002000\n"
	      "50 2>5 cpu 0 no 4 depth 5 7 from 0:7f0000000fff\n"
	      "60 2>6 cpu 0 no 5 depth 6 7 from 1:10\n"
	      "70 2>7 cpu 0 no 6 depth 7\n"
	      "70 2<7 open after 0 self 0\n"
	      "70 2<6 open after 10 self 10\n"
	      "70 2<5 open after 20 self 10\n"
	      "70 2<4 open after 30 self 10\n"
	      "70 2<3 open after 40 self 10\n"
	      "70 2<2 open after 50 self 10\n"
	      "70 2<1 open after 60 self 10\n"
	      "70 end 2\n"
	      "70 thread 3/4 '' of ''\n"
	      "70 cpu 0 to 0\n"
	      "70 4>1 cpu 0 no 7 depth 1 from 0:7f0000001000\n"
	      "70 4>2 cpu 0 no 8 depth 2 from 2:1010\n"
	      "70 4<2 open after 0 self 0\n"
	      "70 4<1 open after 0 self 0\n"
	      "70 end 4\n");
	assert_int_equal(unlink(map_path), 0);
	release(&b);
}

static void test_bad_filters(void **state)
{
	const char *bad = ":x";
	const struct kx_call_filter pattern = { .include = &bad, .ninclude = 1 };
	const struct kx_call_filter range = { .from_ns = 5, .to_ns = 5 };
	struct kx_err err = { 0 };
	struct bytes b = { 0 };
	struct kx_calls *calls = NULL;
	struct trace t;

	(void)state;
	nested(&b);
	save(path, b.data, b.size);
	open_calls(&t, NULL);
	assert_int_equal(kx_calls_new(t.f, &t.names, &pattern, &calls, &err), -EINVAL);
	assert_non_null(strstr(err.text, ":x"));
	assert_int_equal(kx_calls_new(t.f, &t.names, &range, &calls, &err), -EINVAL);
	assert_non_null(strstr(err.text, "empty"));
	assert_null(calls);
	close_calls(&t);
	release(&b);
}

/* Random traces, compared with a model that has the whole trace in memory */

#define MODEL_THREADS 3
#define MODEL_EVENTS 400

static uint64_t seed;

static uint32_t chance(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 11) % n;
}

struct model_call {
	uint64_t enter, leave, children;
	uint32_t func;
	int parent; /* index, -1: none */
	uint32_t thread;
	enum kx_leave how;
	bool done, kept;
};

struct model {
	struct model_call calls[MODEL_THREADS * MODEL_EVENTS];
	int order[MODEL_THREADS * MODEL_EVENTS]; /* as they end */
	int ncalls, nended;
	uint64_t last;
	/* found by the walk */
	int at;
	uint64_t newest;
	bool in_time;
};

static void model_close(struct model *m, int call, uint64_t tsc, enum kx_leave how)
{
	m->calls[call].leave = tsc;
	m->calls[call].how = how;
	m->calls[call].done = true;
	m->order[m->nended++] = call;
}

static int model_thread(struct model *m, struct bytes *b, uint32_t thread)
{
	int stack[MODEL_EVENTS], depth = 0, orphans = 0;
	uint64_t tsc = 1000;

	begin(b, 1, 10 + (int32_t)thread, 0, tsc);
	for (int i = 0; i < MODEL_EVENTS; i++) {
		uint32_t delta = chance(3) ? chance(30) : 0, func = 1 + chance(6);
		int at = depth;

		tsc += delta;
		if (tsc > m->last)
			m->last = tsc;
		if (chance(20) == 0) { /* a record that is not a call */
			new_cpu(b, (uint16_t)chance(4), tsc);
			delta = 0;
		}
		if (!depth || chance(100) < (depth < 12 ? 55 : 40)) {
			function(b, ENTRY, func, delta);
			m->calls[m->ncalls] = (struct model_call){
				.enter = tsc, .func = func, .thread = thread,
				.parent = depth ? stack[depth - 1] : -1 };
			stack[depth++] = m->ncalls++;
			continue;
		}
		if (chance(10))
			func = m->calls[stack[depth - 1]].func;
		function(b, EXIT, func, delta);
		while (at && m->calls[stack[at - 1]].func != func)
			at--;
		orphans += !at;
		while (at && depth > at)
			model_close(m, stack[--depth], tsc, KX_LEAVE_REPAIRED);
		if (at)
			model_close(m, stack[--depth], tsc, KX_LEAVE_EXIT);
	}
	end_extents(b);
	return orphans;
}

/* Calls open at the end, thread by thread, innermost first; order is by thread then. */
static void model_end(struct model *m)
{
	int order[MODEL_THREADS * MODEL_EVENTS], n = 0;

	for (uint32_t thread = 0; thread < MODEL_THREADS; thread++) {
		for (int i = 0; i < m->nended; i++)
			if (m->calls[m->order[i]].thread == thread)
				order[n++] = m->order[i];
		for (int i = m->ncalls - 1; i >= 0; i--)
			if (m->calls[i].thread == thread && !m->calls[i].done) {
				m->calls[i].leave = m->last;
				m->calls[i].how = KX_LEAVE_OPEN;
				order[n++] = i;
			}
	}
	memcpy(m->order, order, sizeof(order));
	m->nended = n;
}

/* The filter, computed on all calls. */
static void model_filter(struct model *m, const struct kx_call_filter *f, uint32_t excluded)
{
	uint64_t from = f->from_ns ? 1000 + f->from_ns : 0;
	uint64_t to = f->to_ns && 1000 + f->to_ns < m->last ? 1000 + f->to_ns : m->last;

	for (int i = 0; i < m->ncalls; i++) { /* parents come before their children */
		struct model_call *c = &m->calls[i];
		uint32_t depth = 0;
		int parent = c->parent;

		c->kept = c->func != excluded;
		if (f->min_duration_ns && c->how == KX_LEAVE_REPAIRED)
			c->kept = false;
		if (f->to_ns && (c->enter > to || (c->enter == to && to < m->last)))
			c->kept = false;
		if (from && c->leave <= from)
			c->kept = false;
		if (c->leave > to) {
			c->leave = to;
			c->how = KX_LEAVE_OPEN;
		}
		if (c->kept && c->leave - c->enter < f->min_duration_ns)
			c->kept = false;
		for (; parent >= 0; parent = m->calls[parent].parent)
			depth += m->calls[parent].kept;
		if (f->max_depth && depth >= f->max_depth)
			c->kept = false;
		if (!c->kept)
			continue;
		if (c->enter < from)
			c->enter = from;
		for (parent = c->parent; parent >= 0 && !m->calls[parent].kept;)
			parent = m->calls[parent].parent;
		c->parent = parent;
	}
	for (int i = m->ncalls - 1; i >= 0; i--) {
		const struct model_call *c = &m->calls[i];

		if (c->kept && c->parent >= 0)
			m->calls[c->parent].children +=
				c->how == KX_LEAVE_REPAIRED ? c->children : c->leave - c->enter;
	}
}

static int model_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct model *m = ctx;
	bool again = false;

	for (uint32_t i = 0; i + 1 < t->depth; i++)
		again |= t->stack[i].func == call->func;
	assert_int_equal(call->outermost, !again);
	assert_true(!m->in_time || call->enter >= m->newest);
	m->newest = call->enter;
	return 0;
}

static int model_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		       enum kx_leave how)
{
	struct model *m = ctx;
	const struct model_call *expected = NULL;

	assert_true(!m->in_time || tsc >= m->newest);
	m->newest = tsc;
	if (m->in_time) {
		/* the thread's next call that the walk has not visited yet */
		for (int i = 0; i < m->nended; i++) {
			struct model_call *c = &m->calls[m->order[i]];

			if (c->kept && c->thread == (uint32_t)t->tid - 10) {
				expected = c;
				c->kept = false;
				break;
			}
		}
	} else {
		while (m->at < m->nended && !m->calls[m->order[m->at]].kept)
			m->at++;
		if (m->at < m->nended)
			expected = &m->calls[m->order[m->at++]];
	}
	assert_non_null(expected);
	assert_int_equal(call->func, expected->func);
	assert_int_equal(call->enter, expected->enter);
	assert_int_equal(tsc, expected->leave);
	assert_int_equal(how, expected->how);
	assert_int_equal(call->children, expected->children);
	return 0;
}

static void check_model(struct model *m, const struct kx_call_filter *f, bool in_time)
{
	const struct kx_call_visitor v = { .enter = model_enter, .leave = model_leave, .ctx = m };
	struct kx_err err = { 0 };
	uint64_t kept = 0;
	struct trace t;

	for (int i = 0; i < m->ncalls; i++)
		kept += m->calls[i].kept;
	open_calls(&t, f);
	m->in_time = in_time;
	m->at = 0;
	m->newest = 0;
	assert_int_equal(kx_calls_walk(t.calls, in_time, &v, NULL, NULL, &err), 0);
	assert_int_equal(kx_calls_get_totals(t.calls)->calls, kept);
	close_calls(&t);
}

static void test_random_traces_against_a_model(void **state)
{
	static struct model m;
	const char *exclude = "#3";

	(void)state;
	for (int round = 0; round < 400; round++) {
		struct kx_call_filter f = { 0 };
		struct bytes b = { 0 };

		seed = 88172645463325252ull + (uint64_t)round * 7919;
		memset(&m, 0, sizeof(m));
		for (uint32_t thread = 0; thread < MODEL_THREADS; thread++)
			model_thread(&m, &b, thread);
		save(path, b.data, b.size);
		model_end(&m);
		if (chance(2))
			f.min_duration_ns = 1 + chance(chance(2) ? 60 : 600);
		if (chance(2))
			f.from_ns = 1 + chance(2000);
		if (chance(2))
			f.to_ns = f.from_ns + 1 + chance(2000);
		if (chance(3) == 0)
			f.max_depth = 1 + chance(6);
		if (chance(3) == 0) {
			f.exclude = &exclude;
			f.nexclude = 1;
		}
		model_filter(&m, &f, f.nexclude ? 3 : 0);
		check_model(&m, &f, false);
		check_model(&m, &f, true);
		release(&b);
	}
}

/* The report's records reader counts the same. */
static int sum_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		     enum kx_leave how)
{
	uint64_t (*sums)[5] = ctx;

	(void)t;
	sums[call->func][3] += how == KX_LEAVE_OPEN;
	if (how == KX_LEAVE_OPEN)
		return 0;
	sums[call->func][0]++;
	sums[call->func][4] += how == KX_LEAVE_REPAIRED;
	if (how == KX_LEAVE_REPAIRED)
		return 0;
	sums[call->func][1] += call->outermost ? tsc - call->enter : 0;
	sums[call->func][2] += tsc - call->enter - call->children;
	return 0;
}

static void check_report(const struct kx_call_filter *filter)
{
	struct kx_report_options options = { 0 };
	const struct kx_report_totals *totals;
	const struct kx_calls_totals *expected;
	uint64_t sums[8][5] = { 0 };
	const struct kx_call_visitor v = { .leave = sum_leave, .ctx = sums };
	struct kx_report *report = NULL;
	struct kx_err err = { 0 };
	struct trace t;

	open_calls(&t, filter);
	expected = kx_calls_get_totals(t.calls);
	assert_int_equal(kx_calls_walk(t.calls, KX_ORDER_TIME, &v, NULL, NULL, &err), 0);
	options.calls = filter ? t.calls : NULL;
	assert_int_equal(kx_report_new(t.f, &options, &report, &err), 0);
	totals = kx_report_get_totals(report);
	assert_int_equal(totals->repaired, expected->repaired);
	assert_int_equal(totals->orphans, expected->orphans);
	assert_int_equal(totals->open, expected->open);
	assert_int_equal(totals->calls, expected->calls);
	if (!filter) {
		assert_int_equal(totals->first_tsc, expected->first_tsc);
		assert_int_equal(totals->last_tsc, expected->last_tsc);
	}
	for (size_t i = 0; i < kx_report_nfunctions(report); i++) {
		struct kx_report_function f;

		kx_report_get_function(report, i, &f);
		assert_int_equal(f.count, sums[f.id][0] + sums[f.id][3]);
		assert_int_equal(f.total, sums[f.id][1]);
		assert_int_equal(f.self, sums[f.id][2]);
		assert_int_equal(f.open, sums[f.id][3]);
		assert_int_equal(f.no_exit, sums[f.id][4]);
		memset(sums[f.id], 0, sizeof(sums[f.id]));
	}
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
		assert_int_equal(sums[i][0] + sums[i][3], 0); /* none is missing */
	kx_report_free(report);
	close_calls(&t);
}

static void test_agrees_with_report(void **state)
{
	static struct model m;
	const char *exclude = "#2";
	const struct kx_call_filter some = { .max_depth = 5, .exclude = &exclude, .nexclude = 1 };
	const struct kx_call_filter more = { .from_ns = 500, .to_ns = 2500, .min_duration_ns = 9 };

	(void)state;
	for (int round = 0; round < 20; round++) {
		struct bytes b = { 0 };

		seed = 1234567 + (uint64_t)round * 7919;
		memset(&m, 0, sizeof(m));
		for (uint32_t thread = 0; thread < MODEL_THREADS; thread++)
			model_thread(&m, &b, thread);
		save(path, b.data, b.size);
		release(&b);
		check_report(NULL);
		check_report(&some);
		check_report(&more);
	}
}

/* Limits */

struct crowd {
	uint64_t newest;
	size_t peak;
	uint64_t calls;
};

static int crowd_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct crowd *c = ctx;

	(void)t;
	assert_true(call->enter >= c->newest);
	c->newest = call->enter;
	if (c->calls++ % 1000 == 0) {
		struct mallinfo2 info = mallinfo2();

		if (info.uordblks > c->peak)
			c->peak = info.uordblks;
	}
	return 0;
}

static void test_ten_thousand_threads(void **state)
{
	struct crowd c = { 0 };
	const struct kx_call_visitor v = { .enter = crowd_enter, .ctx = &c };
	struct kx_err err = { 0 };
	struct bytes b = { 0 };
	struct trace t;
	size_t before;

	(void)state;
	for (int32_t tid = 1; tid <= 10000; tid++) {
		begin(&b, 1, tid, 0, 1000);
		for (uint32_t i = 0; i < 20; i++) {
			function(&b, ENTRY, i + 1, (uint32_t)tid % 97 + 1);
			function(&b, ENTRY, i + 2, 1);
			function(&b, EXIT, i + 2, 1);
			function(&b, EXIT, i + 1, 1);
		}
		end_extents(&b);
	}
	save(path, b.data, b.size);
	release(&b);
	open_calls(&t, NULL);
	before = mallinfo2().uordblks;
	assert_int_equal(kx_calls_walk(t.calls, KX_ORDER_TIME, &v, NULL, NULL, &err), 0);
	assert_int_equal(c.calls, 400000);
	/* all of them are open at once: at most 4 KiB each */
	assert_true(c.peak - before < 10000 * 4096);
	assert_true(mallinfo2().uordblks - before < 65536); /* small pieces stay in malloc's cache */
	close_calls(&t);
}

/* Exits without entry must not search a deep stack each time. */
static void test_deep_stack_and_orphans(void **state)
{
	static const struct kx_call_visitor nothing;
	const struct kx_calls_totals *totals;
	struct timespec begun, ended;
	struct kx_err err = { 0 };
	struct bytes b = { 0 };
	struct trace t;

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	for (uint32_t i = 1; i <= 200000; i++)
		function(&b, ENTRY, i, 1);
	for (uint32_t i = 1; i <= 200000; i++)
		function(&b, EXIT, 1000000 + i, 1);
	function(&b, EXIT, 1, 1);
	end_extents(&b);
	save(path, b.data, b.size);
	release(&b);
	open_calls(&t, NULL);
	clock_gettime(CLOCK_MONOTONIC, &begun);
	assert_int_equal(kx_calls_walk(t.calls, KX_ORDER_THREAD, &nothing, NULL, NULL, &err), 0);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	assert_true(ended.tv_sec - begun.tv_sec < 10); /* searching would take minutes */
	totals = kx_calls_get_totals(t.calls);
	assert_int_equal(totals->calls, 200000);
	assert_int_equal(totals->orphans, 200000);
	assert_int_equal(totals->repaired, 199999);
	close_calls(&t);
}

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/t.xray", folder);
	snprintf(map_path, sizeof(map_path), "%s/t.xray.map", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	unlink(map_path);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_callback),
		cmocka_unit_test(test_totals_names_and_session),
		cmocka_unit_test(test_balancing),
		cmocka_unit_test(test_open_calls_end_with_the_trace),
		cmocka_unit_test(test_clock_that_goes_back),
		cmocka_unit_test(test_basic_mode),
		cmocka_unit_test(test_empty_trace),
		cmocka_unit_test(test_visitor_ends_the_walk),
		cmocka_unit_test(test_min_duration),
		cmocka_unit_test(test_min_duration_without_exit),
		cmocka_unit_test(test_time_range),
		cmocka_unit_test(test_time_range_and_min_duration),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_threads_by_id),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_dropped_calls_are_self_time),
		cmocka_unit_test(test_callers),
		cmocka_unit_test(test_bad_filters),
		cmocka_unit_test(test_random_traces_against_a_model),
		cmocka_unit_test(test_agrees_with_report),
		cmocka_unit_test(test_ten_thousand_threads),
		cmocka_unit_test(test_deep_stack_and_orphans),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
