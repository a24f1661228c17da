// SPDX-License-Identifier: BSD-2-Clause
/*
 * XRay-instrumented binaries as maps: functions from their sled table, with ids counted
 * as llvm-xray does, named by their symbol table. libelf and not elf_image.h, because a
 * binary of any 64-bit machine can be a map.
 */
#include <elf.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bisect.h"
#include "base/large.h"
#include "trace/map_internal.h"

#define SLED_SIZE 32

struct symbol {
	uint64_t address;
	uint64_t size;
	const char *name; /* the ELF's */
	int rank;	  /* which one of several at one address names the function */
};

static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->rank - y->rank;
}

/*
 * Best name first: functions before labels (hand-written assembly may have only labels),
 * then global, weak, local; -1 if the symbol does not name code of this file.
 */
static int rank_of(const GElf_Sym *sym)
{
	int type = GELF_ST_TYPE(sym->st_info), bind = GELF_ST_BIND(sym->st_info);
	int rank = bind == STB_GLOBAL ? 0 : bind == STB_WEAK ? 1 : 2;

	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx == SHN_ABS)
		return -1;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return rank;
	return type == STT_NOTYPE ? rank + 3 : -1;
}

/* Functions of .symtab, else of .dynsym, sorted; NULL with *n 0 if there are none. */
static struct symbol *read_symbols(Elf *elf, size_t *n)
{
	struct symbol *list = NULL;

	*n = 0;
	for (GElf_Word type = SHT_SYMTAB;; type = SHT_DYNSYM) {
		for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
			Elf_Data *data = elf_getdata(scn, NULL);
			GElf_Shdr shdr;
			struct symbol *bigger;
			size_t count;

			if (!data || !gelf_getshdr(scn, &shdr) || shdr.sh_type != type)
				continue;
			count = data->d_size / sizeof(Elf64_Sym);
			bigger = realloc(list, (*n + count + 1) * sizeof(*list));
			if (!bigger)
				continue;
			list = bigger;
			for (size_t i = 0; i < count; i++) {
				GElf_Sym sym;
				const char *name;

				if (!gelf_getsym(data, (int)i, &sym) || rank_of(&sym) < 0)
					continue;
				name = elf_strptr(elf, shdr.sh_link, sym.st_name);
				if (!name || !*name)
					continue;
				list[(*n)++] = (struct symbol){
					.address = sym.st_value,
					.size = sym.st_size,
					.name = name,
					.rank = rank_of(&sym),
				};
			}
		}
		if (*n || type == SHT_DYNSYM)
			break;
	}
	if (*n)
		qsort(list, *n, sizeof(*list), compare_symbols);
	return list;
}

static const struct symbol *find_symbol(const struct symbol *list, size_t n, uint64_t address)
{
	const size_t at = KX_COUNT_LEADING(n, i, list[i].address < address);

	return at < n && list[at].address == address ? &list[at] : NULL;
}

/* Relocates the words of the sled table that are zero, as the dynamic linker would. */
static void apply_relocations(Elf *elf, const GElf_Shdr *table, uint64_t *words)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		Elf_Data *data, *symbols;
		GElf_Shdr shdr;
		Elf_Scn *linked;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_RELA)
			continue;
		data = elf_getdata(scn, NULL);
		linked = shdr.sh_link ? elf_getscn(elf, shdr.sh_link) : NULL;
		symbols = linked ? elf_getdata(linked, NULL) : NULL;
		for (size_t i = 0; data && i < data->d_size / sizeof(Elf64_Rela); i++) {
			GElf_Rela rela;
			GElf_Sym sym = { 0 };
			uint64_t at;

			if (!gelf_getrela(data, (int)i, &rela))
				continue;
			at = rela.r_offset - table->sh_addr;
			if (rela.r_offset < table->sh_addr || at >= table->sh_size || at % 8 ||
			    words[at / 8])
				continue;
			if (symbols && GELF_R_SYM(rela.r_info))
				gelf_getsym(symbols, (int)GELF_R_SYM(rela.r_info), &sym);
			words[at / 8] = sym.st_value + (uint64_t)rela.r_addend;
		}
	}
}

/* Addresses of the functions in id order; overwrites the beginning of @words with them. */
static size_t function_addresses(uint64_t *words, size_t nsleds, uint64_t table_addr)
{
	size_t n = 0;
	uint64_t last = 0;

	for (size_t i = 0; i < nsleds; i++) {
		uint8_t version = (uint8_t)(words[i * 4 + 2] >> 16);
		uint64_t function = words[i * 4 + 1];

		if (version >= 2) /* relative to the field itself */
			function += table_addr + i * SLED_SIZE + 8;
		if (i == 0 || function != last)
			words[n++] = function;
		last = function;
	}
	return n;
}

static char *read_build_id(Elf *elf)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		size_t at = 0, next, name, desc;
		GElf_Shdr shdr;
		GElf_Nhdr note;
		Elf_Data *data;
		char *hex;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_NOTE)
			continue;
		data = elf_getdata(scn, NULL);
		for (; data && (next = gelf_getnote(data, at, &note, &name, &desc)); at = next) {
			const uint8_t *bytes = (const uint8_t *)data->d_buf + desc;

			if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
			    memcmp((const char *)data->d_buf + name, "GNU", 4) != 0)
				continue;
			hex = malloc(2 * (size_t)note.n_descsz + 1);
			for (size_t i = 0; hex && i < note.n_descsz; i++)
				sprintf(hex + 2 * i, "%02x", bytes[i]);
			if (hex)
				hex[2 * (size_t)note.n_descsz] = 0;
			return hex;
		}
	}
	return strdup("");
}

static const char *name_functions(struct kx_map *map, const struct symbol *symbols, size_t n,
				  const uint64_t *addresses, size_t nfunctions)
{
	struct kx_map_storage *s = map->storage;
	size_t size = 1;
	char *at;

	map->functions = kx_large_calloc(nfunctions + 1, sizeof(*map->functions));
	for (size_t i = 0; i < nfunctions; i++) {
		const struct symbol *sym = find_symbol(symbols, n, addresses[i]);

		size += sym ? strlen(sym->name) + 1 : 24;
	}
	at = s->text = malloc(size);
	if (!map->functions || !at)
		return "there is no memory for it";
	for (size_t i = 0; i < nfunctions; i++) {
		const struct symbol *sym = find_symbol(symbols, n, addresses[i]);
		struct kx_map_function *f = &map->functions[i];

		f->address = addresses[i];
		f->size = sym ? kx_map_function_size(sym->size) : 0;
		f->symbol = at;
		/* as llvm-xray prints functions that have no symbol */
		at += sym ? sprintf(at, "%s", sym->name)
			  : sprintf(at, "@(%llx)", (unsigned long long)addresses[i]);
		at++;
	}
	map->nfunctions = nfunctions;
	return NULL;
}

const char *kx_map_read_binary(struct kx_map *map, Elf *elf, Elf_Scn *scn, const char *path)
{
	struct kx_map_storage *s = map->storage;
	Elf_Data *data = elf_getdata(scn, NULL);
	const char *slash = strrchr(path, '/');
	const char *why;
	struct symbol *symbols;
	uint64_t *words;
	GElf_Shdr shdr;
	size_t n;

	if (!gelf_getshdr(scn, &shdr) || !data || !data->d_buf || data->d_size != shdr.sh_size ||
	    data->d_size % SLED_SIZE)
		return "its section xray_instr_map is damaged";
	s->file_name = strdup(slash ? slash + 1 : path);
	s->file_path = strdup(path);
	s->file_build_id = read_build_id(elf);
	map->modules = calloc(1, sizeof(*map->modules));
	words = malloc(data->d_size + 1);
	if (!s->file_name || !s->file_path || !s->file_build_id || !map->modules || !words) {
		free(words);
		return "there is no memory for it";
	}
	map->nmodules = 1;
	map->modules[0] = (struct kx_map_module){
		.name = s->file_name,
		.path = s->file_path,
		.build_id = s->file_build_id,
	};
	memcpy(words, data->d_buf, data->d_size);
	for (size_t i = 0; i < data->d_size / 8; i++)
		words[i] = le64toh(words[i]);
	apply_relocations(elf, &shdr, words);
	symbols = read_symbols(elf, &n);
	why = name_functions(map, symbols, n, words,
			     function_addresses(words, data->d_size / SLED_SIZE, shdr.sh_addr));
	free(symbols);
	free(words);
	return why;
}
