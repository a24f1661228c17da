// SPDX-License-Identifier: BSD-2-Clause
#include "binary/value_abi.h"

#include <string.h>

#include "bpf/wire.h"

#define STEPS	  512 /* types that are looked at for one parameter, against cycles */
#define NESTING	  16

#define IN_VECTOR "in a vector register, which the kernel's probes cannot read"
#define DAMAGED	  "its type cannot be read"

/* ..._UP: the rest of a register. X87: long double, which is passed in memory, too, but returned in a register. */
enum word_class { NONE, INTEGER, VECTOR, VECTOR_UP, X87, X87_UP, MEMORY };

struct classes {
	const struct kx_type_source *source;
	enum word_class words[2];
	unsigned steps, depth;
	uint64_t base;
	uint64_t alignment; /* of the largest scalar in it */
	unsigned scalars;
	bool plain; /* no unions or arrays are in it */
	bool unaligned; /* a scalar is not where its type has to be: the structure is packed */
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

static enum word_class merge_words(enum word_class a, enum word_class b)
{
	if (a == b || b == NONE)
		return a;
	if (a == NONE)
		return b;
	if (a == MEMORY || b == MEMORY)
		return MEMORY;
	if (a == INTEGER || b == INTEGER)
		return INTEGER;
	return a >= X87 || b >= X87 ? MEMORY : VECTOR;
}

static void merge(struct classes *c, uint64_t at, uint64_t size, enum word_class class)
{
	for (uint64_t word = at / 8; word < 2 && word * 8 < at + (size ? size : 1); word++)
		c->words[word] = merge_words(c->words[word], class);
}

/* A number. One that is not aligned makes the structure one that is passed in memory, with all of it. */
static void merge_scalar(struct classes *c, uint64_t at, uint64_t size, enum word_class class)
{
	if (size > c->alignment)
		c->alignment = size;
	c->unaligned |= size && at % size;
	c->scalars++;
	merge(c, at, size, c->unaligned ? MEMORY : class);
}

static void merge_vector(struct classes *c, uint64_t at, uint64_t size)
{
	if (size > 16) {
		c->damaged = true; /* depends on whether the program was compiled for AVX */
		return;
	}
	c->unaligned |= size && at % size;
	merge_scalar(c, at, size > 8 ? 8 : size, VECTOR);
	if (size > 8)
		merge(c, at + 8, 8, c->unaligned ? MEMORY : VECTOR_UP);
	if (size > c->alignment)
		c->alignment = size;
}

static void merge_long_double(struct classes *c, uint64_t at, uint64_t size)
{
	merge_scalar(c, at, size, NONE);
	merge(c, at, 8, c->unaligned ? MEMORY : X87);
	merge(c, at + 8, 8, c->unaligned ? MEMORY : X87_UP);
}

static int classify_member(void *arg, const struct kx_type_member *m)
{
	struct classes *c = arg;
	struct kx_type t;

	if (c->source->describe(c->source->ctx, &m->type, &t)) {
		c->damaged = true;
		return 1;
	}
	if (t.incomplete && c->source->complete)
		c->source->complete(c->source->ctx, &t);
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
	if (t->vector) {
		merge_vector(c, at, t->size);
		return;
	}
	c->plain = false;
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
	if (t->alignment > c->alignment)
		c->alignment = t->alignment;
	switch (t->class) {
	case KX_TYPE_STRUCT:
	case KX_TYPE_UNION:
		c->plain &= t->class == KX_TYPE_STRUCT;
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
		if (t->size == 16 && t->name && strstr(t->name, "loat128"))
			merge_vector(c, at, t->size);
		else if (t->size > 8)
			merge_long_double(c, at, t->size);
		else
			merge_scalar(c, at, t->size, VECTOR);
		break;
	case KX_TYPE_OTHER:
		c->damaged = true;
		break;
	default:
		merge_scalar(c, at, t->size, INTEGER);
	}
}

static struct classes classes_of(const struct kx_type_source *source, const struct kx_type *t)
{
	struct classes c = { .source = source, .plain = true };

	classify(&c, t, 0);
	if (c.words[1] == VECTOR_UP && c.words[0] != VECTOR)
		c.words[1] = VECTOR;
	if (c.words[0] == MEMORY || c.words[1] == MEMORY || (c.words[1] == X87_UP && c.words[0] != X87))
		c.words[0] = c.words[1] = MEMORY;
	return c;
}

static int take(struct registers *r)
{
	return r->used < r->count ? r->order[r->used++] : -1;
}

static struct kx_abi_place unknown(const char *why)
{
	return (struct kx_abi_place){ .kind = KX_ABI_UNKNOWN, .why = why };
}

/*
 * The first one on the stack is at 8, which is a multiple of 16 in memory. @alignment: what the type needs; compilers do not
 * agree on more than 16.
 */
static struct kx_abi_place on_stack(struct registers *r, uint64_t size, uint64_t alignment, bool may_be_packed)
{
	struct kx_abi_place p = { .kind = KX_ABI_MEMORY, .from = { KX_FROM_SP } };
	const char *why = size > (1 << 20)  ? "larger than 1 MiB" :
			  alignment > 16    ? "on the stack, aligned to more than 16 bytes" :
			  alignment == 16 && may_be_packed && r->stack % 16 == 0 ?
					      "on the stack, at a place that depends on whether it is packed" :
					      NULL;

	if (why) {
		r->lost = true;
		return unknown(why);
	}
	if (alignment == 16)
		r->stack = ((r->stack + 7) & ~15) + 8;
	p.offset = r->stack;
	r->stack += (int32_t)((size + 7) & ~7ULL);
	return p;
}

static bool is_aggregate(const struct kx_type *t)
{
	return t->class == KX_TYPE_STRUCT || t->class == KX_TYPE_UNION || t->class == KX_TYPE_ARRAY;
}

static bool is_by_reference(const struct kx_type_source *source, const struct kx_type *t)
{
	return (t->class == KX_TYPE_STRUCT || t->class == KX_TYPE_UNION) && source->by_reference && source->by_reference(source->ctx, t);
}

/* The address of the value in a register, or on the stack. */
static struct kx_abi_place by_address(struct registers *r)
{
	int from = take(r);

	if (from < 0)
		return unknown("its address is on the stack");
	return (struct kx_abi_place){ .kind = KX_ABI_MEMORY, .from = { (uint8_t)from } };
}

static uint64_t alignment_of(const struct classes *c, const struct kx_type *t)
{
	return t->alignment ? t->alignment : t->size % 16 ? 8 : c->alignment;
}

static struct kx_abi_place sysv_place(const struct classes *c, const struct kx_type *t,
				      struct registers *r)
{
	struct kx_abi_place p = { .kind = KX_ABI_REGISTERS };
	unsigned words = t->size > 8 ? 2 : 1, integers = 0, vectors = 0;

	if (t->size > 16 || c->words[0] >= X87)
		return on_stack(r, t->size, alignment_of(c, t), is_aggregate(t) && !t->alignment && !t->vector);
	for (unsigned i = 0; i < words; i++) {
		integers += c->words[i] == INTEGER;
		vectors += c->words[i] == VECTOR;
	}
	if (!integers && !vectors) /* empty in C: not passed */
		return unknown("without members");
	if (r->used + integers > r->count || r->vectors + vectors > 8) {
		/* clang before 18 splits it between the last register and the stack */
		if (!is_aggregate(t) && t->size > 8) {
			r->lost = true;
			return unknown("an integer of 16 bytes on the stack");
		}
		return on_stack(r, t->size, alignment_of(c, t), is_aggregate(t) && !t->alignment && !t->vector);
	}
	for (unsigned i = 0; i < words; i++)
		p.from[i] = c->words[i] == INTEGER ? (uint8_t)take(r) : KX_ABI_VECTOR;
	r->vectors += vectors;
	if (!integers)
		return unknown(IN_VECTOR);
	return p;
}

/*
 * A structure that every version of Rust passes as its scalars: one that is all of it, or two in a word each (&str, slices).
 * Others of up to 16 bytes differ.
 */
static bool is_rust_scalar(const struct classes *c, const struct kx_type *t)
{
	if (!c->plain || c->unaligned)
		return false;
	if (c->scalars == 1)
		return c->alignment == t->size && t->size <= 8;
	return c->scalars == 2 && t->size == 16 && c->words[0] == INTEGER && c->words[1] == INTEGER;
}

static struct kx_abi_place rust_place(const struct classes *c, const struct kx_type *t,
				      struct registers *r)
{
	if (is_aggregate(t) && t->size > 16)
		return by_address(r);
	if (is_aggregate(t) && !is_rust_scalar(c, t)) {
		r->lost = t->size > 0;
		return unknown("passed in a way that Rust does not define");
	}
	return sysv_place(c, t, r);
}

static struct kx_abi_place place_of(const struct kx_type_source *source,
				    const struct kx_type_function *f, const struct kx_type *t,
				    struct registers *r)
{
	struct classes c;

	if (is_by_reference(source, t) || (f->language == KX_LANGUAGE_RUST && is_aggregate(t) && t->size > 16))
		return by_address(r);
	c = classes_of(source, t);
	if (c.damaged) {
		r->lost = true;
		return unknown(DAMAGED);
	}
	return f->language == KX_LANGUAGE_RUST ? rust_place(&c, t, r) : sysv_place(&c, t, r);
}

static struct kx_abi_place go_place(const struct kx_type *t, struct registers *r)
{
	struct kx_abi_place p = { .kind = KX_ABI_REGISTERS };
	unsigned words = (unsigned)((t->size + 7) / 8);
	if (t->class == KX_TYPE_FLOAT) {
		r->vectors++;
		return unknown(IN_VECTOR);
	}
	/* of structures only those whose parts are words: strings, slices, interfaces */
	if (is_aggregate(t) && (t->class != KX_TYPE_STRUCT || words > KX_ABI_WORDS || t->size % 8 || !t->name ||
				(strcmp(t->name, "string") && strncmp(t->name, "[]", 2)))) {
		r->lost = true;
		return unknown("a structure in several registers");
	}
	if (r->used + words > r->count)
		return unknown("on the stack");
	for (unsigned i = 0; i < words; i++)
		p.from[i] = (uint8_t)take(r);
	return p;
}

/* A result in memory, whose address is the first argument: 1; no: 0; unknown: -1. */
static int returned_in_memory(const struct kx_type_source *source, const struct kx_type_function *f)
{
	struct classes c;
	struct kx_type t;

	if (!f->has_result)
		return 0;
	if (source->describe(source->ctx, &f->result, &t))
		return -1;
	if (is_by_reference(source, &t) || (is_aggregate(&t) && t.size > 16 && !t.vector))
		return 1;
	if (!is_aggregate(&t) || f->language == KX_LANGUAGE_RUST)
		return 0;
	c = classes_of(source, &t);
	if (c.damaged)
		return -1;
	return c.words[0] == MEMORY;
}

void kx_abi_parameters(const struct kx_type_source *source, const struct kx_type_function *f,
		       struct kx_abi_place *out)
{
	bool go = f->language == KX_LANGUAGE_GO;
	struct registers r = { .order = go ? go_order : sysv_order,
			       .stack = 8,
			       .count = go ? sizeof(go_order) : sizeof(sysv_order) };
	int in_memory = go ? 0 : returned_in_memory(source, f);

	if (in_memory > 0)
		take(&r);
	r.lost = in_memory < 0;
	for (size_t i = 0; i < f->n; i++) {
		struct kx_type t;

		if (r.lost) {
			out[i] = unknown(i || in_memory >= 0 ?
					 "behind a parameter whose size in registers is unknown" :
					 "the type of the result cannot be read");
		} else if (source->describe(source->ctx, &f->parameters[i].type, &t)) {
			out[i] = unknown(DAMAGED);
			r.lost = true;
		} else if (go && !f->go_registers) {
			out[i] = on_stack(&r, t.size, 8, false);
		} else {
			out[i] = go ? go_place(&t, &r) : place_of(source, f, &t, &r);
		}
		if (f->parameters[i].from != KX_AT_ABI)
			out[i] = (struct kx_abi_place){ .kind = KX_ABI_REGISTERS,
							.from = { f->parameters[i].from } };
		if (f->parameters[i].unknown)
			out[i] = unknown(f->parameters[i].unknown);
	}
}

/* In rax, or rax and rdx; the first word of the result may be in a vector register. */
static struct kx_abi_place sysv_result(const struct classes *c)
{
	static const uint8_t order[] = { KX_FROM_AX, KX_FROM_DX };
	struct kx_abi_place p = { .kind = KX_ABI_REGISTERS };
	unsigned used = 0;

	for (unsigned i = 0; i < 2; i++)
		p.from[i] = c->words[i] == INTEGER ? order[used++] : KX_ABI_VECTOR;
	return used ? p : unknown(c->words[0] == NONE ? "without members" : IN_VECTOR);
}

void kx_abi_result(const struct kx_type_source *source, const struct kx_type_function *f,
		   struct kx_abi_place *out)
{
	struct registers go = { .order = go_order, .count = sizeof(go_order) };
	struct classes c;
	struct kx_type t;
	int in_memory = returned_in_memory(source, f);

	*out = unknown("it returns nothing");
	if (!f->has_result)
		return;
	*out = unknown(DAMAGED);
	if (source->describe(source->ctx, &f->result, &t))
		return;
	if (f->language == KX_LANGUAGE_GO) {
		*out = f->go_registers ? go_place(&t, &go) : unknown("on the stack");
	} else if (in_memory > 0) {
		*out = (struct kx_abi_place){ .kind = KX_ABI_MEMORY, .from = { KX_FROM_AX } };
	} else {
		c = classes_of(source, &t);
		if (c.damaged || in_memory < 0)
			return;
		if (f->language == KX_LANGUAGE_RUST && is_aggregate(&t) && !is_rust_scalar(&c, &t))
			*out = unknown("returned in a way that Rust does not define");
		else if (c.words[0] == X87)
			*out = unknown("in a floating-point register");
		else
			*out = sysv_result(&c);
	}
}
