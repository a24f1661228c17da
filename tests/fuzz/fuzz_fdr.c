// SPDX-License-Identifier: BSD-2-Clause
/* Traces: every record by every cursor, the statistics, and the call view in both orders. */
#include "calls/calls.h"
#include "trace/fdr_reader.h"
#include "fuzz.h"
#include "report/report.h"
#include "trace/symbolizer.h"

static void read_records(struct kx_fdr_file *f)
{
	struct kx_fdr_cursor *c;
	struct kx_fdr_record rec;

	for (size_t i = 0; i <= kx_fdr_nthreads(f) && i < 64; i++) {
		int err = i ? kx_fdr_thread_cursor(f, i - 1, &c) : kx_fdr_file_cursor(f, &c);

		if (err)
			continue;
		while (kx_fdr_next(c, &rec, NULL) > 0)
			;
		kx_fdr_cursor_free(c);
	}
}

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	(void)ctx;
	/* every exporter relies on this */
	if (!t->depth || &t->stack[t->depth - 1] != call)
		abort();
	return 0;
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	(void)ctx;
	(void)how;
	if (tsc < call->enter || call->children > tsc - call->enter || !t->depth)
		abort();
	return 0;
}

static void walk_calls(struct kx_fdr_file *f, const char *path)
{
	const struct kx_call_visitor v = { .enter = on_enter, .leave = on_leave };
	const struct kx_call_filter filters[] = { { 0 }, { .min_duration_ns = 100, .max_depth = 3 } };
	struct kx_symbolizer names;
	struct kx_calls *calls;

	if (kx_symbolizer_open(path, NULL, &names, NULL))
		return;
	for (int i = 0; i < 2; i++) {
		if (kx_calls_new(f, &names, &filters[i], &calls, NULL))
			continue;
		kx_calls_walk(calls, KX_ORDER_THREAD, &v, NULL, NULL, NULL);
		kx_calls_walk(calls, KX_ORDER_TIME, &v, NULL, NULL, NULL);
		kx_calls_free(calls);
	}
	kx_symbolizer_free(&names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct kx_report_options options = { 0 };
	struct kx_report *report;
	struct kx_fdr_file *f;
	char path[64];
	int fd = fuzz_file(data, size, path, sizeof(path));

	if (kx_fdr_open_damaged(path, &f, NULL) == 0) {
		read_records(f);
		kx_fdr_close(f);
	}
	if (kx_fdr_open(path, &f, NULL) == 0) {
		if (kx_report_new(f, &options, &report, NULL) == 0)
			kx_report_free(report);
		walk_calls(f, path);
		kx_fdr_close(f);
	}
	close(fd);
	return 0;
}
