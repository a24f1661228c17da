// SPDX-License-Identifier: BSD-2-Clause
/* From planned functions to attached probes, in every process that has them mapped. */
#ifndef KX_PROBES_H
#define KX_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracer/uprobe_link.h"
#include "base/err.h"
#include "select/select.h"
#include "tracer/tracer.h"

struct kx_probes;

/* Which functions lose their return probes. */
#define KX_DROP_CALLERS 1u /* those that make calls */
#define KX_DROP_LEAVES 2u  /* those that make none */
#define KX_DROP_ALL (KX_DROP_CALLERS | KX_DROP_LEAVES)

#define KX_EVERY_MODULE UINT32_MAX

/*
 * From now on the exits of functions that were planned with return probes come from probes at their return instructions: those of
 * @which (KX_DROP_...; 0: none any more), in module @module (or KX_EVERY_MODULE), in process @pid (0: in all).
 */
typedef void (*kx_probes_exits_moved)(void *ctx, pid_t pid, uint32_t module, unsigned which);

/* Why a planned function is not traced after all. */
typedef void (*kx_probes_refused)(void *ctx, const struct kx_function *f, const char *reason);

/* All borrowed. */
struct kx_probes_options {
	const struct kx_select_process *procs; /* NULL: the probes are for every process ... */
	size_t nprocs;
	/*
	 * ... that has the modules mapped, now or later. But a module for which this returns true is mapped
	 * by processes that nobody asked for as well: there, each process gets links of its own, see
	 * process_probes.h. NULL: no module is; then each of procs has links of its own in all modules, so there must
	 * be only one.
	 */
	bool (*is_shared)(void *ctx, const struct kx_module *m);
	bool apart;	 /* functions have links of their own: see probe_switches.h */
	size_t starts_out; /* ... and those of modules that are attached once more functions than this are selected are out until they are
			    * put back; 0: none are */
	bool joining;	 /* processes may join: process_probes.h will be used */
	bool exits_auto; /* return probes may be given up for instruction exits */
	unsigned nargs; /* argument registers to capture, 0 to 6; fewer where the plan says so */
	kx_probes_refused refused;
	bool (*left_out)(void *ctx, const struct kx_function *f); /* functions that get no probes; or NULL */
	/*
	 * With joining: functions that get probes only in processes for which that is asked (kx_process_probes_let_in); or NULL. Their
	 * exits must be planned at instructions.
	 */
	bool (*withheld)(void *ctx, const struct kx_function *f);
	kx_probes_exits_moved exits_moved; /* may be NULL */
	void *ctx;
};

/*
 * Attaches the probes of all traced functions of @sel. A function that the kernel refuses is left out and
 * reported to options->refused; its number is taken from the traced ones. Errors: those of kx_uprobe_link and of kx_memory_room_check;
 * -EOPNOTSUPP if the kernel refuses all.
 */
int kx_probes_attach(struct kx_tracer *tracer, const struct kx_selection *sel,
		     const struct kx_probes_options *options, struct kx_probes **out,
		     struct kx_err *err);

/* Whether the kernel can limit the probes to one process. */
bool kx_probes_filter_process(const struct kx_tracer *tracer);

/* Attaches the modules of the selection that have no probes yet. Errors: those of kx_uprobe_link. */
int kx_probes_attach_new(struct kx_probes *p, struct kx_err *err);

/* Whether the probes of module @module of the selection go into every process that maps its file. */
bool kx_probes_are_for_all(const struct kx_probes *p, uint32_t module);

/* Functions with an entry probe; probes of any kind. */
size_t kx_probes_functions(const struct kx_probes *p);
size_t kx_probes_count(const struct kx_probes *p);
/* Whether function @id has its probes. */
bool kx_probes_has(const struct kx_probes *p, uint32_t id);

/*
 * The functions that make calls, with @leaves all, no longer get return probes; where their own return
 * instructions could be planned (@plans, by id - 1; NULL entries: none) these are probed
 * instead. For a process that has loaded a module that may throw.
 */
int kx_probes_drop_returns(struct kx_probes *p, struct kx_plan *const *plans, bool leaves,
			   struct kx_err *err);

/* Whether the exits of a function that was planned with a return probe come from return instructions, in every process. */
bool kx_probes_exit_has_moved(const struct kx_probes *p, const struct kx_function *f);

/* Takes over other links, to be closed together with its own: each close waits for the kernel. */
void kx_probes_join(struct kx_probes *p, struct kx_links *links);

/*
 * Has all links closed at once, without waiting: a process would be harmed by them. Of processes with probes of their own only those whose
 * struct kx_process_probes has been freed. Nothing but kx_probes_join and kx_probes_free may follow.
 */
void kx_probes_give_up(struct kx_probes *p);

/*
 * Detaches everything; no probe fires any more when it returns. Returns how many links stay until a
 * debugger has ended: see kx_links_release.
 */
size_t kx_probes_free(struct kx_probes *p);

#endif
