// SPDX-License-Identifier: BSD-2-Clause
/* Traces with known costs of probes, and the durations of their calls. Include it after cmocka's headers. */
#ifndef KX_TEST_PROBE_COST_RIG_H
#define KX_TEST_PROBE_COST_RIG_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "calls/calls.h"
#include "report/report.h"
#include "trace/probe_cost.h"
#include "fdr_bytes.h"
#include "folder.h"

#define HZ 1000000000 /* so that ticks are nanoseconds */

static char path[64], map_path[80];

/* Functions 1 and 2 take more after pauses of more than 100. */
static const char *const known_pauses =
	"{\"probe_costs\":{\"pauses_ticks\":[100,200,400],\"kinds\":["
	"{\"entry\":\"push\",\"exit\":\"return\",\"offset_ticks\":10,\"cost_ticks\":30,\"tail_cost_ticks\":25,"
	"\"entry_pauses\":{\"offset_ticks\":[0,4,8],\"cost_ticks\":[0,6,12]},"
	"\"exit_pauses\":{\"offset_ticks\":[0,5,3],\"cost_ticks\":[0,5,9]}}],"
	"\"functions\":\"aa-\"}}";

struct log {
	char text[4096];
	size_t len;
	uint64_t newest;
};

static inline int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
			   enum kx_leave how)
{
	struct log *l = ctx;

	(void)t;
	(void)how;
	assert_true(tsc >= l->newest && tsc >= call->enter); /* time never goes back */
	l->newest = tsc;
	l->len += (size_t)snprintf(l->text + l->len, sizeof(l->text) - l->len,
				   "%u@%" PRIu64 "-%" PRIu64 " %" PRIu64 "/%" PRIu64 " ", call->func,
				   call->enter - 1000, tsc - 1000, call->took, call->took - call->children);
	return 0;
}

static inline int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct log *l = ctx;

	(void)t;
	assert_true(call->enter >= l->newest);
	l->newest = call->enter;
	return 0;
}

static inline void write_map(const char *session)
{
	struct kx_map_module module = { .name = "a", .path = "/a", .build_id = "" };
	struct kx_map_function functions[4] = { { .symbol = "a", .address = 1, .size = 1 },
						{ .symbol = "b", .address = 2, .size = 1 },
						{ .symbol = "c", .address = 3, .size = 1 },
						{ .symbol = "d", .address = 4, .size = 1 } };
	struct kx_map map = { .modules = &module, .nmodules = 1, .functions = functions, .nfunctions = 4,
			      .session = json_loads(session, 0, NULL) };
	struct kx_err err = { 0 };

	assert_non_null(map.session);
	assert_int_equal(kx_map_write(map_path, &map, &err), 0);
	json_decref(map.session);
}

struct hit {
	unsigned action;
	uint32_t func;
	uint64_t at;
};

static inline void write_trace(const struct hit *hits, size_t n)
{
	struct bytes b = { 0 };
	uint64_t last = 1000;

	header(&b, 5, 1, HZ, 0);
	preamble(&b, 5, 1, 2, 0, 1000);
	for (size_t i = 0; i < n; i++) {
		function(&b, hits[i].action, hits[i].func, (uint32_t)(hits[i].at + 1000 - last));
		last = hits[i].at + 1000;
	}
	end_extents(&b);
	save(path, b.data, b.size);
	release(&b);
}

static inline void check(const struct kx_call_filter *filter, const char *want)
{
	const struct kx_call_filter nothing = { 0 };
	/* keeps everything, but goes through the queue instead of the direct path */
	struct kx_call_filter queued = filter ? *filter : nothing;
	const enum kx_order orders[] = { KX_ORDER_THREAD, KX_ORDER_TIME };
	static const char *all[] = { "*" };

	queued.include = all;
	queued.ninclude = 1;
	for (int i = 0; i < 4; i++) {
		struct log l = { 0 };
		const struct kx_call_visitor v = { .enter = on_enter, .leave = on_leave, .ctx = &l };
		struct kx_symbolizer names = { 0 };
		struct kx_fdr_file *f = NULL;
		struct kx_calls *calls = NULL;
		struct kx_err err = { 0 };

		if (kx_fdr_open(path, &f, &err) || kx_symbolizer_open(path, NULL, &names, &err) ||
		    kx_calls_new(f, &names, i < 2 ? filter : &queued, &calls, &err) ||
		    kx_calls_walk(calls, orders[i % 2], &v, NULL, NULL, &err))
			fail_msg("%s", err.text);
		if (l.len)
			l.text[l.len - 1] = 0;
		assert_string_equal(l.text, want);
		kx_calls_free(calls);
		kx_symbolizer_free(&names);
		kx_fdr_close(f);
	}
}

/* Total and self time of @func, by both readers of the report. */
static inline void check_report(uint32_t func, bool raw, uint64_t total, uint64_t self)
{
	for (int i = 0; i < 2; i++) {
		const struct kx_call_filter filter = { .raw = raw };
		struct kx_report_options o = { .raw = raw, .whole = true };
		struct kx_report_function got = { 0 };
		struct kx_symbolizer names = { 0 };
		struct kx_fdr_file *f = NULL;
		struct kx_report *r = NULL;
		struct kx_err err = { 0 };

		if (kx_fdr_open(path, &f, &err) || kx_symbolizer_open(path, NULL, &names, &err) ||
		    (i && kx_calls_new(f, &names, &filter, &o.calls, &err)))
			fail_msg("%s", err.text);
		o.session = names.map.session;
		if (kx_report_new(f, &o, &r, &err))
			fail_msg("%s", err.text);
		for (size_t at = 0; at < kx_report_nfunctions(r) && got.id != func; at++)
			kx_report_get_function(r, at, &got);
		assert_int_equal(got.id, func);
		assert_int_equal(got.total, total);
		assert_int_equal(got.self, self);
		kx_report_free(r);
		kx_calls_free(o.calls);
		kx_symbolizer_free(&names);
		kx_fdr_close(f);
	}
}

static inline int make_paths(void **state)
{
	if (make_folder(state))
		return -1;
	snprintf(path, sizeof(path), "%s/t.xray", folder);
	snprintf(map_path, sizeof(map_path), "%s.map", path);
	return 0;
}

#define WRITE(...)                                                                                 \
	do {                                                                                       \
		static const struct hit hits[] = { __VA_ARGS__ };                                  \
		write_trace(hits, sizeof(hits) / sizeof(hits[0]));                                 \
	} while (0)

#endif
