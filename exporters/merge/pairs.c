// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/merge/pairs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

int kx_merge_calls_add(struct kx_merge_calls *calls, uint64_t enter, uint64_t leave)
{
	if (KX_ARRAY_RESERVE(calls->items, calls->room, calls->n))
		return -ENOMEM;
	calls->items[calls->n++] = (struct kx_merge_call){ enter, leave };
	return 0;
}

void kx_merge_calls_free(struct kx_merge_calls *calls)
{
	free(calls->items);
	*calls = (struct kx_merge_calls){ 0 };
}

static int by_enter(const void *a, const void *b)
{
	const struct kx_merge_call *x = a, *y = b;

	if (x->enter != y->enter)
		return x->enter < y->enter ? -1 : 1;
	return x->leave < y->leave ? -1 : x->leave > y->leave;
}

int kx_merge_pair(struct kx_merge_calls *client, struct kx_merge_calls *server, int64_t *least,
		  int64_t *most, struct kx_err *err)
{
	size_t from = 0, to = 0;

	if (client->n != server->n || !client->n)
		return kx_err_set(err, -EINVAL,
				  "the client's function has %zu calls and the server's %zu: both "
				  "must have the same, one for each "
				  "request; leave calls out with --time, --tid or --min-duration",
				  client->n, server->n);
	qsort(client->items, client->n, sizeof(*client->items), by_enter);
	qsort(server->items, server->n, sizeof(*server->items), by_enter);
	*least = INT64_MIN;
	*most = INT64_MAX;
	for (size_t i = 0; i < client->n; i++) {
		const struct kx_merge_call *c = &client->items[i], *s = &server->items[i];
		int64_t above = (int64_t)(c->enter - s->enter),
			below = (int64_t)(c->leave - s->leave);

		if (above > *least) {
			*least = above;
			from = i;
		}
		if (below < *most) {
			*most = below;
			to = i;
		}
	}
	if (*least <= *most)
		return 0;
	return kx_err_set(err, -ERANGE,
			  "no offset puts every call of the server's function into that of the "
			  "client's: number %zu would have to be "
			  "moved by more than %.3f ms and number %zu by less than %.3f ms, so some "
			  "belong to other requests",
			  from + 1, (double)*least / 1e6, to + 1, (double)*most / 1e6);
}

int64_t kx_merge_pair_offset(int64_t least, int64_t most)
{
	return least <= 0 && most >= 0 ? 0 : least + (most - least) / 2;
}
