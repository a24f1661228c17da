// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast path of the call view: without a filter and in KX_ORDER_THREAD, calls need no look ahead
 * and go from the batch to the visitor without the queue.
 */
#ifndef KX_CALLS_DIRECT_H
#define KX_CALLS_DIRECT_H

#include "calls/calls_stream.h"

/* Whether the filter leaves every call as it is. */
bool kx_stream_is_direct(const struct kx_calls *c);
/*
 * Emits the first @n function records of the batch; the queue is empty before and after. Returns
 * -ENOMEM, or what the visitor returned (s->reported is set then).
 */
int kx_stream_emit_batch(struct kx_stream *s, size_t n);

#endif
