// SPDX-License-Identifier: BSD-2-Clause
/* Where functions are defined in source: the map's sections .kxray.lines and .kxray.files. */
#include <endian.h>
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "trace/map_internal.h"
#include "trace/map_strings.h"

/* In a search tree by text. */
struct file {
	const char *text;
	uint32_t offset;
};

static int compare_files(const void *a, const void *b)
{
	const struct file *x = a, *y = b;

	return strcmp(x->text, y->text);
}

static int add_file(void **tree, struct kx_map_strings *files, const char *text, uint32_t *offset)
{
	struct file key = { .text = text }, **found = tfind(&key, tree, compare_files), *f;
	int ret;

	if (found) {
		*offset = (*found)->offset;
		return 0;
	}
	f = malloc(sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->text = text;
	ret = kx_map_add_text(files, text, &f->offset);
	*offset = f->offset;
	if (!ret && tsearch(f, tree, compare_files))
		return 0;
	free(f);
	return ret ? ret : -ENOMEM;
}

int kx_map_lines_make(const struct kx_map *map, struct kx_map_line **rows, struct kx_map_strings *files)
{
	struct kx_map_place place;
	void *tree = NULL;
	uint32_t offset;
	int ret;

	*rows = NULL;
	if (!kx_map_has_places(map))
		return 0;
	*rows = calloc(map->nfunctions, sizeof(**rows));
	ret = *rows ? kx_map_add_string(files, "", 0, &offset) : -ENOMEM;
	for (size_t i = 0; i < map->nfunctions && !ret; i++) {
		if (!kx_map_get_place(map, (uint32_t)i + 1, &place))
			continue;
		ret = add_file(&tree, files, place.file, &offset);
		(*rows)[i] = (struct kx_map_line){ htole32(offset), htole32(place.line) };
	}
	tdestroy(tree, free);
	return ret;
}

const char *kx_map_lines_read(struct kx_map *map, const Elf_Data *rows, const Elf_Data *files)
{
	const char *text = files ? files->d_buf : NULL;
	const struct kx_map_line *lines = rows ? rows->d_buf : NULL;

	if (!rows || !rows->d_size)
		return NULL;
	if (!lines || rows->d_size != map->nfunctions * sizeof(*lines) ||
	    (uintptr_t)lines % _Alignof(struct kx_map_line))
		return "its section " KX_MAP_LINES_SECTION " is damaged";
	if (!text || !files->d_size || text[files->d_size - 1])
		return "its section " KX_MAP_FILES_SECTION " is missing or damaged";
	for (size_t i = 0; i < map->nfunctions; i++)
		if (le32toh(lines[i].file) >= files->d_size)
			return "a function in it has a source file beyond its files";
	map->lines = lines;
	map->files = text;
	return NULL;
}

bool kx_map_has_places(const struct kx_map *map)
{
	return map->nfunctions && (map->places || map->lines);
}

bool kx_map_get_place(const struct kx_map *map, uint32_t id, struct kx_map_place *out)
{
	*out = (struct kx_map_place){ 0 };
	if (!id || id > map->nfunctions)
		return false;
	if (map->places) {
		*out = map->places[id - 1];
	} else if (map->lines && map->lines[id - 1].line) {
		out->file = map->files + le32toh(map->lines[id - 1].file);
		out->line = le32toh(map->lines[id - 1].line);
	}
	if (out->file && *out->file && out->line)
		return true;
	*out = (struct kx_map_place){ 0 };
	return false;
}
