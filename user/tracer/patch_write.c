// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/patch_write.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define BREAKPOINT 0xcc

static uint64_t page_of(uint64_t address)
{
	return address & ~(KX_PATCH_PAGE - 1);
}

/* Changes the copy of the page that @c is in. */
static void change(struct kx_patch_change *c, uint8_t *page)
{
	uint8_t *p = page + (c->at - page_of(c->at));

	if (page_of(c->at + KX_PATCH_BYTES - 1) != page_of(c->at)) {
		c->result = KX_PATCH_FOREIGN;
	} else if (!memcmp(p, c->from, KX_PATCH_BYTES)) {
		memcpy(p, c->to, KX_PATCH_BYTES);
		c->result = KX_PATCH_WRITTEN;
	} else {
		c->result = memcmp(p, c->to, KX_PATCH_BYTES) ? KX_PATCH_FOREIGN : KX_PATCH_ALREADY;
	}
}

/* The last change to be written from @first on, up to @end, between which there is no breakpoint.
 */
static size_t end_of_run(const struct kx_patch_change *c, size_t first, size_t end,
			 const uint8_t *page)
{
	const uint64_t at = page_of(c[first].at);
	size_t last = first;

	for (size_t i = first + 1; i < end; i++) {
		const uint64_t from = c[last].at + KX_PATCH_BYTES;

		if (c[i].result != KX_PATCH_WRITTEN)
			continue;
		if (c[i].at > from && memchr(page + (from - at), BREAKPOINT, c[i].at - from))
			break;
		last = i;
	}
	return last;
}

/* The changes from @begin to @end, all in one page. */
static void write_page(int mem, struct kx_patch_change *c, size_t begin, size_t end)
{
	const uint64_t at = page_of(c[begin].at);
	uint8_t page[KX_PATCH_PAGE];
	const bool read = pread(mem, page, sizeof(page), (off_t)at) == (ssize_t)sizeof(page);

	for (size_t i = begin; i < end; i++) {
		c[i].result = KX_PATCH_GONE;
		if (read)
			change(&c[i], page);
	}
	for (size_t i = begin; i < end; i++) {
		size_t last, size;

		if (c[i].result != KX_PATCH_WRITTEN)
			continue;
		last = end_of_run(c, i, end, page);
		size = c[last].at + KX_PATCH_BYTES - c[i].at;
		if (pwrite(mem, page + (c[i].at - at), size, (off_t)c[i].at) != (ssize_t)size)
			for (size_t k = i; k <= last; k++)
				if (c[k].result == KX_PATCH_WRITTEN)
					c[k].result = KX_PATCH_GONE;
		i = last;
	}
}

void kx_patch_write(int mem, struct kx_patch_change *changes, size_t n)
{
	for (size_t i = 0, end; i < n; i = end) {
		end = i + 1;
		while (end < n && page_of(changes[end].at) == page_of(changes[i].at))
			end++;
		write_page(mem, changes, i, end);
	}
}

void kx_patch_copy_pages(int mem, const struct kx_patch_change *changes, size_t n)
{
	uint8_t byte;

	for (size_t i = 0; i < n; i++) {
		const off_t at = (off_t)changes[i].at;

		if (i && page_of(changes[i].at) == page_of(changes[i - 1].at))
			continue;
		if (pread(mem, &byte, 1, at) == 1 && byte != BREAKPOINT)
			(void)!pwrite(mem, &byte, 1, at);
	}
}
