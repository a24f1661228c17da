// SPDX-License-Identifier: BSD-2-Clause
/*
 * The executable mappings of a patched module: whether they still are what they were. A program may
 * unload a library at any moment and load another one at the same addresses, so nothing is written
 * or changed there unless all threads are stopped and these functions have looked since.
 */
#ifndef KX_PATCH_TEXTS_H
#define KX_PATCH_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "binary/mappings.h"
#include "tracer/patch_area.h"

/* The text that @m is. */
struct kx_patch_text kx_patch_text_of(const struct kx_mapping *m);

/* Whether a part of @t is in @m, the same part of the same file and executable: *@from to *@to, which are not valid otherwise. */
bool kx_patch_text_meets(const struct kx_patch_text *t, const struct kx_mapping *m, uint64_t *from, uint64_t *to);

/* Whether all of each is mapped: the same part of the same file, executable, and writable as
 * @writable says. False too if it cannot be read. */
bool kx_patch_texts_are_there(pid_t pid, const struct kx_patch_text *texts, size_t n,
			      bool writable);

#endif
