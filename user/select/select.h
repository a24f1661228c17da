// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which functions a session traces: from patterns (or by size, without any) to a numbered list of
 * planned functions over all its processes.
 *
 *     processes' modules + patterns -> select_binaries.c: the files and pseudo-modules to search
 *     -> provider.c: their symbols -> select_match.c: which of them match -> select_plan.c: ids,
 *     and where each function's probes go -> struct kx_selection
 *
 * Ids are dense, begin at 1 and never change: every record of the trace has one. A binary
 * built with XRay keeps its own ids, so they come first. A selection can grow while a recording
 * runs; new functions come after those that exist.
 *
 * Cost: symbols of each searched file are read and sorted once (libc: some 2,500), and only
 * functions that match are decoded.
 */
#ifndef KX_SELECT_H
#define KX_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "binary/elf_image.h"
#include "base/err.h"
#include "binary/modules.h"
#include "base/pattern.h"
#include "plan/plan.h"
#include "binary/symbols.h"
#include "binary/unwind_risk.h"
#include "binary/usdt_markers.h"
#include "select/provider.h"

struct kx_select_module;

#define KX_SELECT_MAX_FUNCTIONS 20000 /* default of max_functions */
#define KX_SELECT_MIN_INSTRUCTIONS 200 /* chosen by size from here on, as clang's XRay does */

struct kx_select_process {
	pid_t pid; /* 0 if @mods is a file, not a process */
	const struct kx_modules *mods;
};

struct kx_select_options {
	const char *const *include; /* patterns, -f; without any, functions are chosen by size */
	size_t ninclude;
	/* NULL, or for each of them another pattern in place of one that matches nothing, or NULL */
	const char *const *otherwise;
	const char *const *exclude; /* patterns, -x */
	size_t nexclude;
	const char *const *spans; /* names of spans (kx_usdt_span_parse) that patterns may match; must outlive the selection */
	size_t nspans;
	enum kx_exits exits;
	bool nop5_optimized;  /* see struct kx_plan_options */
	bool nop5_forbidden;  /* the same, of all processes */
	unsigned emulated;    /* the same */
	bool results;	      /* the same */
	/* NULL, or whether struct kx_plan_options' arguments is wanted for a function; called by several threads */
	bool (*arguments)(void *ctx, const struct kx_select_module *m, const struct kx_symbol *sym);
	void *arguments_ctx;
	const char *loads_unseen; /* why modules loaded later are noticed too late, or NULL; must
				   * outlive the selection */
	bool stacks_unguarded; /* return probes are not kept to native stacks (no uprobe sessions) */
	bool faults_unwind; /* handlers of faults may throw: see kx_unwind_risk_faults */
	/*
	 * The selection will grow: modules that a pattern names may be mapped later, and files that
	 * patterns name by path are added before any process has them mapped.
	 */
	bool dynamic_targets;
	bool match_later; /* dynamic_targets, and no pattern needs to match now */
	/* The selection will grow by modules that its processes load later: those that a pattern names need not be there now. dynamic_targets implies it. */
	bool libraries_join;
	/*
	 * The first processes decide where exits of a module are recorded, for all that map it later: probes at return
	 * instructions that a process has for itself cannot be taken out singly, as a budget must.
	 */
	bool exits_decided;
	struct kx_file_cache *files; /* may be NULL; must outlive the call */
	/* NULL, or called once before so many functions are planned, which takes longest. */
	void (*chosen)(void *ctx, size_t functions);
	void *chosen_ctx;
	/* NULL, or called for every function that can be traced; false leaves it out. */
	bool (*wanted)(void *ctx, const struct kx_module *module, const struct kx_symbol *sym,
		       const struct kx_plan *plan);
	void *wanted_ctx;
	size_t max_functions; /* 0: KX_SELECT_MAX_FUNCTIONS */
	/*
	 * If there are more, those that cost least to record are taken, the largest first, as without patterns; else it is an
	 * error.
	 */
	bool best;
};

#define KX_SELECT_MAX_MODULES 16384

/* A binary with traced functions, once however many processes have it mapped; or a pseudo-module. */
struct kx_select_module {
	const struct kx_provider *provider;
	const struct kx_module *module; /* as the first process has it that maps it */
	int fd; /* of the binary, open for reading; -1 for a pseudo-module */
	struct kx_elf *elf;         /* NULL for a pseudo-module, as the planner */
	struct kx_symbols syms;
	struct kx_usdt_markers markers; /* of kx_provider_usdt */
	const char *const *spans;	/* see kx_select_options */
	size_t nspans;
	struct kx_planner *planner;
	/* Return probes were, in every process that mapped it when it was planned; or the selection
	 * grows, and each process decides (not with exits_decided). */
	bool harmless;
};

/* One function id. */
struct kx_function {
	uint32_t id;     /* index in functions + 1 */
	uint32_t module; /* index in modules */
	const struct kx_symbol *sym;
	bool traced;     /* false: an XRay function that only keeps its id; it has no plan */
	bool has_values; /* its calls carry values: set by the recording before it is attached */
	uint32_t value_table; /* of a USDT marker with values: the table of its first place; those of the others follow */
	struct kx_plan plan;
};

struct kx_left_out {
	uint32_t module;
	const struct kx_symbol *sym;
	char *reason; /* one clause */
};

struct kx_selection {
	struct kx_select_module *modules; /* never moves while the selection grows */
	size_t nmodules;
	/*
	 * In id order. If the main executable of the first process is built with XRay, its own
	 * functions come first with its own ids, traced or not; then module order, then address.
	 */
	struct kx_function *functions; /* may move when the selection grows */
	size_t nfunctions;
	size_t ntraced;
	struct kx_left_out *left_out; /* matched, but cannot be traced */
	size_t nleft_out;
	size_t ncandidates; /* functions that the choice was made from */
	bool by_size;       /* no include pattern was given */
	bool results;       /* its plans are: see struct kx_plan_options */
	struct kx_unwind_risk risk; /* worst of the processes: decides --exits=auto */
	char **notes;       /* for the user, e.g. an exclude pattern without effect */
	size_t nnotes;
	struct kx_selector *selector;
};

/* Whether @f is traced by probes of this kind. */
static inline bool kx_select_is_probed_by(const struct kx_selection *sel,
					  const struct kx_function *f, enum kx_probe_kind kind)
{
	return f->traced && sel->modules[f->module].provider->probe == kind;
}

/* Whether @sel has functions that are traced, but not by probes of this kind. */
static inline bool kx_select_has_others(const struct kx_selection *sel, enum kx_probe_kind kind)
{
	for (size_t i = 0; i < sel->nfunctions; i++)
		if (sel->functions[i].traced && !kx_select_is_probed_by(sel, &sel->functions[i], kind))
			return true;
	return false;
}

/* Whether @f is a USDT marker, or a span between two: see select/provider_usdt.h. */
static inline bool kx_select_is_usdt(const struct kx_selection *sel, const struct kx_function *f)
{
	return sel->modules[f->module].provider == &kx_provider_usdt;
}

/*
 * Reads the binaries that the patterns name, selects and plans. Free with kx_selection_free. Errors: -EINVAL (a pattern cannot be read),
 * -ENOENT (a pattern matches nothing: the text names near misses, or that there are no symbols),
 * -E2BIG (more than max_functions, if patterns name them), -EOPNOTSUPP (kernel: and syscall: patterns; nothing that
 * matches can be traced), those of kx_elf_open, -ENOMEM.
 */
int kx_select_functions(const struct kx_select_process *procs, size_t nprocs,
			const struct kx_select_options *options, struct kx_selection *out,
			struct kx_err *err);

/*
 * Adds the modules of @proc that the selection does not have yet; new modules and functions follow
 * the existing ones. @risk: of this process. Errors: -E2BIG (more than max_functions: nothing was added),
 * those of the planner, -ENOMEM.
 */
int kx_select_grow(struct kx_selection *sel, const struct kx_select_process *proc,
		   const struct kx_unwind_risk *risk, struct kx_err *err);

/* How many include patterns have matched no function so far; the first @room of them, as they were given, in @patterns. */
size_t kx_select_unmatched(const struct kx_selection *sel, const char **patterns, size_t room);

void kx_selection_free(struct kx_selection *sel);

#endif
