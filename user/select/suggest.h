// SPDX-License-Identifier: BSD-2-Clause
/* Suggestions: functions with names similar to a pattern that matches nothing. */
#ifndef KX_SUGGEST_H
#define KX_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

#include "binary/modules.h"
#include "base/pattern.h"
#include "binary/symbols.h"

#define KX_SUGGESTIONS 3
#define KX_SUGGEST_PATTERN 512 /* bytes of a suggested pattern */

struct kx_suggest_source {
	const struct kx_module *module;
	const struct kx_symbols *syms;
	bool preferred; /* the pattern names this module */
};

/*
 * Writes up to KX_SUGGESTIONS functions like "malloc in libc.so.6 (-f 'libc.so*:malloc')" to
 * @buf: a few letters off, or holding the text of @p. Returns how many; @buf is "" for none.
 */
size_t kx_suggest(const struct kx_pattern *p, const struct kx_suggest_source *sources, size_t n,
		  char *buf, size_t size);

/*
 * If @p names no module, but nearly this one: how nearly (0 is nearest), and the pattern that names it, such as
 * 'libc.so*:malloc' for 'libc:malloc', in @buf; else -1.
 */
int kx_suggest_module(const struct kx_pattern *p, const struct kx_module *m, char buf[KX_SUGGEST_PATTERN]);

/* Whether the file is an interpreter by its name: of what it runs, only its own C functions can be found. */
bool kx_is_interpreter(const struct kx_module *m);

#endif
