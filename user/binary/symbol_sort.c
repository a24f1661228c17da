// SPDX-License-Identifier: BSD-2-Clause
#include "binary/symbol_sort.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

static int bind_rank(uint8_t bind)
{
	return bind == STB_LOCAL ? 2 : bind == STB_WEAK ? 1 : 0;
}

/* By address, and at one address the name to show first. */
static int compare_raw(const void *pa, const void *pb)
{
	const struct kx_raw_symbol *a = pa, *b = pb;
	size_t la, lb;
	int d;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	/* glibc's write is weak and its __write global: the former is better known */
	d = (a->bind == STB_LOCAL) - (b->bind == STB_LOCAL);
	if (!d)
		d = !!strchr(a->name, '@') - !!strchr(b->name, '@');
	if (!d)
		d = (a->name[0] == '_') - (b->name[0] == '_');
	if (!d)
		d = bind_rank(a->bind) - bind_rank(b->bind);
	if (d)
		return d;
	la = strlen(a->name);
	lb = strlen(b->name);
	if (la != lb)
		return la < lb ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* By address, then name; of one name the strongest binding first. */
static int compare_name(const void *pa, const void *pb)
{
	const struct kx_raw_symbol *a = pa, *b = pb;
	int d;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	d = strcmp(a->name, b->name);
	return d ? d : bind_rank(a->bind) - bind_rank(b->bind);
}

void kx_raw_symbols_sort(struct kx_raw_symbols *raw)
{
	size_t i, n = 0;

	if (!raw->count)
		return;
	qsort(raw->items, raw->count, sizeof(*raw->items), compare_name);
	for (i = 0; i < raw->count; i++) {
		struct kx_raw_symbol *r = &raw->items[i], *last = n ? &raw->items[n - 1] : NULL;

		if (!last || last->addr != r->addr || strcmp(last->name, r->name)) {
			raw->items[n++] = *r;
			continue;
		}
		if (r->size > last->size)
			last->size = r->size;
		if (r->type == STT_GNU_IFUNC)
			last->type = r->type;
	}
	raw->count = n;
	/* they are in the order of addresses already */
	for (size_t k = 0; k < n; k = i) {
		for (i = k + 1; i < n && raw->items[i].addr == raw->items[k].addr;)
			i++;
		if (i - k > 1)
			qsort(raw->items + k, i - k, sizeof(*raw->items), compare_raw);
	}
}
