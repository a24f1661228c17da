// SPDX-License-Identifier: BSD-2-Clause
/* Binaries: sections, symbols (also MiniDebugInfo), and the plans of all functions. */
#include <string.h>

#include "binary/elf_image.h"
#include "fuzz_binary.h"
#include "plan/plan.h"
#include "binary/symbols.h"

static void plan_all(struct kx_elf *elf, const struct kx_symbols *syms)
{
	struct kx_planner *planner;

	if (kx_planner_new(elf, syms, 1, NULL, &planner, NULL))
		return;
	for (size_t i = 0; i < syms->count && i < 256; i++) {
		for (int exits = KX_EXITS_AUTO; exits <= KX_EXITS_NONE; exits++) {
			const struct kx_plan_options options = { .exits = (enum kx_exits)exits,
								 .nop5_optimized = true };
			struct kx_plan plan;
			uint64_t offset;

			if (kx_plan_function(planner, &syms->items[i], &options, &plan, NULL))
				continue;
			/* a probe must never be placed outside of code */
			if (kx_elf_offset(elf, plan.entry.addr, &offset))
				abort();
			kx_plan_free(&plan);
		}
	}
	kx_planner_free(planner);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_binary(data, size, plan_all);
}
