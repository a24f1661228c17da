// SPDX-License-Identifier: BSD-2-Clause
#include "binary/import_slots.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define JUMP	6    /* bytes of `jmp *slot(%rip)`: ff 25 and a displacement */
#define BND	0xf2 /* a prefix that linkers put before it */
#define ENDBR64 4    /* bytes */

static int add(struct kx_import_slots *s, uint64_t addr, unsigned name, bool stub)
{
	if (KX_ARRAY_RESERVE(s->items, s->room, s->n))
		return -ENOMEM;
	s->items[s->n++] = (struct kx_import_slot){ .addr = addr, .name = name, .stub = stub };
	return 0;
}

const struct kx_import_slot *kx_import_slots_find(const struct kx_import_slots *s, uint64_t addr)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->items[i].addr == addr)
			return &s->items[i];
	return NULL;
}

/* Adds the slots of symbol @index of the table in section @table. */
static int add_slots(struct kx_elf *elf, size_t table, size_t index, unsigned name, struct kx_import_slots *out)
{
	Elf_Scn *scn = NULL;
	Elf_Data *data;

	while ((data = kx_elf_next_of_type(elf, SHT_RELA, &scn))) {
		const Elf64_Rela *r = data->d_buf;

		if (elf64_getshdr(scn)->sh_link != table)
			continue;
		for (size_t i = 0; i < data->d_size / sizeof(*r); i++) {
			const uint64_t type = ELF64_R_TYPE(r[i].r_info);

			if (ELF64_R_SYM(r[i].r_info) != index)
				continue;
			if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
				out->taken |= 1u << name;
			else if (add(out, r[i].r_offset, name, false))
				return -ENOMEM;
		}
	}
	return 0;
}

static int add_imports(struct kx_elf *elf, const char *const *names, size_t n, struct kx_import_slots *out)
{
	Elf_Scn *scn = NULL;
	Elf_Data *data;

	while ((data = kx_elf_next_of_type(elf, SHT_DYNSYM, &scn))) {
		const size_t strings = elf64_getshdr(scn)->sh_link;
		const Elf64_Sym *syms = data->d_buf;

		for (size_t i = 0; i < data->d_size / sizeof(*syms); i++) {
			const char *name = syms[i].st_shndx == SHN_UNDEF
						   ? elf_strptr(kx_elf_handle(elf), strings, syms[i].st_name)
						   : NULL;

			for (unsigned k = 0; name && k < n; k++) {
				if (strcmp(name, names[k]))
					continue;
				out->imported |= 1u << k;
				/* a stub that is the function's address for the whole process */
				if (syms[i].st_value)
					out->taken |= 1u << k;
				if (add_slots(elf, elf_ndxscn(scn), i, k, out))
					return -ENOMEM;
			}
		}
	}
	return 0;
}

/* A jump to a slot that is in @code at @addr may also be entered by what stands before it. */
static int add_stub(struct kx_import_slots *out, const uint8_t *code, uint64_t addr, size_t before, unsigned name)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t back = 0;

	if (add(out, addr, name, true))
		return -ENOMEM;
	if (before > back && code[-1] == BND && add(out, addr - ++back, name, true))
		return -ENOMEM;
	if (before - back >= ENDBR64 && !memcmp(code - back - ENDBR64, endbr64, ENDBR64))
		return add(out, addr - back - ENDBR64, name, true);
	return 0;
}

static int add_stubs(const struct kx_elf *elf, struct kx_import_slots *out)
{
	struct kx_elf_section s;
	const char *name;

	for (size_t i = 1; kx_elf_section_at(elf, i, &name, &s); i++) {
		if (!s.data || !s.addr || !kx_elf_in_plt(elf, s.addr))
			continue;
		for (size_t at = 0; at + JUMP <= s.size; at++) {
			const struct kx_import_slot *slot;
			int32_t near;

			if (s.data[at] != 0xff || s.data[at + 1] != 0x25)
				continue;
			memcpy(&near, s.data + at + 2, sizeof(near));
			slot = kx_import_slots_find(out, s.addr + at + JUMP + (uint64_t)(int64_t)near);
			if (slot && !slot->stub && add_stub(out, s.data + at, s.addr + at, at, slot->name))
				return -ENOMEM;
		}
	}
	return 0;
}

int kx_import_slots_read(struct kx_elf *elf, const char *const *names, size_t n, struct kx_import_slots *out,
			 struct kx_err *err)
{
	*out = (struct kx_import_slots){ 0 };
	if (add_imports(elf, names, n, out) || (out->n && add_stubs(elf, out)))
		return kx_err_set(err, -ENOMEM, "out of memory while reading the imports of %s", kx_elf_path(elf));
	return 0;
}

void kx_import_slots_free(struct kx_import_slots *s)
{
	free(s->items);
	*s = (struct kx_import_slots){ 0 };
}
