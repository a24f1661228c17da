// SPDX-License-Identifier: BSD-2-Clause
/*
 * Windows of all functions of binaries, for scripts/check-windows.py:
 *
 *     windows [--list] [--windows] [--moved FILE] BINARY...
 *
 * A summary for each binary. With --list "function WHY NAME" for each function; with --windows for each window "window START
 * LENGTH ENTRY EXIT STARTS ENTRY-FRAME EXIT-FRAME", the last two decimal, else hexadecimal; with --moved for each of its
 * instructions "moved OLD NEW", and in FILE a copy that would be at NEW, 32 bytes each.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "plan/relocate.h"
#include "plan/windows.h"

#define MOVED_TO 0x20000000

struct arguments {
	bool list, windows;
	FILE *moved;
};

struct totals {
	size_t functions, of[KX_WINDOW_REFUSALS], windows, exits, live_flags, fused, may_fault, tails;
};

/* Memory that is neither the stack's nor the binary's own, or a division. */
static bool may_fault(const struct kx_code *code, const struct kx_insn *insn)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];

	if (insn->z.mnemonic == ZYDIS_MNEMONIC_LEA || insn->z.meta.category == ZYDIS_CATEGORY_NOP)
		return false;
	if (insn->z.mnemonic == ZYDIS_MNEMONIC_DIV || insn->z.mnemonic == ZYDIS_MNEMONIC_IDIV)
		return true;
	for (unsigned i = 0; kx_insn_operands(code, insn, ops) && i < insn->z.operand_count; i++)
		if (ops[i].type == ZYDIS_OPERAND_TYPE_MEMORY && ops[i].mem.base != ZYDIS_REGISTER_RSP &&
		    ops[i].mem.base != ZYDIS_REGISTER_RBP && ops[i].mem.base != ZYDIS_REGISTER_RIP)
			return true;
	return false;
}

/* The instructions of @w; returns whether one may fault. */
static bool show_instructions(const struct kx_code *code, const struct kx_window *w, FILE *moved)
{
	static uint64_t n;
	struct kx_insn insn;
	bool faults = false;

	for (uint64_t at = w->start; at < w->start + w->length && kx_code_decode(code, at, &insn); at += insn.z.length) {
		const uint64_t to = MOVED_TO + 32 * n;
		uint8_t copy[KX_RELOCATED_MOST];

		faults |= may_fault(code, &insn);
		if (!moved)
			continue;
		memset(copy, 0x90, sizeof(copy));
		if (!kx_relocate(&insn, 0, to, copy))
			continue; /* padding */
		printf("moved %" PRIx64 " %" PRIx64 "\n", at, to);
		fwrite(copy, 1, sizeof(copy), moved);
		n++;
	}
	return faults;
}

static void count(const struct arguments *a, const struct kx_code *code, const struct kx_windows *ws, struct totals *t)
{
	bool faults = false;

	for (unsigned i = 0; i < ws->n; i++) {
		const struct kx_window *w = &ws->items[i];

		faults |= show_instructions(code, w, a->moved);
		if (a->windows)
			printf("window %" PRIx64 " %x %d %" PRIx64 " %x %u %u\n", w->start, w->length, w->entry, w->exit, w->starts,
			       w->entry_frame, w->exit_frame);
		t->windows++;
		t->exits += w->exit != 0;
		t->tails += w->tail;
		t->live_flags += w->entry && w->flags_live;
		t->fused += w->entry && w->exit;
	}
	t->may_fault += faults;
}

static double percent(size_t part, size_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

static void print(const char *path, const struct kx_symbols *syms, const struct totals *t, double seconds)
{
	printf("%s: %zu functions (%s), %zu with windows: %.1f %%, %.1f %% without instructions that may fault; found in %.3f s\n", path,
	       t->functions, syms->source, t->of[0], percent(t->of[0], t->functions), percent(t->of[0] - t->may_fault, t->functions),
	       seconds);
	printf("  %zu windows, %zu exits, %zu of them tail jumps, %zu entries with live flags, %zu with an exit\n", t->windows, t->exits,
	       t->tails, t->live_flags, t->fused);
	for (int i = 1; i < KX_WINDOW_REFUSALS; i++)
		if (t->of[i])
			printf("  %5.1f %% %s\n", percent(t->of[i], t->functions), kx_window_refusal_text((enum kx_window_refusal)i));
}

static int show(const char *path, const struct arguments *a)
{
	struct kx_window_planner *planner = NULL;
	struct timespec from, to;
	struct kx_symbols syms = { 0 };
	struct kx_elf *elf = NULL;
	struct totals t = { 0 };
	struct kx_err err = { 0 };
	int ret = kx_elf_open(path, &elf, &err);

	if (!ret)
		ret = kx_symbols_read(elf, NULL, &syms, &err);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	if (!ret)
		ret = kx_window_planner_new(elf, &syms, 1, &planner, &err);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	for (size_t i = 0; !ret && i < syms.count; i++) {
		struct kx_windows ws;
		const enum kx_window_refusal why = kx_windows_plan(planner, &syms.items[i], &ws);

		t.functions++;
		t.of[why]++;
		if (a->list)
			printf("function %d %s\n", why, syms.items[i].name);
		count(a, kx_window_planner_code(planner), &ws, &t);
	}
	if (ret)
		printf("%s: %s\n", path, err.text);
	else
		print(path, &syms, &t, (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9);
	kx_window_planner_free(planner);
	kx_symbols_free(&syms);
	kx_elf_close(elf);
	return ret != 0;
}

int main(int argc, char **argv)
{
	struct arguments a = { 0 };
	int ret = 0;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--list"))
			a.list = true;
		else if (!strcmp(argv[i], "--windows"))
			a.windows = true;
		else if (!strcmp(argv[i], "--moved") && i + 1 < argc)
			a.moved = fopen(argv[++i], "wb");
		else
			ret |= show(argv[i], &a);
	}
	return ret;
}
