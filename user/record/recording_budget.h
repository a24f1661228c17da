// SPDX-License-Identifier: BSD-2-Clause
/* The budget of a recording: reads counts and CPU times, lets budget.h decide, and does what it has decided. */
#ifndef KX_RECORDING_BUDGET_H
#define KX_RECORDING_BUDGET_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct recording;
struct kx_recording_budget;

/* Where more functions than this are selected, now or later, probes go in group by group, as nobody knows how often these are
 * called; 0: they never do. */
size_t kx_recording_budget_many(const struct recording *r);
/*
 * Before the gate is opened, if a budget is set and the probes are attached; else does nothing. Errors: -ENOMEM.
 */
int kx_recording_budget_begin(struct recording *r, struct kx_err *err);
/* In each pass. Errors: -ENOMEM. */
int kx_recording_budget_poll(struct recording *r, struct kx_err *err);
/* What probes cost has been measured again (kx_recording_recalibrate), and has changed. */
void kx_recording_budget_scale(struct recording *r);
/* Probes wait: passes should be a few ms apart. */
bool kx_recording_budget_waits(const struct recording *r);
/* For how long the probes of the function at @index of the selection were out; 0 without a budget. */
double kx_recording_budget_out_seconds(const struct recording *r, size_t index);
/* The gate is closed. */
void kx_recording_budget_stop(struct recording *r);
/* All records are read: takes the last counts and fills the result. */
void kx_recording_budget_end(struct recording *r);
/*
 * Puts it into a session, as budget_info.h says, with the counts since the recording's beginning. @recording: a struct
 * recording. Errors: -ENOMEM.
 */
int kx_recording_budget_describe(const void *recording, json_t *info);
void kx_recording_budget_free(struct recording *r);

#endif
