// SPDX-License-Identifier: BSD-2-Clause
#include "live/call_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_format.h"

#define HZ	    1000000000 /* times are ns */
#define CALLS_WIDTH 9
#define SHARE_WIDTH 9
#define GAP	    2 /* before the name */
#define LEAST_NAME  12
#define BAR	    50 /* characters, without a screen */

static const struct {
	const char *title;
	int width;
	enum kx_call_sort sort;
} columns[] = {
	{ "CALLS/S", CALLS_WIDTH, KX_CALL_BY_CALLS }, { "SHARE", SHARE_WIDTH, KX_CALL_BY_SHARE },
	{ "P50", KX_TIME_WIDTH(HZ), KX_CALL_BY_P50 }, { "P99", KX_TIME_WIDTH(HZ), KX_CALL_BY_P99 },
	{ "MAX", KX_TIME_WIDTH(HZ), KX_CALL_BY_MAX },
};
#define NCOLUMNS (sizeof(columns) / sizeof(columns[0]))

/* Which columns fit beside a name, those of the screen that the name has left in @name (0: all).
 * The last ones go first; the one that rows are sorted by stays. */
static unsigned fitting(const struct kx_screen *screen, enum kx_call_sort sort, size_t *name)
{
	unsigned shown = (1u << NCOLUMNS) - 1;
	size_t used = GAP;

	*name = 0;
	if (!screen->columns)
		return shown;
	for (size_t i = 0; i < NCOLUMNS; i++)
		used += (size_t)columns[i].width;
	for (size_t i = NCOLUMNS; i-- && used + LEAST_NAME > screen->columns;) {
		if (columns[i].sort == sort)
			continue;
		shown &= ~(1u << i);
		used -= (size_t)columns[i].width;
	}
	*name = screen->columns > used ? screen->columns - used : 1;
	return shown;
}

/* "0.25", "37.5", "12345": calls a second, in at most 8 characters for less than ten million. */
static void put_rate(struct kx_text_out *out, int width, double rate)
{
	char text[32];

	snprintf(text, sizeof(text), "%*.*f", width, rate < 10 ? 2 : rate < 100 ? 1 : 0, rate);
	kx_text_str(out, text);
}

void kx_put_call_summary(struct kx_text_out *out, const struct kx_screen *screen, const char *what,
			 const struct kx_call_rows *rows, const struct kx_call_view *v)
{
	double seconds = kx_call_seconds_of(rows, v), cpu = v->total ? rows->total_cpu : rows->cpu;
	uint64_t calls = 0;
	char text[160];

	for (size_t i = 0; i < rows->n; i++)
		calls += kx_call_stats_of(&rows->items[i], v)->calls;
	snprintf(text, sizeof(text), ": %.0f calls/s of %zu function%s, %.0f %% of a CPU%s",
		 seconds > 0 ? (double)calls / seconds : 0, rows->traced,
		 rows->traced == 1 ? "" : "s", seconds > 0 ? cpu / seconds * 100 : 0,
		 v->total ? ", since the start" : "");
	kx_put_fitted(out, what,
		      !screen->columns			   ? 0
		      : screen->columns > strlen(text) + 8 ? screen->columns - strlen(text)
							   : 8);
	kx_text_str(out, text);
}

void kx_put_call_titles(struct kx_text_out *out, const struct kx_screen *screen,
			const struct kx_call_view *v)
{
	size_t name;
	unsigned shown = fitting(screen, v->sort, &name);

	kx_text_str(out, kx_screen_style(screen, KX_STYLE_HEAD));
	for (size_t i = 0; i < NCOLUMNS; i++) {
		char title[16];
		int n = snprintf(title, sizeof(title), columns[i].sort == v->sort ? "[%s]" : "%s",
				 columns[i].title);

		if (shown & 1u << i)
			kx_text_field(out, columns[i].width, title, (size_t)n);
	}
	kx_text_str(out, v->sort == KX_CALL_BY_NAME ? "  [FUNCTION]" : "  FUNCTION");
	kx_text_str(out, kx_screen_style(screen, KX_STYLE_PLAIN));
	kx_text_char(out, '\n');
}

static void put_duration(struct kx_text_out *out, bool shown, bool known, uint64_t ns)
{
	if (!shown)
		return;
	if (known)
		kx_put_time(out, ns, HZ);
	else
		kx_put_time_text(out, "-", HZ);
}

static void put_share(struct kx_text_out *out, const struct kx_screen *screen, bool timed,
		      double share)
{
	char text[32];

	if (timed)
		snprintf(text, sizeof(text), "%*.*f %%", SHARE_WIDTH - 2, share < 100 ? 1 : 0,
			 share * 100);
	else
		snprintf(text, sizeof(text), "%*s", SHARE_WIDTH, "-");
	kx_put_styled(out, screen, timed ? kx_screen_share_style(share) : KX_STYLE_PLAIN, text);
}

void kx_put_call_row(struct kx_text_out *out, const struct kx_screen *screen,
		     const struct kx_call_row *row, const struct kx_call_view *v, double seconds)
{
	const struct kx_call_stats *s = kx_call_stats_of(row, v);
	bool timed = kx_call_timed(s) > 0;
	size_t name;
	unsigned shown = fitting(screen, v->sort, &name);

	if (shown & 1)
		put_rate(out, CALLS_WIDTH, seconds > 0 ? (double)s->calls / seconds : 0);
	if (shown & 2)
		put_share(out, screen, timed, kx_call_share(s, seconds));
	put_duration(out, shown & 4, timed, kx_call_quantile(s, 500));
	put_duration(out, shown & 8, timed, kx_call_quantile(s, 990));
	put_duration(out, shown & 16, timed, s->max_ns);
	kx_text_str(out, "  ");
	kx_put_function(out, screen, row->name, row->module, name);
	kx_text_char(out, '\n');
}

/* The table says which columns it has left out. */
static void put_hidden(struct kx_text_out *out, const struct kx_screen *screen,
		       const struct kx_call_view *v)
{
	char line[120] = "Too narrow for";
	size_t name, n = strlen(line);
	unsigned shown = fitting(screen, v->sort, &name);

	if (shown == (1u << NCOLUMNS) - 1)
		return;
	for (size_t i = 0; i < NCOLUMNS; i++)
		if (!(shown & 1u << i))
			n += (size_t)snprintf(line + n, sizeof(line) - n, " %s,", columns[i].title);
	snprintf(line + n - 1, sizeof(line) - n + 1, ": --wide");
	kx_put_wrapped(out, screen, line);
}

int kx_put_call_table(struct kx_text_out *out, const struct kx_screen *screen,
		      const struct kx_call_rows *rows, const struct kx_call_view *v, size_t limit)
{
	size_t n, shown;
	const struct kx_call_row **sorted = kx_call_rows_sorted(rows, v, &n);
	char text[80];

	if (!sorted)
		return -ENOMEM;
	shown = limit && limit < n ? limit : n;
	kx_put_call_titles(out, screen, v);
	for (size_t i = 0; i < shown; i++)
		kx_put_call_row(out, screen, sorted[i], v, kx_call_seconds_of(rows, v));
	snprintf(text, sizeof(text), "%zu functions were called, %zu shown\n", n, shown);
	kx_text_str(out, shown < n ? text : "");
	put_hidden(out, screen, v);
	free(sorted);
	return 0;
}

/* One function */

static void put_sums(struct kx_text_out *out, const struct kx_screen *screen,
		     const struct kx_call_stats *s, double seconds)
{
	uint64_t timed = kx_call_timed(s), calls = s->calls;
	char line[400], p50[33], p99[33], max[33];
	int n;

	p50[kx_format_time(p50, kx_call_quantile(s, 500), HZ)] = 0;
	p99[kx_format_time(p99, kx_call_quantile(s, 990), HZ)] = 0;
	max[kx_format_time(max, s->max_ns, HZ)] = 0;
	n = snprintf(line, sizeof(line), "%" PRIu64 " call%s in %.1f s", calls,
		     calls == 1 ? "" : "s", seconds);
	if (timed)
		n += snprintf(line + n, sizeof(line) - (size_t)n,
			      ", p50 %s, p99 %s (interpolated), max %s", p50, p99, max);
	if (timed < calls)
		snprintf(line + n, sizeof(line) - (size_t)n, "; %" PRIu64 " without a measured end",
			 calls - timed);
	kx_put_wrapped(out, screen, line);
}

static void put_bar(struct kx_text_out *out, const struct kx_call_stats *s, unsigned i,
		    uint64_t timed, uint64_t most, int room)
{
	int bar = (int)((double)s->buckets[i] / (double)most * room + 0.5);
	char text[32];

	kx_put_time(out, i ? 1ull << i : 0, HZ);
	kx_put_number(out, 12, s->buckets[i]);
	snprintf(text, sizeof(text), "%7.1f %%%s", (double)s->buckets[i] / (double)timed * 100,
		 s->buckets[i] ? "  " : "");
	kx_text_str(out, text);
	for (int k = 0; k < bar; k++)
		kx_text_char(out, '#');
	/* one call is not nothing */
	kx_text_str(out, !bar && s->buckets[i] ? ".\n" : "\n");
}

void kx_put_call_histogram(struct kx_text_out *out, const struct kx_screen *screen,
			   const struct kx_call_row *row, const struct kx_call_view *v,
			   double seconds)
{
	const struct kx_call_stats *s = kx_call_stats_of(row, v);
	int used = KX_TIME_WIDTH(HZ) + 12 + 9 + 2,
	    room = screen->columns ? (int)screen->columns - used : BAR;
	unsigned first = 0, last = KX_CALL_BUCKETS - 1;
	uint64_t most = 1, timed = kx_call_timed(s);

	kx_put_function(out, screen, row->name, row->module, screen->columns);
	kx_text_char(out, '\n');
	put_sums(out, screen, s, seconds);
	if (!timed)
		return;
	room = room < 1 ? 1 : room > 100 ? 100 : room;
	while (!s->buckets[first])
		first++;
	while (!s->buckets[last])
		last--;
	for (unsigned i = first; i <= last; i++)
		most = s->buckets[i] > most ? s->buckets[i] : most;
	kx_text_str(out, kx_screen_style(screen, KX_STYLE_HEAD));
	kx_put_time_text(out, "FROM", HZ);
	kx_text_field(out, 12, "CALLS", 5);
	kx_text_field(out, 9, "SHARE", 5);
	kx_text_str(out, kx_screen_style(screen, KX_STYLE_PLAIN));
	kx_text_char(out, '\n');
	for (unsigned i = first; i <= last; i++)
		put_bar(out, s, i, timed, most, room);
}
