// SPDX-License-Identifier: BSD-2-Clause
/* The map file of a recording or of one flight dump. */
#ifndef KX_SESSION_MAP_H
#define KX_SESSION_MAP_H

#include <jansson.h>

#include "base/err.h"
#include "select/select.h"

/*
 * Writes the modules and functions of @sel and the session's @info to @path. Errors: -ENOMEM, those of
 * kx_map_write.
 */
int kx_session_map_write(const char *path, const struct kx_selection *sel, json_t *info,
			 struct kx_err *err);

#endif
