// SPDX-License-Identifier: BSD-2-Clause
#include "binary/symbol_sources.h"

#include <errno.h>
#include <gelf.h>
#include <limits.h>
#include <lzma.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/array.h"
#include "binary/debuginfod.h"

#define DEBUG_ROOT "/usr/lib/debug"
#define ARENA_CHUNK (64u << 10)
/* Far more than any real one (libLLVM's would be 40 MB), and still harmless to allocate. */
#define DEBUGDATA_MAX (256u << 20)

struct kx_arena {
	struct kx_arena *next;
	size_t used, size;
	char data[];
};

char *kx_arena_copy(struct kx_arena **arena, const char *s, size_t len)
{
	struct kx_arena *a = *arena;
	char *to;

	if (!a || a->size - a->used <= len) {
		size_t size = len < ARENA_CHUNK ? ARENA_CHUNK : len + 1;

		a = malloc(sizeof(*a) + size);
		if (!a)
			return NULL;
		a->next = *arena;
		a->used = 0;
		a->size = size;
		*arena = a;
	}
	to = a->data + a->used;
	memcpy(to, s, len);
	to[len] = 0;
	a->used += len + 1;
	return to;
}

void kx_arena_join(struct kx_arena **arena, struct kx_arena *more)
{
	while (*arena)
		arena = &(*arena)->next;
	*arena = more;
}

void kx_arena_free(struct kx_arena *arena)
{
	while (arena) {
		struct kx_arena *next = arena->next;

		free(arena);
		arena = next;
	}
}

static void say_source(struct kx_raw_symbols *out, const char *sep, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void say_source(struct kx_raw_symbols *out, const char *sep, const char *fmt, ...)
{
	size_t len = strlen(out->source);
	va_list ap;

	if (len && len < sizeof(out->source) - 1)
		len += (size_t)snprintf(out->source + len, sizeof(out->source) - len, "%s", sep);
	if (len >= sizeof(out->source))
		return;
	va_start(ap, fmt);
	vsnprintf(out->source + len, sizeof(out->source) - len, fmt, ap);
	va_end(ap);
}

static int add_symbol(struct kx_raw_symbols *out, const struct kx_raw_symbol *sym, size_t len)
{
	if (KX_ARRAY_RESERVE(out->items, out->capacity, out->count))
		return -ENOMEM;
	out->items[out->count] = *sym;
	out->items[out->count].name = kx_arena_copy(&out->arena, sym->name, len);
	if (!out->items[out->count].name)
		return -ENOMEM;
	out->count++;
	return 0;
}

/* Bytes of a section in the file; 0 if there are none. */
static uint64_t section_bytes(struct kx_elf *image, const GElf_Shdr *sh, const uint8_t **data)
{
	size_t size;
	const uint8_t *bytes = kx_elf_bytes(image, &size);

	if (sh->sh_type == SHT_NOBITS || sh->sh_offset >= size)
		return 0;
	*data = bytes + sh->sh_offset;
	return sh->sh_size < size - sh->sh_offset ? sh->sh_size : size - sh->sh_offset;
}

/* The functions of one symbol table of @image, which is @elf or a debug file of it. */
static int read_table(struct kx_elf *elf, struct kx_elf *image, const GElf_Shdr *table,
		      struct kx_raw_symbols *out)
{
	const uint8_t *syms = NULL, *strs = NULL;
	uint64_t size, strs_size, i;
	uint32_t file = 0;
	GElf_Shdr str_sh;
	Elf_Scn *scn;
	int rc = 0;

	size = section_bytes(image, table, &syms);
	scn = elf_getscn(kx_elf_handle(image), table->sh_link);
	if (!scn || !gelf_getshdr(scn, &str_sh))
		return 0;
	strs_size = section_bytes(image, &str_sh, &strs);
	for (i = 1; i < size / sizeof(Elf64_Sym) && !rc; i++) {
		struct kx_raw_symbol sym = { 0 };
		Elf64_Sym s;
		size_t len;

		memcpy(&s, syms + i * sizeof(s), sizeof(s));
		sym.type = ELF64_ST_TYPE(s.st_info);
		sym.bind = ELF64_ST_BIND(s.st_info);
		/* a nameless one precedes symbols that are local only by their visibility */
		if (sym.type == STT_FILE)
			file = s.st_name && s.st_name < strs_size && strs[s.st_name] ?
				       ++out->nfiles : 0;
		if ((sym.type != STT_FUNC && sym.type != STT_GNU_IFUNC) ||
		    s.st_shndx == SHN_UNDEF || s.st_name >= strs_size)
			continue;
		sym.name = (const char *)strs + s.st_name;
		len = strnlen(sym.name, strs_size - s.st_name);
		if (!len || len == strs_size - s.st_name)
			continue;
		if ((len > 4 && !memcmp(sym.name + len - 4, "@plt", 4)) ||
		    !kx_elf_code(elf, s.st_value, 1) || kx_elf_in_plt(elf, s.st_value))
			continue;
		sym.addr = s.st_value;
		sym.size = s.st_size;
		sym.file = sym.bind == STB_LOCAL ? file : 0;
		rc = add_symbol(out, &sym, len);
	}
	return rc;
}

/* Reads all tables of @type; *@found: whether there was one with functions. */
static int read_tables(struct kx_elf *elf, struct kx_elf *image, uint32_t type,
		       struct kx_raw_symbols *out, bool *found)
{
	size_t before = out->count;
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	int rc = 0;

	while (!rc && (scn = elf_nextscn(kx_elf_handle(image), scn)))
		if (gelf_getshdr(scn, &sh) && sh.sh_type == type)
			rc = read_table(elf, image, &sh, out);
	*found = out->count > before;
	return rc;
}

/* Unpacks an .xz stream; NULL if it is damaged or absurdly large. */
static uint8_t *unpack(const struct kx_elf_section *packed, size_t *size)
{
	lzma_stream xz = LZMA_STREAM_INIT;
	uint8_t *data = NULL, *grown;
	size_t capacity = packed->size < 1 << 20 ? 1 << 20 : 4 << 20;
	lzma_ret rc = LZMA_OK;

	if (lzma_stream_decoder(&xz, DEBUGDATA_MAX, 0) != LZMA_OK)
		return NULL;
	xz.next_in = packed->data;
	xz.avail_in = packed->size;
	while (rc == LZMA_OK && capacity <= DEBUGDATA_MAX) {
		grown = realloc(data, capacity);
		if (!grown)
			break;
		data = grown;
		xz.next_out = data + xz.total_out;
		xz.avail_out = capacity - xz.total_out;
		rc = lzma_code(&xz, LZMA_FINISH);
		capacity *= 2;
	}
	*size = xz.total_out;
	lzma_end(&xz);
	if (rc == LZMA_STREAM_END)
		return data;
	free(data);
	return NULL;
}

static int read_debugdata(struct kx_elf *elf, struct kx_raw_symbols *out, bool *found)
{
	struct kx_elf_section packed;
	struct kx_elf *image = NULL;
	uint8_t *data;
	size_t size;
	int rc = 0;

	if (!kx_elf_get_section(elf, ".gnu_debugdata", &packed) || !packed.data)
		return 0;
	data = unpack(&packed, &size);
	if (!data || kx_elf_open_memory(data, size, ".gnu_debugdata", &image, NULL)) {
		say_source(out, "; ", ".gnu_debugdata is damaged");
	} else {
		rc = read_tables(elf, image, SHT_SYMTAB, out, found);
		if (*found)
			say_source(out, " and ", ".gnu_debugdata");
	}
	kx_elf_close(image);
	free(data);
	return rc;
}

/*
 * Symbols of the debug file @path, if it is there and belongs to @elf: @crc is the checksum
 * that .gnu_debuglink demands, or NULL if the build ids must agree.
 */
static int try_debug_file(struct kx_elf *elf, const char *path, const uint32_t *crc,
			  struct kx_raw_symbols *out, bool *found)
{
	struct kx_elf *image;
	const uint8_t *bytes;
	size_t size;
	int rc = 0;

	if (access(path, R_OK) || kx_elf_open(path, &image, NULL))
		return 0;
	bytes = kx_elf_bytes(image, &size);
	if (crc && crc32_z(0, bytes, size) != *crc) {
		say_source(out, "; ", "%s refused: its checksum is not the binary's", path);
	} else if (!crc && strcmp(kx_elf_build_id(image), kx_elf_build_id(elf))) {
		say_source(out, "; ", "%s refused: its build id is not the binary's", path);
	} else {
		rc = read_tables(elf, image, SHT_SYMTAB, out, found);
		if (*found)
			say_source(out, " and ", "%s", path);
	}
	kx_elf_close(image);
	return rc;
}

/* The folder that @elf lies in, as its own root names it; "" if that is unknown. */
static void folder_of(struct kx_elf *elf, const char *root, char *out, size_t size)
{
	const char *path = kx_elf_path(elf);
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	char *slash, *real = NULL;

	if (root && !strncmp(path, root, strlen(root)) && path[strlen(root)] == '/') {
		path += strlen(root);
	} else if (!strncmp(path, "/proc/", 6) && n > 0) {
		/* map_files and exe are links to the path */
		target[n] = 0;
		path = target;
	} else {
		real = realpath(path, NULL);
		if (real)
			path = real;
	}
	snprintf(out, size, "%s", path);
	free(real);
	slash = strrchr(out, '/');
	if (out[0] != '/' || !slash)
		out[0] = 0;
	else
		*slash = 0;
}

static int by_build_id(struct kx_elf *elf, const char *root, struct kx_raw_symbols *out,
		       bool *found)
{
	const char *id = kx_elf_build_id(elf);
	const char *roots[] = { root, "" };
	char path[PATH_MAX];
	int rc = 0;
	size_t i;

	if (strlen(id) < 4)
		return 0;
	for (i = root ? 0 : 1; i < 2 && !rc && !*found; i++) {
		snprintf(path, sizeof(path), "%s" DEBUG_ROOT "/.build-id/%.2s/%s.debug", roots[i],
			 id, id + 2);
		rc = try_debug_file(elf, path, NULL, out, found);
	}
	return rc;
}

/* .gnu_debuglink: a file name, padding to 4 bytes, CRC-32 of the debug file (gdb manual). */
static int by_debuglink(struct kx_elf *elf, const char *root, struct kx_raw_symbols *out,
			bool *found)
{
	const char *roots[] = { root, "" };
	char folder[PATH_MAX], path[PATH_MAX * 3];
	struct kx_elf_section s;
	const char *name;
	uint32_t crc;
	size_t len, i, k;
	int rc = 0;

	if (!kx_elf_get_section(elf, ".gnu_debuglink", &s) || !s.data)
		return 0;
	name = (const char *)s.data;
	len = strnlen(name, s.size);
	if (!len || len > NAME_MAX || memchr(name, '/', len) || s.size < ((len + 4) & ~3ULL) + 4)
		return 0;
	memcpy(&crc, s.data + ((len + 4) & ~3ULL), sizeof(crc));
	folder_of(elf, root, folder, sizeof(folder));
	for (i = root ? 0 : 1; i < 2; i++)
		for (k = 0; k < 3 && !rc && !*found; k++) {
			snprintf(path, sizeof(path), "%s%s%s/%s%s", roots[i],
				 k == 2 ? DEBUG_ROOT : "", folder, k == 1 ? ".debug/" : "", name);
			rc = try_debug_file(elf, path, &crc, out, found);
		}
	return rc;
}

/* From the servers of DEBUGINFOD_URLS, where that may be used; the last resort. */
static int by_debuginfod(struct kx_elf *elf, struct kx_raw_symbols *out)
{
	const char *path = kx_elf_path(elf), *slash;
	char target[PATH_MAX];
	struct kx_elf *image;
	bool found = false;
	int fd, rc = 0;
	ssize_t n;

	if (!kx_debuginfod_allowed())
		return 0;
	n = readlink(path, target, sizeof(target) - 1); /* map_files and exe are links to the path */
	if (n > 0) {
		target[n] = 0;
		path = target;
	}
	slash = strrchr(path, '/');
	fd = kx_debuginfod_open(kx_elf_build_id(elf), slash ? slash + 1 : path);
	if (fd < 0)
		return 0;
	if (!kx_elf_open_fd(fd, "the file from debuginfod", &image, NULL)) {
		if (!strcmp(kx_elf_build_id(image), kx_elf_build_id(elf)))
			rc = read_tables(elf, image, SHT_SYMTAB, out, &found);
		if (found)
			say_source(out, " and ", "debuginfod");
		kx_elf_close(image);
	}
	close(fd);
	return rc;
}

int kx_raw_symbols_read(struct kx_elf *elf, const char *root, struct kx_raw_symbols *out,
			struct kx_err *err)
{
	bool has_symtab, has_dynsym, found = false;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = read_tables(elf, elf, SHT_SYMTAB, out, &has_symtab);
	if (!rc && has_symtab)
		say_source(out, " and ", ".symtab");
	if (!rc)
		rc = read_tables(elf, elf, SHT_DYNSYM, out, &has_dynsym);
	if (!rc && has_dynsym)
		say_source(out, " and ", ".dynsym");
	if (!rc && !has_symtab)
		rc = by_build_id(elf, root, out, &found);
	if (!rc && !has_symtab && !found)
		rc = by_debuglink(elf, root, out, &found);
	if (!rc && !has_symtab && !found)
		rc = read_debugdata(elf, out, &found);
	if (!rc && !has_symtab && !found)
		rc = by_debuginfod(elf, out);
	if (!rc)
		return 0;
	free(out->items);
	kx_arena_free(out->arena);
	return kx_err_set(err, rc, "no memory for the symbols of '%s'", kx_elf_path(elf));
}
