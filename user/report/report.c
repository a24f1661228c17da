// SPDX-License-Identifier: BSD-2-Clause
#include "report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_calls.h"
#include "report/report_records.h"
#include "report/report_state.h"

/* The sums over all functions. */
static void add_up(struct kx_report *r)
{
	for (size_t i = 0; i < r->table.count; i++) {
		const struct kx_report_stat *s = kx_report_stat_at(&r->table, (uint32_t)i);

		r->totals.calls += s->count + s->open;
		r->totals.self += s->self;
		r->totals.self_off += kx_off_get(&r->off, (uint32_t)i).self_off;
	}
}

/* 1 if another pass is needed, else 0 or an error. */
static int run_pass(struct kx_report *r, struct kx_fdr_file *f,
		    const struct kx_report_options *options, struct kx_err *err)
{
	int e = options->calls ? kx_report_read_calls(r, options->calls, options->whole, err) :
				 kx_report_read_records(r, f, err);

	if (e)
		return e;
	if (r->counting)
		add_up(r);
	r->counting = false;
	r->totals.passes++;
	for (size_t i = 0; i < r->nthreads; i++) {
		kx_off_thread_free(r->threads[i].off);
		r->threads[i].off = NULL;
	}
	e = kx_report_table_end_pass(&r->table);
	return e < 0 ? kx_err_set(err, e, "out of memory for the percentiles") : e;
}

int kx_report_new(struct kx_fdr_file *f, const struct kx_report_options *options,
		  struct kx_report **out, struct kx_err *err)
{
	struct kx_report *r = calloc(1, sizeof(*r));
	int e = -ENOMEM;

	if (!r)
		return kx_err_set(err, e, "out of memory for the report");
	r->nthreads = kx_fdr_nthreads(f);
	r->threads = calloc(r->nthreads + 1, sizeof(*r->threads));
	if (r->threads && !options->raw && kx_probe_costs_read(options->session, &r->costs)) {
		kx_report_free(r);
		return kx_err_set(err, e, "out of memory for the report");
	}
	for (size_t i = 0; r->threads && r->costs.n && i < r->nthreads; i++) {
		int32_t tid;

		r->threads[i].open.costs = &r->costs;
		kx_fdr_thread_ids(f, i, &r->threads[i].open.pid, &tid);
	}
	if (!r->threads || kx_report_table_init(&r->table, options->histogram_bytes)) {
		kx_report_free(r);
		return kx_err_set(err, e, "out of memory for the report");
	}
	r->totals.has_sched = json_is_true(json_object_get(options->session, "sched")) ||
			      (options->calls && kx_calls_have_sched(options->calls));
	if (!options->calls || options->whole)
		kx_report_take_session(r, options->session);
	/* a recorder that was killed, could not write its map, or has not ended yet */
	r->totals.ended_early = json_object_get(options->session, "started") &&
				!json_is_integer(json_object_get(options->session, "lost"));
	r->groups.by = options->by == KX_REPORT_BY_MODULE ? KX_REPORT_BY_ALL : options->by;
	r->counting = true;
	do
		e = run_pass(r, f, options, err);
	while (e > 0);
	if (e) {
		kx_report_free(r);
		return e;
	}
	r->totals.orphans += r->orphans;
	*out = r;
	return 0;
}

void kx_report_free(struct kx_report *r)
{
	if (!r)
		return;
	for (size_t i = 0; r->threads && i < r->nthreads; i++) {
		kx_open_calls_free(&r->threads[i].open);
		kx_off_thread_free(r->threads[i].off);
	}
	kx_report_table_free(&r->table);
	kx_off_table_free(&r->off);
	kx_report_groups_free(&r->groups);
	kx_probe_costs_free(&r->costs);
	free(r->threads);
	free(r);
}

const struct kx_report_totals *kx_report_get_totals(const struct kx_report *r)
{
	return &r->totals;
}

size_t kx_report_nfunctions(const struct kx_report *r)
{
	return r->table.count;
}

uint64_t kx_report_get_total(const struct kx_report *r, size_t index)
{
	return kx_report_stat_at(&r->table, (uint32_t)index)->total;
}

void kx_report_prefetch(const struct kx_report *r, size_t index)
{
	__builtin_prefetch(kx_report_stat_at(&r->table, (uint32_t)index));
}

void kx_report_get_function(const struct kx_report *r, size_t index, struct kx_report_function *out)
{
	const struct kx_report_stat *s = kx_report_stat_at(&r->table, (uint32_t)index);
	const struct kx_off_times times = kx_off_get(&r->off, (uint32_t)index);
	uint64_t no_exit = kx_report_table_unmeasured(&r->table, (uint32_t)index);
	uint64_t min = s->count > no_exit ? s->min : 0;

	*out = (struct kx_report_function){
		.id = s->func, .count = s->count + s->open, .open = s->open, .no_exit = no_exit,
		.total = s->total, .self = s->self, .min = min, .max = s->max,
		.off = times.off, .wait = times.wait, .self_off = times.self_off,
		.p50 = kx_histogram_value(s->codes[0], min, s->max),
		.p90 = kx_histogram_value(s->codes[1], min, s->max),
		.p99 = kx_histogram_value(s->codes[2], min, s->max),
	};
	if (r->groups.by) {
		out->id = r->groups.pair[s->func].b;
		out->group = r->groups.pair[s->func].a;
	}
}

size_t kx_report_ngroups(const struct kx_report *r)
{
	return r->groups.count;
}

const struct kx_report_group *kx_report_get_group(const struct kx_report *r, size_t index)
{
	return &r->groups.items[index];
}
