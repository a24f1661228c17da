// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes a map. llvm-xray numbers functions in the order of xray_instr_map: each address that
 * differs from the one before gets a new id. So there is one sled per function, in id order, and no
 * two functions have the same address. Its symbolizer takes the name at an address from .symtab,
 * and the file name (here: the module) from the preceding STT_FILE symbol, if the symbols are
 * local.
 */
#include "trace/map_file.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/fdr.h"
#include "base/json_text.h"
#include "base/output.h"
#include "base/write_all.h"
#include "trace/map_internal.h"
#include "trace/map_strings.h"

#define MODULE_ALIGN (16ULL << 20) /* a module's addresses keep their low 24 bits */
#define MAX_SPAN     (1ULL << 40)  /* a module wider than this is packed */
#define PACKED_STEP  16		   /* between functions that have no address of their own */

enum {
	S_NULL,
	S_TEXT,
	S_SLEDS,
	S_SYMTAB,
	S_FUNCTIONS,
	S_CALLERS,
	S_LINES,
	S_STRTAB,
	S_NAMES,
	S_FILES,
	S_SESSION,
	S_SHSTRTAB,
	NSECTIONS
};

static const char section_names[] =
	"\0.text\0xray_instr_map\0.symtab\0" KX_MAP_FUNCTIONS_SECTION "\0" KX_MAP_CALLERS_SECTION
	"\0" KX_MAP_LINES_SECTION "\0.strtab\0" KX_MAP_NAMES_SECTION "\0" KX_MAP_FILES_SECTION
	"\0" KX_MAP_SESSION_SECTION "\0.shstrtab";

/* xray_instr_map, version 0: absolute addresses. */
struct sled {
	uint64_t address;
	uint64_t function;
	uint8_t kind; /* 0: entry */
	uint8_t always;
	uint8_t version;
	uint8_t padding[13];
};
_Static_assert(sizeof(struct sled) == 32, "a sled is 32 bytes");

struct image {
	uint64_t *addresses; /* in the map, by function */
	uint64_t end;	     /* past the last address in use */
	struct sled *sleds;
	Elf64_Sym *symbols;
	size_t nsymbols;
	struct kx_map_row *rows;
	struct kx_map_row *callers;
	struct kx_map_line *lines; /* NULL: no function's is known */
	struct kx_map_strings files;
	struct kx_map_strings strings; /* what llvm-xray shows */
	struct kx_map_strings names;   /* what the symbols are called */
	char *session;
	Elf64_Ehdr header;
	Elf64_Shdr sections[NSECTIONS];
};

/* Addresses */

static uint64_t round_up(uint64_t v)
{
	return (v + MODULE_ALIGN - 1) & ~(MODULE_ALIGN - 1);
}

struct range {
	uint64_t low, high;
	bool used;
};

/* Gives each module its range. Functions to be packed keep the address UINT64_MAX. */
static int place_modules(struct image *im, struct kx_map *map)
{
	struct range *ranges = calloc(map->nmodules + 1, sizeof(*ranges));
	uint64_t next = MODULE_ALIGN;

	if (!ranges)
		return -ENOMEM;
	for (size_t i = 0; i < map->nfunctions; i++) {
		const struct kx_map_function *f = &map->functions[i];
		struct range *r = &ranges[f->module];
		uint64_t end = f->address + (f->size ? f->size : 1);

		if (end < f->address)
			end = UINT64_MAX;
		if (!r->used || f->address < r->low)
			r->low = f->address & ~(MODULE_ALIGN - 1);
		if (!r->used || end > r->high)
			r->high = end;
		r->used = true;
	}
	for (size_t m = 0; m < map->nmodules; m++) {
		struct range *r = &ranges[m];

		map->modules[m].map_base = next;
		if (r->used && r->high - r->low <= MAX_SPAN)
			next = round_up(next + (r->high - r->low));
		else
			r->used = false;
	}
	for (size_t i = 0; i < map->nfunctions; i++) {
		const struct kx_map_function *f = &map->functions[i];
		const struct range *r = &ranges[f->module];

		im->addresses[i] =
			r->used ? map->modules[f->module].map_base + (f->address - r->low)
				: UINT64_MAX;
	}
	im->end = next;
	free(ranges);
	return 0;
}

struct place {
	uint64_t address;
	size_t index;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->index < y->index ? -1 : 1;
}

/* Puts functions whose address is taken, and those to be packed, behind all modules. */
static int place_rest(struct image *im, const struct kx_map *map)
{
	struct place *places = calloc(map->nfunctions + 1, sizeof(*places));

	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < map->nfunctions; i++)
		places[i] = (struct place){ im->addresses[i], i };
	qsort(places, map->nfunctions, sizeof(*places), compare_places);
	for (size_t i = 0; i < map->nfunctions; i++) {
		bool repeated = i && places[i].address == places[i - 1].address;

		if (!repeated && places[i].address != UINT64_MAX)
			continue;
		im->addresses[places[i].index] = im->end;
		im->end += PACKED_STEP;
	}
	free(places);
	return 0;
}

/* Symbols */

/* All symbols are local; those of a module follow its STT_FILE symbol. */
static int make_symbols(struct image *im, const struct kx_map *map)
{
	size_t *next = calloc(map->nmodules + 2, sizeof(*next));
	uint32_t ignored;
	int ret = -ENOMEM;

	im->nsymbols = 1 + map->nmodules + map->nfunctions;
	im->symbols = calloc(im->nsymbols, sizeof(*im->symbols));
	if (!next || !im->symbols || kx_map_add_string(&im->strings, "", 0, &ignored) < 0)
		goto out;
	for (size_t i = 0; i < map->nfunctions; i++)
		next[map->functions[i].module + 1]++;
	next[0] = 1;
	for (size_t m = 0; m < map->nmodules; m++) {
		const char *name = map->modules[m].name ? map->modules[m].name : "";
		size_t at = next[m];
		Elf64_Sym *s = &im->symbols[at];

		s->st_info = ELF64_ST_INFO(STB_LOCAL, STT_FILE);
		s->st_shndx = SHN_ABS;
		ret = kx_map_add_plain(&im->strings, name, strlen(name), &s->st_name);
		if (ret < 0)
			goto out;
		next[m] = at + 1;
		next[m + 1] += at + 1;
	}
	for (size_t i = 0; i < map->nfunctions; i++) {
		const struct kx_map_function *f = &map->functions[i];
		Elf64_Sym *s = &im->symbols[next[f->module]++];

		s->st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
		s->st_shndx = S_TEXT;
		s->st_value = im->addresses[i];
		/*
		 * an end beyond the last address would wrap around, and llvm-xray would not
		 * find it
		 */
		s->st_size = f->size < im->end - s->st_value ? f->size : im->end - s->st_value;
		ret = kx_map_add_llvm_name(&im->strings, f->symbol ? f->symbol : "", &s->st_name);
		if (ret < 0)
			goto out;
	}
	ret = 0;
out:
	free(next);
	return ret;
}

/* kxray's own list */

static int make_rows(struct image *im, const struct kx_map_function *functions, size_t n, struct kx_map_row **out)
{
	struct kx_map_row *rows = calloc(n + 1, sizeof(*rows));
	uint32_t offset;
	int ret = 0;

	*out = rows;
	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; i < n && ret == 0; i++) {
		const struct kx_map_function *f = &functions[i];

		offset = 0;
		if (f->symbol && *f->symbol)
			ret = kx_map_add_text(&im->names, f->symbol, &offset);
		rows[i] = (struct kx_map_row){
			.address = htole64(f->address),
			.size = htole64(f->size),
			.module = htole32(f->module),
			.name = htole32(offset),
		};
	}
	return ret;
}

static int make_lists(struct image *im, const struct kx_map *map)
{
	uint32_t offset;
	int ret = kx_map_add_string(&im->names, "", 0, &offset);

	if (ret == 0)
		ret = make_rows(im, map->functions, map->nfunctions, &im->rows);
	if (ret == 0)
		ret = make_rows(im, map->callers, map->ncallers, &im->callers);
	return ret ? ret : kx_map_lines_make(map, &im->lines, &im->files);
}

/* The session */

/* JSON has no unsigned 64-bit numbers, and many readers none over 53 bits. */
static json_t *json_address(uint64_t v)
{
	char text[20];

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)v);
	return json_string(text);
}

static json_t *module_json(const struct kx_map_module *m)
{
	json_t *json = json_pack("{s:o, s:o, s:o, s:o, s:o}", "name", kx_json_text(m->name, SIZE_MAX),
				 "path", kx_json_text(m->path, SIZE_MAX), "build_id",
				 kx_json_text(m->build_id, SIZE_MAX), "load_bias",
				 json_address(m->load_bias), "map_base", json_address(m->map_base));

	if (json && m->called && json_object_set_new(json, "called", kx_json_text(m->called, SIZE_MAX))) {
		json_decref(json);
		return NULL;
	}
	return json;
}

static int make_session(struct image *im, const struct kx_map *map)
{
	json_t *root = json_object(), *modules = json_array();
	int bad = json_object_set_new(root, "kxray", json_integer(1));

	if (map->session)
		bad |= json_object_set(root, "session", map->session);
	for (size_t i = 0; i < map->nmodules && !bad; i++)
		bad |= json_array_append_new(modules, module_json(&map->modules[i]));
	bad |= json_object_set_new(root, "modules", modules);
	if (!bad)
		im->session = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	return im->session ? 0 : -ENOMEM;
}

/* The ELF */

static void set_section(struct image *im, int i, Elf64_Word type, Elf64_Xword flags, uint64_t size,
			uint64_t entry)
{
	Elf64_Shdr *s = &im->sections[i];
	const char *name = section_names;

	for (int k = 0; k < i; k++)
		name += strlen(name) + 1;
	s->sh_name = (Elf64_Word)(name - section_names);
	s->sh_type = type;
	s->sh_flags = flags;
	s->sh_size = size;
	s->sh_entsize = entry;
	s->sh_addralign = 1;
}

static void make_sections(struct image *im, const struct kx_map *map)
{
	uint64_t offset = sizeof(Elf64_Ehdr);

	set_section(im, S_TEXT, SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, im->end - MODULE_ALIGN, 0);
	set_section(im, S_SLEDS, SHT_PROGBITS, SHF_ALLOC, map->nfunctions * sizeof(struct sled),
		    sizeof(struct sled));
	set_section(im, S_SYMTAB, SHT_SYMTAB, 0, im->nsymbols * sizeof(Elf64_Sym),
		    sizeof(Elf64_Sym));
	set_section(im, S_FUNCTIONS, SHT_PROGBITS, 0, map->nfunctions * sizeof(struct kx_map_row),
		    sizeof(struct kx_map_row));
	set_section(im, S_CALLERS, SHT_PROGBITS, 0, map->ncallers * sizeof(struct kx_map_row),
		    sizeof(struct kx_map_row));
	set_section(im, S_LINES, SHT_PROGBITS, 0, im->lines ? map->nfunctions * sizeof(struct kx_map_line) : 0,
		    sizeof(struct kx_map_line));
	set_section(im, S_FILES, SHT_PROGBITS, 0, im->files.len, 0);
	set_section(im, S_STRTAB, SHT_STRTAB, 0, im->strings.len, 0);
	set_section(im, S_NAMES, SHT_PROGBITS, 0, im->names.len, 0);
	set_section(im, S_SESSION, SHT_PROGBITS, 0, strlen(im->session), 0);
	set_section(im, S_SHSTRTAB, SHT_STRTAB, 0, sizeof(section_names), 0);
	im->sections[S_TEXT].sh_addr = MODULE_ALIGN;
	im->sections[S_SLEDS].sh_addr = round_up(im->end);
	im->sections[S_SYMTAB].sh_link = S_STRTAB;
	im->sections[S_SYMTAB].sh_info = (Elf64_Word)im->nsymbols; /* first symbol not local */
	for (int i = S_TEXT; i < NSECTIONS; i++) {
		/* tables are read in place, so they are aligned */
		im->sections[i].sh_addralign = i >= S_SLEDS && i <= S_LINES ? 8 : 1;
		im->sections[i].sh_offset = offset;
		if (i != S_TEXT)
			offset += im->sections[i].sh_size;
	}
	im->header = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT, ELFOSABI_NONE },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = NSECTIONS,
		.e_shstrndx = S_SHSTRTAB,
		.e_shoff = (offset + 7) & ~7ULL,
	};
}

static int build(struct image *im, struct kx_map *map)
{
	int ret;

	im->addresses = calloc(map->nfunctions + 1, sizeof(*im->addresses));
	im->sleds = calloc(map->nfunctions + 1, sizeof(*im->sleds));
	if (!im->addresses || !im->sleds)
		return -ENOMEM;
	ret = place_modules(im, map);
	if (ret == 0)
		ret = place_rest(im, map);
	if (ret == 0)
		ret = make_symbols(im, map);
	if (ret == 0)
		ret = make_lists(im, map);
	if (ret == 0)
		ret = make_session(im, map);
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < map->nfunctions; i++)
		im->sleds[i].address = im->sleds[i].function = im->addresses[i];
	make_sections(im, map);
	return 0;
}

static int write_image(int fd, const struct image *im)
{
	static char zeros[8];
	const Elf64_Shdr *last = &im->sections[S_SHSTRTAB];
	struct iovec parts[] = {
		{ (void *)&im->header, sizeof(im->header) },
		{ im->sleds, im->sections[S_SLEDS].sh_size },
		{ im->symbols, im->sections[S_SYMTAB].sh_size },
		{ im->rows, im->sections[S_FUNCTIONS].sh_size },
		{ im->callers, im->sections[S_CALLERS].sh_size },
		{ im->lines, im->sections[S_LINES].sh_size },
		{ im->strings.data, im->sections[S_STRTAB].sh_size },
		{ im->names.data, im->sections[S_NAMES].sh_size },
		{ im->files.data, im->sections[S_FILES].sh_size },
		{ (void *)im->session, im->sections[S_SESSION].sh_size },
		{ (void *)section_names, last->sh_size },
		{ zeros, im->header.e_shoff - last->sh_offset - last->sh_size },
		{ (void *)im->sections, sizeof(im->sections) },
	};

	return kx_write_all(fd, parts, sizeof(parts) / sizeof(parts[0]));
}

static int save(const char *path, const struct image *im, struct kx_err *err)
{
	struct kx_output out;
	int ret = kx_output_open(&out, path, err);

	if (!ret) {
		ret = write_image(out.fd, im);
		if (ret < 0)
			kx_err_set(err, ret, "cannot write the map %s: %s", path, strerror(-ret));
	}
	if (!ret)
		ret = kx_output_keep(&out, err);
	kx_output_close(&out);
	return ret;
}

int kx_map_write(const char *path, struct kx_map *map, struct kx_err *err)
{
	struct image im = { 0 };
	int ret;

	if (map->nfunctions > KX_FDR_MAX_FUNC)
		return kx_err_set(err, -E2BIG,
				  "the map %s cannot hold %zu functions: a trace has %u ids, so "
				  "select fewer",
				  path, map->nfunctions, KX_FDR_MAX_FUNC);
	for (size_t i = 0; i < map->nfunctions; i++)
		if (map->functions[i].module >= map->nmodules)
			return kx_err_set(err, -EINVAL,
					  "function %zu of the map %s names module %u, but it has "
					  "%zu modules",
					  i + 1, path, map->functions[i].module, map->nmodules);
	ret = build(&im, map);
	if (ret == -E2BIG)
		kx_err_set(err, ret,
			   "the map %s cannot hold functions whose names take 4 GiB: "
			   "select fewer",
			   path);
	else if (ret < 0)
		kx_err_set(err, ret, "no memory for a map of %zu functions", map->nfunctions);
	else
		ret = save(path, &im, err);
	free(im.addresses);
	free(im.sleds);
	free(im.symbols);
	free(im.rows);
	free(im.callers);
	free(im.lines);
	free(im.files.data);
	free(im.strings.data);
	free(im.names.data);
	free(im.session);
	return ret;
}
