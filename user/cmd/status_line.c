// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/status_line.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/decimal.h"
#include "base/display.h"

#define LEAST_NAME 8 /* columns; a name in fewer tells nothing */

/* In the order in which they are shown. */
enum part { TIME, RATE, LOST, BYTES, HOTTEST, PARTS };

struct part_text {
	char text[80];
	bool alarm;
};

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void put_time(char *text, size_t size, const struct kx_recording_status *s)
{
	/* rounded up: at 0:00 the time is over */
	uint64_t t = s->left >= 0 ? (uint64_t)(s->left + 0.999) : (uint64_t)s->seconds;
	const char *of = s->left >= 0 ? " left" : "";

	if (t >= 3600)
		snprintf(text, size, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64 "%s", t / 3600,
			 t / 60 % 60, t % 60, of);
	else
		snprintf(text, size, "%" PRIu64 ":%02" PRIu64 "%s", t / 60, t % 60, of);
}

static void put_bytes(char *text, size_t size, uint64_t bytes)
{
	static const char *const units[] = { "kB", "MB", "GB", "TB" };
	double value = (double)bytes / 1e3;
	size_t unit = 0;

	while (value >= 999.95 && unit < 3) {
		value /= 1e3;
		unit++;
	}
	snprintf(text, size, "%.*f %s", value < 99.95 ? 1 : 0, value, units[unit]);
}

static void put_parts(struct part_text *parts, const struct kx_recording_status *s,
		      enum kx_status_kind kind)
{
	const size_t size = sizeof(parts->text);
	char number[KX_GROUPED_SIZE], bytes[32];
	uint64_t rate = (uint64_t)((double)s->new_events / s->interval + 0.5);

	memset(parts, 0, PARTS * sizeof(*parts));
	put_time(parts[TIME].text, size, s);
	snprintf(parts[RATE].text, size, "%s %s/s", kx_decimal_grouped(number, rate),
		 kind == KX_STATUS_COUNT ? "calls" : "events");
	put_bytes(bytes, sizeof(bytes), s->bytes);
	if (kind == KX_STATUS_TRACE)
		snprintf(parts[BYTES].text, size, "%s", bytes);
	else if (kind == KX_STATUS_FLIGHT)
		snprintf(parts[BYTES].text, size, "%u dump%s of %s", s->dumps, plural(s->dumps),
			 bytes);
	if (kind == KX_STATUS_COUNT)
		return;
	snprintf(parts[LOST].text, size, "%s lost", kx_decimal_grouped(number, s->lost));
	parts[LOST].alarm = s->lost;
}

/* Columns of the line with these parts, the function's name aside. */
static size_t width_of(const struct part_text *parts, unsigned shown, const char *before,
		       const char *after)
{
	size_t width = strlen("kxray: "), n = 0;

	for (int i = 0; i < HOTTEST; i++)
		if (shown & 1u << i && parts[i].text[0])
			width += strlen(parts[i].text) + (n++ ? 2 : 0);
	return shown & 1u << HOTTEST ? width + strlen(before) + strlen(after) : width;
}

/* Which parts fit into @columns; *@name: columns for the name of the hottest function. */
static unsigned choose(const struct part_text *parts, const struct kx_recording_status *s,
		       size_t columns, const char *before, const char *after, size_t *name)
{
	const unsigned all = (1u << PARTS) - 1, no_name = all & ~(1u << HOTTEST);
	/* what is lost matters more than how much is recorded, unless it is nothing */
	const unsigned sets[] = { all, no_name, no_name & ~(1u << BYTES),
				  1u << TIME | 1u << (s->lost ? LOST : RATE), 1u << TIME };
	size_t wanted = s->hottest ? kx_display_width(s->hottest, strlen(s->hottest)) : 0;

	if (wanted > LEAST_NAME)
		wanted = LEAST_NAME;
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		size_t width = width_of(parts, sets[i], before, after);

		if (sets[i] & 1u << HOTTEST && !s->hottest)
			continue;
		*name = columns > width ? columns - width : 0;
		if (width + (sets[i] & 1u << HOTTEST ? wanted : 0) <= columns)
			return sets[i];
	}
	return 0;
}

char *kx_status_text(const struct kx_recording_status *s, enum kx_status_kind kind,
		     const struct kx_screen *screen)
{
	struct part_text parts[PARTS];
	const char *before = ", hottest ";
	char after[16], *text = NULL, *name = NULL;
	size_t size, columns;
	unsigned shown, n = 0;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		return NULL;
	put_parts(parts, s, kind);
	snprintf(after, sizeof(after), " %.0f %%", s->hottest_share * 100);
	shown = choose(parts, s, screen->columns, before, after, &columns);
	if (shown)
		fputs("kxray: ", to);
	for (int i = 0; i < HOTTEST; i++) {
		if (!(shown & 1u << i) || !parts[i].text[0])
			continue;
		fprintf(to, "%s%s%s%s", n++ ? ", " : "",
			parts[i].alarm ? kx_screen_style(screen, KX_STYLE_HOT) : "", parts[i].text,
			parts[i].alarm ? kx_screen_style(screen, KX_STYLE_PLAIN) : "");
	}
	if (shown & 1u << HOTTEST)
		name = kx_display_name(s->hottest, columns);
	if (name)
		fprintf(to, "%s%s%s", before, name, after);
	free(name);
	if (fclose(to)) {
		free(text);
		return NULL;
	}
	return text;
}

void kx_status_line_open(struct kx_status_line *l)
{
	const char *term = getenv("TERM");

	*l = (struct kx_status_line){ .fd = -1 };
	if (!isatty(STDERR_FILENO) || (term && !strcmp(term, "dumb")))
		return;
	/* a description of its own: other programs must not find theirs non-blocking */
	l->fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* A terminal that is stopped or full gets nothing; one that is gone, never again. */
static bool put(struct kx_status_line *l, const char *text, size_t size)
{
	ssize_t n = write(l->fd, text, size);

	if (n < 0 && errno != EAGAIN && errno != EINTR)
		kx_status_line_close(l);
	return n > 0;
}

void kx_status_line_show(struct kx_status_line *l, const struct kx_recording_status *s,
			 enum kx_status_kind kind)
{
	struct kx_screen screen;
	pid_t foreground;
	char *text, *line;
	int size;

	if (l->fd < 0)
		return;
	foreground = tcgetpgrp(l->fd);
	if (foreground >= 0 && foreground != getpgrp()) {
		l->shown = false; /* the shell has written since */
		return;
	}
	screen = kx_screen_of(STDERR_FILENO, KX_COLOR_AUTO, false);
	/* the last column stays free: some terminals wrap a line that fills it */
	screen.columns = kx_screen_terminal_columns(STDERR_FILENO) - 1;
	text = kx_status_text(s, kind, &screen);
	size = text ? asprintf(&line, "\r%s\033[J\r", text) : -1;
	free(text);
	if (size < 0)
		return;
	l->shown |= put(l, line, (size_t)size);
	free(line);
}

void kx_status_line_clear(struct kx_status_line *l)
{
	static const char erase[] = "\r\033[J";

	if (l->fd < 0 || !l->shown)
		return;
	l->shown = false;
	put(l, erase, sizeof(erase) - 1);
}

void kx_status_line_close(struct kx_status_line *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}
