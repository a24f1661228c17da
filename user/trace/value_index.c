// SPDX-License-Identifier: BSD-2-Clause
#include "trace/value_index.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static int order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_strings(const struct kx_shown_value *a, const struct kx_shown_value *b)
{
	int r = order(a->size, b->size);

	if (!r && a->size)
		r = memcmp(a->text, b->text, a->size);
	return r ? r : order(a->cut, b->cut);
}

static int compare(const void *pa, const void *pb)
{
	const struct kx_indexed_value *x = pa, *y = pb;
	const struct kx_shown_value *a = &x->value, *b = &y->value;
	int r = order(x->func, y->func);

	if (r || !a->described || !b->described)
		return r ? r : order(a->described != NULL, b->described != NULL);
	r = order(a->state, b->state);
	if (r || a->state != KX_VALUE_KNOWN)
		return r;
	return a->described->kind == KX_VALUE_STRING ? compare_strings(a, b)
						     : order(a->number, b->number);
}

/* Its own copy of @key, whose text follows it. */
static struct kx_indexed_value *copy(const struct kx_indexed_value *key)
{
	struct kx_indexed_value *new = malloc(sizeof(*new) + key->value.size);

	if (!new)
		return NULL;
	*new = *key;
	if (key->value.size)
		new->value.text = memcpy(new + 1, key->value.text, key->value.size);
	return new;
}

static int add(struct kx_value_index *ix, const struct kx_indexed_value *key)
{
	struct kx_indexed_value *new = NULL;

	if (KX_ARRAY_RESERVE(ix->items, ix->room, ix->count) || !(new = copy(key)))
		return -ENOMEM;
	new->index = (uint32_t)ix->count;
	if (!tsearch(new, &ix->tree, compare)) {
		free(new);
		return -ENOMEM;
	}
	ix->items[ix->count++] = new;
	return 1;
}

int kx_value_index_of(struct kx_value_index *ix, uint32_t func, const struct kx_shown_value *v,
		      uint32_t *index)
{
	struct kx_indexed_value key = { .func = func, .value = *v };
	struct kx_indexed_value **found;
	int r = 0;

	if (v->state != KX_VALUE_KNOWN || v->described->kind != KX_VALUE_STRING)
		key.value.size = 0;
	found = tfind(&key, &ix->tree, compare);
	if (!found && ix->most && ix->count >= ix->most) {
		key.value = (struct kx_shown_value){ 0 };
		found = tfind(&key, &ix->tree, compare);
	}
	if (!found)
		r = add(ix, &key);
	if (r >= 0)
		*index = found ? (*found)->index : (uint32_t)ix->count - 1;
	return r;
}

static void keep(void *item)
{
	(void)item;
}

void kx_value_index_free(struct kx_value_index *ix)
{
	tdestroy(ix->tree, keep);
	for (size_t i = 0; i < ix->count; i++)
		free(ix->items[i]);
	free(ix->items);
	*ix = (struct kx_value_index){ 0 };
}
