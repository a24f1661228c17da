// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the call view takes from the notes that kxray writes into traces (fdr.h). Notes of kinds
 * that it does not use reach the visitor as they are, so that a new kind needs no change here.
 */
#ifndef KX_CALLS_NOTES_H
#define KX_CALLS_NOTES_H

#include "calls/calls.h"

/* Whether the record is a note of kxray's that the call view does not use itself. */
bool kx_calls_pass_note(const struct kx_fdr_record *rec);

/*
 * Takes name, process and the ids in the thread's own namespace from the JSON of a note
 * "kxray:thread"; *changed: whether a name has changed. Errors: -ENOMEM.
 */
int kx_call_thread_rename(struct kx_call_thread *t, const uint8_t *body, uint32_t size,
			  bool *changed);
/* Frees the names, which are "" then. */
void kx_call_thread_clear_names(struct kx_call_thread *t);

#endif
