// SPDX-License-Identifier: BSD-2-Clause
/*
 * An event of one thread, between the wire record and the trace, and the table of kinds.
 *
 * Only calls, lifecycle, scheduler and loss events have code of their own. Any other kind is an
 * instant: it passes the call stack untouched and becomes the note that its row of the table names.
 */
#ifndef KX_EVENT_H
#define KX_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"
#include "trace/notes.h"

#define KX_MAX_ARGS 7 /* six integer registers and the return address */

/* The payload is kept apart: see kx_thread_push. */
struct kx_event {
	uint64_t tsc;	     /* TSC ticks */
	uint64_t sp;	     /* the meaning of sp and func depends on the kind: see wire.h */
	uint32_t func;	     /* function id, 1 to KX_FDR_MAX_FUNC */
	uint16_t cpu;	     /* CPU on which it happened */
	uint8_t kind;	     /* enum kx_event_kind */
	uint8_t words;	     /* of payload */
	uint32_t payload_at; /* of the thread table: index of the first word */
	uint32_t has_values : 1; /* the payload is values: see wire.h */
	uint32_t has_caller : 1; /* and then the caller */
	uint32_t held : 1;	 /* of an exit: entries of older calls of the thread may follow */
	uint32_t is_marker : 1; /* an entry or exit of KX_FUNC_MARKER; */
	uint32_t is_instant : 1; /* ... of KX_FUNC_INSTANT */
};

struct kx_event_type {
	uint8_t words;	/* of payload that are kept, at most */
	bool metadata;	/* on the thread itself; alone it does not put the thread into the trace */
	bool lifecycle; /* start, name or end of a thread: a flight recorder applies it at once */
	/*
	 * Fills an instant's note, which is all zero before. @inside: the innermost open call's function id,
	 * or 0. NULL: no instant.
	 */
	void (*note)(struct kx_note *note, const struct kx_event *ev, const uint64_t *payload,
		     uint32_t inside);
};

/* By enum kx_event_kind. */
extern const struct kx_event_type kx_event_types[KX_EVENT_KINDS];

/* That of an unknown kind is empty. */
static inline const struct kx_event_type *kx_event_type(uint8_t kind)
{
	return &kx_event_types[kind < KX_EVENT_KINDS ? kind : KX_EVENT_PAD];
}

#endif
