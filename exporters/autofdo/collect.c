// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/autofdo/collect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/address_space.h"

struct collect {
	struct kx_afdo_trace *trace;
	struct kx_address_space space;
};

static struct kx_afdo_hits *slot_of(const struct kx_afdo_table *t, uint64_t address,
				    uint32_t module, uint32_t func)
{
	uint64_t h = (address ^ (uint64_t)func << 32 ^ module) * 0x9e3779b97f4a7c15;
	size_t at = (size_t)(h ^ h >> 32) & (t->size - 1);

	for (;; at = (at + 1) & (t->size - 1)) {
		struct kx_afdo_hits *s = &t->items[at];

		if (!s->count ||
		    (s->address == address && s->func == func && s->module == module))
			return s;
	}
}

static int reserve(struct kx_afdo_table *t)
{
	struct kx_afdo_table bigger = { .size = t->size ? 2 * t->size : 256, .used = t->used };

	if (2 * (t->used + 1) <= t->size)
		return 0;
	bigger.items = calloc(bigger.size, sizeof(*bigger.items));
	if (!bigger.items)
		return -ENOMEM;
	for (size_t i = 0; i < t->size; i++) {
		const struct kx_afdo_hits *h = &t->items[i];

		if (h->count)
			*slot_of(&bigger, h->address, h->module, h->func) = *h;
	}
	free(t->items);
	*t = bigger;
	return 0;
}

static int add(struct kx_afdo_table *t, uint64_t address, uint32_t module, uint32_t func,
	       uint64_t tsc)
{
	struct kx_afdo_hits *h;

	if (reserve(t))
		return -ENOMEM;
	h = slot_of(t, address, module, func);
	if (!h->count) {
		*h = (struct kx_afdo_hits){ address, module, func, 0, tsc };
		t->used++;
	}
	h->count++;
	if (tsc < h->first)
		h->first = tsc;
	return 0;
}

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct kx_afdo_trace *trace = ((struct collect *)ctx)->trace;
	int r = add(&trace->functions, 0, 0, call->func, call->enter);

	(void)t;
	if (!r && call->has_caller)
		r = add(&trace->callers, call->caller, call->caller_module, call->func,
			call->enter);
	return r;
}

static int on_sample(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint64_t ip)
{
	struct collect *c = ctx;
	uint32_t module = kx_address_space_find(&c->space, t->pid, &ip);

	return add(&c->trace->samples, ip, module, 0, tsc);
}

int kx_afdo_collect(const struct kx_export *x, struct kx_afdo_trace *out, struct kx_err *err)
{
	struct collect c = { .trace = out };
	struct kx_call_visitor v = { .enter = on_enter, .sample = on_sample, .ctx = &c };
	struct kx_err own = { 0 };
	int r = kx_address_space_init(&c.space, x->names->has_map ? &x->names->map : NULL);

	if (!r)
		r = kx_calls_walk(x->calls, KX_ORDER_THREAD, &v, x->progress, x->progress_ctx,
				  &own);
	if (r && own.code)
		*err = own;
	else if (r)
		kx_err_set(err, r, "autofdo: out of memory");
	kx_afdo_table_sort(&out->functions);
	kx_afdo_table_sort(&out->callers);
	kx_afdo_table_sort(&out->samples);
	kx_address_space_free(&c.space);
	return r;
}

void kx_afdo_trace_free(struct kx_afdo_trace *t)
{
	free(t->functions.items);
	free(t->callers.items);
	free(t->samples.items);
}

static int compare(const void *x, const void *y)
{
	const struct kx_afdo_hits *a = x, *b = y;

	if (a->module != b->module)
		return a->module < b->module ? -1 : 1;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->func < b->func ? -1 : a->func > b->func;
}

void kx_afdo_table_sort(struct kx_afdo_table *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->size; i++)
		if (t->items[i].count)
			t->items[n++] = t->items[i];
	if (n > 1)
		qsort(t->items, n, sizeof(*t->items), compare);
	t->used = t->size = n; /* nothing can be added to a sorted table */
}
