// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/perun/resources.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static void put_key(struct kx_text_out *o, const char *name)
{
	kx_text_str(o, ",\"");
	kx_text_str(o, name);
	kx_text_str(o, "\":");
}

static void put_name(const struct kx_export *x, uint32_t func)
{
	kx_text_json_string(x->out, kx_trace_name(x->names, func));
}

static void put_frame(const struct kx_export *x, uint32_t func, bool first)
{
	kx_text_str(x->out, first ? "{\"func\":" : ",{\"func\":");
	put_name(x, func);
	kx_text_char(x->out, '}');
}

/* What all calls of a function in a thread have in common, up to the frames of "trace". */
static void put_constants(const struct kx_export *x, uint32_t func, const struct kx_call_thread *t)
{
	struct kx_text_out *o = x->out;

	kx_text_str(o, "{\"type\":\"mixed\",\"subtype\":\"time delta\",\"uid\":");
	put_name(x, func);
	kx_text_json_u64(o, "tid", (uint32_t)t->tid);
	kx_text_json_u64(o, "pid", (uint32_t)t->pid);
	put_key(o, "thread");
	kx_text_json_string(o, t->name);
	put_key(o, "location");
	kx_text_json_string(o, kx_trace_module(x->names, func));
	put_key(o, "trace");
	kx_text_char(o, '[');
}

void kx_perun_resource(const struct kx_export *x, const struct kx_call_thread *t,
		       const struct kx_call *call, const struct kx_perun_call *values)
{
	struct kx_text_out *o = x->out;

	put_constants(x, call->func, t);
	for (uint32_t d = 0; d + 1 < t->depth; d++)
		put_frame(x, t->stack[d].func, d == 0);
	kx_text_char(o, ']');
	kx_text_json_u64(o, "amount", values->amount);
	kx_text_json_u64(o, "exclusive", values->exclusive);
	kx_text_json_u64(o, "timestamp", values->timestamp);
	kx_text_json_u64(o, "call-order", values->order);
	if (values->repaired)
		kx_text_json_u64(o, "repaired", 1);
	kx_text_char(o, '}');
}

/* "NAME#N", as Perun itself calls the types of each name: N counts from 0. */
static void put_type_key(const struct kx_export *x, const struct kx_perun_stacks *stacks,
			 size_t index, bool first)
{
	const char *name = kx_trace_name(x->names, stacks->items[index].func);
	char *text;

	kx_text_str(x->out, first ? "\n" : ",\n");
	if (asprintf(&text, "%s#%" PRIu32, name, stacks->items[index].number) < 0) {
		x->out->error = -ENOMEM;
		return;
	}
	kx_text_json_string(x->out, text);
	kx_text_char(x->out, ':');
	free(text);
}

#define PUT_LIST(x, stacks, stack, name, field) \
	do { \
		const struct kx_perun_call *calls_ = &(stacks)->calls[(stack)->start]; \
\
		kx_text_str((x)->out, name "["); \
		for (uint64_t i_ = 0; i_ < (stack)->ncalls; i_++) { \
			if (i_) \
				kx_text_char((x)->out, ','); \
			kx_text_u64((x)->out, calls_[i_].field); \
			kx_perun_stacks_touch(stacks, 1); \
		} \
		kx_text_char((x)->out, ']'); \
	} while (0)

int kx_perun_lists(const struct kx_export *x, struct kx_perun_stacks *stacks)
{
	struct kx_text_out *o = x->out;
	bool first = true;

	for (size_t i = 0; i < stacks->count && !o->error; i++) {
		const struct kx_perun_stack *s = &stacks->items[i];

		if (!s->ncalls)
			continue;
		put_type_key(x, stacks, i, first);
		first = false;
		PUT_LIST(x, stacks, s, "{\"amount\":", amount);
		PUT_LIST(x, stacks, s, ",\"exclusive\":", exclusive);
		PUT_LIST(x, stacks, s, ",\"timestamp\":", timestamp);
		PUT_LIST(x, stacks, s, ",\"call-order\":", order);
		PUT_LIST(x, stacks, s, ",\"cpu\":", cpu);
		PUT_LIST(x, stacks, s, ",\"migrations\":", migrations);
		if (s->repaired)
			PUT_LIST(x, stacks, s, ",\"repaired\":", repaired);
		kx_text_char(o, '}');
	}
	return o->error;
}

int kx_perun_types(const struct kx_export *x, const struct kx_perun_stacks *stacks,
		   const char *workload)
{
	struct kx_text_out *o = x->out;
	uint32_t *callers = NULL; /* innermost first */
	size_t room = 0;
	bool first = true;

	for (size_t i = 0; i < stacks->count && !o->error; i++) {
		const struct kx_perun_stack *s = &stacks->items[i];
		size_t depth = 0;

		if (!s->ncalls)
			continue;
		put_type_key(x, stacks, i, first);
		first = false;
		put_constants(x, s->func, kx_calls_thread(x->calls, s->thread));
		for (uint32_t up = s->parent; !(up & KX_PERUN_OUTERMOST);
		     up = stacks->items[up].parent) {
			if (KX_ARRAY_RESERVE(callers, room, depth)) {
				o->error = -ENOMEM;
				break;
			}
			callers[depth++] = stacks->items[up].func;
		}
		for (size_t d = depth; d; d--)
			put_frame(x, callers[d - 1], d == depth);
		kx_text_char(o, ']');
		put_key(o, "workload");
		kx_text_json_string(o, workload);
		kx_text_char(o, '}');
	}
	free(callers);
	return o->error;
}
