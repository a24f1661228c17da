// SPDX-License-Identifier: BSD-2-Clause
#include "report/report_json.h"

#include <inttypes.h>
#include <stdio.h>

#include "report/report_head.h"
#include "report/report_pieces.h"
#include "trace/labels.h"

/* On-CPU time is computed in nanoseconds, so that both parts add up exactly to the total. */
static void json_off(const struct view *v, uint64_t total, uint64_t off, const char *on_key,
		     const char *off_key)
{
	uint64_t hz = v->info->tsc_hz, off_ns = kx_trace_ns(off, hz);

	kx_text_json_u64(v->out, on_key, kx_trace_ns(total, hz) - off_ns);
	kx_text_json_u64(v->out, off_key, off_ns);
}

static void json_sampling(const struct view *v, uint32_t id)
{
	const struct kx_budget_entry *e = kx_view_sampling(v, id);
	char text[64];

	if (!e)
		return;
	kx_text_json_u64(v->out, "recorded_one_in", e->one_in);
	kx_text_json_u64(v->out, "all_calls", e->calls);
	kx_text_json_u64(v->out, "recorded_calls", e->recorded);
	snprintf(text, sizeof(text), ",\"out_seconds\":%.3f", e->out_seconds);
	kx_text_str(v->out, text);
}

static void json_function(const struct view *v, const struct kx_report_function *f)
{
	struct kx_text_out *o = v->out;
	uint64_t hz = v->info->tsc_hz;
	struct kx_map_place place;

	kx_text_str(o, "{\"name\":");
	kx_text_json_string(o, kx_trace_name(v->names, f->id));
	kx_text_str(o, ",\"module\":");
	kx_text_json_string(o, kx_trace_module(v->names, f->id));
	if (kx_trace_place(v->names, f->id, &place)) {
		kx_text_str(o, ",\"file\":");
		kx_text_json_string(o, place.file);
		kx_text_json_u64(o, "line", place.line);
	}
	kx_text_json_u64(o, "id", f->id);
	kx_text_json_u64(o, "count", f->count);
	kx_text_json_u64(o, "open", f->open);
	kx_text_json_u64(o, "no_exit", f->no_exit);
	json_sampling(v, f->id);
	kx_text_json_u64(o, "total_ns", kx_trace_ns(f->total, hz));
	kx_text_json_u64(o, "self_ns", kx_trace_ns(f->self, hz));
	kx_text_json_u64(o, "min_ns", kx_trace_ns(f->min, hz));
	kx_text_json_u64(o, "p50_ns", kx_trace_ns(f->p50, hz));
	kx_text_json_u64(o, "p90_ns", kx_trace_ns(f->p90, hz));
	kx_text_json_u64(o, "p99_ns", kx_trace_ns(f->p99, hz));
	kx_text_json_u64(o, "max_ns", kx_trace_ns(f->max, hz));
	if (v->totals->has_sched) {
		json_off(v, f->total, f->off, "on_cpu_ns", "off_cpu_ns");
		kx_text_json_u64(o, "wait_ns", kx_trace_ns(f->wait, hz));
		json_off(v, f->self, f->self_off, "self_on_cpu_ns", "self_off_cpu_ns");
	}
	kx_text_char(o, '}');
}

static void json_rows(const struct view *v, size_t first, size_t end, const void *ctx)
{
	const struct group *g = ctx;
	struct kx_report_function f[KX_REPORT_FETCH];

	for (size_t i = first, n; i < end; i += n) {
		n = kx_rows_fetch(v, i, end, f);
		for (size_t k = 0; k < n; k++) {
			kx_text_str(v->out, i + k > g->first ? ",\n" : "\n");
			json_function(v, &f[k]);
		}
	}
}

static void json_functions(const struct view *v, const struct group *g)
{
	kx_text_str(v->out, "\"functions\":[");
	kx_rows_print(v, g->first, g->first + g->shown, json_rows, g);
	kx_text_str(v->out, "\n]");
}

/* What a group of processes, threads, names, CPUs or modules is. */
static void json_group(const struct view *v, const struct group *g)
{
	const struct kx_report_group *p =
		v->o->by == KX_REPORT_BY_MODULE ? NULL : kx_report_get_group(v->report, g->number);
	struct kx_text_out *o = v->out;
	char text[96];

	if (!p) {
		kx_text_str(o, "\"module\":");
		kx_text_json_string(o, kx_group_name(v, g->number));
		kx_text_str(o, ",\"path\":");
		kx_text_json_string(o, g->number ? v->names->map.modules[g->number - 1].path : "");
		return;
	}
	if (v->o->by == KX_REPORT_BY_CPU) {
		snprintf(text, sizeof(text), "\"cpu\":%" PRIu32, p->cpu);
		kx_text_str(o, text);
		return;
	}
	if (v->o->by == KX_REPORT_BY_THREAD)
		snprintf(text, sizeof(text), "\"tid\":%" PRId32 ",\"pid\":%" PRId32 ",", p->tid, p->pid);
	else
		snprintf(text, sizeof(text), "\"pid\":%" PRId32 ",", p->pid);
	if (v->o->by != KX_REPORT_BY_THREAD_NAME)
		kx_text_str(o, text);
	if (p->ns_id) {
		snprintf(text, sizeof(text), "\"ns_%s\":%" PRId32 ",",
			 v->o->by == KX_REPORT_BY_THREAD ? "tid" : "pid", p->ns_id);
		kx_text_str(o, text);
	}
	kx_text_str(o, "\"name\":");
	kx_text_json_string(o, p->name);
	if (v->o->by == KX_REPORT_BY_THREAD) {
		kx_text_str(o, ",\"process\":");
		kx_text_json_string(o, p->process);
	} else {
		kx_text_json_u64(o, "threads", p->threads);
	}
}

static void json_groups(const struct view *v)
{
	struct kx_text_out *o = v->out;

	kx_text_str(o, v->o->by == KX_REPORT_BY_PROCESS ? "\"processes\":[" : "\"groups\":[");
	for (size_t i = 0; i < v->ngroups; i++) {
		const struct group *g = &v->groups[i];

		kx_text_str(o, i ? ",\n{" : "\n{");
		json_group(v, g);
		kx_text_json_u64(o, "calls", g->calls);
		kx_text_json_u64(o, "self_ns", kx_trace_ns(g->self, v->info->tsc_hz));
		kx_text_char(o, ',');
		json_functions(v, g);
		kx_text_char(o, '}');
	}
	kx_text_str(o, "\n]");
}

/* Of what host, and of what else, the trace is. */
static void json_labels(const struct view *v)
{
	json_t *labels = kx_session_labels(v->o->session), *value;
	const char *key, *comma = "";

	kx_text_str(v->out, ",\"labels\":{");
	json_object_foreach (labels, key, value) {
		kx_text_str(v->out, comma);
		kx_text_json_string(v->out, key);
		kx_text_char(v->out, ':');
		kx_text_json_string(v->out, json_string_value(value));
		comma = ",";
	}
	kx_text_char(v->out, '}');
	json_decref(labels);
}

void kx_view_json(const struct view *v)
{
	kx_text_char(v->out, '{');
	kx_totals_json(v->out, v->totals, v->info);
	if (v->o->path) {
		kx_text_str(v->out, ",\"path\":");
		kx_text_json_string(v->out, v->o->path);
	}
	json_labels(v);
	kx_text_char(v->out, ',');
	if (v->o->by)
		json_groups(v);
	else
		json_functions(v, v->groups);
	kx_text_str(v->out, "}\n");
}
