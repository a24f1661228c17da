// SPDX-License-Identifier: BSD-2-Clause
/* The map file of a recording or of one flight dump. */
#ifndef KX_SESSION_MAP_H
#define KX_SESSION_MAP_H

#include <jansson.h>

#include "base/err.h"
#include "select/select.h"
#include "trace/exit_moves.h"

/*
 * Writes the modules and functions of @sel and the session's @info to @path, with what of @moves matters for calls
 * after @from (TSC). Errors: -ENOMEM, those of
 * kx_map_write.
 */
int kx_session_map_write(const char *path, const struct kx_selection *sel, const struct kx_exit_move_list *moves,
			 uint64_t from, json_t *info, struct kx_err *err);

#endif
