// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads maps: kxray's own by their JSON section, XRay-instrumented binaries by
 * their sled table, with ids counted as llvm-xray does. Uses libelf and not
 * elf_image.h because a binary of any 64-bit machine can be a map.
 */
#include "map_file.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "demangle.h"

#define SLED_SIZE 32

/* What a map owns besides what its user put in. */
struct storage {
	bool owns_lists; /* modules and functions are this file's */
	json_t *root;    /* modules' strings and the session belong to it */
	char *text;      /* functions' symbols */
	char *file_name, *file_path, *file_build_id; /* of module 0 of a binary */
	char **names;    /* demangled, by index; NULL where not asked for yet */
	void *unknown;   /* search tree of "#id" */
};

static struct storage *storage_of(struct kx_map *map)
{
	if (!map->storage)
		map->storage = calloc(1, sizeof(struct storage));
	return map->storage;
}

void kx_map_free(struct kx_map *map)
{
	struct storage *s = map->storage;

	if (!s)
		return;
	for (size_t i = 0; s->names && i < map->nfunctions; i++)
		free(s->names[i]);
	free(s->names);
	tdestroy(s->unknown, free);
	free(s->text);
	free(s->file_name);
	free(s->file_path);
	free(s->file_build_id);
	json_decref(s->root);
	if (s->owns_lists) {
		free(map->modules);
		free(map->functions);
		memset(map, 0, sizeof(*map));
	}
	map->storage = NULL;
	free(s);
}

/* Names */

struct unknown {
	uint32_t id;
	char text[12];
};

static int compare_unknown(const void *a, const void *b)
{
	const struct unknown *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static const char *unknown_name(struct storage *s, uint32_t id)
{
	struct unknown *u = malloc(sizeof(*u)), **found;

	if (!u)
		return "#?";
	u->id = id;
	snprintf(u->text, sizeof(u->text), "#%u", id);
	found = tsearch(u, &s->unknown, compare_unknown);
	if (!found || *found != u)
		free(u);
	return found ? (*found)->text : "#?";
}

const char *kx_map_name(struct kx_map *map, uint32_t id)
{
	struct storage *s = storage_of(map);
	const char *symbol;
	char *base;

	if (!s)
		return "#?";
	if (!id || id > map->nfunctions || !map->functions[id - 1].symbol ||
	    !*map->functions[id - 1].symbol)
		return unknown_name(s, id);
	symbol = map->functions[id - 1].symbol;
	if (!s->names)
		s->names = calloc(map->nfunctions, sizeof(*s->names));
	if (!s->names)
		return symbol;
	if (!s->names[id - 1]) {
		/* without the symbol's version: malloc@@GLIBC_2.2.5 */
		base = strndup(symbol, 1 + strcspn(symbol + 1, "@"));
		if (!base)
			return symbol;
		s->names[id - 1] = kx_demangle(base);
		if (s->names[id - 1])
			free(base);
		else
			s->names[id - 1] = base;
	}
	return s->names[id - 1];
}

const char *kx_map_module_name(const struct kx_map *map, uint32_t id)
{
	const char *name;

	if (!id || id > map->nfunctions || map->functions[id - 1].module >= map->nmodules)
		return "";
	name = map->modules[map->functions[id - 1].module].name;
	return name ? name : "";
}

/* kxray's own maps */

static bool read_address(const json_t *json, uint64_t *v)
{
	const char *text = json_string_value(json);
	char *end;

	if (!text || strncmp(text, "0x", 2) != 0 || !text[2] || strlen(text) > 18)
		return false;
	errno = 0;
	*v = strtoull(text + 2, &end, 16);
	return !*end && !errno;
}

static bool read_modules(struct kx_map *map, const json_t *list)
{
	size_t n = json_array_size(list);

	for (size_t i = 0; i < n; i++) {
		const json_t *json = json_array_get(list, i);
		struct kx_map_module *m = &map->modules[i];

		m->name = json_string_value(json_object_get(json, "name"));
		m->path = json_string_value(json_object_get(json, "path"));
		m->build_id = json_string_value(json_object_get(json, "build_id"));
		if (!m->name || !m->path || !m->build_id ||
		    !read_address(json_object_get(json, "load_bias"), &m->load_bias) ||
		    !read_address(json_object_get(json, "map_base"), &m->map_base))
			return false;
	}
	map->nmodules = n;
	return true;
}

static bool read_functions(struct kx_map *map, const json_t *list)
{
	size_t n = json_array_size(list), size = 1;
	struct storage *s = map->storage;
	char *at;

	for (size_t i = 0; i < n; i++)
		size += json_string_length(json_array_get(json_array_get(list, i), 3)) + 1;
	at = s->text = malloc(size);
	if (!at)
		return false;
	for (size_t i = 0; i < n; i++) {
		const json_t *row = json_array_get(list, i);
		const json_t *module = json_array_get(row, 0), *bytes = json_array_get(row, 2);
		const char *symbol = json_string_value(json_array_get(row, 3));
		struct kx_map_function *f = &map->functions[i];

		if (!symbol || !json_is_integer(module) || !json_is_integer(bytes) ||
		    json_integer_value(module) < 0 ||
		    (uint64_t)json_integer_value(module) >= map->nmodules ||
		    !read_address(json_array_get(row, 1), &f->address))
			return false;
		f->module = (uint32_t)json_integer_value(module);
		f->size = (uint64_t)json_integer_value(bytes);
		f->symbol = at;
		at = stpcpy(at, symbol) + 1;
	}
	map->nfunctions = n;
	return true;
}

/* NULL, or why it is not valid. */
static const char *read_session(struct kx_map *map, const Elf_Data *data)
{
	struct storage *s = map->storage;
	json_t *modules, *functions;

	s->root = json_loadb(data->d_buf, data->d_size, 0, NULL);
	if (!s->root)
		return "its section " KX_MAP_SESSION_SECTION " is not JSON";
	if (json_integer_value(json_object_get(s->root, "kxray")) != 1)
		return "its session data is not of version 1, so a newer kxray wrote it";
	modules = json_object_get(s->root, "modules");
	functions = json_object_get(s->root, "functions");
	map->modules = calloc(json_array_size(modules) + 1, sizeof(*map->modules));
	map->functions = calloc(json_array_size(functions) + 1, sizeof(*map->functions));
	if (!map->modules || !map->functions)
		return "there is no memory for it";
	if (!read_modules(map, modules) || !read_functions(map, functions))
		return "its list of modules or functions is damaged";
	map->session = json_object_get(s->root, "session");
	json_object_del(s->root, "functions"); /* by far the largest part */
	return NULL;
}

/* XRay-instrumented binaries */

struct symbol {
	uint64_t address;
	uint64_t size;
	const char *name; /* the ELF's */
	int rank;         /* which one of several at one address names the function */
};

static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->rank - y->rank;
}

/*
 * Best name first: functions before labels (hand-written assembly may have no more),
 * then global, weak, local; -1 if the symbol names no code here.
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
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (list[mid].address < address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n && list[lo].address == address ? &list[lo] : NULL;
}

/* Puts what the dynamic linker would write into the words of the sled table that are zero. */
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

/* Addresses of the functions in id order; the words of the table are used up for that. */
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
	struct storage *s = map->storage;
	size_t size = 1;
	char *at;

	map->functions = calloc(nfunctions + 1, sizeof(*map->functions));
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
		f->size = sym ? sym->size : 0;
		f->symbol = at;
		/* as llvm-xray prints functions that have no symbol */
		at += sym ? sprintf(at, "%s", sym->name)
			  : sprintf(at, "@(%llx)", (unsigned long long)addresses[i]);
		at++;
	}
	map->nfunctions = nfunctions;
	return NULL;
}

static const char *read_binary(struct kx_map *map, Elf *elf, Elf_Scn *scn, const char *path)
{
	struct storage *s = map->storage;
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

static Elf_Scn *find_section(Elf *elf, const char *name)
{
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return NULL;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		GElf_Shdr shdr;
		const char *found;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS)
			continue;
		found = elf_strptr(elf, names, shdr.sh_name);
		if (found && strcmp(found, name) == 0)
			return scn;
	}
	return NULL;
}

static const char *read_elf(struct kx_map *map, Elf *elf, const char *path)
{
	Elf_Scn *session, *sleds;
	GElf_Ehdr ehdr;
	Elf_Data *data;

	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &ehdr))
		return "it is not an ELF file";
	if (ehdr.e_ident[EI_CLASS] != ELFCLASS64 || ehdr.e_ident[EI_DATA] != ELFDATA2LSB)
		return "it is not of a 64-bit little-endian machine";
	session = find_section(elf, KX_MAP_SESSION_SECTION);
	if (session) {
		data = elf_getdata(session, NULL);
		if (!data || !data->d_buf)
			return "its section " KX_MAP_SESSION_SECTION " is damaged";
		return read_session(map, data);
	}
	sleds = find_section(elf, "xray_instr_map");
	if (!sleds)
		return "it has no section xray_instr_map";
	if (ehdr.e_type == ET_REL)
		return "it is an object file, which has no addresses yet";
	return read_binary(map, elf, sleds, path);
}

int kx_map_read(const char *path, struct kx_map *map, struct kx_err *err)
{
	const char *why = "it cannot be read";
	Elf *elf;
	int fd, ret;

	memset(map, 0, sizeof(*map));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		ret = -errno;
		return kx_err_set(err, ret, "cannot open the map %s: %s", path, strerror(-ret));
	}
	if (!storage_of(map)) {
		close(fd);
		return kx_err_set(err, -ENOMEM, "no memory to read the map %s", path);
	}
	((struct storage *)map->storage)->owns_lists = true;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf)
		why = read_elf(map, elf, path);
	elf_end(elf);
	close(fd);
	if (!why)
		return 0;
	kx_map_free(map);
	return kx_err_set(err, -EBADMSG,
			  "%s is not a map: %s; name the .map file that kxray wrote beside the "
			  "trace, or the binary if it was built with -fxray-instrument", path, why);
}
