// SPDX-License-Identifier: BSD-2-Clause
/* The options about the screen that tables are printed on, of all commands that print some. */
#ifndef KX_SCREEN_OPTIONS_H
#define KX_SCREEN_OPTIONS_H

#include "base/screen.h"
#include "cmd/options.h"

struct kx_screen_arguments {
	enum kx_color color;
	bool wide;
};

/* The rows; they belong at a struct kx_screen_arguments. */
extern const struct kx_option kx_screen_options[];

#endif
