// SPDX-License-Identifier: BSD-2-Clause
/*
 * The file forms of an AutoFDO profile. Each takes a finished model (kx_afdo_finish) and
 * fills @out, which the caller frees with kx_bytes_free.
 */
#ifndef KX_AUTOFDO_WRITE_H
#define KX_AUTOFDO_WRITE_H

#include "exporters/autofdo/model.h"

/* Bytes that grow. After a failed allocation nothing is added and failed is set. */
struct kx_bytes {
	uint8_t *data;
	size_t size, room;
	bool failed;
	bool compact; /* kx_bytes_be writes varints */
};

void kx_bytes_free(struct kx_bytes *b);
void kx_bytes_put(struct kx_bytes *b, const void *data, size_t size);
void kx_bytes_str(struct kx_bytes *b, const char *text); /* without the final NUL */
void kx_bytes_u8(struct kx_bytes *b, uint8_t v);
void kx_bytes_le(struct kx_bytes *b, uint64_t v, unsigned bytes);
void kx_bytes_be(struct kx_bytes *b, uint64_t v, unsigned bytes);
void kx_bytes_varint(struct kx_bytes *b, uint64_t v);
void kx_bytes_decimal(struct kx_bytes *b, uint64_t v);

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
