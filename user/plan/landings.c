// SPDX-License-Identifier: BSD-2-Clause
#include "plan/landings.h"

#include <errno.h>
#include <string.h>

#include "binary/usdt_markers.h"
#include "plan/landing_code.h"
#include "plan/landing_pads.h"

/* Relocations that are packed: their words have the addresses. */
#ifndef SHT_RELR
#define SHT_RELR 19
#endif

static void mark_symbols(struct kx_landing_map *m, uint32_t type)
{
	Elf_Scn *scn = NULL;
	Elf_Data *data;

	while ((data = kx_elf_next_of_type(m->elf, type, &scn))) {
		const Elf64_Sym *syms = data->d_buf;

		for (size_t i = 0; i < data->d_size / sizeof(*syms); i++)
			if (syms[i].st_shndx != SHN_UNDEF && ELF64_ST_TYPE(syms[i].st_info) != STT_TLS)
				kx_landing_mark(m, syms[i].st_value);
	}
}

/* The symbols that a section of relocations refers to. */
static const Elf64_Sym *symbols_of(struct kx_landing_map *m, Elf_Scn *relocations, size_t *count)
{
	const Elf64_Shdr *sh = elf64_getshdr(relocations);
	Elf_Scn *scn = sh ? elf_getscn(kx_elf_handle(m->elf), sh->sh_link) : NULL;
	const Elf64_Shdr *linked = scn ? elf64_getshdr(scn) : NULL;
	const Elf_Data *data = linked && (linked->sh_type == SHT_DYNSYM || linked->sh_type == SHT_SYMTAB) ?
				       elf_getdata(scn, NULL) :
				       NULL;

	*count = data && data->d_buf ? data->d_size / sizeof(Elf64_Sym) : 0;
	return *count ? data->d_buf : NULL;
}

/* Returns how many of them are addresses of code. */
static size_t mark_relocations(struct kx_landing_map *m)
{
	Elf_Scn *scn = NULL;
	Elf_Data *data;
	size_t n = 0;

	while ((data = kx_elf_next_of_type(m->elf, SHT_RELA, &scn))) {
		const Elf64_Rela *rela = data->d_buf;
		size_t nsyms;
		const Elf64_Sym *syms = symbols_of(m, scn, &nsyms);

		for (size_t i = 0; i < data->d_size / sizeof(*rela); i++) {
			const uint64_t addend = (uint64_t)rela[i].r_addend;
			const size_t sym = ELF64_R_SYM(rela[i].r_info);

			n += addend && kx_landing_code(m, addend);
			kx_landing_mark(m, addend);
			if (sym && sym < nsyms)
				kx_landing_mark(m, syms[sym].st_value + addend);
		}
	}
	return n;
}

/* Words of the data that are addresses of code, by chance or not. */
static void mark_words(struct kx_landing_map *m)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct kx_landing_segment *s = &m->segments[i];

		for (uint64_t at = -s->addr & 7; at < s->size && s->size - at >= 8; at += 8) {
			uint64_t word;

			memcpy(&word, s->bytes + at, sizeof(word));
			kx_landing_mark(m, word);
		}
	}
}

/*
 * Words that are distances from themselves to code, as tables of what may fault and where to go on then have them. They are in sections whose names the
 * linker makes symbols of; elsewhere, tables of switches would be taken for them.
 */
static void mark_distances(struct kx_landing_map *m)
{
	struct kx_elf_section s;
	const char *name;

	for (size_t i = 1; kx_elf_section_at(m->elf, i, &name, &s); i++) {
		size_t left = 0;
		const uint8_t *bytes = name && *name && *name != '.' && s.addr ? kx_landing_bytes(m, s.addr, &left) : NULL;

		for (uint64_t at = 0; bytes && at + 4 <= s.size && at + 4 <= left; at += 4) {
			int32_t distance;

			memcpy(&distance, bytes + at, sizeof(distance));
			kx_landing_mark(m, s.addr + at + (uint64_t)(int64_t)distance);
		}
	}
}

static bool has_section_of(struct kx_elf *elf, uint32_t type)
{
	Elf_Scn *scn = NULL;

	return kx_elf_next_of_type(elf, type, &scn);
}

/* The nop of a marker, and a nop behind it, become what a tool writes there. */
static int keep_markers(struct kx_landing_map *m, const struct kx_code *code, struct kx_err *err)
{
	struct kx_usdt_markers markers;
	int ret = kx_usdt_markers_read(m->elf, &markers, NULL);

	if (ret)
		return ret == -ENOMEM ? kx_err_set(err, ret, "out of memory for its markers") :
					kx_err_set(err, -ENOEXEC, "its notes of USDT markers are damaged");
	for (size_t i = 0; i < markers.count; i++) {
		for (size_t k = 0; k < markers.items[i].nplaces; k++) {
			uint64_t at = markers.items[i].places[k].addr;
			struct kx_insn insn;

			for (int n = 0; n < 2 && kx_code_decode(code, at, &insn) && (!n || kx_insn_is_padding(&insn)); n++) {
				kx_landing_keep(m, at, insn.z.length);
				at += insn.z.length;
			}
		}
	}
	kx_usdt_markers_free(&markers);
	return 0;
}

int kx_landings_find(struct kx_elf *elf, const struct kx_symbols *syms, const struct kx_code *code, struct kx_landing_map *out,
		     struct kx_err *err)
{
	const Elf64_Ehdr *eh = elf64_getehdr(kx_elf_handle(elf));
	const bool absolute = eh && eh->e_type == ET_EXEC;
	int ret = kx_landing_map_new(elf, out, err);

	if (ret)
		return ret;
	ret = kx_landing_code_mark(out, code, syms, absolute, err);
	mark_symbols(out, SHT_DYNSYM);
	mark_symbols(out, SHT_SYMTAB);
	if (!mark_relocations(out) || absolute || has_section_of(elf, SHT_RELR))
		mark_words(out);
	mark_distances(out);
	if (!ret)
		ret = kx_landing_pads_mark(out, err);
	if (!ret)
		ret = keep_markers(out, code, err);
	if (ret)
		kx_landing_map_free(out);
	else
		kx_landing_sort(out);
	return ret;
}
