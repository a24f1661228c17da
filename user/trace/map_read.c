// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads maps. kxray's own are mapped: symbols stay in the file, since a report may show 20 of
 * 200,000. Everything is checked before it is used.
 */
#include "trace/map_file.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "trace/map_internal.h"

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
		m->called = json_string_value(json_object_get(json, "called"));
		if (!m->name || !m->path || !m->build_id ||
		    !read_address(json_object_get(json, "load_bias"), &m->load_bias) ||
		    !read_address(json_object_get(json, "map_base"), &m->map_base))
			return false;
	}
	map->nmodules = n;
	return true;
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

/* The bytes of section @name in the mapped file; NULL if it is missing or outside the file. */
static const Elf_Data *find_bytes(Elf *elf, const char *name)
{
	Elf_Scn *scn = find_section(elf, name);

	return scn ? elf_rawdata(scn, NULL) : NULL;
}

/*
 * Releases the pages before the names: rows are not read again, and the file's head brings megabytes of what follows it into
 * memory where the file system keeps files in large pieces. What is used after all is read again.
 */
static void forget_before(Elf *elf, const Elf_Data *names)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	size_t size = 0;
	uintptr_t begin = (uintptr_t)elf_rawfile(elf, &size);
	uintptr_t end = (uintptr_t)names->d_buf / page * page;

	/* libelf copies a section that is not aligned */
	if (begin && begin % page == 0 && begin < end && end - begin < size)
		madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* Faults in the pages of @list at once, which is cheaper than one by one; all will be written. */
static void populate(const struct kx_map_function *list, size_t n)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = ((uintptr_t)list + page - 1) / page * page;
	uintptr_t end = (uintptr_t)(list + n) / page * page;

	/* Fails before Linux 5.14, which does no harm. */
	if (begin < end)
		madvise((void *)begin, end - begin, MADV_POPULATE_WRITE);
}

/* Functions as their rows describe them (*@out, *@count). Returns NULL, or why they are not valid. */
static const char *read_rows(const struct kx_map *map, const Elf_Data *rows, const Elf_Data *names,
			     struct kx_map_function **out, size_t *count)
{
	const char *text = names->d_buf;
	size_t n = rows->d_size / sizeof(struct kx_map_row);
	struct kx_map_row row;

	*out = calloc(n + 1, sizeof(**out));
	if (!*out)
		return "there is no memory for it";
	populate(*out, n);
	for (size_t i = 0; i < n; i++) {
		struct kx_map_function *f = &(*out)[i];

		memcpy(&row, (const char *)rows->d_buf + i * sizeof(row), sizeof(row));
		f->address = le64toh(row.address);
		f->size = kx_map_function_size(le64toh(row.size));
		f->module = le32toh(row.module);
		if (f->module >= map->nmodules)
			return "a function in it names a module that is not there";
		if (le32toh(row.name) >= names->d_size)
			return "a function in it has a name beyond its names";
		f->symbol = text + le32toh(row.name);
	}
	*count = n;
	return NULL;
}

/* The same for the names only. The list is written once, in order, and later read in any order. */
static const char *read_labels(struct kx_map *map, const Elf_Data *rows, const Elf_Data *names)
{
	size_t n = rows->d_size / sizeof(struct kx_map_row);
	struct kx_map_row row;

	map->labels = calloc(n + 1, sizeof(*map->labels));
	if (!map->labels)
		return "there is no memory for it";
	for (size_t i = 0; i < n; i++) {
		memcpy(&row, (const char *)rows->d_buf + i * sizeof(row), sizeof(row));
		map->labels[i] = (struct kx_map_label){ le32toh(row.name), le32toh(row.module) };
		if (map->labels[i].module >= map->nmodules)
			return "a function in it names a module that is not there";
		if (map->labels[i].symbol >= names->d_size)
			return "a function in it has a name beyond its names";
	}
	map->symbols = names->d_buf;
	map->nfunctions = n;
	return NULL;
}

static bool has_rows(const Elf_Data *rows)
{
	return rows && rows->d_size % sizeof(struct kx_map_row) == 0 && (!rows->d_size || rows->d_buf);
}

/* NULL, or why it is not valid. */
static const char *read_functions(struct kx_map *map, Elf *elf)
{
	const Elf_Data *rows = find_bytes(elf, KX_MAP_FUNCTIONS_SECTION);
	const Elf_Data *callers = find_bytes(elf, KX_MAP_CALLERS_SECTION);
	const Elf_Data *names = find_bytes(elf, KX_MAP_NAMES_SECTION);
	const char *text = names ? names->d_buf : NULL, *why;
	bool names_only = ((struct kx_map_storage *)map->storage)->names_only;

	if (!has_rows(rows))
		return "its section " KX_MAP_FUNCTIONS_SECTION " is missing or damaged";
	if (callers && !has_rows(callers)) /* older maps have none */
		return "its section " KX_MAP_CALLERS_SECTION " is damaged";
	if (!text || !names->d_size || text[names->d_size - 1])
		return "its section " KX_MAP_NAMES_SECTION " is missing or damaged";
	why = names_only ? read_labels(map, rows, names) :
			   read_rows(map, rows, names, &map->functions, &map->nfunctions);
	if (!why && !names_only && callers && callers->d_size)
		why = read_rows(map, callers, names, &map->callers, &map->ncallers);
	if (!why)
		why = kx_map_lines_read(map, find_bytes(elf, KX_MAP_LINES_SECTION), find_bytes(elf, KX_MAP_FILES_SECTION));
	forget_before(elf, names);
	return why;
}

static const char *read_session(struct kx_map *map, Elf *elf, const Elf_Data *data)
{
	struct kx_map_storage *s = map->storage;
	json_t *modules;

	s->root = json_loadb(data->d_buf, data->d_size, 0, NULL);
	if (!s->root)
		return "its section " KX_MAP_SESSION_SECTION " is not JSON";
	if (json_integer_value(json_object_get(s->root, "kxray")) != 1)
		return "its session data is not of version 1, so a newer kxray wrote it";
	modules = json_object_get(s->root, "modules");
	map->modules = calloc(json_array_size(modules) + 1, sizeof(*map->modules));
	if (!map->modules)
		return "there is no memory for it";
	if (!read_modules(map, modules))
		return "its list of modules is damaged";
	map->session = json_object_get(s->root, "session");
	return read_functions(map, elf);
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
		data = elf_rawdata(session, NULL);
		if (!data || !data->d_buf)
			return "its section " KX_MAP_SESSION_SECTION " is damaged";
		return read_session(map, elf, data);
	}
	sleds = find_section(elf, "xray_instr_map");
	if (!sleds)
		return "it has no section xray_instr_map";
	if (ehdr.e_type == ET_REL)
		return "it is an object file, which has no addresses yet";
	return kx_map_read_binary(map, elf, sleds, path);
}

static int read_map(const char *path, bool names_only, struct kx_map *map, struct kx_err *err)
{
	const char *why = "it cannot be read";
	struct kx_map_storage *s;
	int fd, ret;

	memset(map, 0, sizeof(*map));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		ret = -errno;
		return kx_err_set(err, ret, "cannot open the map %s: %s", path, strerror(-ret));
	}
	s = kx_map_storage_of(map);
	if (!s) {
		close(fd);
		return kx_err_set(err, -ENOMEM, "no memory to read the map %s", path);
	}
	s->owns_lists = true;
	s->names_only = names_only;
	elf_version(EV_CURRENT);
	s->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (s->elf)
		why = read_elf(map, s->elf, path);
	close(fd);
	if (!why && !s->root) { /* of a binary nothing is needed any more */
		elf_end(s->elf);
		s->elf = NULL;
	}
	if (!why)
		return 0;
	kx_map_free(map);
	return kx_err_set(err, -EBADMSG,
			  "%s is not a map: %s; name the .map file that kxray wrote beside the "
			  "trace, or the binary if it was built with -fxray-instrument",
			  path, why);
}

int kx_map_read(const char *path, struct kx_map *map, struct kx_err *err)
{
	return read_map(path, false, map, err);
}

int kx_map_read_names(const char *path, struct kx_map *map, struct kx_err *err)
{
	return read_map(path, true, map, err);
}
