// SPDX-License-Identifier: BSD-2-Clause
/* The map file of a recording or of one flight dump. */
#ifndef KX_SESSION_MAP_H
#define KX_SESSION_MAP_H

#include <jansson.h>

#include "base/err.h"
#include "record/caller_functions.h"
#include "record/source_places.h"
#include "select/select.h"
#include "trace/exit_moves.h"

/* What it is written from; all borrowed. */
struct kx_session_map {
	const struct kx_selection *sel;
	const struct kx_exit_move_list *moves;
	uint64_t from; /* TSC: of @moves, what matters for calls after it */
	json_t *info; /* the session; gets what is known of the functions */
	const struct kx_source_places *places; /* NULL: none are known */
	const struct kx_caller_functions *callers; /* NULL: none are known */
};

/* Writes the map to @path. Errors: -ENOMEM, those of kx_map_write. */
int kx_session_map_write(const char *path, const struct kx_session_map *what, struct kx_err *err);

#endif
