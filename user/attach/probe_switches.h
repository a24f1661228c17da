// SPDX-License-Identifier: BSD-2-Clause
/*
 * Probes of single functions that are taken out and put back while the others stay (kx_probes_options, apart): a link is
 * closed as a whole, so each function gets links of its own, or few functions together where there are more than
 * KX_MAX_SWITCHES. Of modules that other processes map too, each process has links of its own: there are at most
 * KX_MAX_PRIVATE_SWITCHES, until functions are taken out one by one or go in in smaller groups.
 *
 * Cost: a link or two a function, made and closed at the recording's start and end (some 30 us each); of the private ones, also for each
 * process that joins.
 */
#ifndef KX_PROBE_SWITCHES_H
#define KX_PROBE_SWITCHES_H

#include "attach/probes.h"

#define KX_MAX_SWITCHES 512
#define KX_MAX_PRIVATE_SWITCHES 64

/* Whether the probes of function @id can be taken out. */
bool kx_probes_can_take_out(const struct kx_probes *p, uint32_t id);

/* Whether they are out, or were never in; false for those that cannot be taken out, and after kx_probes_put_back. */
bool kx_probes_are_out(const struct kx_probes *p, uint32_t id);
/* Functions with the same number share links: they go in and out together unless only some are taken out. 0: none. */
uint32_t kx_probes_switch(const struct kx_probes *p, uint32_t id);

/*
 * Of the functions that share links with @id and whose probes are out, @id and those after it get links apart from those before it, so that fewer
 * can go in at a time. Their kx_probes_switch; 0: nothing changed, as there are too many links, or no memory.
 */
uint32_t kx_probes_divide(struct kx_probes *p, uint32_t id);

/*
 * Takes out the probes of these functions, and those of others that share a link with them (kx_probes_are_out); the others can be
 * put back, apart from these. Calls that are open then end without their exit. Programs may still run for tens of ms, for which
 * the kernel waits. Errors: -ENOMEM.
 */
int kx_probes_take_out(struct kx_probes *p, const uint32_t *ids, size_t n, struct kx_err *err);
/* Completes what was put back meanwhile. Errors: those of kx_uprobe_link, for functions that stay out then. */
int kx_probes_settle(struct kx_probes *p, struct kx_err *err);
/* Whether that is needed. */
bool kx_probes_are_settling(const struct kx_probes *p);
/*
 * Puts the probes of these functions back, or lets kx_probes_settle do it. Errors: those of kx_uprobe_link; that
 * function stays out, those after it too.
 */
int kx_probes_put_back(struct kx_probes *p, const uint32_t *ids, size_t n, struct kx_err *err);

#endif
