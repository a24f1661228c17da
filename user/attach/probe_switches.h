// SPDX-License-Identifier: BSD-2-Clause
/*
 * Probes of single functions that are taken out and put back while the others stay (kx_probes_options, apart): a link is
 * closed as a whole, so each function gets links of its own, or few functions together where there are more than
 * KX_MAX_SWITCHES. Those of modules that other processes map too, which each process has links of its own for, stay.
 *
 * Cost: a link or two a function, made and closed at the recording's start and end (some 30 us each).
 */
#ifndef KX_PROBE_SWITCHES_H
#define KX_PROBE_SWITCHES_H

#include "attach/probes.h"

#define KX_MAX_SWITCHES 512

/* Whether the probes of function @id can be taken out. */
bool kx_probes_can_take_out(const struct kx_probes *p, uint32_t id);

/*
 * Takes out the probes of these functions. When it returns none of their programs runs any more; that waits for the kernel,
 * tens of ms. Others that share a link with them are attached again, apart; calls of theirs that are open
 * meanwhile end without their exit. Errors: those of kx_uprobe_link, then others may be out, too.
 */
int kx_probes_take_out(struct kx_probes *p, const uint32_t *ids, size_t n, struct kx_err *err);
/* Puts the probes of these functions back. Errors: those of kx_uprobe_link; that function stays out, those after it too. */
int kx_probes_put_back(struct kx_probes *p, const uint32_t *ids, size_t n, struct kx_err *err);

#endif
