// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a descriptor shows text on: a terminal has a width, to which tables are fitted, and may have colors; pipes and
 * files have neither, so that other programs read names and numbers whole.
 */
#ifndef KX_SCREEN_H
#define KX_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

enum kx_color { KX_COLOR_AUTO, KX_COLOR_ALWAYS, KX_COLOR_NEVER };

struct kx_screen {
	unsigned columns; /* 0: no limit */
	bool color;
	bool wide; /* asked for: also what is too long for most lines */
};

#define KX_SCREEN_COLUMNS 80 /* of a terminal that does not know its width */

/*
 * The screen behind @fd. @wide: lines may be longer than the terminal is wide. KX_COLOR_AUTO: colors on
 * terminals, unless NO_COLOR is set to anything (https://no-color.org) or TERM is "dumb".
 */
struct kx_screen kx_screen_of(int fd, enum kx_color color, bool wide);

/* Columns that the terminal @fd has now, however few; KX_SCREEN_COLUMNS if neither it nor COLUMNS knows. */
unsigned kx_screen_terminal_columns(int fd);

/* How text looks. */
enum kx_style { KX_STYLE_PLAIN, KX_STYLE_HEAD, KX_STYLE_DIM, KX_STYLE_HOT, KX_STYLE_WARM, KX_STYLES };

/* The escape sequence that begins @style, and ends it with KX_STYLE_PLAIN; "" without colors. */
const char *kx_screen_style(const struct kx_screen *s, enum kx_style style);

/* The style of a part that is @share (0 to 1) of the whole: hot from 20 % on, warm from 5 %. */
enum kx_style kx_screen_share_style(double share);

#endif
