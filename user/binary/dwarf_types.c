// SPDX-License-Identifier: BSD-2-Clause
#include "binary/dwarf_types.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

#define TYPEDEFS       64 /* typedefs and qualifiers around a type, against cycles */
#define MEMBERS	       100000
#define ELEMENT_LEVELS 8 /* dimensions of an array */
#define CLASS_LEVELS   16

static bool type_of(Dwarf_Die *die, Dwarf_Die *out)
{
	Dwarf_Attribute attr;

	return dwarf_attr_integrate(die, DW_AT_type, &attr) && dwarf_formref_die(&attr, out);
}

static bool flag(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attr;
	bool value = false;

	return dwarf_attr(die, name, &attr) && dwarf_formflag(&attr, &value) == 0 && value;
}

static bool number(Dwarf_Die *die, unsigned name, Dwarf_Word *out)
{
	Dwarf_Attribute attr;

	return dwarf_attr(die, name, &attr) && dwarf_formudata(&attr, out) == 0;
}

/* A type in another unit or file by its 64-bit signature: what is left of it in this unit is a
 * declaration. */
static void resolve_signature(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Die real;

	if (dwarf_attr(die, DW_AT_signature, &attr) && dwarf_formref_die(&attr, &real))
		*die = real;
}

static bool is_wrapper(int tag)
{
	return tag == DW_TAG_typedef || tag == DW_TAG_const_type || tag == DW_TAG_volatile_type ||
	       tag == DW_TAG_restrict_type || tag == DW_TAG_atomic_type ||
	       tag == DW_TAG_immutable_type || tag == DW_TAG_packed_type ||
	       tag == DW_TAG_subrange_type;
}

static uint64_t count_of(Dwarf_Die *subrange)
{
	Dwarf_Word value;

	if (number(subrange, DW_AT_count, &value))
		return value;
	if (number(subrange, DW_AT_upper_bound, &value) && value < UINT32_MAX)
		return value + 1;
	return 0;
}

/* Elements and size of a[2][3]: as one array of all elements in a row. */
static int describe_array(struct kx_type *t, Dwarf_Die *die)
{
	Dwarf_Die child, element;
	Dwarf_Word size;
	uint64_t count = 1;
	unsigned levels = 0;
	int tag;

	if (dwarf_child(die, &child) == 0)
		do {
			if (dwarf_tag(&child) != DW_TAG_subrange_type)
				continue;
			if (++levels > ELEMENT_LEVELS)
				return -ENODATA;
			if (__builtin_mul_overflow(count, count_of(&child), &count))
				return -ENODATA;
		} while (dwarf_siblingof(&child, &child) == 0);
	if (!type_of(die, &element))
		return -ENODATA;
	t->has_target = true;
	t->target.die = element;
	t->count = levels ? count : 0;
	t->vector = flag(die, DW_AT_GNU_vector);
	for (unsigned i = 0; i < TYPEDEFS && is_wrapper(dwarf_tag(&element)); i++)
		if (!type_of(&element, &element))
			return -ENODATA;
	tag = dwarf_tag(&element);
	if (tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type)
		size = 8;
	else if (!number(&element, DW_AT_byte_size, &size))
		size = 0;
	if (__builtin_mul_overflow(t->count, size, &t->size))
		return -ENODATA;
	return 0;
}

static enum kx_type_class base_class(struct kx_type *t, Dwarf_Die *die)
{
	Dwarf_Word encoding = 0;

	number(die, DW_AT_encoding, &encoding);
	switch (encoding) {
	case DW_ATE_boolean:
		return KX_TYPE_BOOL;
	case DW_ATE_float:
		return KX_TYPE_FLOAT;
	case DW_ATE_signed_char:
	case DW_ATE_unsigned_char:
	case DW_ATE_UTF:
		t->is_signed = encoding == DW_ATE_signed_char;
		/* int8_t and uint8_t are typedefs of these: see is_number_name */
		return t->size == 1 ? KX_TYPE_CHAR : KX_TYPE_INTEGER;
	case DW_ATE_signed:
	case DW_ATE_unsigned:
	case DW_ATE_address:
		t->is_signed = encoding == DW_ATE_signed;
		return KX_TYPE_INTEGER;
	default:
		return KX_TYPE_OTHER;
	}
}

static bool is_number_name(const char *name)
{
	return name &&
	       (!strcmp(name, "uint8_t") || !strcmp(name, "int8_t") || !strcmp(name, "u8") ||
		!strcmp(name, "i8") || !strcmp(name, "u_int8_t") || !strcmp(name, "__u8"));
}

static bool is_pointer(int tag)
{
	return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
	       tag == DW_TAG_rvalue_reference_type;
}

static void describe_tag(struct kx_type *t, Dwarf_Die *die, int tag)
{
	Dwarf_Die target;

	if (is_pointer(tag)) {
		t->class = KX_TYPE_POINTER;
		/* Rust's references are pointers with such a name */
		t->reference = tag != DW_TAG_pointer_type || (t->name && t->name[0] == '&');
		t->size = 8;
	} else if (tag == DW_TAG_base_type) {
		t->class = base_class(t, die);
	} else if (tag == DW_TAG_enumeration_type) {
		t->class = KX_TYPE_ENUM;
		if (type_of(die, &target)) {
			Dwarf_Word encoding;

			t->is_signed =
				number(&target, DW_AT_encoding, &encoding) &&
				(encoding == DW_ATE_signed || encoding == DW_ATE_signed_char);
		}
	} else if (tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
		   tag == DW_TAG_union_type) {
		t->class = tag == DW_TAG_union_type ? KX_TYPE_UNION : KX_TYPE_STRUCT;
		t->incomplete = flag(die, DW_AT_declaration);
	}
	if (is_pointer(tag)) {
		t->has_target = type_of(die, &target);
		if (t->has_target)
			t->target.die = target;
	}
}

static bool complete(void *ctx, struct kx_type *t)
{
	const struct kx_dwarf_types *types = ctx;
	Dwarf_Word size = 0;
	Dwarf_Die die;

	if (!types->complete || !types->complete(types->ctx, &t->self.die, &die))
		return false;
	number(&die, DW_AT_byte_size, &size);
	t->incomplete = false;
	t->self.die = die;
	t->size = size;
	return true;
}

static int describe(void *ctx, const union kx_type_handle *handle, struct kx_type *t)
{
	Dwarf_Die die = handle->die;
	const char *alias = NULL;
	Dwarf_Word size = 0, alignment;
	int tag;

	(void)ctx;
	memset(t, 0, sizeof(*t));
	for (unsigned i = 0; is_wrapper(tag = dwarf_tag(&die)); i++) {
		if (tag == DW_TAG_typedef && !alias)
			alias = dwarf_diename(&die);
		if (i == TYPEDEFS || !type_of(&die, &die))
			return -ENODATA;
	}
	resolve_signature(&die);
	t->self.die = die;
	t->name = dwarf_diename(&die);
	number(&die, DW_AT_byte_size, &size);
	t->size = size;
	if (number(&die, DW_AT_alignment, &alignment))
		t->alignment = alignment;
	if (tag == DW_TAG_array_type)
		t->class = KX_TYPE_ARRAY;
	else
		describe_tag(t, &die, tag);
	if (t->class == KX_TYPE_CHAR && is_number_name(alias))
		t->class = KX_TYPE_INTEGER;
	if (!t->name || (t->class != KX_TYPE_STRUCT && t->class != KX_TYPE_UNION && alias))
		t->name = alias;
	return t->class == KX_TYPE_ARRAY ? describe_array(t, &die) : 0;
}

/* By address */

struct copies {
	bool others;  /* a copy or move constructor or a destructor that somebody wrote */
	bool deleted; /* a constructor that was deleted */
	bool kept;    /* one that the compiler makes */
	unsigned steps, depth;
};

static bool is_trivial(struct copies *c, Dwarf_Die *die);

/* The class, behind references and qualifiers, of the type of a parameter; false if it is none. */
static bool class_of(Dwarf_Die *parameter, bool references, Dwarf_Die *out)
{
	Dwarf_Die die;

	if (!type_of(parameter, &die))
		return false;
	for (unsigned i = 0; i < TYPEDEFS; i++) {
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type) {
			*out = die;
			return true;
		}
		if (!is_wrapper(tag) && !(!references && tag == DW_TAG_array_type) &&
		    !(references && (tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type)))
			return false;
		if (!type_of(&die, &die))
			return false;
	}
	return false;
}

/* Whether the second parameter of the constructor @method is the class @die itself. */
static bool copies_class(Dwarf_Die *method, Dwarf_Die *die)
{
	Dwarf_Die parameter, of;
	unsigned n = 0;

	if (dwarf_child(method, &parameter))
		return false;
	do {
		if (dwarf_tag(&parameter) != DW_TAG_formal_parameter || n++ == 0)
			continue;
		return class_of(&parameter, true, &of) && dwarf_dieoffset(&of) == dwarf_dieoffset(die);
	} while (dwarf_siblingof(&parameter, &parameter) == 0);
	return false;
}

static void look_at_method(struct copies *c, Dwarf_Die *method, Dwarf_Die *die, const char *class)
{
	const char *name = dwarf_diename(method);
	Dwarf_Word defaulted;

	if (!name || (name[0] != '~' && (strncmp(name, class, strcspn(class, "<")) || !copies_class(method, die))))
		return;
	if (flag(method, DW_AT_deleted))
		c->deleted |= name[0] != '~';
	else if (flag(method, DW_AT_artificial) ||
		 (number(method, DW_AT_defaulted, &defaulted) && defaulted == DW_DEFAULTED_in_class))
		c->kept |= name[0] != '~';
	else
		c->others = true;
}

/* Whether copies and the destruction of a class are trivial, as far as its methods, members and bases say. */
static bool are_children_trivial(struct copies *c, Dwarf_Die *die, const char *name)
{
	Dwarf_Die child, of;

	if (dwarf_child(die, &child))
		return true;
	do {
		int tag = dwarf_tag(&child);
		const char *member;

		if (++c->steps > MEMBERS)
			return false;
		if (tag == DW_TAG_subprogram) {
			look_at_method(c, &child, die, name);
			if (dwarf_hasattr(&child, DW_AT_virtuality))
				return false;
		}
		if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) || flag(&child, DW_AT_external))
			continue;
		member = dwarf_diename(&child);
		if (dwarf_hasattr(&child, DW_AT_virtuality) || (member && !strncmp(member, "_vptr", 5)))
			return false;
		if (class_of(&child, false, &of) && !is_trivial(c, &of))
			return false;
	} while (dwarf_siblingof(&child, &child) == 0);
	return true;
}

static bool is_trivial(struct copies *c, Dwarf_Die *die)
{
	struct copies own = { .steps = c->steps, .depth = c->depth + 1 };
	const char *name;
	Dwarf_Word convention;
	bool trivial;

	resolve_signature(die);
	name = dwarf_diename(die);
	if (number(die, DW_AT_calling_convention, &convention))
		return convention != DW_CC_pass_by_reference;
	if (own.depth > CLASS_LEVELS)
		return false;
	trivial = are_children_trivial(&own, die, name ? name : "?");
	c->steps = own.steps;
	return trivial && !own.others && !(own.deleted && !own.kept);
}

/* clang says it; of gcc it has to be found. */
static bool by_reference(void *ctx, const struct kx_type *t)
{
	Dwarf_Die die = t->self.die;
	struct copies c = { .others = false };

	(void)ctx;
	return !is_trivial(&c, &die);
}

/* 1: not a place that is fixed, such as a virtual base. */
static int member_offset(Dwarf_Die *die, struct kx_type_member *m)
{
	Dwarf_Attribute attr;
	Dwarf_Word value = 0;

	m->bitfield = dwarf_hasattr(die, DW_AT_bit_size) > 0;
	if (dwarf_attr(die, DW_AT_data_member_location, &attr)) {
		Dwarf_Op *ops;
		size_t n;

		if (dwarf_formudata(&attr, &value)) {
			if (dwarf_getlocation(&attr, &ops, &n) || n != 1 ||
			    ops[0].atom != DW_OP_plus_uconst)
				return 1;
			value = ops[0].number;
		}
	} else if (number(die, DW_AT_data_bit_offset, &value)) {
		m->bitfield = true;
		value /= 8;
	}
	m->offset = value;
	return 0;
}

static int members(void *ctx, const struct kx_type *t,
		   int (*each)(void *arg, const struct kx_type_member *m), void *arg)
{
	Dwarf_Die parent = t->self.die, child;
	unsigned n = 0;
	int r = 0;

	(void)ctx;
	if (dwarf_child(&parent, &child))
		return 0;
	do {
		int tag = dwarf_tag(&child);
		struct kx_type_member m = { 0 };
		Dwarf_Die type;

		if (++n > MEMBERS)
			return -ENODATA;
		if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) ||
		    flag(&child, DW_AT_external) || flag(&child, DW_AT_declaration))
			continue; /* static members have no place in the structure */
		if (!type_of(&child, &type) || member_offset(&child, &m))
			continue;
		m.name = tag == DW_TAG_member ? dwarf_diename(&child) : NULL;
		m.type.die = type;
		r = each(arg, &m);
	} while (!r && dwarf_siblingof(&child, &child) == 0);
	return r;
}

/* The number as it is in memory: forms of fixed size do not say whether they have a sign. */
static int64_t of_width(int64_t value, const struct kx_type *t)
{
	unsigned shift = t->size && t->size < 8 ? 64 - 8 * (unsigned)t->size : 0;

	return t->is_signed ? (int64_t)((uint64_t)value << shift) >> shift : (int64_t)((uint64_t)value << shift >> shift);
}

static int names(void *ctx, const struct kx_type *t,
		 int (*each)(void *arg, const char *name, int64_t value), void *arg)
{
	Dwarf_Die parent = t->self.die, child;
	unsigned n = 0;
	int r = 0;

	(void)ctx;
	if (dwarf_child(&parent, &child))
		return 0;
	do {
		Dwarf_Attribute attr;
		Dwarf_Sword value;
		const char *name = dwarf_diename(&child);

		if (++n > MEMBERS)
			return -ENODATA;
		if (dwarf_tag(&child) != DW_TAG_enumerator || !name ||
		    !dwarf_attr(&child, DW_AT_const_value, &attr) || dwarf_formsdata(&attr, &value))
			continue;
		r = each(arg, name, of_width(value, t));
	} while (!r && dwarf_siblingof(&child, &child) == 0);
	return r;
}

void kx_dwarf_types_init(struct kx_dwarf_types *types, struct kx_type_source *out)
{
	*out = (struct kx_type_source){
		.ctx = types, .describe = describe, .complete = complete, .members = members, .by_reference = by_reference, .names = names
	};
}
