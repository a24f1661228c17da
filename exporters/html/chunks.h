// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory for the slices of rows: chunks of 4 to 128 slices, each twice as long as the one before it
 * in its row, as there may be a hundred thousand rows or a row of a million slices. Chunks are cut
 * from huge pages, and those that a row has given back serve other rows.
 */
#ifndef KX_HTML_CHUNKS_H
#define KX_HTML_CHUNKS_H

#include <stddef.h>
#include <stdint.h>

#define KX_HTML_CHUNK_SIZES 6

struct kx_html_slice {
	uint64_t start, end; /* ticks */
	uint64_t busy;	     /* sum of the times of what was merged; set when it is added */
	uint32_t name;	     /* a function's id, or a text's index; of gaps 0 */
	uint32_t count;	     /* 1: not merged; of gaps: lost hits */
	float longest; /* time of the longest of what was merged, ticks; set when it is added */
	uint32_t how;  /* enum kx_leave; of merged ones 0 */
};

struct kx_html_chunk {
	struct kx_html_chunk *next; /* of its row, or free */
	uint64_t size;		    /* index of the size */
	struct kx_html_slice slices[];
};

/* All zero to begin with; free with kx_html_chunks_free. */
struct kx_html_chunks {
	struct kx_html_chunk *unused[KX_HTML_CHUNK_SIZES];
	void **pages; /* all huge pages */
	size_t npages, pages_room;
	size_t used; /* bytes of the newest */
};

static inline size_t kx_html_chunk_room(const struct kx_html_chunk *c)
{
	return (size_t)4 << c->size;
}

/* A chunk of size @size, or of the largest; without a next one, and not cleared. NULL without
 * memory. */
struct kx_html_chunk *kx_html_chunk_new(struct kx_html_chunks *c, uint64_t size);
/* Gives back @chunk and all that are linked behind it; it may be NULL. */
void kx_html_chunks_put(struct kx_html_chunks *c, struct kx_html_chunk *chunk);
void kx_html_chunks_free(struct kx_html_chunks *c);

#endif
