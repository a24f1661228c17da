// SPDX-License-Identifier: BSD-2-Clause
#include "attach/dlopen_watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "binary/elf_image.h"
#include "binary/modules.h"
#include "plan/plan.h"
#include "binary/symbols.h"
#include "binary/unwind_risk.h"

bool kx_dlopen_watch_needed(const struct kx_selection *sel)
{
	for (size_t i = 0; i < sel->nfunctions; i++)
		if (kx_select_is_probed_by(sel, &sel->functions[i], KX_PROBE_UPROBE) &&
		    sel->functions[i].plan.makes_calls &&
		    sel->functions[i].plan.exit_kind == KX_EXITS_RETURN)
			return true;
	return false;
}

void kx_stacks_notice(const struct kx_selection *sel, pid_t pid, uint32_t func, char *text,
		      size_t size)
{
	const bool dispatched = func & KX_SWITCHING_DISPATCHED;
	const char *name;

	func &= ~KX_SWITCHING_DISPATCHED;
	name = func && func <= sel->nfunctions ? sel->functions[func - 1].sym->pretty : "?";
	if (dispatched)
		snprintf(text, size,
			 "process %d handles its own system calls (in a thread that called function %s): exits come from return instructions",
			 (int)pid, name);
	else
		snprintf(text, size,
			 "process %d switches stacks (function %s ran on a stack that is not its thread's): "
			 "exits come from return instructions",
			 (int)pid, name);
}

/* File offset of _dl_debug_state in a linker, which is open as @fd. */
static int find_hook(const struct kx_module *m, int fd, uint64_t *offset, struct kx_err *err)
{
	struct kx_symbols syms;
	struct kx_elf *elf;
	int code = kx_elf_open_fd(fd, m->open_path, &elf, err);

	if (code)
		return code;
	code = kx_symbols_read(elf, NULL, &syms, err);
	if (!code) {
		code = -ENOENT;
		for (size_t i = 0; i < syms.count && code; i++)
			if (strncmp(syms.items[i].name, "_dl_debug_state", 15) == 0)
				code = kx_elf_offset(elf, syms.items[i].addr, offset);
		if (code)
			kx_err_set(err, code,
				   "the dynamic linker '%s' has no _dl_debug_state: libraries loaded "
				   "later cannot be noticed",
				   m->path);
		kx_symbols_free(&syms);
	}
	kx_elf_close(elf);
	return code;
}

static void ignore_refusal(void *ctx, const struct kx_probe *probe, int code)
{
	(void)probe;
	*(int *)ctx = code;
}

int kx_linker_hook_open(const struct kx_module *linker, struct kx_linker_hook *out,
			struct kx_err *err)
{
	int code;

	out->fd = kx_module_open(linker, err);
	if (out->fd < 0)
		return out->fd;
	code = find_hook(linker, out->fd, &out->offset, err);
	if (code)
		kx_linker_hook_close(out);
	return code;
}

int kx_linker_hook_link(const struct kx_linker_hook *hook, struct kx_tracer *tracer, pid_t pid,
			struct kx_links *links, struct kx_err *err)
{
	const struct kx_probe probe = { .offset = hook->offset };
	int code, refused = 0;
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", hook->fd);
	code = kx_uprobe_link(kx_tracer_prog_mechanism(tracer, KX_PROG_DLOPEN),
			      kx_tracer_prog_fd(tracer, KX_PROG_DLOPEN), path, pid, false, &probe, 1,
			      links, ignore_refusal, &refused, err);
	if (!code && refused)
		code = kx_err_set(err, -ENOENT,
				  "the kernel refuses a probe on _dl_debug_state of the dynamic linker");
	return code;
}

void kx_linker_hook_close(struct kx_linker_hook *hook)
{
	close(hook->fd);
	hook->fd = -1;
}

static int add_watch(struct kx_dlopen_watch *w, struct kx_tracer *tracer,
		     const struct kx_module *linker, pid_t pid, struct kx_err *err)
{
	struct kx_linker_hook hook;
	int code = kx_linker_hook_open(linker, &hook, err);

	if (code)
		return code;
	code = kx_linker_hook_link(&hook, tracer, pid, &w->links, err);
	kx_linker_hook_close(&hook);
	return code;
}

int kx_dlopen_watch_start(struct kx_dlopen_watch *w, struct kx_tracer *tracer,
			  const struct kx_select_process *procs, size_t nprocs, struct kx_err *err)
{
	int code = 0;

	memset(w, 0, sizeof(*w));
	for (size_t i = 0; i < nprocs; i++)
		for (size_t j = 0; j < procs[i].mods->count && !code; j++)
			if (kx_is_dynamic_linker(&procs[i].mods->items[j]))
				code = add_watch(w, tracer, &procs[i].mods->items[j],
							   procs[i].pid, err);
	return code;
}

/* Whether @f has a return probe and is one of @which. */
static bool loses_return(const struct kx_function *f, unsigned which)
{
	return f->traced && f->plan.exit_kind == KX_EXITS_RETURN &&
	       (which & (f->plan.makes_calls ? KX_DROP_CALLERS : KX_DROP_LEAVES));
}

struct kx_plan **kx_dlopen_watch_plan_exits(const struct kx_selection *sel, uint32_t module,
					    unsigned which)
{
	const struct kx_plan_options options = { .exits = KX_EXITS_INSTRUCTION, .results = sel->results };
	struct kx_plan **plans = calloc(sel->nfunctions + 1, sizeof(struct kx_plan *));

	for (size_t i = 0; plans && i < sel->nfunctions; i++) {
		const struct kx_function *f = &sel->functions[i];
		struct kx_plan *plan;
		int code;

		if (!kx_select_is_probed_by(sel, f, KX_PROBE_UPROBE) || !loses_return(f, which) ||
		    (module != KX_EVERY_MODULE && f->module != module))
			continue;
		plan = calloc(1, sizeof(*plan));
		code = plan ? kx_plan_function(sel->modules[f->module].planner, f->sym, &options,
					       plan, NULL)
			    : -ENOMEM;
		if (!code) {
			plans[i] = plan;
			continue;
		}
		free(plan);
		if (code == -ENOMEM) {
			kx_dlopen_watch_free_plans(plans, sel->nfunctions);
			return NULL;
		}
	}
	return plans;
}

void kx_dlopen_watch_free_plans(struct kx_plan **plans, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (plans[i])
			kx_plan_free(plans[i]);
		free(plans[i]);
	}
	free(plans);
}

/*
 * Whose return probes must go, KX_DROP_..., because some process has become risky, or 0; -ENOMEM. Processes
 * that have ended are ignored.
 */
static int find_risk(const struct kx_tracer *tracer, const struct kx_select_process *procs,
		     size_t nprocs, char *why, size_t size)
{
	bool session = kx_tracer_prog_mechanism(tracer, KX_PROG_RETURN) == KX_MECHANISM_SESSION;
	for (size_t i = 0; i < nprocs; i++) {
		struct kx_unwind_risk risk;
		struct kx_modules mods;
		int code = kx_modules_of_process(procs[i].pid, &mods, NULL);

		if (code == -ENOMEM)
			return code;
		if (code)
			continue;
		kx_unwind_risk_of(&mods, &risk);
		kx_unwind_risk_generated(procs[i].pid, &mods, &risk);
		kx_modules_free(&mods);
		if (!session)
			kx_unwind_risk_unguarded(&risk);
		if (!risk.returns_harmless) {
			snprintf(why, size, "%s", risk.reason);
			return kx_unwind_risk_covers_leaves(&risk) ? KX_DROP_ALL : KX_DROP_CALLERS;
		}
	}
	return 0;
}

/* Instruction exits for the functions of all modules that lose their return probes. */
static int drop_returns(struct kx_dlopen_watch *w, struct kx_tracer *tracer,
			struct kx_probes *probes, const struct kx_selection *sel, unsigned which,
			struct kx_err *err)
{
	struct kx_plan **plans;
	int code;

	which &= ~w->dropped;
	w->dropped |= which;
	kx_tracer_link_map_ack(tracer, UINT32_MAX);
	if (which & KX_DROP_LEAVES)
		kx_tracer_forbid_returns(tracer);
	plans = kx_dlopen_watch_plan_exits(sel, KX_EVERY_MODULE, which);
	if (!plans)
		return kx_err_set(err, -ENOMEM, "no memory to plan instruction exits");
	code = kx_probes_drop_returns(probes, plans, w->dropped & KX_DROP_LEAVES, err);
	kx_dlopen_watch_free_plans(plans, sel->nfunctions);
	return code;
}

int kx_dlopen_watch_check(struct kx_dlopen_watch *w, struct kx_tracer *tracer,
			  struct kx_probes *probes, const struct kx_selection *sel,
			  const struct kx_select_process *procs, size_t nprocs, bool *dropped,
			  char *why, size_t size, struct kx_err *err)
{
	uint32_t changes = kx_tracer_link_map_generation(tracer), func;
	char reason[256];
	pid_t pid;
	int code;

	*dropped = false;
	if (!(w->dropped & KX_DROP_LEAVES) && kx_tracer_switches_stacks(tracer, &pid, &func)) {
		*dropped = true;
		kx_stacks_notice(sel, pid, func, why, size);
		return drop_returns(w, tracer, probes, sel, KX_DROP_ALL, err);
	}
	if (w->dropped == KX_DROP_ALL || changes == w->checked)
		return 0;
	code = find_risk(tracer, procs, nprocs, reason, sizeof(reason));
	if (code < 0)
		return kx_err_set(err, code, "no memory to read the modules of the processes");
	w->checked = changes;
	if (!(code & ~(int)w->dropped)) {
		if (!w->dropped)
			kx_tracer_link_map_ack(tracer, changes);
		return 0;
	}
	*dropped = true;
	snprintf(why, size,
		 "%s now: functions%s lose their return probes, their exits come from their own "
		 "return instructions",
		 reason, code & KX_DROP_LEAVES ? "" : " that make calls");
	return drop_returns(w, tracer, probes, sel, (unsigned)code, err);
}

void kx_dlopen_watch_stop(struct kx_dlopen_watch *w)
{
	kx_links_close(&w->links);
}
