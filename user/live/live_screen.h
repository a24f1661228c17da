// SPDX-License-Identifier: BSD-2-Clause
/*
 * The rows on a terminal: a table that is drawn anew, and keys. q quits; s and S choose the column
 * to sort by, or c, t, 5, 9, m and n one of them; p or space pauses the picture (counting goes on);
 * / filters; a switches between the newest interval and all since the beginning; arrows select a
 * function, Enter shows its histogram; ? helps.
 */
#ifndef KX_LIVE_SCREEN_H
#define KX_LIVE_SCREEN_H

#include "base/err.h"
#include "base/screen.h"
#include "live/call_rows.h"

struct kx_live_screen;

/*
 * Takes over the terminal that standard input and output are. @view: how it begins; @what: see
 * kx_put_call_summary, borrowed. Errors: -ENOMEM; -ENOTTY (TERM names no terminal that can be drawn
 * on).
 */
int kx_live_screen_open(const struct kx_call_view *view, const char *what, enum kx_color color,
			struct kx_live_screen **out, struct kx_err *err);
/* Gives the terminal back. */
void kx_live_screen_close(struct kx_live_screen *s);

/* An interval has ended: draws @rows, unless the picture is paused. They are borrowed until the
 * next call. Errors: -ENOMEM. */
int kx_live_screen_show(struct kx_live_screen *s, const struct kx_call_rows *rows);
/* A line for the user, shown below the table until a key is pressed. */
void kx_live_screen_say(struct kx_live_screen *s, const char *text);
/* Takes the keys that were pressed, and draws what they change. 0; -ECANCELED: the user quits, or the terminal is gone;
 * -ENOMEM. */
int kx_live_screen_poll(struct kx_live_screen *s);

#endif
