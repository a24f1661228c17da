// SPDX-License-Identifier: BSD-2-Clause
/* For tests and benches: this program as the target of a recording in process, by jumps in its own
 * code. */
#ifndef KX_TEST_PATCHED_H
#define KX_TEST_PATCHED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <unistd.h>

#include "attach/jump_space.h"
#include "attach/recorder_code.h"
#include "attach/trampoline.h"
#include "binary/elf_image.h"
#include "tracer/target_rings.h"

#define PATCHED_CODE_SIZE (64u << 20)
/* Around where a jump in this program leads whose last byte is 0xcc. */
#define PATCHED_FAR_SIZE (64u << 20)

struct patched {
	struct kx_patch_head *head;
	struct kx_target_rings *rings;
	size_t rings_size;
	struct kx_rings *views;
	uint8_t *code, *far;
	kx_recorder_fn *recorder; /* the copy */
	struct kx_jump_space *space;
	const struct kx_guard *guard; /* of what is prepared next */
	/* of this program */
	struct kx_elf *elf;
	struct kx_symbols syms;
	struct kx_code *decoded;
	uint64_t bias;
};

/* Where glibc keeps the thread's id: an aligned word behind the thread pointer. 0: not found. */
static inline uint32_t patched_tid_offset(void)
{
	const uint32_t tid = (uint32_t)gettid();
	uint32_t word;

	for (uint32_t offset = 0; offset < 0x900; offset += 4) {
		__asm__ volatile("movl %%fs:(%1), %0" : "=r"(word) : "r"((uint64_t)offset));
		if (word == tid)
			return offset;
	}
	return 0;
}

/* Of this thread's CPU in its struct rseq; 0: it has none. */
static inline uint32_t patched_cpu_offset(void)
{
	return __rseq_size ? (uint32_t)__rseq_offset + (uint32_t)offsetof(struct rseq, cpu_id) : 0;
}

/* Writable, executable memory at @distance or a little more from @from; NULL if none is free there.
 */
static inline uint8_t *patched_map_near(uint64_t from, int64_t distance, size_t size)
{
	for (unsigned i = 0; i < 256; i++) {
		const uint64_t at =
			((from + (uint64_t)distance) & ~0xfffffULL) + ((uint64_t)i << 20);
		void *p = mmap((void *)at, size, PROT_READ | PROT_WRITE | PROT_EXEC,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
			       -1, 0);

		if (p != MAP_FAILED)
			return p;
	}
	return NULL;
}

/* Rings for @ncpus CPUs, and the recorder's copy at @from + @distance; recording is on. */
static inline bool patched_init(struct patched *p, uint64_t from, int64_t distance, uint32_t nslots,
				unsigned ncpus)
{
	size_t size, entry;
	const uint8_t *recorder = kx_recorder_code(kx_recorder_tcb_by_here(), &size, &entry);

	memset(p, 0, sizeof(*p));
	p->code = patched_map_near(from, distance, PATCHED_CODE_SIZE);
	p->rings_size = kx_target_rings_size(nslots, ncpus);
	p->rings = mmap(NULL, p->rings_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			0);
	if (!p->code || p->rings == MAP_FAILED)
		return false;
	kx_target_rings_init(p->rings, nslots, ncpus, &(struct kx_thread_layout){ patched_tid_offset(), patched_cpu_offset() }, ~0ULL >> 1);
	p->head = (struct kx_patch_head *)p->code;
	*p->head = (struct kx_patch_head){ .magic = KX_PATCH_MAGIC,
					   .enabled = 1,
					   .rings = (uintptr_t)p->rings };
	memcpy(p->code + 4096, recorder, size);
	p->recorder = (kx_recorder_fn *)(uintptr_t)(p->code + 4096 + entry);
	return !kx_target_rings_open(p->rings, p->rings->nslots, p->rings->ncpus, &p->views, NULL);
}

static inline void patched_free(struct patched *p)
{
	kx_target_rings_close(p->views);
	kx_jump_space_free(p->space);
	kx_code_free(p->decoded);
	kx_symbols_free(&p->syms);
	kx_elf_close(p->elf);
	munmap(p->rings, p->rings_size);
	munmap(p->code, PATCHED_CODE_SIZE);
	if (p->far)
		munmap(p->far, PATCHED_FAR_SIZE);
	memset(p, 0, sizeof(*p));
}

/* Decodes this program and prepares for jumps in it. @name: the function at @address. */
static inline bool patched_open_self(struct patched *p, const char *name, uint64_t address)
{
	struct kx_err err = { 0 };

	p->space = NULL;
	if (kx_elf_open("/proc/self/exe", &p->elf, &err) ||
	    kx_symbols_read(p->elf, NULL, &p->syms, &err) ||
	    kx_code_new(p->elf, &p->syms, 1, NULL, &p->decoded, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return false;
	}
	for (size_t i = 0; i < p->syms.count && !p->bias; i++)
		if (!strcmp(p->syms.items[i].name, name))
			p->bias = address - p->syms.items[i].addr;
	p->far = patched_map_near(address, -(int64_t)KX_FAR_FROM - (16 << 20), PATCHED_FAR_SIZE);
	if (p->far)
		p->space = kx_jump_space_new((uintptr_t)p->code, PATCHED_CODE_SIZE, 16384,
					     (uintptr_t)p->far, PATCHED_FAR_SIZE);
	return p->space;
}

/* Makes the trampoline and the jump of @w, whose addresses are those of the running program. */
static inline bool patched_prepare(struct patched *p, const struct kx_window *w, uint32_t func,
				   struct kx_jump *jump)
{
	struct kx_trampoline_place place = {
		.bias = p->bias,
		.at = (uintptr_t)p->code,
		.head = (uintptr_t)p->head,
		.recorder = (uintptr_t)p->recorder,
		.guard = p->guard,
	};
	struct kx_window file = *w;
	uint8_t code[KX_TRAMPOLINE_MOST];
	unsigned size;

	file.start -= p->bias;
	file.exit -= w->exit ? p->bias : 0;
	size = kx_trampoline_make(p->decoded, &file, func, &place, code);
	if (!size || !kx_jump_space_take(p->space, w->start, w->starts, size, jump))
		return false;
	place.at = jump->trampoline;
	if (kx_trampoline_make(p->decoded, &file, func, &place, (uint8_t *)jump->trampoline) !=
	    size)
		return false;
	for (unsigned i = 0; i < jump->nstubs; i++)
		if (!kx_jump_make(jump->stubs[i], jump->trampoline, (uint8_t *)jump->stubs[i]))
			return false;
	return true;
}

/* Writes @n bytes into this program's code. */
static inline bool patched_write(uint64_t at, const uint8_t *bytes, size_t n)
{
	const uint64_t page = at & ~4095ULL;

	if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC))
		return false;
	memcpy((void *)at, bytes, n);
	return true;
}

#endif
