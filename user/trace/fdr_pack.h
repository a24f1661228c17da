// SPDX-License-Identifier: BSD-2-Clause
/*
 * Inside the FDR writer: a compressed trace (.zst). The file is a sequence of zstd frames (RFC 8878), so
 * that `zstd -d` restores the very bytes that an uncompressed trace would have, and readers can
 * decompress frames in parallel:
 *
 *     the header, 32 bytes, as a frame that stores them uncompressed: its clock frequency is
 *     corrected in place at the end of a recording
 *     groups of whole buffers, up to 256 KiB (or one buffer that is larger), each a frame with its
 *     size and checksum
 *
 * Each frame is written at once. What is in the open group is lost if the process is killed;
 * kx_fdr_flush ends the group.
 *
 * Cost: scripts/bench-compress.sh prints CPU time and size per event. The collector compresses, without a
 * thread: a full ring of 16 MiB (half a million events) holds it up for some 15 ms.
 */
#ifndef KX_FDR_PACK_H
#define KX_FDR_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define KX_PACK_HEADER_SIZE 41u /* the header's frame */
#define KX_PACK_HEADER_AT   9u  /* the header in it */

struct kx_fdr_pack;

/* Writes to @fd, which the caller keeps. Free with kx_fdr_pack_free. NULL: no memory. */
struct kx_fdr_pack *kx_fdr_pack_new(int fd);
void kx_fdr_pack_free(struct kx_fdr_pack *p);

/* Writes the frame of the file's header, which must come first. Errors: write(2)'s. */
int kx_fdr_pack_header(struct kx_fdr_pack *p, const struct iovec *header);

/* Whether the open group must be ended before @size more bytes are added. */
bool kx_fdr_pack_is_full(const struct kx_fdr_pack *p, size_t size);
/* Adds a whole buffer to the open group. Errors: -ENOMEM: nothing is added. */
int kx_fdr_pack_add(struct kx_fdr_pack *p, const struct iovec *iov, int n);
/*
 * Ends the open group and writes its frame. After an error (write(2)'s, -ENOMEM) the file may have a part of
 * it behind kx_fdr_pack_bytes.
 */
int kx_fdr_pack_end_group(struct kx_fdr_pack *p);
/* Forgets all but the header: the caller has truncated the file there. */
void kx_fdr_pack_reset(struct kx_fdr_pack *p);

/* Bytes of the file: header and whole frames. */
uint64_t kx_fdr_pack_bytes(const struct kx_fdr_pack *p);
/* About how many bytes the open group and @more bytes of buffers will take, by the frames so far. */
uint64_t kx_fdr_pack_estimate(const struct kx_fdr_pack *p, uint64_t more);

#endif
