// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/html/chunks.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/huge_page.h"

struct kx_html_chunk *kx_html_chunk_new(struct kx_html_chunks *c, uint64_t size)
{
	uint64_t index = size < KX_HTML_CHUNK_SIZES ? size : KX_HTML_CHUNK_SIZES - 1;
	struct kx_html_chunk *chunk = c->unused[index];
	size_t bytes = sizeof(*chunk) + ((size_t)4 << index) * sizeof(*chunk->slices);

	if (chunk) {
		c->unused[index] = chunk->next;
		chunk->next = NULL;
		return chunk;
	}
	if (!c->npages || KX_HUGE_PAGE - c->used < bytes) {
		void *page = KX_ARRAY_RESERVE(c->pages, c->pages_room, c->npages)
				     ? NULL
				     : kx_huge_page_alloc();

		if (!page)
			return NULL;
		c->pages[c->npages++] = page;
		c->used = 0;
	}
	chunk = (struct kx_html_chunk *)((char *)c->pages[c->npages - 1] + c->used);
	c->used += bytes;
	chunk->next = NULL;
	chunk->size = index;
	return chunk;
}

void kx_html_chunks_put(struct kx_html_chunks *c, struct kx_html_chunk *chunk)
{
	while (chunk) {
		struct kx_html_chunk *next = chunk->next;

		chunk->next = c->unused[chunk->size];
		c->unused[chunk->size] = chunk;
		chunk = next;
	}
}

void kx_html_chunks_free(struct kx_html_chunks *c)
{
	for (size_t i = 0; i < c->npages; i++)
		free(c->pages[i]);
	free(c->pages);
}
