// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/report_format.h"
#include "report/report_head.h"
#include "report/slowest.h"

/* What a call's time went to; ns. They add up to its duration. */
struct parts {
	uint64_t self, callees, syscalls, runnable, asleep;
};

static int add_parts(const struct kx_tree_view *v, const struct kx_tree_rows *rows, uint32_t root, struct parts *p)
{
	struct kx_tree_walk w;
	int r = kx_tree_walk_init(&w, rows, root);
	uint32_t node;
	size_t depth;

	while (!r && (node = kx_tree_walk_next(&w, &depth))) {
		const struct kx_stack *n = &rows->tree->stacks.nodes[node];

		if (n->is_name && !strcmp(rows->tree->stacks.names[n->func], KX_SLOW_RUNNABLE))
			p->runnable += kx_tree_total_ns(rows, node);
		else if (n->is_name)
			p->asleep += kx_tree_total_ns(rows, node);
		else if (!depth)
			p->self += kx_tree_self_ns(rows, node);
		else if (!strcmp(kx_trace_module(v->names, n->func), "syscall"))
			p->syscalls += kx_tree_self_ns(rows, node);
		else
			p->callees += kx_tree_self_ns(rows, node);
	}
	r = r ? r : w.error;
	kx_tree_walk_free(&w);
	return r;
}

/* What the call was called with and returned; returns how many values. */
static size_t values_of(const struct kx_slowest *s, size_t i, struct kx_shown_value v[KX_MAX_VALUES])
{
	const struct kx_slow_call *c = &s->calls[i];
	const struct kx_value_payload entry = { c->values.data, c->values.size };
	const struct kx_value_payload exit = { c->exit_values.data, c->exit_values.size };
	const struct kx_function_values *f = kx_value_map_find(&s->values, c->func);

	return f ? kx_values_read(f, &entry, &exit, true, v) : 0;
}

static void json_call(const struct kx_slowest *s, const struct kx_tree_view *v, const struct kx_tree_rows *rows,
		      size_t i, const struct parts *p)
{
	const struct kx_slow_call *c = &s->calls[i];
	struct kx_shown_value values[KX_MAX_VALUES];
	size_t n = values_of(s, i, values);
	struct kx_text_out *o = v->out;
	char text[64];

	kx_text_str(o, i ? ",\n{\"name\":" : "\n{\"name\":");
	kx_text_json_string(o, kx_trace_name(v->names, c->func));
	kx_text_str(o, ",\"module\":");
	kx_text_json_string(o, kx_trace_module(v->names, c->func));
	snprintf(text, sizeof(text), ",\"pid\":%" PRId32 ",\"tid\":%" PRId32 ",\"thread\":", c->pid, c->tid);
	kx_text_str(o, text);
	kx_text_json_string(o, c->thread);
	kx_text_json_u64(o, "start_ns", kx_trace_ns(c->enter - s->tree.totals.t.first_tsc, v->info->tsc_hz));
	kx_text_json_u64(o, "total_ns", kx_tree_total_ns(rows, c->root));
	kx_text_json_u64(o, "self_ns", p->self);
	kx_text_json_u64(o, "callees_ns", p->callees);
	kx_text_json_u64(o, "syscalls_ns", p->syscalls);
	kx_text_json_u64(o, "runnable_ns", p->runnable);
	kx_text_json_u64(o, "asleep_ns", p->asleep);
	kx_text_str(o, n ? ",\"values\":" : "");
	if (n)
		kx_values_put_json(o, values, n);
	kx_text_char(o, ',');
}

/* "self 1.234 us" */
static void part(char text[64], const char *name, uint64_t ns, uint64_t hz)
{
	char time[33];

	time[kx_format_time(time, ns, hz)] = 0;
	snprintf(text, 64, "%s %s", name, time);
}

/* One line, of which a narrow screen has the beginning. */
static void put_values(const struct kx_slowest *s, const struct kx_tree_view *v, size_t i)
{
	const size_t columns = v->screen.columns;
	struct kx_shown_value values[KX_MAX_VALUES];
	struct kx_text_out line;
	size_t n = values_of(s, i, values);

	if (!n)
		return;
	kx_text_init_memory(&line);
	kx_values_put_text(&line, values, n);
	kx_put_fitted_printable(v->out, line.buf, line.used, columns);
	kx_text_char(v->out, '\n');
	free(line.memory);
}

/* "1. handle_request [server], thread 12 worker-1, at 1.234567 s", and what its time went to. */
static void put_call(const struct kx_slowest *s, const struct kx_tree_view *v, size_t i, const struct parts *p)
{
	const struct kx_slow_call *c = &s->calls[i];
	uint64_t hz = v->info->tsc_hz ? 1000000000 : 0;
	char texts[5][64], where[128], number[24];
	const char *pieces[5];
	size_t columns = v->screen.columns, n = 0, used;

	snprintf(where, sizeof(where), "thread %" PRId32 "%s%s, at %.6f s", c->tid, *c->thread ? " " : "", c->thread,
		 hz ? (double)(c->enter - s->tree.totals.t.first_tsc) / (double)v->info->tsc_hz : 0.0);
	snprintf(number, sizeof(number), "\n%zu. ", i + 1);
	kx_text_str(v->out, number);
	used = strlen(number) - 1;
	kx_put_function(v->out, &v->screen, kx_trace_name(v->names, c->func), kx_trace_module(v->names, c->func),
			columns ? columns - used : 0);
	kx_text_char(v->out, '\n');
	kx_put_fitted(v->out, where, columns);
	kx_text_char(v->out, '\n');
	put_values(s, v, i);
	for (size_t k = 0; k < 5; k++)
		pieces[k] = texts[k];
	part(texts[n++], "self", p->self, hz);
	part(texts[n++], "callees", p->callees, hz);
	if (p->syscalls)
		part(texts[n++], "system calls", p->syscalls, hz);
	if (s->tree.totals.t.has_sched) {
		part(texts[n++], "runnable", p->runnable, hz);
		part(texts[n++], "asleep", p->asleep, hz);
	}
	kx_put_pieces(v->out, &v->screen, pieces, n);
}

static int print_calls(const struct kx_slowest *s, const struct kx_tree_view *v, const struct kx_tree_rows *rows)
{
	int r = 0;

	for (size_t i = 0; i < s->count && !r; i++) {
		struct kx_tree_shown shown = { 0 };
		struct parts p = { 0 };
		char text[64];

		r = add_parts(v, rows, s->calls[i].root, &p);
		if (r)
			return r;
		if (v->json) {
			json_call(s, v, rows, i, &p);
			r = kx_tree_put_json(v, rows, s->calls[i].root);
			kx_text_char(v->out, '}');
			continue;
		}
		put_call(s, v, i, &p);
		kx_tree_put_columns(v);
		r = kx_tree_put_rows(v, rows, s->calls[i].root, &shown);
		if (!shown.left)
			continue;
		snprintf(text, sizeof(text), "%zu more left out by --limit\n", shown.left);
		kx_put_styled(v->out, &v->screen, KX_STYLE_DIM, text);
	}
	return r;
}

int kx_slowest_print(const struct kx_slowest *s, const struct kx_tree_view *v, struct kx_err *err)
{
	struct kx_tree_rows rows;
	int r = kx_tree_rows_init(&rows, &s->tree, v->info->tsc_hz);

	if (!r && v->json) {
		kx_text_char(v->out, '{');
		kx_totals_json(v->out, &s->tree.totals.t, v->info);
		kx_text_str(v->out, ",\"slowest\":[");
	} else if (!r) {
		kx_report_head(v->out, &v->screen, v->session, &s->tree.totals.t, v->info);
		if (!s->tree.totals.t.has_sched)
			kx_put_wrapped(v->out, &v->screen, "The trace does not say when threads were off the CPU: "
							   "that takes record --sched.");
	}
	r = r ? r : print_calls(s, v, &rows);
	if (!r && v->json)
		kx_text_str(v->out, "\n]}\n");
	kx_tree_rows_free(&rows);
	if (r)
		return kx_err_set(err, r, "out of memory for the slowest calls");
	return kx_view_flush(v->out, err);
}
