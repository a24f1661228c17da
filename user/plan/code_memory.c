// SPDX-License-Identifier: BSD-2-Clause
#include "plan/code_memory.h"

#include <string.h>
#include <sys/mman.h>

#include "base/huge_page.h"
#include "base/parallel.h"

/* Pieces begin on a cache line each. */
#define ALIGN 64
#define BLOCK 4096u /* bytes that are cleared if one of them is not zero */

static size_t aligned(size_t size)
{
	return (size + ALIGN - 1) / ALIGN * ALIGN;
}

size_t kx_code_memory_need(const struct kx_elf *elf)
{
	struct kx_elf_section seg;
	size_t need = 0;

	/* a byte for each byte of code, and four bits: see struct kx_code_range and struct kx_gap_asked */
	for (size_t i = 0; kx_elf_exec_segment(elf, i, &seg); i++)
		need += aligned(seg.size + KX_INFO_BEYOND) + 4 * aligned((seg.size / 64 + 1) * sizeof(uint64_t));
	return need;
}

void kx_code_memory_reserve(struct kx_code_memory *memory, size_t size)
{
	void *data = size ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) :
			    MAP_FAILED;

	*memory = (struct kx_code_memory){ 0 };
	if (data == MAP_FAILED)
		return;
	/*
	 * Each byte is read before it is written: in small pages that is two faults for each, and the second one interrupts
	 * the other threads. Where the kernel gives no huge pages nothing changes.
	 */
	madvise(data, size, MADV_HUGEPAGE);
	memory->data = data;
	memory->size = size;
}

void kx_code_memory_free(struct kx_code_memory *memory)
{
	if (memory->data)
		munmap(memory->data, memory->size);
	*memory = (struct kx_code_memory){ 0 };
}

struct clearing {
	uint8_t *data;
	size_t size;
	size_t next; /* atomic */
};

static bool is_zero(const uint8_t *block)
{
	return !block[0] && !memcmp(block, block + 1, BLOCK - 1);
}

/* Blocks that have not been used are only read, so that the kernel does not have to give pages for them. */
static void *clear(void *arg)
{
	struct clearing *c = arg;
	size_t at;

	while ((at = __atomic_fetch_add(&c->next, KX_HUGE_PAGE, __ATOMIC_RELAXED)) < c->size) {
		const size_t end = c->size - at < KX_HUGE_PAGE ? c->size : at + KX_HUGE_PAGE;

		for (; end - at >= BLOCK; at += BLOCK)
			if (!is_zero(c->data + at))
				memset(c->data + at, 0, BLOCK);
		memset(c->data + at, 0, end - at);
	}
	return NULL;
}

bool kx_code_memory_take(struct kx_code_memory *memory, size_t need, size_t threads)
{
	struct clearing c = { .data = memory->data, .size = memory->used };

	if (memory->taken || need > memory->size)
		return false;
	kx_parallel_run(threads, clear, &c);
	memory->used = 0;
	memory->taken = true;
	return true;
}

void *kx_code_memory_piece(struct kx_code_memory *memory, size_t size)
{
	uint8_t *piece = memory->data + memory->used;

	if (aligned(size) > memory->size - memory->used)
		return NULL;
	memory->used += aligned(size);
	return piece;
}

void kx_code_memory_give(struct kx_code_memory *memory)
{
	memory->taken = false;
}
