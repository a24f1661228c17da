// SPDX-License-Identifier: BSD-2-Clause
#include "binary/process_code.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LARGE (4 * KX_CODE_PAGE)
#define INT3  0xcc
#define CALL 0xe8 /* what a probe on a nop of five bytes becomes (Linux 6.18) */

/* Documentation/admin-guide/mm/pagemap.rst */
#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_SWAPPED (UINT64_C(1) << 62)
#define PAGE_OF_FILE (UINT64_C(1) << 61)

int kx_process_code_open(pid_t pid, struct kx_process_code *c)
{
	char path[32];

	c->page = c->flags_page = 1;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	c->memory = open(path, O_RDONLY | O_CLOEXEC);
	if (c->memory < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)pid);
	c->pagemap = open(path, O_RDONLY | O_CLOEXEC);
	return 0;
}

void kx_process_code_close(struct kx_process_code *c)
{
	close(c->memory);
	if (c->pagemap >= 0)
		close(c->pagemap);
}

size_t kx_process_code_read(struct kx_process_code *c, uint64_t address, void *out, size_t n)
{
	uint8_t *to = out;
	size_t done = 0;

	/* what is more than the page kept for small reads goes where it is wanted, without a copy */
	while (n - done >= LARGE) {
		ssize_t got = pread(c->memory, to + done, n - done, (off_t)(address + done));

		if (got <= 0)
			break;
		done += (size_t)got;
	}
	while (done < n) {
		uint64_t page = (address + done) & ~(uint64_t)(KX_CODE_PAGE - 1);
		size_t at = (size_t)(address + done - page), count;

		if (page != c->page) {
			ssize_t got = pread(c->memory, c->bytes, KX_CODE_PAGE, (off_t)page);

			c->size = got > 0 ? (size_t)got : 0;
			c->page = page;
		}
		if (at >= c->size)
			break;
		count = c->size - at < n - done ? c->size - at : n - done;
		memcpy(to + done, c->bytes + at, count);
		done += count;
	}
	return done;
}

/* What pagemap says of the page, eight bytes for each. */
static uint64_t flags_of(struct kx_process_code *c, uint64_t address)
{
	uint64_t page = address / KX_CODE_PAGE, first = page - page % KX_CODE_FLAGS;
	ssize_t got;

	if (first != c->flags_page) {
		c->flags_page = first;
		got = pread(c->pagemap, c->flags, sizeof(c->flags), (off_t)(first * 8));
		for (size_t i = got > 0 ? (size_t)got / 8 : 0; i < KX_CODE_FLAGS; i++)
			c->flags[i] = PAGE_PRESENT;
	}
	return c->flags[page - first];
}

bool kx_process_code_is_present(struct kx_process_code *c, uint64_t address)
{
	return flags_of(c, address) & (PAGE_PRESENT | PAGE_SWAPPED);
}

bool kx_process_code_may_differ(struct kx_process_code *c, uint64_t address)
{
	uint64_t flags = flags_of(c, address);

	return (flags & PAGE_SWAPPED) || ((flags & PAGE_PRESENT) && !(flags & PAGE_OF_FILE));
}

bool kx_code_is_probed(uint8_t byte, bool nop5)
{
	return byte == INT3 || (byte == CALL && nop5);
}

bool kx_code_is_same(const uint8_t *memory, const uint8_t *file, size_t n)
{
	static const uint8_t nop5[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

	for (size_t i = 0; i < n; i++) {
		size_t rest = n - i < sizeof(nop5) ? n - i : sizeof(nop5);

		if (memory[i] == file[i] || memory[i] == INT3)
			continue;
		if (memory[i] != CALL || memcmp(file + i, nop5, rest))
			return false;
		i += rest - 1;
	}
	return true;
}
