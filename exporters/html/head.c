// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/html/head.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "trace/budget_info.h"

#define NAMED_PROCESSES 100 /* of many, so many are named */

#define PUT(o, text)	kx_text_bytes(o, text, sizeof(text) - 1)

static void put_text(struct kx_text_out *o, const char *key, const char *text)
{
	kx_text_str(o, key);
	kx_text_json_string(o, text ? text : "");
}

static void put_number(struct kx_text_out *o, const char *format, long long value)
{
	char text[64];

	kx_text_bytes(o, text, (size_t)snprintf(text, sizeof(text), format, value));
}

void kx_html_head_thread(struct kx_text_out *o, const struct kx_call_thread *t, bool first)
{
	char title[KX_PROCESS_TITLE];

	kx_call_process_title(t, title, sizeof(title));
	put_number(o, first ? "{\"pid\":%lld" : ",\n{\"pid\":%lld", t->pid);
	put_number(o, ",\"tid\":%lld", t->tid);
	put_text(o, ",\"name\":", t->name);
	put_text(o, ",\"process\":", title);
	PUT(o, "}");
}

static void put_process(struct kx_text_out *o, const json_t *process, bool first)
{
	const json_t *word;
	size_t i;

	put_number(o, first ? "{\"pid\":%lld" : ",{\"pid\":%lld",
		   (long long)json_integer_value(json_object_get(process, "pid")));
	put_text(o, ",\"name\":", json_string_value(json_object_get(process, "name")));
	PUT(o, ",\"command\":[");
	json_array_foreach (json_object_get(process, "command"), i, word)
		put_text(o, i ? "," : "", json_string_value(word));
	PUT(o, "]}");
}

/* Who was recorded, where, when: what `kxray report` prints first. */
static void put_session(struct kx_text_out *o, const json_t *session)
{
	const json_t *processes = json_object_get(session, "processes"), *process;
	struct kx_budget_info budget = { 0 };
	size_t i;

	put_text(o, ",\n\"host\":",
		 json_string_value(json_object_get(json_object_get(session, "host"), "name")));
	put_text(o, ",\"started\":", json_string_value(json_object_get(session, "started")));
	kx_text_json_u64(o, "processes_all", json_array_size(processes));
	PUT(o, ",\"processes\":[");
	json_array_foreach (processes, i, process) {
		if (i >= NAMED_PROCESSES)
			break;
		put_process(o, process, !i);
	}
	PUT(o, "]");
	if (!kx_budget_info_read(session, &budget))
		kx_text_json_u64(o, "sampled_functions", budget.n);
	kx_budget_info_free(&budget);
}

static void put_totals(struct kx_text_out *o, const struct kx_html_head *h)
{
	const struct kx_report_totals *t = h->totals;

	PUT(o, "{\"schema\":1,\"generator\":\"kxray\"");
	kx_text_json_u64(o, "events", t->events);
	kx_text_json_u64(o, "lost", t->lost);
	kx_text_json_u64(o, "calls", t->calls);
	kx_text_json_u64(o, "repaired", t->repaired);
	kx_text_json_u64(o, "orphans", t->orphans);
	kx_text_json_u64(o, "open", t->open);
	kx_text_json_u64(o, "duration_ns", kx_trace_ns(t->last_tsc - t->first_tsc, h->x->tsc_hz));
	kx_text_json_u64(o, "self_ns", kx_trace_ns(t->self, h->x->tsc_hz));
	kx_text_str(o, h->x->info->tsc_hz ? ",\"unit\":\"ns\"" : ",\"unit\":\"ticks\"");
	kx_text_str(o, t->has_sched ? ",\"sched\":true" : ",\"sched\":false");
	kx_text_str(o, h->x->info->truncated ? ",\"truncated\":true" : ",\"truncated\":false");
	kx_text_str(o, t->ended_early ? ",\"ended_early\":true" : ",\"ended_early\":false");
	kx_text_str(o, h->x->whole ? ",\"filtered\":false" : ",\"filtered\":true");
	kx_text_json_u64(o, "slices", h->slices);
	kx_text_json_u64(o, "merged_slices", h->merged);
	kx_text_json_u64(o, "merged_below_ns", kx_trace_ns(h->limit, h->x->tsc_hz));
	kx_text_json_u64(o, "stacks_dropped", h->stacks_dropped);
}

int kx_html_head_encode(const struct kx_html_head *h, struct kx_bytes *out)
{
	const struct kx_map *map = &h->x->names->map;
	size_t nmodules = h->x->names->has_map ? map->nmodules : 0;
	struct kx_text_out *o = malloc(sizeof(*o));
	int r;

	if (!o)
		return -ENOMEM;
	kx_text_init_memory(o);
	put_totals(o, h);
	put_session(o, h->x->session);
	PUT(o, ",\n\"modules\":[");
	for (size_t i = 0; i < nmodules; i++)
		put_text(o, i ? "," : "", map->modules[i].name);
	PUT(o, "],\n\"texts\":[");
	for (size_t i = 0; i < h->ntexts; i++)
		put_text(o, i ? "," : "", h->texts[i]);
	PUT(o, "],\n\"threads\":[");
	kx_text_bytes(o, h->threads->memory, h->threads->stored);
	PUT(o, "]}\n");
	r = kx_text_flush(o);
	kx_bytes_put(out, o->memory, o->stored);
	free(o->memory);
	free(o);
	return r;
}
