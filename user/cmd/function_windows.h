// SPDX-License-Identifier: BSD-2-Clause
/* Which functions of a selection `record --in-process` could record. */
#ifndef KX_FUNCTION_WINDOWS_H
#define KX_FUNCTION_WINDOWS_H

#include <stdio.h>

#include "base/err.h"
#include "binary/modules.h"
#include "select/select.h"

struct kx_function_windows {
	const struct kx_selection *sel; /* borrowed */
	const char **answers; /* for each of its functions: "yes", or a clause why not */
	struct kx_module_windows {
		char *refused; /* why none of the module's functions can be; NULL: some may */
		size_t functions, possible;
	} *modules; /* by index */
};

/*
 * Looks at all traced functions. @pid: the process of which @mods are the modules, or 0: what depends on a process is not looked at. Free with
 * kx_function_windows_free. Errors: -ENOMEM.
 */
int kx_function_windows_plan(const struct kx_selection *sel, pid_t pid, const struct kx_modules *mods, struct kx_function_windows *out,
			     struct kx_err *err);
void kx_function_windows_free(struct kx_function_windows *w);

/* "yes", or a clause why not. */
const char *kx_function_windows_answer(const struct kx_function_windows *w, const struct kx_function *f);

/* A line for each binary. */
void kx_function_windows_print(const struct kx_function_windows *w, FILE *to);

#endif
