// SPDX-License-Identifier: BSD-2-Clause
/*
 * A page that shows the trace in any browser, without network: a table of functions, a flame graph,
 * a timeline, and histograms. It is the program of the page (page.h) followed by the data
 * (blocks.h), in these streams, of which the headers named describe the content. A varint is
 * LEB128.
 *
 *   head     JSON: totals, session, threads, modules, texts (head.h)
 *   names    JSON: names of functions; numbers: their statistics (functions.h)
 *   flame    distinct stacks (flame.h)
 *   rows, tags, gaps, times, merged: the timeline (slices.h)
 *
 * Memory grows with functions, threads and distinct stacks; the number of slices is bounded.
 * Arguments, results, return addresses and CPUs of calls are not in the page.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/parallel.h"
#include "exporters/common/instant.h"
#include "exporters/common/sched_slices.h"
#include "exporters/common/text.h"
#include "exporters/exporter.h"
#include "exporters/html/blocks.h"
#include "exporters/html/flame.h"
#include "exporters/html/functions.h"
#include "exporters/html/head.h"
#include "exporters/html/page.h"
#include "exporters/html/slices.h"

#define NO_ROW UINT32_MAX

struct html {
	const struct kx_export *x;
	struct kx_html_functions functions;
	struct kx_html_flame flame;
	struct kx_html_slices slices;
	struct kx_sched_slices sched;
	struct kx_text_out *threads;
	json_t *text_index;		      /* text to index */
	const char *texts[KX_HTML_TEXTS + 1]; /* keys of text_index */
	size_t ntexts;
	/* of the thread being walked */
	bool begun;
	uint32_t thread; /* index in the page */
	uint32_t nthreads;
	uint32_t node;	/* of the flame graph */
	uint32_t *rows; /* by depth */
	size_t rows_room, nrows;
	uint32_t other_rows[4]; /* by kind */
};

/* Names of threads and processes change: the page has the last ones. */
static int begin_thread(struct html *h, const struct kx_call_thread *t, uint64_t tsc)
{
	h->thread = h->nthreads++;
	h->begun = true;
	h->nrows = 0;
	for (size_t i = 0; i < 4; i++)
		h->other_rows[i] = NO_ROW;
	kx_sched_slices_begin(&h->sched, t, tsc);
	return kx_html_flame_thread(&h->flame, h->thread, &h->node);
}

static int on_thread(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct html *h = ctx;

	return h->begun ? 0 : begin_thread(h, t, tsc);
}

static int row_of_depth(struct html *h, uint32_t depth, uint32_t *row)
{
	int r = 0;

	while (h->nrows <= depth && !r) {
		r = KX_ARRAY_RESERVE(h->rows, h->rows_room, h->nrows);
		if (!r)
			r = kx_html_row_new(&h->slices, h->thread, KX_HTML_CALLS,
					    (uint32_t)h->nrows, &h->rows[h->nrows]);
		if (!r)
			h->nrows++;
	}
	if (!r)
		*row = h->rows[depth];
	return r;
}

static int add_other(struct html *h, enum kx_html_row_kind kind, const struct kx_html_slice *slice)
{
	int r = 0;

	if (h->other_rows[kind] == NO_ROW)
		r = kx_html_row_new(&h->slices, h->thread, kind, 0, &h->other_rows[kind]);
	return r ? r : kx_html_slice_add(&h->slices, h->other_rows[kind], *slice);
}

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct html *h = ctx;
	uint32_t parent = t->depth > 1 ? (uint32_t)(uintptr_t)call[-1].user : h->node, node;
	int r = kx_html_flame_enter(&h->flame, parent, call->func, &node);

	call->user = (void *)(uintptr_t)node;
	return r;
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	struct html *h = ctx;
	const struct kx_html_slice slice = {
		.start = call->enter,
		.end = tsc,
		.name = call->func,
		.count = 1,
		.how = (uint32_t)how & 3,
	};
	uint32_t depth = t->depth - 1, row = depth < h->nrows ? h->rows[depth] : 0;
	int r = depth < h->nrows ? 0 : row_of_depth(h, depth, &row);

	/* the time of a repaired call is not known: it counts as its caller's */
	kx_html_flame_leave(&h->flame, (uint32_t)(uintptr_t)call->user,
			    how == KX_LEAVE_REPAIRED ? 0 : call->took - call->children);
	if (!r && kx_leave_is_measured(how))
		r = kx_html_functions_add(&h->functions, call->func, call->took);
	return r ? r : kx_html_slice_add(&h->slices, row, slice);
}

static int text_index(struct html *h, const char *text, uint32_t *index)
{
	json_t *known = json_object_get(h->text_index, text);

	if (!known && h->ntexts >= KX_HTML_TEXTS) {
		text = KX_HTML_OTHER_TEXT;
		known = json_object_get(h->text_index, text);
	}
	*index = known ? (uint32_t)json_integer_value(known) : (uint32_t)h->ntexts++;
	return known								? 0
	       : json_object_set_new(h->text_index, text, json_integer(*index)) ? -ENOMEM
										: 0;
}

static int put_slice(void *ctx, const struct kx_call_thread *t, const struct kx_sched_slice *s)
{
	struct kx_html_slice slice = { .start = s->from, .end = s->to, .count = 1 };
	struct html *h = ctx;
	char cpu[16];
	int r;

	(void)t;
	snprintf(cpu, sizeof(cpu), "CPU %u", s->cpu);
	r = text_index(h, s->is_running ? cpu : s->name, &slice.name);
	return r ? r : add_other(h, KX_HTML_SCHED, &slice);
}

static int on_sched(void *ctx, struct kx_call_thread *t, const struct kx_sched_interval *i)
{
	struct html *h = ctx;

	return kx_sched_slices_add(&h->sched, t, i);
}

static int add_mark(struct html *h, uint64_t tsc, const char *text)
{
	struct kx_html_slice slice = { .start = tsc, .end = tsc, .count = 1 };
	int r = text_index(h, text, &slice.name);

	return r ? r : add_other(h, KX_HTML_MARKS, &slice);
}

static int on_event(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t type,
		    const uint8_t *data, uint32_t size)
{
	char text[KX_EVENT_TEXT];

	(void)t;
	kx_event_text(text, type, data, size);
	return add_mark(ctx, tsc, text);
}

/* With the values that tell kinds apart ("fault write"), without those that are different in each.
 */
static int on_note(void *ctx, struct kx_call_thread *t, const struct kx_fdr_record *rec)
{
	char text[256];
	struct kx_instant i;
	const char *key;
	json_t *value;

	if (!kx_instant_read(&i, t, rec))
		return 0;
	snprintf(text, sizeof(text), "%s", i.name);
	json_object_foreach (i.values, key, value) {
		size_t used = strlen(text);

		if (json_is_string(value) && strncmp(json_string_value(value), "0x", 2))
			snprintf(text + used, sizeof(text) - used, " %.64s",
				 json_string_value(value));
	}
	kx_instant_free(&i);
	return add_mark(ctx, rec->tsc, text);
}

static int on_loss(void *ctx, struct kx_call_thread *t, uint64_t from, uint64_t to,
		   uint64_t entries, uint64_t exits)
{
	uint64_t lost = entries + exits;
	const struct kx_html_slice slice = {
		.start = from,
		.end = to,
		.count = lost < UINT32_MAX ? (uint32_t)lost : UINT32_MAX,
	};

	(void)t;
	return add_other(ctx, KX_HTML_GAPS, &slice);
}

static int on_end(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct html *h = ctx;
	int r = kx_sched_slices_end(&h->sched, t, tsc);

	kx_html_head_thread(h->threads, t, !h->thread);
	h->begun = false;
	return r;
}

static uint32_t name_of(void *ctx, uint32_t func)
{
	struct html *h = ctx;

	return kx_html_function_index(&h->functions, func);
}

static void encode_timeline(struct html *h, struct kx_html_blocks *b, uint64_t first_tsc)
{
	struct kx_html_streams streams = { .rows = kx_html_block_new(b, "rows", false) };

	streams.tags = kx_html_block_new(b, "tags", true);
	streams.gaps = kx_html_block_new(b, "gaps", false);
	streams.times = kx_html_block_new(b, "times", false);
	streams.merged = kx_html_block_new(b, "merged", false);
	kx_html_slices_encode(&h->slices, &streams, first_tsc, h->x->tsc_hz, name_of, h);
}

static int encode(struct html *h, struct kx_html_blocks *b)
{
	uint32_t other = (uint32_t)kx_report_nfunctions(h->functions.report);
	struct kx_bytes *head = kx_html_block_new(b, "head", true),
			*names = kx_html_block_new(b, "names", true);
	struct kx_bytes *numbers = kx_html_block_new(b, "numbers", false),
			*flame = kx_html_block_new(b, "flame", false);
	struct kx_html_head all = {
		.x = h->x,
		.totals = kx_report_get_totals(h->functions.report),
		.threads = h->threads,
		.texts = h->texts,
		.ntexts = h->ntexts,
		.slices = h->slices.n,
		.limit = h->slices.limit,
	};
	const char *text;
	json_t *index;
	int r = kx_text_flush(h->threads);

	json_object_foreach (h->text_index, text, index)
		h->texts[json_integer_value(index)] = text;
	r = r ? r : kx_html_functions_encode(&h->functions, h->x, numbers, names);
	r = r ? r : kx_html_flame_encode(&h->flame, flame, h->x->tsc_hz, name_of, h, other);
	all.stacks_dropped = h->flame.dropped;
	encode_timeline(h, b, kx_calls_get_totals(h->x->calls)->first_tsc);
	all.merged = h->slices.merged;
	return r ? r : kx_html_head_encode(&all, head);
}

static int write_page(struct html *h)
{
	struct kx_html_blocks blocks = { 0 };
	size_t size;
	const char *page = kx_html_page(&size);
	int r = encode(h, &blocks);

	if (!r) {
		kx_text_bytes(h->x->out, page, size);
		r = kx_html_blocks_write(&blocks, h->x->out);
		kx_text_str(h->x->out, "</body>\n</html>\n");
	}
	kx_html_blocks_free(&blocks);
	return r ? r : h->x->out->error;
}

static int walk(struct html *h, struct kx_err *err)
{
	const struct kx_call_visitor visitor = {
		.thread = on_thread,
		.enter = on_enter,
		.leave = on_leave,
		.loss = on_loss,
		.event = on_event,
		.note = on_note,
		.sched = on_sched,
		.end = on_end,
		.ctx = h,
	};
	const struct kx_calls_totals *totals = kx_calls_get_totals(h->x->calls);

	h->slices.duration = totals->last_tsc - totals->first_tsc;
	return kx_calls_walk(h->x->calls, KX_ORDER_THREAD, &visitor, h->x->progress,
			     h->x->progress_ctx, err);
}

/* The report and the walk, each by whoever comes first. */
struct reading {
	struct html *h;
	struct kx_err *err; /* of the walk */
	struct kx_err report_err;
	int report, walk; /* results */
	atomic_uint next;
};

static void *read_part(void *ctx)
{
	struct reading *r = ctx;
	unsigned part;

	while ((part = r->next++) < 2) {
		if (part)
			r->report =
				kx_html_functions_read(&r->h->functions, r->h->x, &r->report_err);
		else
			r->walk = walk(r->h, r->err);
	}
	return NULL;
}

/* Both read the file for themselves, at the same time; only what is filtered is read through the
 * same view. */
static int read_trace(struct html *h, struct kx_err *err)
{
	struct reading r = { .h = h, .err = err };

	kx_parallel_run(h->x->whole ? 2 : 1, read_part, &r);
	if (!r.walk && r.report)
		*err = r.report_err;
	return r.walk ? r.walk : r.report;
}

static int run(const struct kx_export *x, struct kx_err *err)
{
	struct html *h = calloc(1, sizeof(*h));
	int r = -ENOMEM;

	if (h) {
		*h = (struct html){ .x = x,
				    .slices.most = KX_HTML_SLICES,
				    .sched = { .slice = put_slice, .ctx = h },
				    .functions.ns_per_tick = 1e9 / (double)x->tsc_hz };
		h->threads = malloc(sizeof(*h->threads));
		h->text_index = json_object();
		if (h->threads && h->text_index) {
			kx_text_init_memory(h->threads);
			r = kx_html_flame_init(&h->flame);
		}
		r = r ? r : read_trace(h, err);
		r = r ? r : write_page(h);
		kx_html_functions_free(&h->functions);
		kx_html_flame_free(&h->flame);
		kx_html_slices_free(&h->slices);
		free(h->threads ? h->threads->memory : NULL);
		free(h->threads);
		json_decref(h->text_index);
		free(h->rows);
	}
	free(h);
	if (r == -ENOMEM)
		kx_err_set(err, r, "out of memory for the functions and stacks of the trace");
	return r;
}

const struct kx_exporter kx_exporter_html = {
	.name = "html",
	.suffix = ".html",
	.summary = "a page with table, flame graph, timeline and histograms, for any browser, "
		   "without network",
	.open_hint = "open it in a browser",
	.run = run,
};
