// SPDX-License-Identifier: BSD-2-Clause
/*
 * Probes of single processes, where processes join a recording.
 *
 * A probe in a file goes into every process that has it mapped, unless its link belongs to one process. So
 * modules that others map too (kx_probes_options, is_shared) are attached here, for each traced process by links of its
 * own; exec keeps them, and they cover the modules wherever the new program maps them. A child inherits its
 * parent's breakpoints but not its links: it is traced from kx_process_probes_inherit on.
 *
 * Sessions and several processes: for a hit in another process the kernel does not run a link's program, but a
 * session replaces the return address all the same. The program could not prevent that where it is harmful, so
 * only the first process of a module gets a session. With the second, or when the first may throw,
 * the module's sessions are replaced by links for entries and for return instructions; no call is lost or
 * recorded twice.
 *
 * Modules that only traced processes map have one link for all, whose program decides for each process. There, a
 * process where return probes are harmful gets links for its return instructions: kx_process_probes_judge.
 *
 * Cost of a process: a link (two descriptors at most) per module and kind of probe.
 */
#ifndef KX_PROCESS_PROBES_H
#define KX_PROCESS_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "attach/probes.h"

struct kx_process_probes;

/* Errors: -ENOMEM. */
int kx_process_probes_new(struct kx_probes *p, pid_t pid, struct kx_process_probes **out);
/* The process has ended. Its links are closed by kx_probes_close_ended. NULL is fine. */
void kx_process_probes_free(struct kx_process_probes *pp);

/* The same, but its links and @links are closed at once, not after those of ended processes: they would harm the process. */
void kx_process_probes_give_up(struct kx_probes *p, struct kx_process_probes *pp, struct kx_links *links);

/*
 * The function with this number gets no probe by links that are made for the process from now on. Its children
 * inherit that. Errors: -ENOMEM.
 */
int kx_process_probes_leave_out(struct kx_process_probes *pp, uint32_t id);
/* Whether the process is one for which that was asked, or that withholds it. */
bool kx_probes_left_out(const struct kx_probes *p, pid_t pid, uint32_t id);
/*
 * Links for the withheld functions (kx_probes_options) of the modules among @mods that it has none for. *@n: of how many modules.
 * Errors: those of kx_uprobe_link; -ESRCH if it has ended.
 */
int kx_process_probes_let_in(struct kx_process_probes *pp, const struct kx_modules *mods, size_t *n, struct kx_err *err);
/* Whether function @id is withheld from it. */
bool kx_process_probes_withholds(const struct kx_process_probes *pp, uint32_t id);
/* Whether it will get links for module @module of the selection, if it has that mapped. */
bool kx_process_probes_wants(const struct kx_process_probes *pp, uint32_t module);

/*
 * Links for the shared modules among @mods that it has none for. @risky: return probes are harmful in it. *@n:
 * of how many modules. Errors: those of kx_uprobe_link; -ESRCH if it has ended.
 */
int kx_process_probes_attach(struct kx_process_probes *pp, const struct kx_modules *mods, bool risky,
			     size_t *n, struct kx_err *err);
/* The same for the shared modules that another process has links for. */
int kx_process_probes_inherit(struct kx_process_probes *pp, const struct kx_process_probes *parent,
			      size_t *n, struct kx_err *err);

/*
 * For which functions return probes are harmful (KX_DROP_...; 0: for none): these get links for their return
 * instructions; without any, the process loses such links. @each: called for each module of which this process is
 * the first to need that. Errors: as above.
 */
int kx_process_probes_judge(struct kx_process_probes *pp, const struct kx_modules *mods,
			    unsigned which, void (*each)(void *ctx, const struct kx_module *m),
			    void *ctx, struct kx_err *err);

/* Closes links of ended processes: all, or when there are enough to be closed together. */
void kx_probes_close_ended(struct kx_probes *p, bool all);
/* Hands over links to be closed so. */
void kx_probes_end_links(struct kx_probes *p, struct kx_links *links);

#endif
