// SPDX-License-Identifier: BSD-2-Clause
/* The arguments of USDT markers, in lists of functions. */
#ifndef KX_MARKER_ARGUMENTS_H
#define KX_MARKER_ARGUMENTS_H

#include <jansson.h>

#include "select/select.h"

/*
 * The name of @f with its arguments, as -f takes them: "usdt:python:line(arg1:u64, arg2:u64, arg3:i32)". One that cannot be recorded has
 * the type "?". To be freed; NULL without memory.
 */
char *kx_marker_text(const struct kx_selection *sel, const struct kx_function *f);

/* Adds "arguments" (each with "type", or "unknown", why), "places" and "semaphore" to a function's object. 0 or -1. */
int kx_marker_add_json(const struct kx_selection *sel, const struct kx_function *f, json_t *function);

#endif
