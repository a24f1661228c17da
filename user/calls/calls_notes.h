// SPDX-License-Identifier: BSD-2-Clause
/* The names of a thread in the call view, from the trace's notes "thread" (trace/notes.h). */
#ifndef KX_CALLS_NOTES_H
#define KX_CALLS_NOTES_H

#include "calls/calls.h"

/*
 * Takes name, process and the ids in the thread's own namespace from the JSON of a note
 * "kxray:thread"; *changed: whether a name has changed. Errors: -ENOMEM.
 */
int kx_call_thread_rename(struct kx_call_thread *t, const uint8_t *body, uint32_t size,
			  bool *changed);
/* Frees the names, which are "" then. */
void kx_call_thread_clear_names(struct kx_call_thread *t);

#endif
