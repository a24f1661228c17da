// SPDX-License-Identifier: BSD-2-Clause
#include "record/caller_functions.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "binary/symbols.h"

/* A file in which callers are, by the path and inode that a process has it mapped as. */
struct file {
	char *path;
	uint64_t inode;
	const struct kx_symbols *syms; /* the selection's or own; NULL: it cannot be read */
	uint32_t module; /* index in the map, with those of the selection; UINT32_MAX: none yet */
	struct kx_elf *elf;
	struct kx_symbols own;
	uint64_t load_bias; /* of the first process */
};

struct storage {
	struct file **files;
	size_t nfiles, room;
};

struct search {
	const struct kx_selection *sel;
	struct kx_caller_functions *out;
	struct storage *st;
	size_t modules_room, functions_room;
};

static uint64_t number_of(const json_t *mapping, const char *key)
{
	const char *text = json_string_value(json_object_get(mapping, key));

	return text ? strtoull(text, NULL, 16) : 0;
}

/* Opens it as the process sees it, or where it lies here; another file than the mapped one is refused. */
static struct kx_elf *open_mapped(pid_t pid, const char *path, uint64_t inode)
{
	char name[PATH_MAX + 32];
	struct kx_elf *elf = NULL;
	struct stat st;

	for (int i = 0; i < 2 && !elf; i++) {
		int fd;

		if (i)
			snprintf(name, sizeof(name), "%s", path);
		else
			snprintf(name, sizeof(name), "/proc/%d/root%s", (int)pid, path);
		fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		if (fd < 0)
			continue;
		if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_ino != inode || kx_elf_open_fd(fd, name, &elf, NULL))
			elf = NULL;
		close(fd);
	}
	return elf;
}

static struct file *add_file(struct search *s, pid_t pid, const json_t *mapping, const char *path, uint64_t inode)
{
	struct storage *st = s->st;
	struct file *f = calloc(1, sizeof(*f));
	char root[32];

	if (f)
		f->path = strdup(path);
	if (!f || !f->path || KX_ARRAY_RESERVE(st->files, st->room, st->nfiles)) {
		free(f ? f->path : NULL);
		free(f);
		return NULL;
	}
	st->files[st->nfiles++] = f;
	f->inode = inode;
	f->module = UINT32_MAX;
	f->load_bias = number_of(mapping, "load_bias");
	for (size_t i = 0; i < s->sel->nmodules && !f->syms; i++) {
		const struct kx_select_module *sm = &s->sel->modules[i];

		if (sm->fd >= 0 && sm->module->inode == inode && !strcmp(sm->module->path, path)) {
			f->syms = &sm->syms;
			f->module = (uint32_t)i;
		}
	}
	if (f->syms)
		return f;
	f->elf = open_mapped(pid, path, inode);
	snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	if (f->elf && !kx_symbols_read(f->elf, root, &f->own, NULL))
		f->syms = &f->own;
	return f;
}

/* The file that @pid has at @address; NULL if that is not known. */
static struct file *file_at(struct search *s, const struct kx_process *p, uint64_t address, uint64_t *load_bias)
{
	const json_t *mapping;
	uint64_t inode;
	const char *path;
	size_t i;

	json_array_foreach (p->mappings, i, mapping) {
		if (address < number_of(mapping, "start") || address >= number_of(mapping, "end"))
			continue;
		path = json_string_value(json_object_get(mapping, "path"));
		inode = number_of(mapping, "inode");
		if (!path || !inode)
			return NULL;
		*load_bias = number_of(mapping, "load_bias");
		for (size_t k = 0; k < s->st->nfiles; k++)
			if (s->st->files[k]->inode == inode && !strcmp(s->st->files[k]->path, path))
				return s->st->files[k];
		return add_file(s, p->pid, mapping, path, inode);
	}
	return NULL;
}

/* The file becomes a module of the map with its first caller. */
static bool has_module(struct search *s, struct file *f)
{
	struct kx_caller_functions *out = s->out;
	const char *slash = strrchr(f->path, '/');

	if (f->module != UINT32_MAX)
		return true;
	if (KX_ARRAY_RESERVE(out->modules, s->modules_room, out->nmodules))
		return false;
	f->module = (uint32_t)(s->sel->nmodules + out->nmodules);
	out->modules[out->nmodules++] = (struct kx_map_module){
		.name = slash ? slash + 1 : f->path,
		.path = f->path,
		.build_id = kx_elf_build_id(f->elf),
		.load_bias = f->load_bias,
	};
	return true;
}

static void add_caller(struct search *s, const struct kx_process *p, uint64_t address)
{
	struct kx_caller_functions *out = s->out;
	const struct kx_symbol *sym;
	uint64_t load_bias, at;
	struct file *f = file_at(s, p, address, &load_bias);
	bool cold;

	if (!f || !f->syms)
		return;
	at = address - load_bias - 1; /* the call may be the function's last instruction */
	sym = kx_symbols_find(f->syms, at);
	if (!sym || !has_module(s, f) || KX_ARRAY_RESERVE(out->functions, s->functions_room, out->nfunctions))
		return;
	cold = at - sym->addr >= sym->size;
	if (cold && at - sym->cold_addr >= sym->cold_size)
		return;
	out->functions[out->nfunctions++] = (struct kx_map_function){
		.symbol = sym->name,
		.module = f->module,
		.address = cold ? sym->cold_addr : sym->addr,
		.size = kx_map_function_size(cold ? sym->cold_size : sym->size),
	};
}

static int compare_functions(const void *a, const void *b)
{
	const struct kx_map_function *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

void kx_caller_functions_find(const struct kx_caller_set *set, const struct kx_process_table *processes,
			      const struct kx_selection *sel, struct kx_caller_functions *out)
{
	struct search s = { .sel = sel, .out = out };
	size_t n = 0;

	memset(out, 0, sizeof(*out));
	s.st = out->storage = calloc(1, sizeof(*s.st));
	for (size_t i = 0; s.st && i < set->nplaces; i++) {
		const struct kx_caller *c = &set->places[i];
		const struct kx_process *p = c->address ? kx_process_table_find(processes, c->pid) : NULL;

		if (p && p->mappings)
			add_caller(&s, p, c->address);
	}
	if (!out->nfunctions)
		return;
	qsort(out->functions, out->nfunctions, sizeof(*out->functions), compare_functions);
	for (size_t i = 0; i < out->nfunctions; i++)
		if (!n || compare_functions(&out->functions[n - 1], &out->functions[i]))
			out->functions[n++] = out->functions[i];
	out->nfunctions = n;
}

void kx_caller_functions_free(struct kx_caller_functions *c)
{
	struct storage *st = c->storage;

	for (size_t i = 0; st && i < st->nfiles; i++) {
		struct file *f = st->files[i];

		kx_symbols_free(&f->own);
		kx_elf_close(f->elf);
		free(f->path);
		free(f);
	}
	if (st)
		free(st->files);
	free(st);
	free(c->modules);
	free(c->functions);
	memset(c, 0, sizeof(*c));
}
