// SPDX-License-Identifier: BSD-2-Clause
#include "binary/usdt_markers.h"

#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/pattern.h"

struct notes {
	struct kx_usdt_note *items;
	size_t n, room;
};

static int no_memory(struct kx_err *err)
{
	return kx_err_set(err, -ENOMEM, "no memory for USDT markers");
}

/* By provider, name, address. */
static int compare_notes(const void *a, const void *b)
{
	const struct kx_usdt_note *x = a, *y = b;
	int order = strcmp(x->provider, y->provider);

	if (!order)
		order = strcmp(x->name, y->name);
	return order ? order : (x->location > y->location) - (x->location < y->location);
}

static bool is_same_marker(const struct kx_usdt_note *a, const struct kx_usdt_note *b)
{
	return !strcmp(a->provider, b->provider) && !strcmp(a->name, b->name);
}

/* Where in the file the 2 bytes at @addr are, which the kernel has to be able to write; 0: nowhere. */
static uint64_t semaphore_offset(struct kx_elf *elf, uint64_t addr)
{
	size_t n;

	if (!addr || elf_getphdrnum(kx_elf_handle(elf), &n))
		return 0;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(kx_elf_handle(elf), (int)i, &ph) || ph.p_type != PT_LOAD || !(ph.p_flags & PF_W))
			continue;
		if (addr >= ph.p_vaddr && addr - ph.p_vaddr < ph.p_memsz)
			return addr - ph.p_vaddr + ph.p_offset;
	}
	return 0;
}

static int collect(struct kx_elf *elf, struct notes *notes, struct kx_err *err)
{
	struct kx_elf_section section, base = { 0 };
	struct kx_usdt_note note;
	size_t at = 0;
	int more;

	if (!kx_elf_get_section(elf, ".note.stapsdt", &section) || !section.data)
		return 0;
	kx_elf_get_section(elf, ".stapsdt.base", &base);
	while ((more = kx_usdt_note_next(section.data, section.size, &at, &note)) > 0) {
		uint64_t moved = base.addr && note.base ? base.addr - note.base : 0, offset;

		note.location += moved;
		note.semaphore += note.semaphore ? moved : 0;
		if (kx_elf_offset(elf, note.location, &offset))
			continue;
		if (KX_ARRAY_RESERVE(notes->items, notes->room, notes->n))
			return no_memory(err);
		notes->items[notes->n++] = note;
	}
	return more ? kx_err_set(err, more, "the USDT notes of '%s' are damaged (.note.stapsdt at byte %zu)",
				 kx_elf_path(elf), at) :
		      0;
}

static int join(struct kx_elf *elf, const struct notes *notes, struct kx_usdt_markers *out)
{
	size_t nplaces = 0;

	out->items = calloc(notes->n + 1, sizeof(*out->items));
	out->places = calloc(notes->n + 1, sizeof(*out->places));
	if (!out->items || !out->places)
		return -ENOMEM;
	for (size_t i = 0; i < notes->n; i++) {
		const struct kx_usdt_note *note = &notes->items[i];
		struct kx_usdt_marker *m = out->count ? &out->items[out->count - 1] : NULL;

		if (!i || !is_same_marker(note - 1, note)) {
			m = &out->items[out->count];
			if (asprintf(&m->name, KX_USDT_PREFIX "%s:%s", note->provider, note->name) < 0) {
				m->name = NULL;
				return -ENOMEM;
			}
			m->places = &out->places[nplaces];
			out->count++;
		} else if (note[-1].location == note->location) {
			continue; /* the same place twice would count each pass twice */
		}
		m->nplaces++;
		out->places[nplaces++] = (struct kx_usdt_place){
			.addr = note->location,
			.semaphore = semaphore_offset(elf, note->semaphore),
			.arguments = note->arguments,
		};
	}
	return 0;
}

int kx_usdt_markers_read(struct kx_elf *elf, struct kx_usdt_markers *out, struct kx_err *err)
{
	struct notes notes = { 0 };
	int code = collect(elf, &notes, err);

	*out = (struct kx_usdt_markers){ 0 };
	if (notes.n)
		qsort(notes.items, notes.n, sizeof(*notes.items), compare_notes);
	if (!code && join(elf, &notes, out))
		code = no_memory(err);
	free(notes.items);
	if (code)
		kx_usdt_markers_free(out);
	return code;
}

void kx_usdt_markers_free(struct kx_usdt_markers *m)
{
	for (size_t i = 0; i < m->count; i++)
		free(m->items[i].name);
	free(m->items);
	free(m->places);
	*m = (struct kx_usdt_markers){ 0 };
}

const struct kx_usdt_marker *kx_usdt_markers_find(const struct kx_usdt_markers *m, const char *name)
{
	for (size_t i = 0; i < m->count; i++)
		if (!strcmp(m->items[i].name, name))
			return &m->items[i];
	return NULL;
}

struct wanted {
	const char *name; /* not terminated */
	size_t length;
	uint64_t addr;
};

static bool is_wanted(void *ctx, const Elf64_Sym *sym, const char *name)
{
	struct wanted *w = ctx;

	if (sym->st_shndx == SHN_UNDEF || strncmp(name, w->name, w->length) || name[w->length])
		return false;
	w->addr = sym->st_value;
	return true;
}

/* The address of the symbol, which in a shared library another module's variable may replace. */
static void find_symbol(struct kx_elf *elf, uint64_t marker, struct kx_usdt_argument *a)
{
	struct wanted w = { .name = a->symbol, .length = a->symbol_length };
	int64_t offset;

	if (!kx_elf_find_symbol(elf, SHT_SYMTAB, is_wanted, &w) && !kx_elf_find_symbol(elf, SHT_DYNSYM, is_wanted, &w)) {
		a->unknown = "it is a variable whose symbol was stripped";
		return;
	}
	offset = (int64_t)(w.addr - marker) + a->fetch.offset[0];
	a->fetch.offset[0] = (int32_t)offset;
	if (offset != (int32_t)offset)
		a->unknown = "its place is too far away";
}

size_t kx_usdt_place_arguments(struct kx_elf *elf, const struct kx_usdt_place *place,
			       struct kx_usdt_argument out[KX_USDT_MAX_ARGUMENTS])
{
	size_t n = kx_usdt_arguments_parse(place->arguments, out);

	for (size_t i = 0; i < n; i++)
		if (!out[i].unknown && out[i].symbol)
			find_symbol(elf, place->addr, &out[i]);
	return n;
}
