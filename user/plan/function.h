// SPDX-License-Identifier: BSD-2-Clause
/*
 * One function's code as the planner sees it: its parts, what they contain, how
 * deep the stack is at each jump, and what each indirect jump is for.
 */
#ifndef KX_FUNCTION_H
#define KX_FUNCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plan/decode.h"
#include "binary/elf_image.h"
#include "base/err.h"
#include "binary/symbols.h"

struct kx_part {
	uint64_t from, to; /* ELF virtual addresses, [from, to) */
	const struct kx_code_range *range; /* the segment that holds it */
	bool regular; /* nothing was decoded in it but one instruction behind the other */
};

/* An instruction by which the function may be left: `ret`, an indirect jump, or a direct jump to the outside or to the
 * function's first instruction. */
struct kx_way_out {
	uint64_t addr;
	uint64_t target;  /* of a direct jump */
	bool conditional; /* the direct jump may fall through */
	uint8_t class;    /* KX_INSN_RET, _JUMP or _BRANCH */
};

enum kx_jump {
	KX_JUMP_TABLE,   /* a switch or computed goto: stays inside */
	KX_JUMP_TAIL,    /* leaves the function */
	KX_JUMP_UNCLEAR, /* could be either */
};

struct kx_function_code {
	const struct kx_code *code;
	const struct kx_symbols *syms;
	struct kx_part parts[2]; /* the function, its .cold part */
	size_t nparts;
	uint32_t instructions; /* without trailing padding */
	uint32_t branches;     /* direct jumps, inside and out */
	uint32_t jumps;        /* indirect ones */
	bool has_loop;
	bool loops_at_entry;   /* a direct jump of its own goes back to its first instruction */
	bool calls;            /* call or syscall */
	bool leaves;           /* a direct jump goes out, or back to the entry */
	struct kx_way_out *ways; /* in the order of the parts and addresses; owned */
	size_t nways;
};

struct kx_stack;

/* Walks over the function once. Free with kx_function_free. -ENOEXEC with the reason if it can't be decoded; -ENOMEM. */
int kx_function_scan(const struct kx_code *code, const struct kx_symbols *syms,
		     const struct kx_symbol *sym, struct kx_function_code *out, struct kx_err *err);
void kx_function_free(struct kx_function_code *f);

/* Whether code behind the end of one of its parts may be run as if it were the function's. Behind a call nothing is: those that
 * compilers end a function with do not return. */
bool kx_function_runs_on(const struct kx_function_code *f);

static inline bool kx_function_contains(const struct kx_function_code *f, uint64_t addr)
{
	for (size_t i = 0; i < f->nparts; i++)
		if (addr - f->parts[i].from < f->parts[i].to - f->parts[i].from)
			return true;
	return false;
}

/*
 * Follows the stack pointer through the function. NULL without memory; free with free().
 * @touches_return is set if the function reads or writes its own return address other
 * than by `ret`, as setjmp, swapcontext, vfork and dlsym do.
 */
struct kx_stack *kx_stack_follow(const struct kx_function_code *f, bool *touches_return);
/* Bytes on the stack above the return address before the jump at @addr, one of f->ways; false if unknown. */
bool kx_stack_depth(const struct kx_stack *s, uint64_t addr, int32_t *depth);

/* What the function's indirect jumps are for, in the order of f->ways. */
struct kx_jumps {
	enum kx_jump *kinds; /* f->jumps of them; owned */
	bool any_inside;     /* one is no tail call for certain: it has targets unknown here */
	bool any_outside;    /* one may be a tail call */
};

/* Errors: -ENOMEM. */
int kx_jumps_classify(const struct kx_function_code *f, const struct kx_stack *s, struct kx_elf *elf,
		      struct kx_jumps *out, struct kx_err *err);
void kx_jumps_free(struct kx_jumps *jumps);

#endif
