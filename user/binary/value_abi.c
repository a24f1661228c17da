// SPDX-License-Identifier: BSD-2-Clause
#include "binary/value_abi.h"

#include <string.h>

#include "bpf/wire.h"

#define STEPS	  512 /* types that are looked at for one parameter, against cycles */
#define NESTING	  16

#define IN_VECTOR "in a vector register, which the kernel's probes cannot read"
#define DAMAGED	  "its type cannot be read"

enum word_class { NONE, INTEGER, VECTOR, MEMORY };

struct classes {
	const struct kx_type_source *source;
	enum word_class words[2];
	unsigned steps, depth;
	uint64_t base;
	bool damaged;
};

struct registers {
	const uint8_t *order;
	unsigned used, count, vectors;
	int32_t stack;
	bool lost; /* how much room one of them takes is unknown: so are the places of those that
		      follow */
};

static const uint8_t sysv_order[] = { KX_FROM_DI, KX_FROM_SI, KX_FROM_DX,
				      KX_FROM_CX, KX_FROM_R8, KX_FROM_R9 };
static const uint8_t go_order[] = { KX_FROM_AX, KX_FROM_BX, KX_FROM_CX,	 KX_FROM_DI, KX_FROM_SI,
				    KX_FROM_R8, KX_FROM_R9, KX_FROM_R10, KX_FROM_R11 };

static void classify(struct classes *c, const struct kx_type *t, uint64_t at);

static void merge(struct classes *c, uint64_t at, uint64_t size, enum word_class class)
{
	for (uint64_t word = at / 8; word < 2 && word * 8 < at + (size ? size : 1); word++)
		if (class > c->words[word] || c->words[word] == NONE || class == INTEGER)
			c->words[word] = c->words[word] == MEMORY ? MEMORY : class;
}

static int classify_member(void *arg, const struct kx_type_member *m)
{
	struct classes *c = arg;
	struct kx_type t;

	if (c->source->describe(c->source->ctx, &m->type, &t)) {
		c->damaged = true;
		return 1;
	}
	if (m->bitfield) {
		merge(c, c->base + m->offset, 1, INTEGER);
		return 0;
	}
	classify(c, &t, c->base + m->offset);
	return c->damaged;
}

static void classify_array(struct classes *c, const struct kx_type *t, uint64_t at)
{
	struct kx_type element;

	if (!t->has_target || c->source->describe(c->source->ctx, &t->target, &element)) {
		c->damaged = true;
		return;
	}
	for (uint64_t i = 0; i < t->count && element.size && i * element.size < 16; i++)
		classify(c, &element, at + i * element.size);
}

static void classify(struct classes *c, const struct kx_type *t, uint64_t at)
{
	uint64_t base = c->base;

	if (++c->steps > STEPS || c->depth > NESTING || t->incomplete) {
		c->damaged = true;
		return;
	}
	switch (t->class) {
	case KX_TYPE_STRUCT:
	case KX_TYPE_UNION:
		c->base = at;
		c->depth++;
		c->source->members(c->source->ctx, t, classify_member, c);
		c->depth--;
		c->base = base;
		break;
	case KX_TYPE_ARRAY:
		c->depth++;
		classify_array(c, t, at);
		c->depth--;
		break;
	case KX_TYPE_FLOAT:
		/* long double: x87, which is passed in memory */
		merge(c, at, t->size, t->size > 8 ? MEMORY : VECTOR);
		break;
	case KX_TYPE_OTHER:
		c->damaged = true;
		break;
	default:
		merge(c, at, t->size, INTEGER);
	}
}

static int take(struct registers *r)
{
	return r->used < r->count ? r->order[r->used++] : -1;
}

static struct kx_abi_place unknown(const char *why)
{
	return (struct kx_abi_place){ .kind = KX_ABI_UNKNOWN, .why = why };
}

static struct kx_abi_place on_stack(struct registers *r, uint64_t size)
{
	struct kx_abi_place p = { .kind = KX_ABI_MEMORY,
				  .from = { KX_FROM_SP },
				  .offset = r->stack };

	if (size > (1 << 20)) {
		r->lost = true;
		return unknown("larger than 1 MiB");
	}
	r->stack += (int32_t)((size + 7) & ~7ULL);
	return p;
}

static bool is_aggregate(const struct kx_type *t)
{
	return t->class == KX_TYPE_STRUCT || t->class == KX_TYPE_UNION || t->class == KX_TYPE_ARRAY;
}

/* The address of the value in a register, or on the stack. */
static struct kx_abi_place by_address(struct registers *r)
{
	int from = take(r);

	if (from < 0)
		return unknown("its address is on the stack");
	return (struct kx_abi_place){ .kind = KX_ABI_MEMORY, .from = { (uint8_t)from } };
}

static struct kx_abi_place sysv_place(const struct classes *c, const struct kx_type *t,
				      struct registers *r)
{
	struct kx_abi_place p = { .kind = KX_ABI_REGISTERS };
	unsigned words = t->size > 8 ? 2 : 1, integers = 0, vectors = 0;

	if (t->size > 16 || c->words[0] == MEMORY || c->words[1] == MEMORY)
		return on_stack(r, t->size);
	for (unsigned i = 0; i < words; i++) {
		integers += c->words[i] == INTEGER;
		vectors += c->words[i] == VECTOR;
	}
	if (!integers && !vectors) /* empty in C: not passed */
		return unknown("without members");
	if (r->used + integers > r->count || r->vectors + vectors > 8)
		return on_stack(r, t->size);
	for (unsigned i = 0; i < words; i++)
		p.from[i] = c->words[i] == INTEGER ? (uint8_t)take(r) : KX_ABI_VECTOR;
	r->vectors += vectors;
	if (!integers)
		return unknown(IN_VECTOR);
	return p;
}

/* What Rust passes the same way in all versions: scalars, pairs of words (&str, slices), large ones
 * by address. */
static struct kx_abi_place rust_place(const struct classes *c, const struct kx_type *t,
				      struct registers *r)
{
	if (is_aggregate(t) && t->size > 16)
		return by_address(r);
	if (is_aggregate(t) &&
	    !(t->size == 16 && c->words[0] == INTEGER && c->words[1] == INTEGER)) {
		struct kx_abi_place p = unknown("passed in a way that Rust does not define");

		r->lost = t->size > 0;
		return p;
	}
	return sysv_place(c, t, r);
}

static struct kx_abi_place place_of(const struct kx_type_source *source,
				    const struct kx_type_function *f, const struct kx_type *t,
				    struct registers *r)
{
	struct classes c = { .source = source };

	if (t->by_reference)
		return by_address(r);
	if (t->size > 16 && f->language != KX_LANGUAGE_RUST && f->language != KX_LANGUAGE_GO)
		return on_stack(r, t->size);
	if (t->size <= 16)
		classify(&c, t, 0);
	if (c.damaged) {
		r->lost = true;
		return unknown(DAMAGED);
	}
	return f->language == KX_LANGUAGE_RUST ? rust_place(&c, t, r) : sysv_place(&c, t, r);
}

static struct kx_abi_place go_place(const struct kx_type_source *source, const struct kx_type *t,
				    struct registers *r)
{
	struct kx_abi_place p = { .kind = KX_ABI_REGISTERS };
	unsigned words = (unsigned)((t->size + 7) / 8);
	struct classes c = { .source = source };

	if (t->class == KX_TYPE_FLOAT) {
		r->vectors++;
		return unknown(IN_VECTOR);
	}
	/* of structures only those whose parts are words: strings, slices, interfaces */
	if (is_aggregate(t)) {
		if (t->size <= 16)
			classify(&c, t, 0);
		if (t->class != KX_TYPE_STRUCT || words > KX_ABI_WORDS || t->size % 8 ||
		    c.damaged || !t->name ||
		    (strcmp(t->name, "string") && strncmp(t->name, "[]", 2))) {
			r->lost = true;
			return unknown("a structure in several registers");
		}
	}
	if (r->used + words > r->count)
		return unknown("on the stack");
	for (unsigned i = 0; i < words; i++)
		p.from[i] = (uint8_t)take(r);
	return p;
}

/* A result in memory: its address is the first argument. */
static bool returned_in_memory(const struct kx_type_source *source,
			       const struct kx_type_function *f)
{
	struct classes c = { .source = source };
	struct kx_type t;

	if (!f->has_result || source->describe(source->ctx, &f->result, &t))
		return false;
	if (t.by_reference || (is_aggregate(&t) && t.size > 16))
		return true;
	if (!is_aggregate(&t) || f->language == KX_LANGUAGE_RUST)
		return false;
	classify(&c, &t, 0);
	return c.words[0] == MEMORY || c.words[1] == MEMORY;
}

void kx_abi_parameters(const struct kx_type_source *source, const struct kx_type_function *f,
		       struct kx_abi_place *out)
{
	bool go = f->language == KX_LANGUAGE_GO;
	struct registers r = { .order = go ? go_order : sysv_order,
			       .stack = 8,
			       .count = go ? sizeof(go_order) : sizeof(sysv_order) };

	if (!go && returned_in_memory(source, f))
		take(&r);
	for (size_t i = 0; i < f->n; i++) {
		struct kx_type t;

		if (r.lost) {
			out[i] = unknown("behind a parameter whose size in registers is unknown");
		} else if (source->describe(source->ctx, &f->parameters[i].type, &t)) {
			out[i] = unknown(DAMAGED);
			r.lost = true;
		} else if (go && !f->go_registers) {
			out[i] = on_stack(&r, t.size);
		} else {
			out[i] = go ? go_place(source, &t, &r) : place_of(source, f, &t, &r);
		}
		if (f->parameters[i].from != KX_AT_ABI)
			out[i] = (struct kx_abi_place){ .kind = KX_ABI_REGISTERS,
							.from = { f->parameters[i].from } };
		if (f->parameters[i].unknown)
			out[i] = unknown(f->parameters[i].unknown);
	}
}

void kx_abi_result(const struct kx_type_source *source, const struct kx_type_function *f,
		   struct kx_abi_place *out)
{
	struct classes c = { .source = source };
	struct kx_type t;

	*out = unknown("it returns nothing");
	if (!f->has_result)
		return;
	*out = unknown(DAMAGED);
	if (source->describe(source->ctx, &f->result, &t))
		return;
	if (f->language == KX_LANGUAGE_GO && (is_aggregate(&t) || !f->go_registers)) {
		*out = unknown("in several registers or on the stack");
		return;
	}
	if (t.size <= 16)
		classify(&c, &t, 0);
	if (c.damaged)
		return;
	if (returned_in_memory(source, f))
		*out = (struct kx_abi_place){ .kind = KX_ABI_MEMORY, .from = { KX_FROM_AX } };
	else if (c.words[0] == VECTOR || c.words[1] == VECTOR)
		*out = unknown(IN_VECTOR);
	else if (t.size > 8 || (f->language == KX_LANGUAGE_RUST && is_aggregate(&t)))
		*out = unknown("returned in two registers");
	else
		*out = (struct kx_abi_place){ .kind = KX_ABI_REGISTERS, .from = { KX_FROM_AX } };
}
