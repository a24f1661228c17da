// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/autofdo/modules.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/autofdo/model.h"
#include "binary/elf_image.h"

struct module {
	const struct kx_map_module *of;
	const char *path; /* of->path or the user's */
	bool tried_elf, tried_lines, missed;
	struct kx_elf *elf;
	struct kx_lines *lines;
};

struct kx_afdo_modules {
	const struct kx_map *map;
	struct module *items;
	size_t count, missed;
	struct kx_err first; /* of the first module that cannot be used */
};

static void miss(struct kx_afdo_modules *m, struct module *mod, const struct kx_err *err)
{
	if (!mod->missed && !m->missed++)
		m->first = *err;
	mod->missed = true;
}

static struct kx_elf *elf_of(struct kx_afdo_modules *m, uint32_t index)
{
	struct module *mod = &m->items[index];
	struct kx_err err = { 0 };

	if (mod->tried_elf)
		return mod->elf;
	mod->tried_elf = true;
	/* The kernel and the system calls are modules without a file. */
	if (!mod->path || !strchr(mod->path, '/'))
		return NULL;
	if (kx_elf_open(mod->path, &mod->elf, &err)) {
		miss(m, mod, &err);
		return NULL;
	}
	if (mod->path == mod->of->path && mod->of->build_id && *mod->of->build_id &&
	    strcmp(mod->of->build_id, kx_elf_build_id(mod->elf))) {
		kx_err_set(&err, -ESTALE, "%s: another build than the traced one; name the right "
			   "file by --afdo-binary", mod->path);
		miss(m, mod, &err);
		kx_elf_close(mod->elf);
		mod->elf = NULL;
	}
	return mod->elf;
}

struct kx_lines *kx_afdo_lines(struct kx_afdo_modules *m, uint32_t index)
{
	struct module *mod;
	struct kx_err err = { 0 };

	if (index >= m->count || !elf_of(m, index))
		return NULL;
	mod = &m->items[index];
	if (!mod->tried_lines) {
		mod->tried_lines = true;
		if (kx_lines_open(mod->path, &mod->lines, &err))
			miss(m, mod, &err);
	}
	return mod->lines;
}

const char *kx_afdo_modules_problem(const struct kx_afdo_modules *m, size_t *count)
{
	*count = m->missed;
	return m->missed ? m->first.text : NULL;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int stand_in(struct kx_afdo_modules *m, const char *binary, struct kx_err *err)
{
	struct kx_elf *elf;
	size_t found = m->count;
	int r = kx_elf_open(binary, &elf, err);

	if (r)
		return r;
	if (!m->count) {
		kx_elf_close(elf);
		return kx_err_set(err, -EINVAL, "--afdo-binary %s: the trace has no map that "
				  "names its functions; give one with -m", binary);
	}
	for (size_t i = 0; i < m->count && *kx_elf_build_id(elf); i++) {
		const char *id = m->items[i].of->build_id;

		if (id && !strcmp(id, kx_elf_build_id(elf)) && found == m->count)
			found = i;
	}
	for (size_t i = 0; i < m->count && found == m->count; i++)
		if (!strcmp(m->items[i].of->name, base_name(binary)))
			found = i;
	if (found == m->count)
		found = 0;
	m->items[found].path = binary;
	m->items[found].elf = elf;
	m->items[found].tried_elf = true;
	return 0;
}

int kx_afdo_modules_open(const struct kx_map *map, const char *binary,
			 struct kx_afdo_modules **out, struct kx_err *err)
{
	struct kx_afdo_modules *m = calloc(1, sizeof(*m));
	int r = 0;

	if (m) {
		m->map = map;
		m->count = map ? map->nmodules : 0;
		m->items = calloc(m->count + 1, sizeof(*m->items));
	}
	if (!m || !m->items) {
		free(m);
		return kx_err_set(err, -ENOMEM, "autofdo: out of memory");
	}
	for (size_t i = 0; i < m->count; i++) {
		m->items[i].of = &map->modules[i];
		m->items[i].path = map->modules[i].path;
	}
	if (binary)
		r = stand_in(m, binary, err);
	if (r)
		kx_afdo_modules_close(m);
	else
		*out = m;
	return r;
}

void kx_afdo_modules_close(struct kx_afdo_modules *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->count; i++) {
		kx_lines_close(m->items[i].lines);
		kx_elf_close(m->items[i].elf);
	}
	free(m->items);
	free(m);
}

bool kx_afdo_locate(struct kx_afdo_modules *m, uint64_t address, uint32_t *index,
		    uint64_t *vaddr)
{
	for (size_t i = 0; i < m->count; i++) {
		uint64_t at = address - m->items[i].of->load_bias;
		struct kx_elf *elf = elf_of(m, (uint32_t)i);
		struct kx_elf_section segment;

		for (size_t s = 0; elf && kx_elf_exec_segment(elf, s, &segment); s++) {
			if (at < segment.addr || at - segment.addr >= segment.size)
				continue;
			*index = (uint32_t)i;
			*vaddr = at;
			return true;
		}
	}
	return false;
}

/* Call instructions */

static int32_t word_at(const uint8_t *p)
{
	return (int32_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
			 (uint32_t)p[3] << 24);
}

bool kx_afdo_is_return(struct kx_afdo_modules *m, uint32_t index, uint64_t vaddr)
{
	struct kx_elf *elf = elf_of(m, index);
	const uint8_t *code = elf ? kx_elf_code(elf, vaddr, 1) : NULL;

	if (code && *code == 0xf3) /* rep or bnd */
		code = kx_elf_code(elf, vaddr + 1, 1);
	return code && *code == 0xc3;
}

/* The slot that the PLT stub at @addr jumps through; 0 if it is not known. */
static uint64_t slot_of_stub(struct kx_elf *elf, uint64_t addr)
{
	const uint8_t *code = kx_elf_code(elf, addr, 16);
	size_t at = 0;

	if (!code)
		return 0;
	if (!memcmp(code, "\xf3\x0f\x1e\xfa", 4)) /* endbr64 */
		at = 4;
	if (code[at] == 0xf2) /* bnd */
		at++;
	if (code[at] != 0xff || code[at + 1] != 0x25) /* jmp *disp(%rip) */
		return 0;
	return addr + at + 6 + (uint64_t)(int64_t)word_at(code + at + 2);
}

static const char *name_in(struct kx_elf *elf, uint32_t symbol, Elf64_Sym *out)
{
	struct kx_elf_section symbols, strings;

	if (!kx_elf_get_section(elf, ".dynsym", &symbols) || !symbols.data ||
	    !kx_elf_get_section(elf, ".dynstr", &strings) || !strings.data ||
	    symbol >= symbols.size / sizeof(*out))
		return NULL;
	memcpy(out, symbols.data + symbol * sizeof(*out), sizeof(*out));
	if (out->st_name >= strings.size ||
	    !memchr(strings.data + out->st_name, 0, strings.size - out->st_name))
		return NULL;
	return (const char *)strings.data + out->st_name;
}

/* Name of the symbol that is bound into @slot; NULL if it has none. */
static const char *name_of_slot(struct kx_elf *elf, uint64_t slot)
{
	static const char *const tables[] = { ".rela.plt", ".rela.dyn" };
	struct kx_elf_section s;
	Elf64_Rela rela;
	Elf64_Sym sym;

	for (size_t t = 0; t < 2; t++) {
		if (!kx_elf_get_section(elf, tables[t], &s) || !s.data)
			continue;
		for (size_t at = 0; at + sizeof(rela) <= s.size; at += sizeof(rela)) {
			memcpy(&rela, s.data + at, sizeof(rela));
			if (rela.r_offset != slot)
				continue;
			/* Symbol 0: an indirect function of this file. */
			return ELF64_R_SYM(rela.r_info)
				       ? name_in(elf, (uint32_t)ELF64_R_SYM(rela.r_info), &sym)
				       : NULL;
		}
	}
	return NULL;
}

/* True if @name is, or may be, a name of @callee. */
static bool is_name_of(struct kx_afdo_modules *m, const char *name,
		       const struct kx_map_function *callee)
{
	struct kx_elf *elf;
	Elf64_Sym sym;
	const char *other;

	if (!strncmp(name, callee->symbol, strcspn(callee->symbol, "@")) &&
	    !name[strcspn(callee->symbol, "@")])
		return true;
	elf = callee->module < m->count ? elf_of(m, callee->module) : NULL;
	if (!elf)
		return true;
	for (uint32_t i = 0; (other = name_in(elf, i, &sym)); i++) {
		/* An indirect function's address is that of its resolver. */
		if (!strcmp(other, name) && sym.st_shndx != SHN_UNDEF)
			return sym.st_value == callee->address ||
			       ELF64_ST_TYPE(sym.st_info) == STT_GNU_IFUNC;
	}
	return false;
}

bool kx_afdo_may_call(struct kx_afdo_modules *m, uint32_t index, uint64_t vaddr,
		      const struct kx_map_function *callee)
{
	struct kx_elf *elf = elf_of(m, index);
	const uint8_t *code = elf ? kx_elf_code(elf, vaddr - 6, 6) : NULL;
	uint64_t target, slot = 0;
	const char *name;

	if (!code)
		return true;
	if (code[0] == 0xff && code[1] == 0x15) { /* call *disp(%rip), as -fno-plt makes it */
		slot = vaddr + (uint64_t)(int64_t)word_at(code + 2);
	} else if (code[1] == 0xe8) {
		target = vaddr + (uint64_t)(int64_t)word_at(code + 2);
		if (callee->module == index && target == callee->address)
			return true;
		if (!kx_elf_code(elf, target, 1)) /* the end of an indirect call */
			return true;
		if (!kx_elf_in_plt(elf, target))
			return false;
		slot = slot_of_stub(elf, target);
	}
	name = slot ? name_of_slot(elf, slot) : NULL;
	return !name || is_name_of(m, name, callee);
}
