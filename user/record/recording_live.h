// SPDX-License-Identifier: BSD-2-Clause
/* The passes of a recording that only somebody looks at: see live.h. Without live options none of
 * these does anything. */
#ifndef KX_RECORDING_LIVE_H
#define KX_RECORDING_LIVE_H

#include <stdint.h>

#include "base/err.h"

struct recording;
struct kx_recording_live;

/* Functions that the kernel side needs room for, if there can be @most; 0: calls are not timed. */
uint32_t kx_recording_live_functions(const struct recording *r, uint32_t most);
/* When the gate is opened. Errors: -ENOMEM; -E2BIG (more functions than that). */
int kx_recording_live_begin(struct recording *r, struct kx_err *err);
/* In each pass. -ECANCELED: the recording is to end; other errors: those of the options' pass. */
int kx_recording_live_poll(struct recording *r, struct kx_err *err);
/* How long to wait for events, ms, if the recording itself would wait @wait_ms. */
int kx_recording_live_wait(const struct recording *r, int wait_ms);
/* The probes are out: the last pass. Fills the result. @code: of the recording so far; returned, or
 * the pass's error. */
int kx_recording_live_end(struct recording *r, int code, struct kx_err *err);
void kx_recording_live_free(struct recording *r);

#endif
