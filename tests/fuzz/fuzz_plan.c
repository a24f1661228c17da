// SPDX-License-Identifier: BSD-2-Clause
/* Machine code: the input is the code of two functions, in a generated ELF file. */
#include <elf.h>
#include <string.h>

#include "binary/elf_image.h"
#include "fuzz.h"
#include "plan/plan.h"
#include "binary/symbols.h"

#define BASE 0x401000
#define HEADER 0x1000

static void check_exits(const struct kx_plan *p, size_t size)
{
	for (size_t k = 0; k < p->nexits; k++) {
		const struct kx_sled *s = &p->exits[k];

		if (s->addr < BASE || s->addr >= BASE + size || (k && s->addr <= s[-1].addr))
			abort();
		if (s->frame % 8 || s->frame > KX_PLAN_MAX_EXIT_FRAME || (s->frame && s->kind == KX_SLED_TAIL))
			abort();
		/* return instructions are single-stepped, and no jump that leads to one is */
		if (s->cost == KX_COST_STEPPED && (s->frame || s->conditional || p->exits_emulated))
			abort();
	}
}

static void plan(struct kx_elf *elf, size_t size)
{
	size_t half = size / 2;
	struct kx_symbol items[] = {
		{ .name = "a", .pretty = "a", .addr = BASE, .size = half },
		{ .name = "b", .pretty = "b", .addr = BASE + half, .size = size - half },
	};
	const struct kx_symbols syms = { .items = items, .count = 2, .source = "input" };
	struct kx_planner *planner;

	if (kx_planner_new(elf, &syms, 1, NULL, &planner, NULL))
		return;
	for (int i = 0; i < 2; i++) {
		for (int exits = KX_EXITS_AUTO; exits <= KX_EXITS_NONE; exits++) {
			const struct kx_plan_options options = { .exits = (enum kx_exits)exits,
								 .nop5_optimized = exits & 1 };
			struct kx_plan p;

			if (kx_plan_function(planner, &items[i], &options, &p, NULL))
				continue;
			if (p.entry.addr < items[i].addr ||
			    p.entry.addr >= items[i].addr + items[i].size)
				abort();
			if (p.frame % 8 || (p.frame && p.exit_kind == KX_EXITS_RETURN))
				abort();
			check_exits(&p, size);
			kx_plan_free(&p);
		}
	}
	kx_planner_free(planner);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kx_elf *elf;
	uint8_t *image;
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_EXEC,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_entry = BASE,
			  .e_phoff = sizeof(Elf64_Ehdr),
			  .e_ehsize = sizeof(Elf64_Ehdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 1 };
	Elf64_Phdr ph = { .p_type = PT_LOAD,
			  .p_flags = PF_R | PF_X,
			  .p_offset = HEADER,
			  .p_vaddr = BASE,
			  .p_filesz = size,
			  .p_memsz = size,
			  .p_align = 0x1000 };

	if (size < 4 || size > 4096)
		return 0;
	image = calloc(1, HEADER + size);
	if (!image)
		return 0;
	memcpy(image, &eh, sizeof(eh));
	memcpy(image + sizeof(eh), &ph, sizeof(ph));
	memcpy(image + HEADER, data, size);
	if (kx_elf_open_memory(image, HEADER + size, "input", &elf, NULL) == 0) {
		plan(elf, size);
		kx_elf_close(elf);
	}
	free(image);
	return 0;
}
