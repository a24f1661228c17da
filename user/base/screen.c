// SPDX-License-Identifier: BSD-2-Clause
#include "base/screen.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LEAST_COLUMNS 40 /* narrower tables hold nothing readable */

unsigned kx_screen_terminal_columns(int fd)
{
	const char *variable = getenv("COLUMNS");
	struct winsize size = { 0 };
	unsigned long columns = 0;

	if (!ioctl(fd, TIOCGWINSZ, &size))
		columns = size.ws_col;
	if (!columns && variable)
		columns = strtoul(variable, NULL, 10);
	return columns && columns <= 100000 ? (unsigned)columns : KX_SCREEN_COLUMNS;
}

static unsigned columns_of(int fd)
{
	unsigned columns = kx_screen_terminal_columns(fd);

	return columns < LEAST_COLUMNS ? LEAST_COLUMNS : columns;
}

static bool wants_color(void)
{
	const char *none = getenv("NO_COLOR"), *term = getenv("TERM");

	return !(none && *none) && !(term && !strcmp(term, "dumb"));
}

struct kx_screen kx_screen_of(int fd, enum kx_color color, bool wide)
{
	bool terminal = isatty(fd);
	struct kx_screen s = { .columns = terminal && !wide ? columns_of(fd) : 0, .wide = wide };

	s.color = color == KX_COLOR_AUTO ? terminal && wants_color() : color == KX_COLOR_ALWAYS;
	return s;
}

const char *kx_screen_style(const struct kx_screen *s, enum kx_style style)
{
	static const char *const sequences[KX_STYLES] = {
		[KX_STYLE_PLAIN] = "\x1b[0m", [KX_STYLE_HEAD] = "\x1b[1m", [KX_STYLE_DIM] = "\x1b[2m",
		[KX_STYLE_HOT] = "\x1b[31m",  [KX_STYLE_WARM] = "\x1b[33m",
	};

	return s->color ? sequences[style] : "";
}

enum kx_style kx_screen_share_style(double share)
{
	return share >= 0.2 ? KX_STYLE_HOT : share >= 0.05 ? KX_STYLE_WARM : KX_STYLE_PLAIN;
}
