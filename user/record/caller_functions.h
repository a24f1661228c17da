// SPDX-License-Identifier: BSD-2-Clause
/*
 * The functions that called traced ones (record --callers), for the map: traced or not, in modules that have traced functions or
 * not. Found when a map is written, while the files of the processes are most likely still there.
 */
#ifndef KX_CALLER_FUNCTIONS_H
#define KX_CALLER_FUNCTIONS_H

#include <stddef.h>

#include "collect/caller_set.h"
#include "collect/process_table.h"
#include "select/select.h"
#include "trace/map_file.h"

/* What the map gets in addition to the selection. */
struct kx_caller_functions {
	struct kx_map_module *modules; /* without traced functions; in the map they follow those of the selection */
	size_t nmodules;
	struct kx_map_function *functions; /* by module and address; their texts are in the storage or in the selection */
	size_t nfunctions;
	void *storage;
};

/*
 * Looks up each address of @set, by the mappings that @processes has. A file that is not there any more, or is another one,
 * has no names. Without memory there are fewer names. Free with kx_caller_functions_free, before @sel.
 */
void kx_caller_functions_find(const struct kx_caller_set *set, const struct kx_process_table *processes,
			      const struct kx_selection *sel, struct kx_caller_functions *out);
void kx_caller_functions_free(struct kx_caller_functions *c);

#endif
