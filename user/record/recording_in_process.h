// SPDX-License-Identifier: BSD-2-Clause
/* --in-process: functions of the one traced process that are recorded by jumps in its code, in place of uprobes. */
#ifndef KX_RECORDING_IN_PROCESS_H
#define KX_RECORDING_IN_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct recording;

/* Whether the process is recorded in process, where no exception may meet a replaced return address, and has handlers of faults, which may throw. */
bool kx_recording_faults_unwind(const struct recording *r);
/* Plans and prepares, after the selection and its values, before the collector. Errors: those of kx_in_process_new. */
int kx_recording_in_process_begin(struct recording *r, struct kx_err *err);
/* Writes the jumps, after all uprobes are in. Errors: those of kx_in_process_install. */
int kx_recording_in_process_install(struct recording *r, struct kx_err *err);
/* Of functions from index @first on: those that are recorded in process lose what comes from their uprobes. */
void kx_recording_in_process_take(struct recording *r, size_t first);
/* What the summary and the map say of it, when the jumps have changed. */
void kx_recording_in_process_describe(struct recording *r);
/* Opens the gate. */
void kx_recording_in_process_open(struct recording *r);
/* From time to time: ends it if the program has made it impossible, and says so. */
void kx_recording_in_process_poll(struct recording *r);
/* Closes the gate and takes the jumps out; notices what stays. The rings can still be read. */
void kx_recording_in_process_end(struct recording *r);

#endif
