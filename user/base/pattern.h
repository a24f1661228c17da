// SPDX-License-Identifier: BSD-2-Clause
/* [MODULE:]GLOB, as in -f and -x: which functions of which modules. */
#ifndef KX_PATTERN_H
#define KX_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "binary/modules.h"
#include "binary/symbols.h"

enum kx_pattern_space {
	KX_PATTERN_USER,    /* functions of binaries */
	KX_PATTERN_KERNEL,  /* kernel:GLOB */
	KX_PATTERN_SYSCALL, /* syscall:GLOB */
};

struct kx_pattern {
	enum kx_pattern_space space;
	char *text;   /* as given */
	char *module; /* glob on the file name, or on the path if it holds a slash; NULL = main executable */
	char *real_path; /* of the file that MODULE names, relative or by a link; NULL if there is none */
	char *glob;   /* on the function's name */
};

/*
 * Parses @text. The first ':' that is not part of "::" ends MODULE, so 'ns::f' is a
 * function and 'libfoo.so:ns::f' has a module. Errors: -EINVAL (empty parts).
 */
int kx_pattern_parse(const char *text, struct kx_pattern *out, struct kx_err *err);
void kx_pattern_free(struct kx_pattern *p);

/* Whether any of @texts is a pattern of @space; those that cannot be read are not. */
bool kx_patterns_in_space(const char *const *texts, size_t n, enum kx_pattern_space space);

bool kx_pattern_matches_module(const struct kx_pattern *p, const struct kx_module *m);

/*
 * Whether the glob matches any of the symbol's names: mangled, demangled (whole, or
 * without the argument list), aliases, each also without a compiler suffix (.isra.0, .constprop.0,
 * .part.0, .lto_priv.0, version @@GLIBC_2.2.5).
 */
bool kx_pattern_matches_symbol(const struct kx_pattern *p, const struct kx_symbol *s);

#endif
