// SPDX-License-Identifier: BSD-2-Clause
/* Binaries: what their code, tables, relocations and exception tables land on, and the windows of all functions. */
#include <string.h>

#include "fuzz_binary.h"
#include "plan/relocate.h"
#include "plan/windows.h"

#define FUNCTIONS_MOST 256

struct range {
	uint64_t from, to;
};

/* Whole instructions of the function that can be moved, with padding behind them. */
static void check_instructions(const struct kx_code *code, const struct kx_window *w)
{
	bool exits = !w->exit, padding = false;
	unsigned n = 0;

	while (n < w->length) {
		uint8_t to[KX_RELOCATED_MOST];
		struct kx_insn insn;

		if (!kx_code_decode(code, w->start + n, &insn))
			abort();
		if (n && n < KX_JUMP_SIZE && !(w->starts >> n & 1))
			abort();
		if (!padding && !kx_relocate(&insn, 0, w->start + n + 4096, to)) {
			if (!kx_insn_is_padding(&insn))
				abort();
			padding = true;
		}
		exits |= insn.addr == w->exit;
		n += insn.z.length;
	}
	if (n != w->length || !exits)
		abort();
}

static void check(const struct kx_code *code, const struct kx_symbol *s, const struct kx_windows *ws, struct range *all, size_t *n)
{
	for (unsigned i = 0; i < ws->n; i++) {
		const struct kx_window *w = &ws->items[i];
		const struct range r = { w->start, w->start + w->length };

		if (w->length < KX_JUMP_SIZE || w->length > KX_WINDOW_MOST || w->start == s->addr || w->entry != !i ||
		    (w->start & 4095) > 4096 - KX_JUMP_SIZE)
			abort();
		check_instructions(code, w);
		/* two jumps would make both wild */
		for (size_t k = 0; k < *n; k++)
			if (r.from < all[k].to && all[k].from < r.to)
				abort();
		all[(*n)++] = r;
	}
}

static void plan_all(struct kx_elf *elf, const struct kx_symbols *syms)
{
	struct range *all = calloc(FUNCTIONS_MOST * KX_MAX_WINDOWS, sizeof(*all));
	struct kx_window_planner *planner;
	size_t n = 0;

	if (all && !kx_window_planner_new(elf, syms, 1, &planner, NULL)) {
		for (size_t i = 0; i < syms->count && i < FUNCTIONS_MOST; i++) {
			struct kx_windows ws;
			const enum kx_window_refusal why = kx_windows_plan(planner, &syms->items[i], &ws);

			if (!*kx_window_refusal_text(why) || (why == KX_WINDOW_OK) != (ws.n > 0))
				abort();
			check(kx_window_planner_code(planner), &syms->items[i], &ws, all, &n);
		}
		kx_window_planner_free(planner);
	}
	free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_binary(data, size, plan_all);
}
