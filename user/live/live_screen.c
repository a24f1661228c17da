// SPDX-License-Identifier: BSD-2-Clause
#include "live/live_screen.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/display.h"
#include "base/printable.h"
#include "live/call_lines.h"

#define FILTER_MAX 64
#define KEY_ESCAPE 27
#define ESCAPE_MS  25 /* after which an escape is a key, and not the beginning of one's sequence */
#define ABOVE	   2  /* lines: summary, titles */

enum mode { TABLE, HISTOGRAM, FILTERING, HELP };

struct kx_live_screen {
	SCREEN *terminal;
	struct kx_call_view view;
	const char *what;
	char filter[FILTER_MAX];
	char said[512];
	enum mode mode;
	bool paused, color;
	const struct kx_call_rows *rows; /* the newest; NULL: none yet */
	struct kx_call_rows frozen;	 /* while paused */
	const char *name,
		*module; /* of the selected function: owned by the rows; NULL: the first one */
	size_t selected,
		first; /* places in the table: of the selected row, of the first on the screen */
	struct kx_text_out text;
};

static const struct {
	int key;
	enum kx_call_sort sort;
} sort_keys[] = {
	{ 't', KX_CALL_BY_SHARE }, { 'c', KX_CALL_BY_CALLS }, { '5', KX_CALL_BY_P50 },
	{ '9', KX_CALL_BY_P99 },   { 'm', KX_CALL_BY_MAX },   { 'n', KX_CALL_BY_NAME },
};

static const char *const help[] = {
	"s S           sort by the next, the previous column",
	"c t 5 9 m n   sort by calls, share, p50, p99, max, name",
	"p, space      pause the picture, and go on; calls are counted meanwhile",
	"/             filter: functions whose name or module contains a text; Esc: all",
	"a             since the start, or the newest interval only",
	"up, down      select a function",
	"Enter         its histogram; Enter or Esc: back",
	"q             quit",
	"",
	"SHARE   time spent in the calls, callees and waiting included, of one CPU:",
	"        100 % = one thread was in it all the time",
	"P50 P99 interpolated between powers of two: right within a factor of 2",
	"-       calls without a measured end",
};

static const struct kx_call_rows *rows_of(const struct kx_live_screen *s)
{
	return s->paused ? &s->frozen : s->rows;
}

/* The next line of @text, which is ended with 0; NULL: there is none. */
static char *next_line(char **text)
{
	char *line = *text, *end = line ? strchr(line, '\n') : NULL;

	if (!line || !*line)
		return NULL;
	if (end)
		*end = 0;
	*text = end ? end + 1 : NULL;
	return line;
}

/* What was put into s->text, as text of lines; "" without memory. */
static char *take_text(struct kx_live_screen *s)
{
	kx_text_char(&s->text, 0);
	return kx_text_flush(&s->text) || !s->text.memory ? NULL : s->text.memory;
}

static void begin_text(struct kx_live_screen *s)
{
	s->text.stored = s->text.used = 0;
	s->text.error = 0;
}

/* The keys, or what was said last, in the last line. */
static void draw_foot(struct kx_live_screen *s)
{
	static const char *const keys[] = {
		[TABLE] = "q quit  s sort  p pause  / filter  a all time  Enter histogram  ? help",
		[HISTOGRAM] = "q quit  p pause  a all time  up, down: other functions  Enter back",
		[HELP] = "any key: back",
	};
	char line[FILTER_MAX + 600], *shown;

	if (s->mode == FILTERING)
		snprintf(line, sizeof(line), "filter: %s", s->filter);
	else if (s->said[0])
		snprintf(line, sizeof(line), "%s", s->said);
	else if (s->filter[0] && s->mode == TABLE)
		snprintf(line, sizeof(line), "filter '%s': / changes it, Esc ends it", s->filter);
	else
		snprintf(line, sizeof(line), "%s", keys[s->mode]);
	shown = kx_display_text(line, COLS > 1 ? (size_t)COLS - 1 : 1);
	attron(A_DIM);
	mvaddstr(LINES - 1, 0, shown ? shown : "");
	attroff(A_DIM);
	if (s->mode == FILTERING)
		move(LINES - 1, (int)kx_display_width(line, strlen(line)));
	free(shown);
}

static struct kx_screen screen_of(void)
{
	return (struct kx_screen){ .columns = (unsigned)(COLS > 40 ? COLS : 40) };
}

static void draw_summary(struct kx_live_screen *s)
{
	struct kx_screen screen = screen_of();
	char *text;

	if (s->paused)
		screen.columns -= 9;
	begin_text(s);
	kx_put_call_summary(&s->text, &screen, s->what, rows_of(s), &s->view);
	text = take_text(s);
	mvaddstr(0, 0, text ? text : "");
	if (s->paused) {
		attron(A_REVERSE);
		mvaddstr(0, COLS > 8 ? COLS - 8 : 0, " PAUSED ");
		attroff(A_REVERSE);
	}
}

/* The place of the selected function among @n; the first one if it has gone. */
static void find_selected(struct kx_live_screen *s, const struct kx_call_row **sorted, size_t n)
{
	size_t room = LINES > ABOVE + 1 ? (size_t)LINES - ABOVE - 1 : 1, i = 0;

	while (s->name && i < n && (sorted[i]->name != s->name || sorted[i]->module != s->module))
		i++;
	if (s->name && i < n)
		s->selected = i;
	else if (s->selected >= n)
		s->selected = n ? n - 1 : 0;
	if (s->selected < s->first)
		s->first = s->selected;
	if (s->selected >= s->first + room)
		s->first = s->selected - room + 1;
	if (!s->name && !s->selected)
		s->first = 0;
}

static attr_t attributes_of(const struct kx_call_row *row, const struct kx_live_screen *s,
			    double seconds)
{
	double share = kx_call_share(kx_call_stats_of(row, &s->view), seconds);
	enum kx_style style = kx_screen_share_style(share);

	if (!s->color)
		return A_NORMAL;
	return style == KX_STYLE_HOT	? COLOR_PAIR(1)
	       : style == KX_STYLE_WARM ? COLOR_PAIR(2)
					: A_NORMAL;
}

static void draw_rows(struct kx_live_screen *s, const struct kx_call_row **sorted, size_t n)
{
	double seconds = kx_call_seconds_of(rows_of(s), &s->view);
	struct kx_screen screen = screen_of();
	char *text, *line;

	begin_text(s);
	kx_put_call_titles(&s->text, &screen, &s->view);
	for (size_t i = s->first; i < n && (int)(i - s->first) < LINES - ABOVE - 1; i++)
		kx_put_call_row(&s->text, &screen, sorted[i], &s->view, seconds);
	text = take_text(s);
	for (int y = 1; y < LINES - 1 && (line = next_line(&text)); y++) {
		size_t i = s->first + (size_t)(y - ABOVE);
		attr_t how = y < ABOVE ? A_BOLD : attributes_of(sorted[i], s, seconds);

		if (y >= ABOVE && i == s->selected)
			how |= A_REVERSE;
		attron(how);
		mvaddstr(y, 0, line);
		attroff(how);
	}
}

static void draw_histogram(struct kx_live_screen *s, const struct kx_call_row *row)
{
	struct kx_screen screen = screen_of();
	char *text, *line;

	begin_text(s);
	kx_put_call_histogram(&s->text, &screen, row, &s->view,
			      kx_call_seconds_of(rows_of(s), &s->view));
	text = take_text(s);
	for (int y = ABOVE; y < LINES - 1 && (line = next_line(&text)); y++)
		mvaddstr(y, 0, line);
}

static int draw(struct kx_live_screen *s)
{
	const struct kx_call_row **sorted = NULL;
	size_t n = 0;

	erase();
	if (s->mode == HELP) {
		for (int i = 0; i < (int)(sizeof(help) / sizeof(help[0])) && i < LINES - 1; i++)
			mvaddnstr(i, 0, help[i], COLS);
	} else if (rows_of(s)) {
		sorted = kx_call_rows_sorted(rows_of(s), &s->view, &n);
		if (!sorted)
			return -ENOMEM;
		draw_summary(s);
		find_selected(s, sorted, n);
		if (s->mode == HISTOGRAM && n)
			draw_histogram(s, sorted[s->selected]);
		else
			draw_rows(s, sorted, n);
		if (n && (s->name || s->mode == HISTOGRAM)) {
			s->name = sorted[s->selected]->name;
			s->module = sorted[s->selected]->module;
		}
	} else {
		mvaddstr(0, 0, "counting ...");
	}
	free(sorted);
	draw_foot(s);
	refresh();
	return 0;
}

/* Moves the selection by @by rows. */
static int select_other(struct kx_live_screen *s, long by)
{
	const struct kx_call_row **sorted;
	size_t n, to;

	if (!rows_of(s))
		return 0;
	sorted = kx_call_rows_sorted(rows_of(s), &s->view, &n);
	if (!sorted)
		return -ENOMEM;
	find_selected(s, sorted, n);
	to = by < 0 && (size_t)-by > s->selected ? 0 : s->selected + (size_t)by;
	s->selected = to >= n ? (n ? n - 1 : 0) : to;
	s->name = n ? sorted[s->selected]->name : NULL;
	s->module = n ? sorted[s->selected]->module : NULL;
	free(sorted);
	return 0;
}

static int pause_or_go_on(struct kx_live_screen *s)
{
	if (!s->rows)
		return 0;
	if (!s->paused && kx_call_rows_copy(&s->frozen, s->rows))
		return -ENOMEM;
	s->paused = !s->paused;
	return 0;
}

static void edit_filter(struct kx_live_screen *s, int key)
{
	size_t n = strlen(s->filter);

	if (key == '\n' || key == '\r' || key == KEY_ENTER || key == KEY_ESCAPE)
		s->mode = TABLE;
	if (key == KEY_ESCAPE)
		s->filter[0] = 0;
	if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && n)
		s->filter[n - 1] = 0;
	if (key >= ' ' && key < 127 && n + 1 < sizeof(s->filter)) {
		s->filter[n] = (char)key;
		s->filter[n + 1] = 0;
	}
	s->name = NULL;
	s->selected = 0;
}

static void choose_sort(struct kx_live_screen *s, enum kx_call_sort sort)
{
	s->view.sort = sort;
	if (s->mode == TABLE) { /* what is at the top is what is asked for */
		s->name = NULL;
		s->selected = 0;
	}
}

static int take_key(struct kx_live_screen *s, int key)
{
	long page = LINES > ABOVE + 2 ? LINES - ABOVE - 2 : 1;

	if (key == KEY_RESIZE)
		return 0;
	if (s->mode == FILTERING) {
		edit_filter(s, key);
		return 0;
	}
	s->said[0] = 0;
	for (size_t i = 0; i < sizeof(sort_keys) / sizeof(sort_keys[0]); i++)
		if (key == sort_keys[i].key)
			choose_sort(s, sort_keys[i].sort);
	switch (key) {
	case 'q':
		return -ECANCELED;
	case 's':
	case 'S':
		choose_sort(s, (enum kx_call_sort)(
				       (s->view.sort + (key == 's' ? 1 : KX_CALL_SORTS - 1)) %
				       KX_CALL_SORTS));
		break;
	case 'p':
	case ' ':
		return pause_or_go_on(s);
	case '/':
		s->mode = FILTERING;
		return 0;
	case 'a':
		s->view.total = !s->view.total;
		break;
	case KEY_UP:
	case 'k':
		return select_other(s, -1);
	case KEY_DOWN:
	case 'j':
		return select_other(s, 1);
	case KEY_PPAGE:
		return select_other(s, -page);
	case KEY_NPAGE:
		return select_other(s, page);
	case '?':
		s->mode = s->mode == HELP ? TABLE : HELP;
		return 0;
	case '\n':
	case '\r':
	case KEY_ENTER:
		s->mode = s->mode == TABLE ? HISTOGRAM : TABLE;
		return s->mode == HISTOGRAM ? select_other(s, 0) : 0;
	case KEY_ESCAPE:
		if (s->mode == TABLE)
			s->filter[0] = 0;
		s->mode = TABLE;
		break;
	}
	if (s->mode == HELP)
		s->mode = TABLE;
	return 0;
}

/* Nobody looks on any more; its descriptor would be readable for ever. */
static bool terminal_is_gone(void)
{
	struct pollfd keys = { .fd = STDIN_FILENO };

	return poll(&keys, 1, 0) > 0 && keys.revents;
}

int kx_live_screen_poll(struct kx_live_screen *s)
{
	int key, code = 0;
	bool any = false;

	if (terminal_is_gone())
		return -ECANCELED;
	while (!code && (key = getch()) != ERR) {
		code = take_key(s, key);
		any = true;
	}
	return !code && any ? draw(s) : code;
}

int kx_live_screen_show(struct kx_live_screen *s, const struct kx_call_rows *rows)
{
	s->rows = rows;
	return s->paused ? 0 : draw(s);
}

void kx_live_screen_say(struct kx_live_screen *s, const char *text)
{
	char *shown = kx_printable(text, strlen(text));

	snprintf(s->said, sizeof(s->said), "%s", shown ? shown : "");
	free(shown);
	draw_foot(s);
	refresh();
}

/* Names of functions and what shortens them are UTF-8, which a terminal that can show it is asked
 * for. */
static void set_characters(void)
{
	setlocale(LC_CTYPE, "");
	if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		setlocale(LC_CTYPE, "C.UTF-8");
}

int kx_live_screen_open(const struct kx_call_view *view, const char *what, enum kx_color color,
			struct kx_live_screen **out, struct kx_err *err)
{
	struct kx_live_screen *s = calloc(1, sizeof(*s));

	if (!s)
		return kx_err_set(err, -ENOMEM, "no memory for the screen");
	s->view = *view;
	s->view.filter = s->filter;
	s->what = what;
	kx_text_init_memory(&s->text);
	set_characters();
	s->terminal = newterm(NULL, stdout, stdin);
	if (!s->terminal) {
		free(s);
		return kx_err_set(
			err, -ENOTTY,
			"the terminal '%s' (TERM) cannot be drawn on; --batch prints tables",
			getenv("TERM") ? getenv("TERM") : "");
	}
	set_escdelay(ESCAPE_MS);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, true);
	nodelay(stdscr, true);
	curs_set(0);
	s->color = kx_screen_of(STDOUT_FILENO, color, false).color && has_colors();
	if (s->color) {
		start_color();
		use_default_colors();
		init_pair(1, COLOR_RED, -1);
		init_pair(2, COLOR_YELLOW, -1);
	}
	*out = s;
	if (!draw(s))
		return 0;
	kx_live_screen_close(s);
	return kx_err_set(err, -ENOMEM, "no memory for the screen");
}

void kx_live_screen_close(struct kx_live_screen *s)
{
	if (!s)
		return;
	endwin();
	delscreen(s->terminal);
	free(s->frozen.items);
	free(s->text.memory);
	free(s);
}
