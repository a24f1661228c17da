// SPDX-License-Identifier: BSD-2-Clause
/*
 * Watches the dynamic linkers of the traced processes for dlopen. Return probes that are harmless when
 * the recording starts become harmful when a module that can throw is loaded. The linker calls
 * _dl_debug_state before and after each change of its list of modules, and before any code of a new
 * module runs: a probe there raises the generation of the list (kx_tracer_link_map_generation), and
 * until user space has acknowledged it, the BPF programs place no new return probes.
 *
 * A process that is found to switch stacks (bpf/native_stack.bpf.h) loses its return probes in the same way,
 * those of functions without calls as well.
 */
#ifndef KX_DLOPEN_WATCH_H
#define KX_DLOPEN_WATCH_H

#include <stdbool.h>

#include "tracer/uprobe_link.h"
#include "base/err.h"
#include "attach/probes.h"
#include "select/select.h"
#include "tracer/tracer.h"

struct kx_dlopen_watch {
	struct kx_links links;
	uint32_t checked; /* last generation that was checked */
	unsigned dropped; /* whose return probes were removed: KX_DROP_... */
};

/* Whether any function of @sel has a return probe that a module loaded later could make harmful. */
bool kx_dlopen_watch_needed(const struct kx_selection *sel);

/*
 * Puts a probe on _dl_debug_state of every process that has a dynamic linker.
 * Errors: -ENOENT (a linker without that function: later loads cannot be detected), -ESRCH (a process
 * has ended).
 */
int kx_dlopen_watch_start(struct kx_dlopen_watch *w, struct kx_tracer *tracer,
			  const struct kx_select_process *procs, size_t nprocs,
			  struct kx_err *err);

/* A dynamic linker's _dl_debug_state. */
struct kx_linker_hook {
	int fd; /* of the linker's file */
	uint64_t offset;
};

/* Errors: -ENOENT (it has none), those of kx_module_open. */
int kx_linker_hook_open(const struct kx_module *linker, struct kx_linker_hook *out,
			struct kx_err *err);
/* Puts a probe there, for one process or for all (@pid 0). Errors: kx_uprobe_link's, -ENOENT (refused). */
int kx_linker_hook_link(const struct kx_linker_hook *hook, struct kx_tracer *tracer, pid_t pid,
			struct kx_links *links, struct kx_err *err);
void kx_linker_hook_close(struct kx_linker_hook *hook);

/*
 * Instruction exits for the functions of @module that would lose their return probes (@which: KX_DROP_...),
 * by id - 1; NULL entries where there are none or they are impossible. NULL without memory.
 */
struct kx_plan **kx_dlopen_watch_plan_exits(const struct kx_selection *sel, uint32_t module,
					    unsigned which);
void kx_dlopen_watch_free_plans(struct kx_plan **plans, size_t n);

/* The notice that function @func of process @pid ran on a stack that is not its thread's. */
void kx_stacks_notice(const struct kx_selection *sel, pid_t pid, uint32_t func, char *text,
		      size_t size);

/*
 * Checks the modules again if a list has changed. If one of them can throw now, the functions
 * that make calls lose their return probes and get instruction exits where these can be planned;
 * if a process switches stacks, all functions do. *dropped is then true once for each, with the notice in
 * @why (size bytes). Errors: kx_uprobe_link's, -ENOMEM.
 */
int kx_dlopen_watch_check(struct kx_dlopen_watch *w, struct kx_tracer *tracer,
			  struct kx_probes *probes, const struct kx_selection *sel,
			  const struct kx_select_process *procs, size_t nprocs, bool *dropped,
			  char *why, size_t size, struct kx_err *err);

void kx_dlopen_watch_stop(struct kx_dlopen_watch *w);

#endif
