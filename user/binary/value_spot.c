// SPDX-License-Identifier: BSD-2-Clause
/* Moving along a path of members and pointers. */
#include <errno.h>
#include <string.h>

#include "binary/value_path_internal.h"

#define STEPS 4096 /* members that are looked at for one name, against cycles */

struct search {
	const struct kx_type_source *source;
	const char *name;
	struct kx_type_member *out;
	uint64_t base;
	unsigned depth, steps;
};

static int look(void *arg, const struct kx_type_member *m)
{
	struct search *s = arg;
	struct kx_type t;
	uint64_t base = s->base;
	int r;

	if (++s->steps > STEPS)
		return -ENODATA;
	if (m->name) {
		if (strcmp(m->name, s->name))
			return 0;
		*s->out = *m;
		s->out->offset += base;
		return 1;
	}
	if (s->depth >= KX_PATH_NESTING || s->source->describe(s->source->ctx, &m->type, &t))
		return 0;
	if (t.class != KX_TYPE_STRUCT && t.class != KX_TYPE_UNION)
		return 0;
	s->base += m->offset;
	s->depth++;
	r = s->source->members(s->source->ctx, &t, look, s);
	s->depth--;
	s->base = base;
	return r;
}

int kx_value_member(const struct kx_type_source *source, const struct kx_type *type,
		    const char *name, struct kx_type_member *out)
{
	struct search s = { .source = source, .name = name, .out = out };

	return source->members(source->ctx, type, look, &s);
}

int kx_spot_member(const struct kx_type_source *source, struct kx_value_spot *spot,
		   const struct kx_type_member *m)
{
	if (m->offset > INT32_MAX)
		return -ENODATA;
	spot->offset += (int64_t)m->offset;
	return source->describe(source->ctx, &m->type, &spot->type);
}

/* The register with the word at spot->offset; false: spot->why says why there is none. */
static bool in_register(struct kx_value_spot *spot)
{
	uint64_t word = (uint64_t)spot->offset / 8;

	if (word >= KX_ABI_WORDS || spot->words[word] == KX_ABI_VECTOR)
		spot->why = "in a vector register, which the kernel's probes cannot read";
	else if (spot->offset % 8)
		spot->why = "not in the lowest bytes of its register";
	else
		spot->fetch.from = spot->words[word];
	return !spot->why;
}

static int add_hop(struct kx_value_spot *spot)
{
	if (spot->fetch.hops >= KX_FETCH_HOPS)
		return -E2BIG;
	if (spot->offset > INT32_MAX || spot->offset < INT32_MIN)
		return -ENODATA;
	spot->fetch.offset[spot->fetch.hops++] = (int32_t)spot->offset;
	return 0;
}

int kx_spot_follow(const struct kx_type_source *source, struct kx_value_spot *spot)
{
	int r = 0;

	if (!spot->type.has_target)
		return -EINVAL;
	if (++spot->pointers > KX_PATH_POINTERS)
		return -E2BIG;
	if (spot->in_memory)
		r = add_hop(spot);
	else if (!spot->why)
		in_register(spot);
	spot->in_memory = true;
	spot->offset = 0;
	return r ? r : source->describe(source->ctx, &spot->type.target, &spot->type);
}

int kx_spot_number(struct kx_value_spot *spot, uint8_t size, bool is_signed, struct kx_fetch *out)
{
	int r = 0;

	if (spot->in_memory)
		r = add_hop(spot);
	else if (!spot->why)
		in_register(spot);
	*out = spot->fetch;
	out->size = size;
	out->flags |= is_signed ? KX_FETCH_SIGNED : 0;
	return r;
}

int kx_spot_string(struct kx_value_spot *spot, bool pointer, uint16_t most, struct kx_fetch *out)
{
	int r = 0;

	if (pointer) {
		if (spot->in_memory)
			r = add_hop(spot);
		else if (!spot->why)
			in_register(spot);
		spot->offset = 0;
	} else if (!spot->in_memory) {
		spot->why = "characters in a register, not in memory";
	}
	if (!r && (spot->offset > INT32_MAX || spot->offset < INT32_MIN))
		r = -ENODATA;
	*out = spot->fetch;
	out->offset[out->hops] = (int32_t)spot->offset;
	out->size = 0;
	out->most = most;
	return r;
}
