// SPDX-License-Identifier: BSD-2-Clause
/* [MODULE:]GLOB, as in -f and -x: which functions of which modules. */
#ifndef KX_PATTERN_H
#define KX_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define KX_USDT_PREFIX "usdt:" /* of patterns for markers, and of the names of markers and spans */
#define KX_SPAN_MARK " ~ "     /* in the name of a span, between its two markers */

/* Whether it is the name of a marker, which is an instant, and not one of a function or a span. */
bool kx_is_marker_name(const char *name);

enum kx_pattern_space {
	KX_PATTERN_USER,    /* functions of binaries */
	KX_PATTERN_KERNEL,  /* kernel:GLOB */
	KX_PATTERN_SYSCALL, /* syscall:GLOB */
	KX_PATTERN_USDT,    /* usdt:PROVIDER:MARKER, both together a glob: markers of any module */
};

struct kx_pattern {
	enum kx_pattern_space space;
	char *text;	 /* as given */
	char *module;	 /* glob on the file name, or on the path if it has a slash; or NULL */
	char *real_path; /* of the file whose path MODULE is; or NULL */
	char *glob;	 /* on the function's names */
};

/*
 * Parses @text. The first ':' that is not part of "::" ends MODULE, so 'ns::f' is a
 * function and 'libfoo.so:ns::f' has a module. Errors: -EINVAL (empty parts).
 */
int kx_pattern_parse(const char *text, struct kx_pattern *out, struct kx_err *err);
void kx_pattern_free(struct kx_pattern *p);

/* Whether any of @texts is a valid pattern of @space. */
bool kx_patterns_in_space(const char *const *texts, size_t n, enum kx_pattern_space space);

/* Whether fnmatch(3) matches any of the @n @globs with @name. */
bool kx_globs_match(const char *const *globs, size_t n, const char *name);

/* The names of a binary, borrowed. */
struct kx_pattern_file {
	const char *name; /* file name, e.g. libc.so.6 */
	const char *path;
	bool is_main; /* the executable that a pattern without MODULE means */
	const char *called; /* other names for it, separated by '/'; or NULL */
};

/* Whether @p is one for functions of binaries, and MODULE matches this one. */
bool kx_pattern_matches_file(const struct kx_pattern *p, const struct kx_pattern_file *f);

/* The names of a function, borrowed. */
struct kx_pattern_names {
	const char *symbol;	    /* mangled, as in the symbol table */
	const char *pretty;	    /* demangled, or the same pointer as symbol */
	const char *const *aliases; /* other symbols at its address; NULL-terminated or NULL */
};

/*
 * Whether GLOB matches any of the names: mangled, demangled (whole, or without the argument
 * list), aliases, each also without a compiler suffix (.isra.0, .constprop.0, .part.0,
 * .lto_priv.0) or symbol version (@@GLIBC_2.2.5).
 */
bool kx_pattern_matches_names(const struct kx_pattern *p, const struct kx_pattern_names *n);

#endif
