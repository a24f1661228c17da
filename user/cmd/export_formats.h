// SPDX-License-Identifier: BSD-2-Clause
/* The export formats on the command line: their names, and the options that each has of its own. */
#ifndef KX_EXPORT_FORMATS_H
#define KX_EXPORT_FORMATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "cmd/options.h"
#include "exporters/exporter.h"

#define KX_FORMAT_OPTIONS_MAX 96 /* of all formats together */

/* The formats' options that were given, each once; all zero to begin with. */
struct kx_format_options {
	struct {
		const char *name, *value; /* "" for a switch */
	} given[KX_FORMAT_OPTIONS_MAX];
	size_t n;
};

/* The format of this name. Errors: -EINVAL, with similar names. */
int kx_format_find(const char *name, const struct kx_exporter **out, struct kx_err *err);

/*
 * A group of options for each format that has some, about a struct kx_format_options at @offset of the
 * command's arguments; ends with NULL options. Always the same array.
 */
const struct kx_option_group *kx_format_groups(size_t offset);

/* The value of an option, "" for a switch; NULL if it was not given. */
const char *kx_format_option(const struct kx_format_options *o, const char *name);
/* Whether @format has all options that were given. Errors: -EINVAL. */
int kx_format_check(const struct kx_format_options *o, const struct kx_exporter *format,
		    struct kx_err *err);

/* --list: a line for each format, or with @json a JSON array. Errors: -ENOMEM. */
int kx_formats_print(bool json, FILE *to, struct kx_err *err);

#endif
