// SPDX-License-Identifier: BSD-2-Clause
/*
 * Functions of one running process recorded by jumps in its own code: --in-process. Opt-in; see kxray-safety(7).
 */
#ifndef KX_IN_PROCESS_H
#define KX_IN_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "select/select.h"
#include "tracer/ring.h"
#include "tracer/target_rings.h"

struct kx_in_process;
struct kx_patch_removal;

/* Called for each function that keeps its uprobe, with the reason. */
typedef void (*kx_in_process_refused)(void *ctx, const struct kx_function *f, const char *reason);

struct kx_in_process_counts {
	size_t functions, sites; /* that are patched */
	size_t refused;		 /* functions that keep their uprobes */
	double stopped_ms;	 /* the longest time for which threads were stopped */
	bool unguarded;		 /* there is no keeper: SIGKILL of this process would leave the jumps behind */
};

/* All borrowed. */
struct kx_in_process_options {
	pid_t pid;
	const struct kx_modules *mods; /* of the process */
	const struct kx_selection *sel; /* may grow: kx_in_process_look */
	uint64_t ring_bytes; /* of one CPU's ring; 0: by memory */
	bool follow; /* children that the process forks record, too: see in_process_children.h */
	bool (*is_for_uprobes)(void *ctx, const struct kx_function *f); /* functions that only BPF programs can record as wanted */
	kx_in_process_refused refused;
	/* Functions of a module that was loaded again get no jumps, for the reason in this clause, and have no uprobes. */
	void (*failed)(void *ctx, const struct kx_module *m, const char *why);
	void *ctx;
};

/*
 * Takes out what a recording before has left in process @pid, if its kxray and keeper were killed: it would take the room of new trampolines, and
 * its functions would be taken for ones that the program has changed. Errors: -EBUSY (another kxray records the process in process).
 */
int kx_in_process_clear_rest(pid_t pid, struct kx_err *err);

/*
 * Prepares the process and plans the windows of the traced functions; nothing is patched yet. Errors: -EOPNOTSUPP with the reason if the
 * whole process is refused, or every function; -ENOMEM, -ESRCH, -EPERM.
 */
int kx_in_process_new(const struct kx_in_process_options *options, struct kx_in_process **out, struct kx_err *err);
/* Whether function @id (of the selection) is recorded in process: it gets no uprobe. */
bool kx_in_process_has(const struct kx_in_process *p, uint32_t id);
/*
 * Makes the texts writable and writes the jumps; the uprobes of other functions must be in before. Functions that had to be left out are reported as
 * refused, and are not recorded. Errors: those of kx_patch_make_writable and kx_patch_install; -EOPNOTSUPP: what the process has loaded since it was
 * looked at makes jumps dangerous.
 */
int kx_in_process_install(struct kx_in_process *p, struct kx_err *err);

/*
 * The process has loaded or unloaded modules, and functions may have joined the selection: @mods is what it has now, and must live until the
 * next call. Areas of what was unloaded are removed from the process. What has come, or come again, is planned and gets an area; its
 * functions that are not recorded in process (kx_in_process_has) are to be given uprobes now. Errors: -ENOMEM, -ESRCH.
 */
int kx_in_process_look(struct kx_in_process *p, const struct kx_modules *mods, struct kx_err *err);
/*
 * Passes modules to the options' failed, once each, of which the process has loaded another copy beside the one that has the jumps: calls there are not
 * recorded, as no uprobe can be set at only that one. Part of kx_in_process_look.
 */
void kx_in_process_look_for_copies(struct kx_in_process *p, const struct kx_modules *mods);
/*
 * Then: the jumps of these modules, which are recorded at once if the gate is open. A module that cannot get them is passed to the options'
 * failed. One that was unloaded in between is left alone.
 */
void kx_in_process_install_late(struct kx_in_process *p);

/* Opens or closes the gate. */
int kx_in_process_enable(struct kx_in_process *p, bool enabled);
/*
 * Whether the program has forbidden a thread to read the time stamp counter, by a function that is guarded (tsc_guard.h): nothing is recorded in
 * process since, whatever the gate.
 */
bool kx_in_process_is_forbidden(const struct kx_in_process *p);
/* A clause about what of that is not guarded; NULL: nothing. Known after kx_in_process_install; borrowed. */
const char *kx_in_process_unguarded(const struct kx_in_process *p);
/* The rings, for the collector; borrowed. */
struct kx_rings *kx_in_process_rings(struct kx_in_process *p);
struct kx_target_rings *kx_in_process_memory(struct kx_in_process *p);
void kx_in_process_get_counts(const struct kx_in_process *p, struct kx_in_process_counts *out);
/* Takes the jumps out (kx_patch_remove), of the process only; the rings can still be read. @out: what was done; or NULL. Where the process is in the way, the keeper
 * does the rest. */
int kx_in_process_remove(struct kx_in_process *p, struct kx_patch_removal *out, struct kx_err *err);
void kx_in_process_free(struct kx_in_process *p);

#endif
