// SPDX-License-Identifier: BSD-2-Clause
#include "plan/window_places.h"

#include "plan/relocate.h"
#include "plan/stack_step.h"
#include "plan/window_faults.h"

#define PAGE 4096
#define BEFORE_ENTRY 32 /* instructions before the entry's window at most */
#define BEFORE_EXIT 12	/* instructions of a window before its exit at most */
#define FLAGS_FOLLOWED 16

static bool is_end(const struct kx_code *code, uint64_t at, enum kx_insn_class class)
{
	uint64_t target;
	bool conditional;

	return class == KX_INSN_RET || class == KX_INSN_JUMP ||
	       (class == KX_INSN_BRANCH && kx_code_branch(code, at, &target, &conditional) && !conditional);
}

/* Whether a copy of the instruction does the same elsewhere. Traps are there for handlers, which look at their addresses. */
static enum kx_window_refusal check_movable(const struct kx_window_ground *g, uint64_t at, enum kx_insn_class class)
{
	uint8_t to[KX_RELOCATED_MOST];
	struct kx_insn insn;

	if (!kx_code_decode(g->code, at, &insn) || (class == KX_INSN_ODD && insn.z.mnemonic != ZYDIS_MNEMONIC_NOP))
		return KX_WINDOW_RELOCATE;
	if (g->faults_stay && kx_window_may_fault(&insn, g->frame))
		return KX_WINDOW_FAULT;
	return kx_relocate(&insn, 0, at + (1 << 20), to) ? KX_WINDOW_OK : KX_WINDOW_RELOCATE;
}

/* Whether the byte at @at can be changed: nothing lands there, unless it is a window's first. */
static bool is_free_byte(const struct kx_window_ground *g, uint64_t at, bool first)
{
	return (first || !kx_landing_is_marked(g->landings, at)) && !kx_landing_is_kept(g->landings, at);
}

/* Bytes of padding from @at on, at least @need if there are so many, that can be changed. */
static unsigned padding(const struct kx_window_ground *g, uint64_t at, unsigned need)
{
	unsigned n = 0;

	while (n < need) {
		struct kx_insn insn;

		if (kx_landing_is_marked(g->landings, at + n) || !kx_code_decode(g->code, at + n, &insn) ||
		    !kx_insn_is_padding(&insn))
			break;
		for (unsigned i = 0; i < insn.z.length; i++)
			if (!is_free_byte(g, at + n + i, false))
				return n;
		n += insn.z.length;
	}
	return n;
}

static bool crosses_page(uint64_t at)
{
	return at / PAGE != (at + KX_JUMP_SIZE - 1) / PAGE;
}

/* Whether one more instruction, at @at, can be in a window that begins at @start. */
static enum kx_window_refusal check(const struct kx_window_ground *g, uint64_t start, uint64_t at, unsigned length,
				    enum kx_insn_class class)
{
	if (!length || !kx_function_contains(g->function, at))
		return KX_WINDOW_TOO_SHORT;
	for (unsigned i = 0; i < length; i++)
		if (!is_free_byte(g, at + i, at + i == start))
			return KX_WINDOW_LANDING;
	if (class == KX_INSN_SYSTEM || class == KX_INSN_CALL)
		return KX_WINDOW_CALL;
	return check_movable(g, at, class);
}

/* Length of the window that begins at @start: whole instructions, 5 bytes at least, the one at @through (0: any) included. */
static enum kx_window_refusal measure(const struct kx_window_ground *g, uint64_t start, uint64_t through, unsigned *length)
{
	uint64_t at = start;
	bool ended = false;

	while (!ended && (at - start < KX_JUMP_SIZE || at <= through)) {
		const enum kx_insn_class class = kx_code_class(g->code, at);
		const unsigned n = kx_code_length(g->code, at);
		const enum kx_window_refusal why = check(g, start, at, n, class);

		if (why)
			return why;
		ended = is_end(g->code, at, class);
		at += n;
	}
	if (at <= through)
		return KX_WINDOW_TOO_SHORT;
	*length = (unsigned)(at - start);
	if (*length < KX_JUMP_SIZE)
		*length += padding(g, at, KX_JUMP_SIZE - *length);
	return *length < KX_JUMP_SIZE || *length > KX_WINDOW_MOST ? KX_WINDOW_TOO_SHORT : KX_WINDOW_OK;
}

#define ARITHMETIC                                                                                                     \
	(ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF | ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF)

/*
 * Whether the arithmetic flags may be read, before all of them are written, from @at on. A call or a return may pass some:
 * in hand-written code, and where gcc knows that a function of the same file never writes any (-fipa-ra).
 */
static bool flags_live(const struct kx_window_ground *g, uint64_t at)
{
	ZydisAccessedFlagsMask written = 0;

	for (int i = 0; i < FLAGS_FOLLOWED && kx_function_contains(g->function, at); i++) {
		const ZydisAccessedFlags *flags;
		enum kx_insn_class class;
		struct kx_insn insn;

		if (!kx_code_decode(g->code, at, &insn))
			return true;
		flags = insn.z.cpu_flags;
		class = kx_insn_classify(&insn.z);
		if (flags && (flags->tested & ARITHMETIC & ~written))
			return true;
		if (class >= KX_INSN_RET && class <= KX_INSN_SYSTEM)
			return true;
		if (flags)
			written |= flags->modified | flags->set_0 | flags->set_1 | flags->undefined;
		if (!(ARITHMETIC & ~written))
			return false;
		at += insn.z.length;
	}
	return true;
}

/* Bits for the instructions that begin 1 to 4 bytes behind @start. */
static uint8_t starts_of(const struct kx_window_ground *g, uint64_t start)
{
	uint8_t bits = 0;

	for (unsigned i = 0; i < KX_JUMP_SIZE;) {
		const unsigned known = kx_code_length(g->code, start + i);
		struct kx_insn insn;

		bits |= (uint8_t)(i ? 1u << i : 0);
		i += known ? known : kx_code_decode(g->code, start + i, &insn) ? insn.z.length : 1u;
	}
	return bits;
}

static void add(const struct kx_window_ground *g, const struct kx_window *w, struct kx_windows *out)
{
	struct kx_window *added = &out->items[out->n++];

	*added = *w;
	added->starts = starts_of(g, w->start);
	added->flags_live = w->entry && flags_live(g, w->start);
}

/* Follows the stack pointer over the instruction at @at. */
static void step(const struct kx_window_ground *g, struct kx_stack_state *st, uint64_t at)
{
	const struct kx_code_range *r = kx_code_range(g->code, at);

	if (r && kx_range_class(r, at) == KX_INSN_STACK)
		kx_stack_step(g->code, st, at, kx_range_bytes(r, at), kx_range_length(r, at));
}

static enum kx_window_refusal place_entry(const struct kx_window_ground *g, struct kx_windows *out)
{
	enum kx_window_refusal first = KX_WINDOW_OK, why = KX_WINDOW_OK;
	struct kx_stack_state st = { .depth_known = true };
	uint64_t at = g->function->parts[0].from;
	unsigned length = 0;

	for (int i = 0; i < BEFORE_ENTRY; i++) {
		const enum kx_insn_class class = kx_code_class(g->code, at);

		if (class > KX_INSN_STACK && class != KX_INSN_ODD)
			return first ? first : i ? KX_WINDOW_CALL : KX_WINDOW_FIRST;
		step(g, &st, at);
		at += kx_code_length(g->code, at);
		if (kx_landing_is_marked(g->landings, at))
			return first ? first : KX_WINDOW_LANDING;
		if (!st.depth_known || st.depth < 0 || st.depth > UINT16_MAX)
			return first ? first : KX_WINDOW_FRAME;
		why = measure(g, at, 0, &length);
		if (!why && crosses_page(at))
			why = KX_WINDOW_PAGE;
		if (!why) {
			add(g, &(struct kx_window){ .start = at, .length = (uint16_t)length, .entry = true,
						    .entry_frame = (uint16_t)st.depth }, out);
			return KX_WINDOW_OK;
		}
		if (!first)
			first = why;
	}
	return first;
}

/* Whether a window but the one that is left out at @except has bytes of [start, start + length). */
static bool is_taken(const struct kx_windows *out, uint64_t start, unsigned length, unsigned except)
{
	for (unsigned i = 0; i < out->n; i++)
		if (i != except && start < out->items[i].start + out->items[i].length && out->items[i].start < start + length)
			return true;
	return false;
}

/* A window of its own that holds the exit @x. */
static enum kx_window_refusal place_exit(const struct kx_window_ground *g, const struct kx_sled *x, struct kx_windows *out)
{
	const uint64_t from = g->function->parts[0].from;
	uint64_t start = x->addr;

	for (int i = 0; i < BEFORE_EXIT; i++) {
		enum kx_insn_class class;
		unsigned length = 0;

		if (start == from)
			return KX_WINDOW_EXIT_ENTRY;
		if (!measure(g, start, x->addr, &length)) {
			if (is_taken(out, start, length, KX_MAX_WINDOWS))
				return KX_WINDOW_EXIT_ENTRY;
			if (!crosses_page(start)) {
				add(g, &(struct kx_window){ .start = start, .length = (uint16_t)length, .exit = x->addr,
							    .exit_frame = x->frame, .tail = x->kind == KX_SLED_TAIL }, out);
				return KX_WINDOW_OK;
			}
		}
		if (!is_free_byte(g, start, false))
			return KX_WINDOW_EXIT_LANDING;
		start = kx_code_previous(g->code, start);
		if (!start || !kx_function_contains(g->function, start) || start == from)
			return KX_WINDOW_EXIT_ENTRY;
		class = kx_code_class(g->code, start);
		if (class == KX_INSN_CALL || class == KX_INSN_SYSTEM)
			return KX_WINDOW_EXIT_CALL;
		if (class > KX_INSN_STACK && class != KX_INSN_ODD)
			return KX_WINDOW_EXIT_OTHER;
	}
	return KX_WINDOW_EXIT_OTHER;
}

static void give_exit(struct kx_window *w, const struct kx_sled *x)
{
	w->exit = x->addr;
	w->exit_frame = x->frame;
	w->tail = x->kind == KX_SLED_TAIL;
}

/* Lets the entry's window reach over the exit @x. */
static bool fuse(const struct kx_window_ground *g, const struct kx_sled *x, struct kx_windows *out)
{
	struct kx_window *w = &out->items[0];
	unsigned length = 0;

	if (x->addr < w->start || x->addr - w->start >= KX_WINDOW_MOST || w->exit ||
	    measure(g, w->start, x->addr, &length) || is_taken(out, w->start, length, 0))
		return false;
	w->length = (uint16_t)length;
	give_exit(w, x);
	return true;
}

enum kx_window_refusal kx_window_places(const struct kx_window_ground *g, const struct kx_plan *exits, struct kx_windows *out)
{
	enum kx_window_refusal why;
	struct kx_window *w = &out->items[0];

	out->n = 0;
	why = place_entry(g, out);
	for (size_t i = 0; i < exits->nexits && !why; i++) {
		const struct kx_sled *x = &exits->exits[i];

		if (x->addr - w->start < w->length) {
			/* two in one window cannot be told apart */
			why = w->exit ? KX_WINDOW_EXIT_ENTRY : KX_WINDOW_OK;
			give_exit(w, x);
			continue;
		}
		why = out->n < KX_MAX_WINDOWS ? place_exit(g, x, out) : KX_WINDOW_EXIT_OTHER;
		if (why && fuse(g, x, out))
			why = KX_WINDOW_OK;
	}
	if (why)
		out->n = 0;
	return why;
}
