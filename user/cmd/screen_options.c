// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/screen_options.h"

/* in the order of enum kx_color */
static const char *const color_words[] = { "auto", "always", "never", NULL };

const struct kx_option kx_screen_options[] = {
	{ .name = "wide", .short_name = 'w', .kind = KX_OPTION_FLAG,
	  KX_FIELD(struct kx_screen_arguments, wide),
	  .help = "all columns and whole names, even if lines are then longer than the terminal is wide",
	  .manual = "All columns and whole names. On a terminal, tables are otherwise fitted to its width: columns are "
		    "dropped, the least important first, and names are shortened inside. Output into pipes and files "
		    "is always whole." },
	{ .name = "color", .kind = KX_OPTION_CHOICE, .argument = "WHEN", .words = color_words,
	  KX_FIELD(struct kx_screen_arguments, color),
	  .help = "auto (default: on a terminal, unless NO_COLOR is set), always or never" },
	{ 0 },
};
