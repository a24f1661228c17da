// SPDX-License-Identifier: BSD-2-Clause
#include "trace/fdr_pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/write_all.h"
#include "trace/fdr.h"

#define GROUP_SIZE (256u << 10)
/* Traces get no smaller with higher levels, which take longer: matches are short and near. */
#define LEVEL 1
/* For the estimate, before there are frames. */
#define FIRST_RATIO 4

struct kx_fdr_pack {
	int fd;
	ZSTD_CCtx *zstd;
	uint8_t *group; /* the open one, not compressed yet */
	size_t used, room;
	uint8_t *frame;
	size_t frame_room;
	uint64_t bytes;	       /* of the file */
	uint64_t packed, plain; /* of all frames but the header: their bytes, and what is in them */
};

struct kx_fdr_pack *kx_fdr_pack_new(int fd)
{
	struct kx_fdr_pack *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->fd = fd;
	p->zstd = ZSTD_createCCtx();
	if (!p->zstd) {
		free(p);
		return NULL;
	}
	ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_checksumFlag, 1);
	return p;
}

void kx_fdr_pack_free(struct kx_fdr_pack *p)
{
	if (!p)
		return;
	ZSTD_freeCCtx(p->zstd);
	free(p->group);
	free(p->frame);
	free(p);
}

int kx_fdr_pack_header(struct kx_fdr_pack *p, const struct iovec *header)
{
	/* magic number; one segment with one byte of size; that; the last block, raw, of that size */
	uint8_t begin[KX_PACK_HEADER_AT] = {
		0x28, 0xb5, 0x2f, 0xfd, 0x20, KX_FDR_HEADER_SIZE, (KX_FDR_HEADER_SIZE << 3 | 1) & 0xff,
		KX_FDR_HEADER_SIZE >> 5, 0
	};
	struct iovec iov[2] = { { begin, sizeof(begin) }, *header };
	int r = kx_write_all(p->fd, iov, 2);

	if (!r)
		p->bytes = KX_PACK_HEADER_SIZE;
	return r;
}

bool kx_fdr_pack_is_full(const struct kx_fdr_pack *p, size_t size)
{
	return p->used && p->used + size > GROUP_SIZE;
}

static int reserve(uint8_t **buffer, size_t *room, size_t size)
{
	uint8_t *grown;

	if (size <= *room)
		return 0;
	grown = realloc(*buffer, size);
	if (!grown)
		return -ENOMEM;
	*buffer = grown;
	*room = size;
	return 0;
}

int kx_fdr_pack_add(struct kx_fdr_pack *p, const struct iovec *iov, int n)
{
	size_t size = 0;

	for (int i = 0; i < n; i++)
		size += iov[i].iov_len;
	if (reserve(&p->group, &p->room, p->used + size > GROUP_SIZE ? p->used + size : GROUP_SIZE))
		return -ENOMEM;
	for (int i = 0; i < n; i++) {
		memcpy(p->group + p->used, iov[i].iov_base, iov[i].iov_len);
		p->used += iov[i].iov_len;
	}
	return 0;
}

int kx_fdr_pack_end_group(struct kx_fdr_pack *p)
{
	struct iovec iov;
	size_t size;
	int r;

	if (!p->used)
		return 0;
	if (reserve(&p->frame, &p->frame_room, ZSTD_compressBound(p->used)))
		return -ENOMEM;
	size = ZSTD_compress2(p->zstd, p->frame, p->frame_room, p->group, p->used);
	if (ZSTD_isError(size)) /* the room suffices, so its own memory was missing */
		return -ENOMEM;
	iov = (struct iovec){ p->frame, size };
	r = kx_write_all(p->fd, &iov, 1);
	if (r)
		return r;
	p->bytes += size;
	p->packed += size;
	p->plain += p->used;
	p->used = 0;
	return 0;
}

void kx_fdr_pack_reset(struct kx_fdr_pack *p)
{
	p->bytes = KX_PACK_HEADER_SIZE;
	p->used = 0;
}

uint64_t kx_fdr_pack_bytes(const struct kx_fdr_pack *p)
{
	return p->bytes;
}

uint64_t kx_fdr_pack_estimate(const struct kx_fdr_pack *p, uint64_t more)
{
	double ratio = p->plain >= GROUP_SIZE ? (double)p->packed / (double)p->plain : 1.0 / FIRST_RATIO;

	return (uint64_t)((double)(p->used + more) * ratio);
}
