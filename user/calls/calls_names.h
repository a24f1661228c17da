// SPDX-License-Identifier: BSD-2-Clause
/* The names of a thread in the call view, from the trace's notes "kxray:thread". */
#ifndef KX_CALLS_NAMES_H
#define KX_CALLS_NAMES_H

#include "calls/calls.h"

/*
 * Takes name, process and ids in the thread's own namespace from the note's JSON; *changed: whether a
 * name is another one now. Errors: -ENOMEM.
 */
int kx_call_thread_rename(struct kx_call_thread *t, const uint8_t *body, uint32_t size,
			  bool *changed);
/* Frees the names, which are "" then. */
void kx_call_thread_clear_names(struct kx_call_thread *t);

#endif
