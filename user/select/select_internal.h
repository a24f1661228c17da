// SPDX-License-Identifier: BSD-2-Clause
/* Shared by the files of the selection, select*.c, and private to them. */
#ifndef KX_SELECT_INTERNAL_H
#define KX_SELECT_INTERNAL_H

#include <errno.h>

#include "base/pattern.h"
#include "select/select.h"

/* What the planner says of one symbol. */
struct kx_planned {
	int rc;
	struct kx_plan plan; /* owned until a function takes it over */
	char *why;           /* if @rc: one clause; NULL: no memory for it */
};

/* A binary of any of the processes, or a pseudo-module; read only when a pattern names it. */
struct kx_binary {
	struct kx_module module; /* owned; is_main if it is that of any process */
	pid_t pid;               /* a process that has it mapped, or 0 */
	bool dispatches;         /* a process that mapped it handles its own system calls */
	bool moves_stacks;       /* the first process that mapped it does: no return probes at all */
	uint32_t number;         /* module number + 1 once it is planned, else 0 */
	/* What its provider has read of it, and whether return probes are harmless in every process
	 * that has it mapped. Empty until loaded; moved to the selection's modules when planned. */
	struct kx_select_module m;
	bool *chosen;            /* one per symbol; until planned */
	size_t nchosen;
	struct kx_planned *planned; /* of the chosen symbols in order, while they are being numbered */
	size_t nplanned;
	int planner_rc;             /* of making its planner, with plan_err */
	struct kx_err plan_err;
	int load_rc;
	bool gone; /* the process ended before its file was opened; another may map it */
	struct kx_err load_err;
};

struct kx_selector {
	struct kx_select_options options;
	struct kx_pattern *include, *exclude;
	struct kx_pattern *otherwise; /* by include pattern; without text: none */
	struct kx_binary **binaries;
	size_t nbinaries, room;
	size_t nfunctions_room;
	bool moves_stacks; /* some process does, and the selection does not grow */
	bool grows;        /* all binaries that it has so far were matched with the patterns */
	size_t *matches;   /* per include pattern: functions that it has matched */
	struct kx_selection *out;
	size_t nown; /* functions whose numbers are those of an executable built with XRay */
	/* Symbols made up for XRay functions that the symbol table does not name. */
	struct kx_symbol *unnamed;
	char (*names)[24];
};

static inline int kx_select_no_memory(struct kx_err *err)
{
	return kx_err_set(err, -ENOMEM, "no memory to select functions");
}

/* select_notes.c */
/* Adds a note for the user. Errors: -ENOMEM. */
int kx_select_note(struct kx_selection *out, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* select_binaries.c */
/* Adds what is new of @proc's modules; *@first gets the index of the first new one. */
int kx_select_add_modules(struct kx_selector *s, const struct kx_select_process *proc,
			  const struct kx_unwind_risk *risk, size_t *first, struct kx_err *err);
/* Adds the pseudo-module of a provider. */
int kx_select_add_pseudo(struct kx_selector *s, const struct kx_provider *provider,
			 struct kx_err *err);
/* Opens the binary and reads its symbols, once; remembers a failure. */
int kx_select_load(struct kx_binary *b);
/* The same for several, select_threads.c; none any more once there is a request to end. */
void kx_select_load_binaries(struct kx_binary **binaries, size_t n);
/* Closes the file of a binary that gets no probes. */
void kx_select_close(struct kx_binary *b);
const struct kx_symbols *kx_select_syms(const struct kx_selector *s, const struct kx_binary *b);
void kx_select_free_binary(struct kx_binary *b);
/* What planning has left of its functions. */
void kx_select_free_planned(struct kx_binary *b);

/* select_match.c */
int kx_select_parse_patterns(struct kx_selector *s, struct kx_err *err);
/* Marks what the patterns choose in the binaries from @first on. @must_match: each include pattern. */
int kx_select_match(struct kx_selector *s, size_t first, bool must_match, struct kx_err *err);
size_t kx_select_count(const struct kx_selector *s, size_t first);

/* select_plan.c */
/* Plans what is chosen in the binaries from @first on and adds it to the selection. */
int kx_select_plan(struct kx_selector *s, size_t first, struct kx_err *err);

/* select_reduce.c */
/*
 * Of the functions from index @first on, drops what is more than @max traced functions in all, if they were chosen and not
 * named, and then what is not wanted. The others move up. Errors: -ENOMEM.
 */
int kx_select_reduce(struct kx_selector *s, size_t first, size_t max);

/* select_threads.c */
/*
 * Makes the planners of @n binaries that are modules by now, and plans their chosen symbols: binaries that are files in
 * several threads, which share out the functions of a large one, and else the binaries. What goes wrong is left in the binaries.
 */
void kx_select_plan_binaries(struct kx_selector *s, struct kx_binary *const *binaries, size_t n);

#endif
