// SPDX-License-Identifier: BSD-2-Clause
#include "report/report_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/display.h"
#include "base/pattern.h"
#include "report/report_columns.h"
#include "report/report_format.h"
#include "report/report_head.h"
#include "report/report_pieces.h"
#include "trace/labels.h"

#define LEAST_GROUP_NAME 8 /* columns */

/* "host web1: a.xray" */
static void put_trace(const struct view *v)
{
	const char *host = kx_session_host(v->o->session);
	struct kx_text_out *o = v->out;
	char line[4096 + 256];

	snprintf(line, sizeof(line), "host %s: %s", *host ? host : "(unknown)", v->o->path);
	if (v->o->is_next)
		kx_text_char(o, '\n');
	kx_text_str(o, kx_screen_style(v->screen, KX_STYLE_HEAD));
	kx_put_fitted(o, line, v->screen->columns);
	kx_text_str(o, kx_screen_style(v->screen, KX_STYLE_PLAIN));
	kx_text_char(o, '\n');
}

static void put_head(const struct view *v)
{
	struct kx_text_out *o = v->out;
	char text[200];

	if (v->o->path)
		put_trace(v);
	kx_report_head(o, v->screen, v->o->session, v->totals, v->info);
	kx_budget_info_text(v->o->budget, text, sizeof(text));
	if (*text) /* it begins a line */
		kx_put_wrapped(o, v->screen, text + 1);
	if (v->totals->ended_early)
		kx_put_wrapped(o, v->screen, "The recording did not end in order (kxray was killed, could not "
					     "write, or still runs): how many events were lost is not known.");
	kx_text_char(o, '\n');
}

/* Indented as far as names are. */
static void put_sampling(const struct view *v, const struct kx_columns *c, uint32_t id)
{
	const struct kx_budget_entry *e = kx_view_sampling(v, id);
	char text[120];

	if (!e)
		return;
	kx_budget_entry_text(e, text, sizeof(text));
	if (!c->name) {
		kx_text_str(v->out, "; ");
		kx_text_str(v->out, text);
		return;
	}
	kx_text_str(v->out, "\n         ");
	kx_put_fitted(v->out, text, v->screen->columns - 9);
}

/* " FILE:LINE" behind the name. */
static void put_place(const struct view *v, uint32_t id)
{
	struct kx_map_place place;

	if (!kx_trace_place(v->names, id, &place))
		return;
	kx_text_str(v->out, kx_screen_style(v->screen, KX_STYLE_DIM));
	kx_text_char(v->out, ' ');
	kx_put_text(v->out, place.file);
	kx_text_char(v->out, ':');
	kx_text_u64(v->out, place.line);
	kx_text_str(v->out, kx_screen_style(v->screen, KX_STYLE_PLAIN));
}

static void table_row(const struct view *v, const struct kx_report_function *f,
		      const struct kx_columns *c)
{
	const char *name = kx_trace_name(v->names, f->id);
	/* a marker has no duration */
	bool measured = f->count > f->no_exit + f->open && !kx_is_marker_name(name);
	struct kx_text_out *o = v->out;
	uint64_t hz = v->info->tsc_hz;

	for (size_t i = 0; i < c->n; i++) {
		uint64_t value = kx_column_value(c->shown[i], f);

		if (c->shown[i]->kind == KX_COLUMN_NUMBER)
			kx_put_number(o, c->widths[i], value);
		else if (measured)
			kx_put_time(o, value, hz);
		else
			kx_put_time_text(o, "-", hz);
	}
	kx_text_bytes(o, "  ", 2);
	kx_put_function(o, v->screen, name, c->one_module ? "" : kx_trace_module(v->names, f->id),
			c->name);
	if (v->screen->wide)
		put_place(v, f->id);
	put_sampling(v, c, f->id);
	kx_text_char(o, '\n');
}

static void table_rows(const struct view *v, size_t first, size_t end, const void *ctx)
{
	const struct kx_columns *c = ctx;
	struct kx_report_function f[KX_REPORT_FETCH];

	for (size_t i = first, n; i < end; i += n) {
		n = kx_rows_fetch(v, i, end, f);
		for (size_t row = 0; row < n; row++)
			table_row(v, &f[row], c);
	}
}

/* A name that does not fit is cut before the numbers behind it are. */
static void put_group_line(const struct view *v, const char *what, const char *name, const char *rest)
{
	size_t columns = v->screen->columns, others = strlen(what) + strlen(rest) + 1;
	struct kx_text_out *o = v->out;

	kx_text_char(o, '\n');
	kx_text_str(o, kx_screen_style(v->screen, KX_STYLE_HEAD));
	kx_text_str(o, what);
	if (columns && *name && others + LEAST_GROUP_NAME > columns) {
		others -= strlen(rest);
		rest = "";
	}
	if (*name) {
		kx_text_char(o, ' ');
		kx_put_fitted(o, name, columns ? columns - others : 0);
	}
	kx_text_str(o, rest);
	kx_text_str(o, kx_screen_style(v->screen, KX_STYLE_PLAIN));
	kx_text_char(o, '\n');
}

/* "process 1234 (7 in its namespace) server, 3 threads, 12 calls, 1.234 ms self" */
static void put_group(const struct view *v, const struct group *g)
{
	const char *name = v->o->by == KX_REPORT_BY_CPU ? "" : kx_group_name(v, g->number);
	const struct kx_report_group *p =
		v->o->by == KX_REPORT_BY_MODULE ? NULL : kx_report_get_group(v->report, g->number);
	char what[128], in[48] = "", rest[128] = "", time[32];

	if (p && p->ns_id)
		snprintf(in, sizeof(in), " (%" PRId32 " in its namespace)", p->ns_id);
	if (!p)
		snprintf(what, sizeof(what), "module%s", *name ? "" : " not known");
	else if (v->o->by == KX_REPORT_BY_CPU)
		snprintf(what, sizeof(what), "CPU %" PRIu32, p->cpu);
	else if (v->o->by == KX_REPORT_BY_THREAD)
		snprintf(what, sizeof(what), "thread %" PRId32 "%s", p->tid, in);
	else if (v->o->by == KX_REPORT_BY_THREAD_NAME)
		snprintf(what, sizeof(what), "threads %s", *name ? "named" : "without name");
	else
		snprintf(what, sizeof(what), "process %" PRId32 "%s", p->pid, in);
	if (p && (v->o->by == KX_REPORT_BY_PROCESS || v->o->by == KX_REPORT_BY_THREAD_NAME))
		snprintf(rest, sizeof(rest), ", %" PRIu64 " thread%s", p->threads, p->threads == 1 ? "" : "s");
	else if (p && v->o->by == KX_REPORT_BY_THREAD)
		snprintf(rest, sizeof(rest), " of process %" PRId32, p->pid);
	time[kx_format_time(time, g->self, v->info->tsc_hz)] = 0;
	snprintf(rest + strlen(rest), sizeof(rest) - strlen(rest), ", %" PRIu64 " call%s, %s self", g->calls,
		 g->calls == 1 ? "" : "s", time);
	put_group_line(v, what, name, rest);
}

static void put_columns(const struct view *v, const struct kx_columns *c)
{
	kx_text_str(v->out, kx_screen_style(v->screen, KX_STYLE_HEAD));
	for (size_t i = 0; i < c->n; i++)
		kx_text_field(v->out, c->widths[i], c->shown[i]->title, strlen(c->shown[i]->title));
	kx_text_str(v->out, "  FUNCTION");
	kx_text_str(v->out, kx_screen_style(v->screen, KX_STYLE_PLAIN));
	kx_text_char(v->out, '\n');
}

/* Sums exist of calls and of self times; those of total times would count callees twice. */
static void put_sum(const struct view *v, const struct kx_columns *c, size_t i)
{
	const struct kx_report_totals *t = v->totals;
	uint64_t hz = v->info->tsc_hz;

	switch (c->shown[i]->key) {
	case KX_REPORT_BY_COUNT:
		kx_put_number(v->out, c->widths[i], t->calls);
		break;
	case KX_REPORT_BY_OPEN:
		kx_put_number(v->out, c->widths[i], t->open);
		break;
	case KX_REPORT_BY_NO_EXIT:
		kx_put_number(v->out, c->widths[i], t->repaired);
		break;
	case KX_REPORT_BY_SELF:
		kx_put_time(v->out, t->self, hz);
		break;
	case KX_REPORT_BY_ON:
		kx_put_time(v->out, t->self - t->self_off, hz);
		break;
	case KX_REPORT_BY_OFF:
		kx_put_time(v->out, t->self_off, hz);
		break;
	default:
		kx_put_time_text(v->out, "-", hz);
	}
}

static const char *groups_name(enum kx_report_by by, bool one)
{
	static const char *const names[][2] = {
		[KX_REPORT_BY_PROCESS] = { "processes", "process" },
		[KX_REPORT_BY_THREAD] = { "threads", "thread" },
		[KX_REPORT_BY_THREAD_NAME] = { "thread names", "thread name" },
		[KX_REPORT_BY_CPU] = { "CPUs", "CPU" },
		[KX_REPORT_BY_MODULE] = { "modules", "module" },
	};

	return names[by][one];
}

/* What was left out to make the table fit. */
static void put_dropped(const struct view *v, const struct kx_columns *c)
{
	const char *pieces[KX_COLUMNS + 1];
	char first[64];

	if (!c->ndropped)
		return;
	snprintf(first, sizeof(first), "Too narrow for %s", c->dropped[0]->title);
	for (size_t i = 0; i < c->ndropped; i++)
		pieces[i] = c->dropped[i]->title;
	pieces[0] = first;
	pieces[c->ndropped] = "and whole names: --wide";
	kx_text_str(v->out, kx_screen_style(v->screen, KX_STYLE_DIM));
	kx_put_pieces(v->out, v->screen, pieces, c->ndropped + 1);
	kx_text_str(v->out, kx_screen_style(v->screen, KX_STYLE_PLAIN));
}

static void put_sums(const struct view *v, const struct kx_columns *c)
{
	struct kx_text_out *o = v->out;
	char text[160];
	int n;

	for (size_t i = 0; i < c->n; i++)
		put_sum(v, c, i);
	n = snprintf(text, sizeof(text), "all %zu function%s", v->nrows, v->nrows == 1 ? "" : "s");
	if (v->o->by)
		n += snprintf(text + n, sizeof(text) - (size_t)n, " of %zu %s", v->ngroups,
			      groups_name(v->o->by, v->ngroups == 1));
	if (v->shown < v->nrows)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ", %zu shown", v->shown);
	kx_text_str(o, c->name && (size_t)n > c->name ? "\n" : "  ");
	kx_text_str(o, text);
	kx_text_char(o, '\n');
	put_dropped(v, c);
}

void kx_view_table(const struct view *v)
{
	struct kx_columns c;

	kx_columns_choose(v, &c);
	put_head(v);
	put_columns(v, &c);
	for (size_t k = 0; k < v->ngroups; k++) {
		const struct group *g = &v->groups[k];

		if (v->o->by)
			put_group(v, g);
		kx_rows_print(v, g->first, g->first + g->shown, table_rows, &c);
	}
	if (v->o->by)
		kx_text_char(v->out, '\n');
	put_sums(v, &c);
}
