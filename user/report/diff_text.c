// SPDX-License-Identifier: BSD-2-Clause
#include "report/diff_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/diff_columns.h"
#include "report/report_format.h"
#include "report/report_head.h"

#define HZ    1000000000 /* times are nanoseconds */
#define AHEAD 8		 /* rows */

static void put_line(const struct kx_diff_printer *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void put_line(const struct kx_diff_printer *p, const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	kx_put_wrapped(p->out, &p->o->screen, text);
}

static void put_side(const struct kx_diff_printer *p, int side)
{
	const struct kx_report_totals *t = kx_diff_get_totals(p->diff, side);
	const struct kx_screen *screen = &p->o->screen;
	char text[200];

	kx_text_str(p->out, kx_screen_style(screen, KX_STYLE_HEAD));
	kx_text_str(p->out, side ? "B: " : "A: ");
	kx_put_fitted(p->out, p->o->paths[side], screen->columns ? screen->columns - 3 : 0);
	kx_text_str(p->out, kx_screen_style(screen, KX_STYLE_PLAIN));
	kx_text_char(p->out, '\n');
	kx_report_head(p->out, screen, p->sides[side].session, t,
		       kx_fdr_get_info(p->sides[side].file));
	kx_budget_info_text(p->sides[side].budget, text, sizeof(text));
	if (*text) /* it begins a line */
		kx_put_wrapped(p->out, screen, text + 1);
	if (t->ended_early)
		put_line(p, "The recording did not end in order: how many events were lost is not "
			    "known.");
}

static void put_scale(const struct kx_diff_printer *p)
{
	const struct kx_diff_summary *s = p->summary;

	if (s->per == KX_DIFF_PER_SECOND)
		put_line(p, "Counts and sums of B are scaled by %.4g, to A's duration (--per).",
			 s->scale);
	else if (fabs(log(s->seconds[1] / s->seconds[0])) > 0.02)
		put_line(p, "The recordings last differently long; counts and sums are compared as "
			    "they are (--per).");
}

/* Means change with the load, medians hardly. */
static void put_common_mean(const struct kx_diff_printer *p)
{
	const struct kx_noise_common *c = &p->summary->common;
	double change = c->change[KX_NOISE_SELF_MEAN];

	if (c->found[KX_NOISE_SELF_MEAN] && fabs(change - c->change[KX_NOISE_SELF_MEDIAN]) >
						    c->margin[KX_NOISE_SELF_MEAN] + KX_DIFF_LEAST)
		put_line(p,
			 "Means changed by %+.3g %%, medians by %+.3g %%, in most functions: in %s "
			 "calls were interrupted more often.",
			 100 * expm1(change), 100 * expm1(c->change[KX_NOISE_SELF_MEDIAN]),
			 change > 0 ? "B" : "A");
}

static void put_common(const struct kx_diff_printer *p)
{
	const struct kx_noise_common *c = &p->summary->common;
	double change = 100 * expm1(c->change[KX_NOISE_SELF_MEDIAN]),
	       noise = 100 * expm1(c->margin[KX_NOISE_SELF_MEDIAN]);
	const char *longer = change > 0 ? "longer" : "less";

	if (p->summary->same_speed)
		return;
	if (!c->functions)
		put_line(p, "There are too few functions to tell a change of the processor's speed "
			    "from one of theirs.");
	else if (!c->found[KX_NOISE_SELF_MEDIAN])
		put_line(p,
			 "Most functions took %.3g %% %s per call in B, more than machines differ: "
			 "none of it is subtracted.",
			 fabs(change), longer);
	else if (fabs(change) > noise && fabs(change) > 100 * KX_DIFF_LEAST / 2)
		put_line(p,
			 "Most functions took %.3g %% %s per call in B, as on a %s machine: "
			 "changes of times are less that "
			 "(--same-speed: as recorded).",
			 fabs(change), longer, change > 0 ? "slower" : "faster");
	else
		put_line(p,
			 "The machine was equally fast: the median change per call is %+.2f %% "
			 "(noise %.2g %%).",
			 change, noise);
	put_common_mean(p);
}

static void put_load(const struct kx_diff_printer *p)
{
	const struct kx_diff_summary *s = p->summary;
	double change = 100 * expm1(s->common.change[KX_NOISE_CALLS]);

	if (s->common.found[KX_NOISE_CALLS] && fabs(change) > 100 * KX_DIFF_LEAST)
		put_line(p,
			 "Most functions were called %.3g %% %s often in B, as under %s "
			 "load: changes of CALLS are less "
			 "that.",
			 fabs(change), change > 0 ? "more" : "less", change > 0 ? "more" : "less");
}

static void put_losses(const struct kx_diff_printer *p)
{
	const struct kx_report_totals *a = kx_diff_get_totals(p->diff, 0),
				      *b = kx_diff_get_totals(p->diff, 1);

	if (a->lost || b->lost)
		put_line(p, "Events were lost: counts are too low, and self times too high where "
			    "the missing calls were callees.");
}

/* "+1.5 %", or "x12.3" where a part of the value before says less. Returns its length. */
static size_t format_change(char text[40], double value)
{
	size_t n = 0;

	if (fabs(value) >= 9.9995)
		return (size_t)snprintf(text, 40, "x%.4g", 1 + value);
	if (!signbit(value))
		text[n++] = '+';
	n += kx_format_tenths(text + n, 100 * value);
	return (size_t)(stpcpy(text + n, " %") - text);
}

static size_t format_margin(char text[40], double value)
{
	size_t n;

	if (value >= 9.9995)
		return (size_t)(stpcpy(text, "high") - text);
	n = kx_format_tenths(text, 100 * value);
	return (size_t)(stpcpy(text + n, " %") - text);
}

/* With @has_sign, its sign first. */
static size_t format_time(char text[40], double value, bool has_sign, uint64_t hz)
{
	size_t n = 0;

	if (has_sign)
		text[n++] = value < 0 ? '-' : '+';
	n += kx_format_time(text + n, (uint64_t)(fabs(value) + 0.5), hz);
	if (hz && text[n - 2] == ' ') /* "s" stands below the first letter of "ms" */
		text[n++] = ' ';
	return n;
}

static void put_value(const struct kx_diff_printer *p, const struct kx_diff_column *c, int width,
		      double value)
{
	char text[40] = "-";
	size_t n = 1;

	if (isnan(value))
		;
	else if (c->kind == KX_DIFF_COUNT)
		n = kx_format_whole(text, value);
	else if (c->kind == KX_DIFF_CHANGE)
		n = format_change(text, value);
	else if (c->kind == KX_DIFF_MARGIN)
		n = format_margin(text, value);
	else
		n = format_time(text, value, c->kind == KX_DIFF_DIFFERENCE, p->summary->has_frequency ? HZ : 0);
	kx_text_field(p->out, width, text, n);
}

static void put_verdict(const struct kx_diff_printer *p, enum kx_diff_verdict verdict, int width)
{
	static const enum kx_style styles[] = {
		[KX_DIFF_SLOWER] = KX_STYLE_HOT,    [KX_DIFF_CALLEES_SLOWER] = KX_STYLE_WARM,
		[KX_DIFF_MORE] = KX_STYLE_WARM,	    [KX_DIFF_NEW] = KX_STYLE_WARM,
		[KX_DIFF_FASTER] = KX_STYLE_HEAD,   [KX_DIFF_CALLEES_FASTER] = KX_STYLE_HEAD,
		[KX_DIFF_FEWER] = KX_STYLE_HEAD,    [KX_DIFF_GONE] = KX_STYLE_HEAD,
		[KX_DIFF_UNCLEAR] = KX_STYLE_PLAIN, [KX_DIFF_NOISE] = KX_STYLE_DIM,
		[KX_DIFF_FEW] = KX_STYLE_DIM,
	};
	const char *name = kx_diff_verdict_name(verdict);

	kx_text_str(p->out, kx_screen_style(&p->o->screen, styles[verdict]));
	kx_text_field(p->out, -width, name, strlen(name));
	kx_text_str(p->out, kx_screen_style(&p->o->screen, KX_STYLE_PLAIN));
}

/* "A: recorded 75,271 of 1,204,331 calls", indented as names are. */
static void put_sampling(const struct kx_diff_printer *p, const struct kx_diff_row *row,
			 size_t columns)
{
	for (int side = 0; side < 2; side++) {
		const struct kx_budget_entry *e =
			p->sides[side].budget
				? kx_budget_info_find(p->sides[side].budget, row->id[side])
				: NULL;
		char text[120];

		if (!e || (side ? row->index.b : row->index.a) == KX_DIFF_NONE)
			continue;
		kx_budget_entry_text(e, text, sizeof(text));
		kx_text_str(p->out, columns ? "\n      " : "; ");
		kx_text_str(p->out, side ? "B: " : "A: ");
		kx_put_fitted(p->out, text, columns ? columns - 9 : 0);
	}
	if (row->callee_sampled)
		kx_text_str(p->out, columns ? "\n      self time not judged: callees were sampled"
					    : "; self time not judged: callees were sampled");
}

static void put_row(const struct kx_diff_printer *p, const struct kx_diff_row *row,
		    const struct kx_diff_columns *c)
{
	for (size_t i = 0; i < c->n; i++) {
		if (c->shown[i]->kind == KX_DIFF_VERDICT)
			put_verdict(p, row->verdict, c->widths[i]);
		else
			put_value(p, c->shown[i], c->widths[i],
				  c->shown[i]->value(row, p->summary));
	}
	kx_text_bytes(p->out, "  ", 2);
	kx_put_function(p->out, &p->o->screen, kx_diff_name(p->sides, row),
			c->one_module ? "" : kx_diff_module(p->sides, row), c->name);
	put_sampling(p, row, p->o->screen.columns);
	kx_text_char(p->out, '\n');
}

static void put_titles(const struct kx_diff_printer *p, const struct kx_diff_columns *c)
{
	kx_text_str(p->out, kx_screen_style(&p->o->screen, KX_STYLE_HEAD));
	for (size_t i = 0; i < c->n; i++)
		kx_text_field(p->out, i ? c->widths[i] : -c->widths[i], c->shown[i]->title,
			      strlen(c->shown[i]->title));
	kx_text_str(p->out, "  FUNCTION");
	kx_text_str(p->out, kx_screen_style(&p->o->screen, KX_STYLE_PLAIN));
	kx_text_char(p->out, '\n');
}

/* What was left out to make the table fit. */
static void put_dropped(const struct kx_diff_printer *p, const struct kx_diff_columns *c)
{
	const char *pieces[KX_DIFF_COLUMNS + 1];
	char first[64];
	size_t n = 0;

	if (!c->ndropped)
		return;
	snprintf(first, sizeof(first), "Too narrow for %s", c->dropped[0]->title);
	for (size_t i = 0; i < c->ndropped; i++)
		pieces[n++] = c->dropped[i]->title;
	pieces[0] = first;
	pieces[n++] = "and whole names: --wide";
	kx_text_str(p->out, kx_screen_style(&p->o->screen, KX_STYLE_DIM));
	kx_put_pieces(p->out, &p->o->screen, pieces, n);
	kx_text_str(p->out, kx_screen_style(&p->o->screen, KX_STYLE_PLAIN));
}

static void put_foot(const struct kx_diff_printer *p, const struct kx_diff_columns *c)
{
	const struct kx_diff_summary *s = p->summary;
	char shown[48] = "";

	if (p->shown < p->nrows)
		snprintf(shown, sizeof(shown), ", %zu shown", p->shown);
	put_line(p, "%zu of %zu function%s changed beyond noise%s", s->beyond, p->nrows,
		 p->nrows == 1 ? "" : "s", shown);
	if (s->untraced)
		put_line(p, "%zu of the new and gone functions %s not in the map of the other trace: they did not exist there, or "
			    "were not traced.",
			 s->untraced, s->untraced == 1 ? "is" : "are");
	if (s->unclear)
		put_line(p, "Unclear: as recorded these did not change, unlike most others. They "
			    "wait rather than compute, or "
			    "changed against the machine's speed.");
	if (s->judged)
		put_line(p,
			 "Noise: %d slices of time resampled %u times; at most one false alarm in "
			 "%.0f comparisons of two "
			 "traces; changes below %.0f %% are noise.",
			 KX_SLICES, s->common.replicates, 1 / KX_NOISE_FALSE_ALARM,
			 100 * KX_DIFF_LEAST);
	put_dropped(p, c);
}

static void put_host(const struct kx_diff_printer *p)
{
	const struct kx_screen *screen = &p->o->screen;

	if (p->o->is_next)
		kx_text_char(p->out, '\n');
	kx_text_str(p->out, kx_screen_style(screen, KX_STYLE_HEAD));
	kx_text_str(p->out, "host ");
	kx_put_fitted(p->out, p->o->host, screen->columns ? screen->columns - 5 : 0);
	kx_text_str(p->out, kx_screen_style(screen, KX_STYLE_PLAIN));
	kx_text_char(p->out, '\n');
}

/* With hundreds of thousands of functions, most names are not in the CPU's cache. */
static void prefetch_name(const struct kx_diff_printer *p, size_t at, bool text)
{
	int side;

	if (at >= p->shown)
		return;
	side = p->rows[at]->index.b != KX_DIFF_NONE;
	kx_trace_prefetch(p->sides[side].names, p->rows[at]->id[side], text);
}

void kx_diff_print_text(const struct kx_diff_printer *p)
{
	struct kx_diff_columns c;

	kx_diff_columns_choose(p, &c);
	if (p->o->host)
		put_host(p);
	put_side(p, 0);
	put_side(p, 1);
	put_scale(p);
	put_common(p);
	put_load(p);
	put_losses(p);
	kx_text_char(p->out, '\n');
	put_titles(p, &c);
	for (size_t i = 0; i < p->shown; i++) {
		prefetch_name(p, i + 2 * AHEAD, false);
		prefetch_name(p, i + AHEAD, true);
		put_row(p, p->rows[i], &c);
	}
	put_foot(p, &c);
}
