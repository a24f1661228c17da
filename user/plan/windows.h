// SPDX-License-Identifier: BSD-2-Clause
/*
 * Windows: where a jump can replace whole instructions of a function, so that code elsewhere (a trampoline) records an
 * entry or an exit, runs what was replaced, and goes back.
 *
 * A window is never a function's first instruction (uprobes of other tools are there), holds no call and no system call (so
 * that no return address points into it), lies within one page, and nothing lands behind its first byte: no branch, switch,
 * relocation, landing pad or pointer (landings.h). What cannot be proven is refused: also code that is not in the unwind tables, parts
 * of a function that have no symbol and may leave it, exits at which the stack pointer is not known to be what it was at the entry.
 *
 * A window has one entry, one exit, or one of each. No two windows of a binary overlap. Binaries without symbols of .cold parts are no
 * obstacle: a part that only goes back into the function, or nowhere, has no windows.
 */
#ifndef KX_WINDOWS_H
#define KX_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "binary/elf_image.h"
#include "binary/symbols.h"
#include "plan/decode.h"

/* Bytes of the jump. */
#define KX_JUMP_SIZE 5
#define KX_MAX_WINDOWS 24 /* of a function */
/* Bytes of a window at most. */
#define KX_WINDOW_MOST 128

enum kx_window_refusal {
	KX_WINDOW_OK,
	KX_WINDOW_UNPLANNED,	/* the planner of probes refuses it too, or an exit is unclear */
	KX_WINDOW_IFUNC,
	KX_WINDOW_FOREIGN,	/* not in the unwind tables: what is there may be entered anywhere */
	KX_WINDOW_NEW_THREAD,	/* new_threads.h */
	KX_WINDOW_PARTS,	/* jumps into code without a symbol */
	KX_WINDOW_TABLE,	/* a switch whose table cannot be read */
	KX_WINDOW_FIRST,	/* begins with a branch, call or return */
	KX_WINDOW_TOO_SHORT,
	KX_WINDOW_LANDING,	/* something lands in each candidate */
	KX_WINDOW_CALL,		/* a call or system call comes before 5 bytes */
	KX_WINDOW_PAGE,		/* only places over a page boundary */
	KX_WINDOW_RELOCATE,	/* an instruction that cannot be moved */
	KX_WINDOW_FAULT,	/* the same, as it may fault */
	KX_WINDOW_FRAME,	/* how far the stack pointer has moved is unknown */
	KX_WINDOW_ARGUMENTS,	/* kx_windows_plan_entry: they are changed before the window */
	KX_WINDOW_EXIT_LANDING, /* the same of an exit */
	KX_WINDOW_EXIT_CALL,
	KX_WINDOW_EXIT_ENTRY,	/* the bytes before the exit are the first instruction or another window */
	KX_WINDOW_EXIT_OTHER,
	KX_WINDOW_REFUSALS
};

struct kx_window {
	uint64_t start;	    /* ELF virtual address */
	uint16_t length;    /* bytes of whole instructions, padding included; 5 at least */
	uint8_t starts;	    /* bit i, 1 to 4: an instruction of the function begins at start + i */
	bool entry;	    /* the function's entry is recorded at its start */
	bool flags_live;    /* of an entry: the arithmetic flags at its start may be read later; at exits they always may */
	bool tail;	    /* the exit is a tail jump */
	uint16_t entry_frame; /* bytes by which the stack pointer at its start is below its value at the function's first instruction */
	uint16_t exit_frame;  /* the same before the exit instruction */
	uint64_t exit;	    /* the exit instruction in it, which may be conditional; 0: none */
};

struct kx_windows {
	struct kx_window items[KX_MAX_WINDOWS]; /* the first one has the entry */
	unsigned n;
};

struct kx_window_planner;

/*
 * For the functions of one binary: finds all that may be landed on, in up to @threads threads. @elf and @syms are borrowed.
 * Errors: -ENOMEM; with a clause about the binary -ENOEXEC (a part of it cannot be read), -EOPNOTSUPP (Go, XRay sleds, code that it
 * patches itself, rseq critical sections).
 */
int kx_window_planner_new(struct kx_elf *elf, const struct kx_symbols *syms, size_t threads, struct kx_window_planner **out,
			  struct kx_err *err);
void kx_window_planner_free(struct kx_window_planner *p);
/* From now on no instruction that may fault is moved (window_faults.h): for processes with handlers of faults. */
void kx_window_planner_keep_faults(struct kx_window_planner *p);
/* The decoder, for kx_relocate. */
const struct kx_code *kx_window_planner_code(const struct kx_window_planner *p);

/* The windows of @sym (one of @syms): one with its entry, and one for each of its exits. Several threads may plan with one planner. */
enum kx_window_refusal kx_windows_plan(struct kx_window_planner *p, const struct kx_symbol *sym, struct kx_windows *out);

/*
 * One window that every call of @sym passes before its first three arguments (rdi, rsi, rdx) have changed; its exits do not matter. It is the
 * one that kx_windows_plan gives the entry, as far as that needs no exit in it.
 */
enum kx_window_refusal kx_windows_plan_entry(struct kx_window_planner *p, const struct kx_symbol *sym, struct kx_window *out);

/* A clause about the function that does not name it: "a branch lands in the 5 bytes behind its first instruction". */
const char *kx_window_refusal_text(enum kx_window_refusal why);

#endif
