// SPDX-License-Identifier: BSD-2-Clause
#include "binary/dwarf_complete.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bisect.h"

#define NAMESPACES 32 /* around a structure */
#define MEMBERS	   10000

/* FNV-1a */
static uint32_t add_name(uint32_t hash, const char *name)
{
	if (!hash)
		hash = 2166136261u;
	for (const char *c = name ? name : ""; *c; c++)
		hash = (hash ^ (uint8_t)*c) * 16777619u;
	return (hash ^ 1) * 16777619u;
}

static bool is_structure(int tag)
{
	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

static void index_level(struct kx_dwarf_complete *c, Dwarf_Die *parent, uint32_t hash, unsigned depth)
{
	Dwarf_Die die;

	if (depth > NAMESPACES || dwarf_child(parent, &die))
		return;
	do {
		const int tag = dwarf_tag(&die);
		const char *name;

		if (tag == DW_TAG_namespace)
			index_level(c, &die, add_name(hash, dwarf_diename(&die)), depth + 1);
		if (!is_structure(tag) || dwarf_hasattr(&die, DW_AT_declaration))
			continue;
		name = dwarf_diename(&die);
		if (!name || KX_ARRAY_RESERVE(c->items, c->room, c->n))
			continue;
		c->items[c->n++] = (struct kx_known_structure){ add_name(hash, name), tag == DW_TAG_union_type,
								dwarf_dieoffset(&die) };
	} while (dwarf_siblingof(&die, &die) == 0);
}

static int compare(const void *x, const void *y)
{
	const struct kx_known_structure *a = x, *b = y;

	return a->hash != b->hash ? (a->hash < b->hash ? -1 : 1) : (a->offset > b->offset) - (a->offset < b->offset);
}

static uint32_t hash_of(Dwarf_Die *declaration)
{
	Dwarf_Die *scopes;
	int n = dwarf_getscopes_die(declaration, &scopes);
	uint32_t hash = 0;

	/* from the unit to the declaration itself, which is the first one */
	for (int i = n - 1; i > 0; i--)
		if (dwarf_tag(&scopes[i]) == DW_TAG_namespace)
			hash = add_name(hash, dwarf_diename(&scopes[i]));
	if (n > 0)
		free(scopes);
	return add_name(hash, dwarf_diename(declaration));
}

static Dwarf_Word number(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value = 0;

	return dwarf_attr(die, name, &attr) && dwarf_formudata(&attr, &value) == 0 ? value : 0;
}

/* Of size, names and places of members. */
static uint64_t layout_of(Dwarf_Die *die)
{
	uint64_t hash = number(die, DW_AT_byte_size);
	unsigned n = 0;
	Dwarf_Die child;

	if (dwarf_child(die, &child))
		return hash;
	do {
		if (dwarf_tag(&child) != DW_TAG_member && dwarf_tag(&child) != DW_TAG_inheritance)
			continue;
		hash = hash * 1099511628211ull + add_name(0, dwarf_diename(&child));
		hash = hash * 1099511628211ull + number(&child, DW_AT_data_member_location);
	} while (++n < MEMBERS && dwarf_siblingof(&child, &child) == 0);
	return hash;
}

static struct kx_known_structure *first_of(const struct kx_dwarf_complete *c, uint32_t hash)
{
	return c->items + KX_COUNT_LEADING(c->n, i, c->items[i].hash < hash);
}

bool kx_dwarf_complete_find(struct kx_dwarf_complete *c, const struct kx_lines *lines, Dwarf_Die *declaration, Dwarf_Die *out)
{
	const char *name = dwarf_diename(declaration);
	const bool is_union = dwarf_tag(declaration) == DW_TAG_union_type;
	const uint32_t hash = name ? hash_of(declaration) : 0;
	uint64_t layout = 0;
	bool found = false;

	for (size_t i = 0; name && !c->indexed && i < lines->nunits; i++)
		index_level(c, &lines->units[i].die, 0, 0);
	if (!c->indexed && c->n)
		qsort(c->items, c->n, sizeof(*c->items), compare);
	c->indexed |= name != NULL;
	if (!c->n)
		return false;
	for (struct kx_known_structure *s = first_of(c, hash); name && s < c->items + c->n && s->hash == hash; s++) {
		const char *other;
		Dwarf_Die die;

		if (s->is_union != is_union || !dwarf_offdie(lines->dwarf, s->offset, &die))
			continue;
		other = dwarf_diename(&die);
		if (!other || strcmp(other, name))
			continue;
		if (found && layout_of(&die) != layout)
			return false;
		layout = layout_of(&die);
		*out = die;
		found = true;
	}
	return found;
}

void kx_dwarf_complete_free(struct kx_dwarf_complete *c)
{
	free(c->items);
	*c = (struct kx_dwarf_complete){ 0 };
}
