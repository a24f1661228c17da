// SPDX-License-Identifier: BSD-2-Clause
/* From the queue of a thread to the visitor's callbacks. */
#ifndef KX_CALLS_EMIT_H
#define KX_CALLS_EMIT_H

#include "calls/calls_stream.h"

/* Emits the queue's first entry, which is ready. Returns what the visitor returned, or -ENOMEM. */
int kx_stream_emit(struct kx_stream *s);
/* Emits all that is ready. Errors as above. */
int kx_stream_emit_all(struct kx_stream *s);

/* Introduces the thread to the visitor unless that is done. Returns what the visitor returned. */
int kx_stream_introduce(struct kx_stream *s, uint64_t tsc);
/* Room for one more call on the visitor's stack. Errors: -ENOMEM. */
int kx_stream_call_room(struct kx_stream *s);

#endif
