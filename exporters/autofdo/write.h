// SPDX-License-Identifier: BSD-2-Clause
/*
 * The file forms of an AutoFDO profile. Each takes a finished model (kx_afdo_finish) and
 * fills @out, which the caller frees with kx_bytes_free.
 */
#ifndef KX_AUTOFDO_WRITE_H
#define KX_AUTOFDO_WRITE_H

#include "exporters/autofdo/model.h"
#include "exporters/common/bytes.h"

/*
 * Versions 2 (gcc 12 to 15) and 3 (gcc 16), in this machine's byte order, since those readers
 * take the words as they are. Names are cut at their first '.', as gcc does; lines past
 * 65535 are left out and counted in *@dropped.
 */
int kx_afdo_write_gcov(const struct kx_afdo *a, int version, struct kx_bytes *out,
		       uint64_t *dropped);
/*
 * Version 4 as the RFC of April 2026 has it; a later revision on gcc-patches has another
 * header, and no released gcc reads either.
 */
int kx_afdo_write_v4(const struct kx_afdo *a, bool compact, struct kx_bytes *out);
/* Its text. Names with a quotation mark cannot be written; *@dropped counts them. */
int kx_afdo_write_text(const struct kx_afdo *a, struct kx_bytes *out, uint64_t *dropped);

#endif
