// SPDX-License-Identifier: BSD-2-Clause
/*
 * Whether hijacking return addresses is harmless in a process. An exception or
 * forced unwinding that passes a hijacked frame aborts the program or skips its
 * cleanup handlers; that needs a frame above it that has an exception table. A thread that switches
 * stacks returns to nowhere (stack_switch.h), and one that handles its own system calls to its handler.
 */
#ifndef KX_UNWIND_RISK_H
#define KX_UNWIND_RISK_H

#include <stdbool.h>

#include "binary/modules.h"

struct kx_unwind_risk {
	bool returns_harmless; /* no module could catch or clean up above a traced frame */
	/* not harmless only because a file could not be opened: the process may have ended or run
	 * another program by now, and nothing follows for the file and for other processes */
	bool unknown;
	bool is_go;            /* moves its stacks: never hijack, not even in leaves */
	bool switches_stacks;  /* has several stacks for one thread: never hijack either */
	bool dispatches;       /* has its system calls dispatched to a handler, a return probe's as well: nor here (dispatched_calls.h) */
	/*
	 * Not harmless, and may cancel threads at any instruction (PTHREAD_CANCEL_ASYNCHRONOUS), is of a language that turns faults into
	 * exceptions (Ada), or may do so by itself (kx_unwind_risk_faults): functions that make no calls unwind, too.
	 */
	bool leaves_unwind;
	/* index of the dynamic linker among the modules, whose _dl_debug_state is called when
	 * more are loaded; -1 if there is none */
	int linker;
	char loader[64];  /* a module outside the C library that calls dlopen; "" if there is none */
	/* a module that switches stacks if the program asks for it, or can generate code that does; "" if none */
	char may_switch[64];
	char reason[256]; /* one clause for messages: "libfoo.so has exception tables" */
};

/* Whether return probes are a risk in functions that make no calls, too. (Those of Go have none in any case.) */
bool kx_unwind_risk_covers_leaves(const struct kx_unwind_risk *risk);

/* Whether the module is a dynamic linker, by its file name. */
bool kx_is_dynamic_linker(const struct kx_module *m);

/*
 * Checks every module's section table, symbols and code. A module that cannot be read counts as a risk, of this
 * process only. Modules loaded later are not covered.
 */
void kx_unwind_risk_of(const struct kx_modules *mods, struct kx_unwind_risk *out);
/* The same; files that are in @cache are not opened. */
void kx_unwind_risk_look(const struct kx_modules *mods, struct kx_file_cache *cache,
			 struct kx_unwind_risk *out);

/*
 * Adds the verdict on the code that process @pid has generated at run time: generated_code.h. What is too much to be
 * searched counts as code that switches stacks. Nothing is read if @mods say that there is none, or if the process is
 * known to switch stacks.
 */
void kx_unwind_risk_generated(pid_t pid, const struct kx_modules *mods, struct kx_unwind_risk *risk);

/* Corrects the verdict for a process whose handlers of faults may throw: leaves_unwind. */
void kx_unwind_risk_faults(struct kx_unwind_risk *risk);

/*
 * Corrects the verdict for a kernel without uprobe sessions, where no program checks the stack at each call:
 * a module that can switch stacks then counts as one that does.
 */
void kx_unwind_risk_unguarded(struct kx_unwind_risk *risk);

#endif
