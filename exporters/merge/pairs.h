// SPDX-License-Identifier: BSD-2-Clause
/*
 * What calls tell of two hosts' clocks: a call of CLIENT (that sends a request and waits for the
 * answer) begins before the call of SERVER on the other host that handles it, and ends after it.
 * Each such pair bounds the server's offset from below and above; all of them together are the
 * interval in which it lies. A trace does not know what connection a call uses, so the n-th call of
 * one function belongs to the n-th of the other, in order of their beginnings: both must have been
 * recorded for the same requests, one at a time.
 */
#ifndef KX_MERGE_PAIRS_H
#define KX_MERGE_PAIRS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct kx_merge_call {
	uint64_t enter, leave; /* ns, of the shared time */
};

struct kx_merge_calls {
	struct kx_merge_call *items;
	size_t n, room;
};

/* Errors: -ENOMEM. */
int kx_merge_calls_add(struct kx_merge_calls *calls, uint64_t enter, uint64_t leave);
void kx_merge_calls_free(struct kx_merge_calls *calls);

/*
 * The offsets of the server, ns, with which each call of @server is within that of @client: *@least
 * to *@most. Sorts both. Errors: -EINVAL (their numbers differ, or there are none), -ERANGE (no
 * offset fits all).
 */
int kx_merge_pair(struct kx_merge_calls *client, struct kx_merge_calls *server, int64_t *least,
		  int64_t *most, struct kx_err *err);

/*
 * What to move the server by: nothing if 0 is in the interval, since CLOCK_REALTIME then may be
 * right; else its middle.
 */
int64_t kx_merge_pair_offset(int64_t least, int64_t most);

#endif
