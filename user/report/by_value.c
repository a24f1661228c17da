// SPDX-License-Identifier: BSD-2-Clause
#include "report/by_value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/near_names.h"

struct walk {
	struct kx_by_value *b;
	const struct kx_by_value_options *o;
};

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct walk *w = ctx;

	(void)t;
	kx_walk_enter(&w->b->totals, call);
	return 0;
}

static int find_row(struct kx_by_value *b, uint32_t func, const struct kx_shown_value *v,
		    struct kx_by_value_row **out)
{
	uint32_t index;
	int r = kx_value_index_of(&b->values, func, v, &index);

	if (r > 0 && KX_ARRAY_RESERVE(b->rows, b->room, index))
		return -ENOMEM;
	if (r > 0)
		b->rows[index] = (struct kx_by_value_row){ .min = UINT64_MAX };
	if (r >= 0)
		*out = &b->rows[index];
	return r;
}

static int find_function(struct kx_by_value *b, uint32_t func, struct kx_by_value_function **out)
{
	uint32_t index;
	int r = kx_pair_index(&b->index, 0, func, &index);

	if (r > 0 && KX_ARRAY_RESERVE(b->functions, b->functions_room, index))
		return -ENOMEM;
	if (r > 0)
		b->functions[index] = (struct kx_by_value_function){ .func = func };
	if (r >= 0)
		*out = &b->functions[index];
	return r;
}

/* @took: ticks; NULL: the call has no measured end. */
static int count(struct kx_by_value *b, uint32_t func, const struct kx_shown_value *v,
		 const uint64_t *took)
{
	struct kx_by_value_function *f;
	struct kx_by_value_row *row;
	int r = find_row(b, func, v, &row), code;

	code = r < 0 ? r : find_function(b, func, &f);
	if (code < 0)
		return code;
	f->rows += r > 0;
	f->calls++;
	row->calls++;
	if (!took)
		return 0;
	f->total += *took;
	row->timed++;
	row->total += *took;
	row->min = *took < row->min ? *took : row->min;
	row->max = *took > row->max ? *took : row->max;
	return kx_histogram_add(&row->times, *took, &b->pool);
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	struct walk *w = ctx;
	const struct kx_function_values *f = kx_value_map_find(&w->b->map, call->func);
	struct kx_shown_value v;

	(void)t;
	kx_walk_leave(&w->b->totals, tsc, how);
	if (f && kx_value_of_call(f, &call->values, &call->exit_values, w->o->label, &v))
		return count(w->b, call->func, &v, kx_leave_is_measured(how) ? &call->took : NULL);
	return 0;
}

static int on_end(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct walk *w = ctx;

	(void)t;
	(void)tsc;
	w->b->totals.t.threads++;
	return 0;
}

/* Why nothing was found. */
static int miss(const struct kx_by_value *b, const struct kx_by_value_options *o,
		struct kx_err *err)
{
	struct kx_near_names near = { .wanted = o->label };
	bool known = false;

	for (size_t i = 0; i < b->map.n; i++) {
		for (uint8_t k = 0; k < b->map.functions[i].n; k++) {
			const struct kx_described_value *d = &b->map.functions[i].items[k];

			if (strcmp(d->label, o->label) == 0)
				known = true;
			else if (!d->hidden && !strstr(near.text, d->label))
				kx_near_names_look(&near, d->label);
		}
	}
	if (!b->map.n)
		return kx_err_set(err, -ENODATA,
				  "the trace has no values of calls: record them with -f "
				  "'FUNCTION(arg1:TYPE) -> ret:TYPE'");
	if (known)
		return kx_err_set(err, -ENODATA, "no call with the value '%s' is in the trace",
				  o->label);
	return kx_err_set(err, -ENODATA, "no function of the trace has a value '%s'%s%s%s",
			  o->label, *near.text ? "; is it " : "", near.text, *near.text ? "?" : "");
}

int kx_by_value_read(struct kx_calls *calls, const json_t *session,
		     const struct kx_by_value_options *o, struct kx_by_value *b, struct kx_err *err)
{
	struct walk w = { .b = b, .o = o };
	const struct kx_call_visitor visitor = {
		.enter = on_enter, .leave = on_leave, .end = on_end, .ctx = &w
	};
	int r = kx_value_map_read(&b->map, session);

	b->values.most = KX_VALUE_INDEX_MOST;
	if (!r)
		r = kx_calls_walk(calls, KX_ORDER_THREAD, &visitor, NULL, NULL, err);
	if (r == -ENOMEM)
		kx_err_set(err, r, "out of memory for the values");
	if (r)
		return r;
	kx_walk_end(&b->totals, calls, session, o->whole);
	return b->index.count ? 0 : miss(b, o, err);
}

void kx_by_value_free(struct kx_by_value *b)
{
	for (size_t i = 0; i < b->values.count; i++)
		kx_histogram_free(&b->rows[i].times, &b->pool);
	kx_histogram_pool_free(&b->pool);
	kx_value_map_free(&b->map);
	kx_value_index_free(&b->values);
	kx_pair_map_free(&b->index);
	free(b->rows);
	free(b->functions);
	memset(b, 0, sizeof(*b));
}
