// SPDX-License-Identifier: BSD-2-Clause
/*
 * The sled planner: where the probes of one function go. Decodes the function's
 * machine code and finds the cheapest safe place for the entry probe, and its exits.
 *
 * A function that starts with one of its exits (it is just `ret`, or begins with a tail
 * jump) has entry.addr == exits[i].addr: two probes on one instruction, which run at one hit.
 * The kernel runs the probe first that was attached last (consumers are put at the head of the
 * list), so the exits must be attached before the entries.
 */
#ifndef KX_PLAN_H
#define KX_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "binary/elf_image.h"
#include "base/err.h"
#include "binary/symbols.h"
#include "plan/code_memory.h"

enum kx_cost {
	KX_COST_NOP5,     /* the kernel turns it into a call: cheapest */
	KX_COST_EMULATED, /* see enum kx_insn_kind */
	KX_COST_STEPPED,  /* everything else runs single-stepped, out of line */
	KX_COST_KERNEL,   /* no uprobe: a system call, a kernel function, a function that is recorded in process */
};

enum kx_exits {
	KX_EXITS_AUTO,        /* return probes only where they are harmless and need no single-stepped entry, if that can be avoided */
	KX_EXITS_RETURN,
	KX_EXITS_INSTRUCTION,
	KX_EXITS_NONE,
};

enum kx_sled_kind {
	KX_SLED_ENTRY = 0, /* numbers as in xray_instr_map */
	KX_SLED_EXIT = 1,
	KX_SLED_TAIL = 2,
};

/*
 * Instructions that some kernel emulates under a probe. kx_probe_emulated (tracer/uprobe_try.h) tries which
 * ones the running kernel does.
 */
enum kx_insn_kind {
	KX_INSN_NOP,        /* 0x90, with prefixes too */
	KX_INSN_PUSH,       /* of a 64-bit register */
	KX_INSN_JUMP_NEAR,  /* direct */
	KX_INSN_CONDITIONAL,
	KX_INSN_CALL_NEAR,  /* direct */
	KX_INSN_LONG_NOP,   /* 0f 1f without prefixes, of 3 to 8 bytes */
	KX_INSN_MOVE_FRAME, /* mov %rsp,%rbp */
	KX_INSN_SUB_STACK,  /* sub $n,%rsp */
	KX_INSN_KINDS
};

/* Linux 4.1 and later; assumed where it cannot be tried. */
#define KX_EMULATED_ALWAYS                                                                         \
	(1u << KX_INSN_NOP | 1u << KX_INSN_PUSH | 1u << KX_INSN_JUMP_NEAR |                        \
	 1u << KX_INSN_CONDITIONAL | 1u << KX_INSN_CALL_NEAR)

/* Of an exit's frame in bytes: what KX_COOKIE_EXIT_FRAME holds. */
#define KX_PLAN_MAX_EXIT_FRAME 32760

struct kx_sled {
	uint64_t addr;     /* ELF virtual address of the probed instruction */
	uint8_t kind;      /* enum kx_sled_kind */
	uint8_t cost;      /* enum kx_cost */
	bool conditional;  /* an exit only if `condition` holds */
	uint8_t condition; /* low 4 bits of the jcc opcode (Intel SDM vol. 2, table B-10 order) */
	uint16_t frame;    /* of an exit: bytes by which the stack pointer is below its value at the call's first instruction */
};

struct kx_plan {
	struct kx_sled entry;
	struct kx_sled *exits; /* instruction exits, by address; empty for return probes; owned.
				* None at all for a function that never returns. */
	size_t nexits;
	uint8_t exit_kind;     /* KX_EXITS_RETURN, _INSTRUCTION or _NONE, never _AUTO */
	bool exits_emulated;   /* its instruction exits are emulated, all of them; of a plan with return probes:
				* those that it would have */
	uint8_t frame;         /* bytes by which the stack pointer is below its value at the call's
				* first instruction when the entry probe is hit; 0 with return probes */
	uint8_t args;          /* first integer registers still unchanged at the entry probe, 0 to 6 */
	bool arguments_kept;   /* all of them are, and in a Go program those of its own ABI */
	uint32_t instructions; /* decoded in the function, .cold part included */
	bool has_loop;         /* a branch goes backwards inside it */
	bool makes_calls;      /* calls or tail-jumps anything */
	bool tail_calls;       /* may leave by a tail jump */
	bool xray;             /* sleds are the binary's own */
};

struct kx_plan_options {
	enum kx_exits exits;
	bool returns_harmless; /* of the process: see unwind_risk.h */
	bool returns_forbidden; /* AUTO takes no return probe, not even in leaves (Go) */
	bool results; /* at an exit rax and rdx hold the call's result; a tail jump is none */
	bool arguments; /* at the entry the argument registers are unchanged, whatever a probe costs there */
	bool nop5_optimized;   /* this kernel turns a probed nop5 into a call */
	bool nop5_forbidden;   /* that call harms: tracer/uprobe_try.h, binary/dispatched_calls.h */
	unsigned emulated;     /* 1 << enum kx_insn_kind: what this kernel emulates; 0: KX_EMULATED_ALWAYS */
};

struct kx_planner;

/*
 * A planner for the functions of one binary; decodes it once, in up to @threads threads, to learn where branches
 * land. @elf and @syms are borrowed and must outlive it; @memory, which may be NULL, until kx_planner_rest: see
 * kx_code_new.
 */
int kx_planner_new(struct kx_elf *elf, const struct kx_symbols *syms, size_t threads, struct kx_code_memory *memory,
		   struct kx_planner **out, struct kx_err *err);
void kx_planner_free(struct kx_planner *p);
/* The decoded code, until kx_planner_rest; borrowed. */
const struct kx_code *kx_planner_code(const struct kx_planner *p);

/* Gives back what decoding takes, a byte for each byte of code; it is decoded again if another function is planned. */
void kx_planner_rest(struct kx_planner *p);

/*
 * Plans @sym. Returns 0 and fills @out (free with kx_plan_free), or a negative errno with the
 * reason in @err, a clause about the function that doesn't name it: -ENOEXEC (cannot be decoded),
 * -EOPNOTSUPP (no safe place), -ENOMEM.
 *
 * Functions that use their own return address (setjmp, vfork, dlsym), or have none (the
 * program's entry point, a signal trampoline), get no return probe: it would crash the target or
 * change what it does. AUTO takes instruction exits there, RETURN refuses.
 *
 * Several threads may plan with one planner, until kx_planner_rest. @sym is one of those it was made with.
 */
int kx_plan_function(struct kx_planner *p, const struct kx_symbol *sym,
		     const struct kx_plan_options *options, struct kx_plan *out,
		     struct kx_err *err);
void kx_plan_free(struct kx_plan *plan);

/* Functions of the binary's own xray_instr_map, in id order; 0 if it has none. Addresses are ELF
 * virtual addresses of the functions; the array is borrowed from the planner. */
size_t kx_planner_xray_functions(const struct kx_planner *p, const uint64_t **addrs);

const char *kx_cost_name(enum kx_cost cost);   /* "nop5", "emulated", "stepped" */
const char *kx_insn_kind_name(enum kx_insn_kind kind);
const char *kx_exits_name(enum kx_exits kind); /* "return", "instruction", "none", "auto" */

#endif
