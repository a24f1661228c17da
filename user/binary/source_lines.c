// SPDX-License-Identifier: BSD-2-Clause
/*
 * libdw's own lookups by address need .debug_aranges, which clang does not write. So the
 * ranges of all units are read once, and the functions of a unit at its first lookup.
 */
#include "binary/source_lines.h"

#include <dwarf.h>
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bisect.h"
#include "binary/debuginfod.h"
#include "binary/source_lines_internal.h"

static int compare_ranges(const void *x, const void *y)
{
	const struct kx_source_range *a = x, *b = y;

	if (a->low != b->low)
		return a->low < b->low ? -1 : 1;
	return a->high < b->high ? -1 : a->high > b->high;
}

/* All ranges of @die. Functions that the linker has dropped are at address 0. */
static int add_ranges(struct kx_source_ranges *r, Dwarf_Die *die, size_t index)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
		if (!low || low >= high)
			continue;
		if (KX_ARRAY_RESERVE(r->items, r->size, r->count))
			return -ENOMEM;
		r->items[r->count++] = (struct kx_source_range){ low, high, index };
	}
	return 0;
}

const struct kx_source_range *kx_source_range_of(const struct kx_source_ranges *r, Dwarf_Addr addr)
{
	const size_t end = KX_COUNT_LEADING(r->count, i, r->items[i].low <= addr);

	/* The nearest one that starts before it: ranges overlap only in damaged files. */
	return end && addr < r->items[end - 1].high ? &r->items[end - 1] : NULL;
}

static int read_units(struct kx_lines *l)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint8_t type;

	while (dwarf_get_units(l->dwarf, cu, &cu, NULL, &type, &die, NULL) == 0) {
		struct kx_source_unit *u;

		/* a skeleton (-gsplit-dwarf) has ranges and lines */
		if (type != DW_UT_skeleton &&
		    (type != DW_UT_compile || dwarf_tag(&die) != DW_TAG_compile_unit))
			continue;
		if (KX_ARRAY_RESERVE(l->units, l->units_size, l->nunits))
			return -ENOMEM;
		u = &l->units[l->nunits];
		*u = (struct kx_source_unit){ .die = die };
		if (add_ranges(&l->ranges, &u->die, l->nunits))
			return -ENOMEM;
		l->nunits++;
	}
	if (l->ranges.count)
		qsort(l->ranges.items, l->ranges.count, sizeof(*l->ranges.items), compare_ranges);
	return 0;
}

static bool may_hold_functions(int tag, bool types)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_subprogram ||
	       tag == DW_TAG_lexical_block ||
	       (types && (tag == DW_TAG_structure_type || tag == DW_TAG_class_type ||
			  tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type));
}

static int index_functions(struct kx_source_unit *u, Dwarf_Die *parent, unsigned depth, bool types)
{
	Dwarf_Die die;
	int r = 0;

	if (depth > KX_SOURCE_NESTING || dwarf_child(parent, &die))
		return 0;
	do {
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_subprogram) {
			if (KX_ARRAY_RESERVE(u->dies, u->dies_size, u->ndies))
				return -ENOMEM;
			u->dies[u->ndies] = die;
			r = add_ranges(&u->functions, &die, u->ndies);
			u->ndies++;
		}
		if (!r && may_hold_functions(tag, types))
			r = index_functions(u, &die, depth + 1, types);
	} while (!r && dwarf_siblingof(&die, &die) == 0);
	return r;
}

/*
 * Compilers put the code of methods outside of their classes, which are most of the DWARF: @types, to look there, too, is
 * for a function that is nowhere else. Without memory some functions stay unknown.
 */
static void index_unit(struct kx_source_unit *u, bool types)
{
	u->functions.count = 0;
	u->ndies = 0;
	index_functions(u, &u->die, 0, types);
	if (u->functions.count)
		qsort(u->functions.items, u->functions.count, sizeof(*u->functions.items),
		      compare_ranges);
}

struct kx_source_unit *kx_source_unit_functions(struct kx_lines *l, Dwarf_Addr addr)
{
	const struct kx_source_range *r = kx_source_range_of(&l->ranges, addr);
	struct kx_source_unit *u;

	if (!r)
		return NULL;
	u = &l->units[r->index];
	if (!u->indexed)
		index_unit(u, false);
	u->indexed = true;
	if (!u->indexed_types && !kx_source_range_of(&u->functions, addr)) {
		index_unit(u, true);
		u->indexed_types = true;
	}
	return u;
}

struct kx_source_unit *kx_source_unit_of(struct kx_lines *l, Dwarf_Addr addr)
{
	struct kx_source_unit *u = kx_source_unit_functions(l, addr);

	if (!u || u->has_lines)
		return u;
	u->has_lines = true;
	if (dwarf_getsrclines(&u->die, &u->lines, &u->nlines))
		u->nlines = 0;
	if (dwarf_getsrcfiles(&u->die, &u->files, NULL))
		u->files = NULL;
	return u;
}

/* Functions */

static int compare_known(const void *x, const void *y)
{
	const struct kx_source_known *a = x, *b = y;

	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Concrete copies of one function share its abstract DIE. */
static Dwarf_Off identity(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Die origin;

	if (dwarf_attr(die, DW_AT_abstract_origin, &attr) && dwarf_formref_die(&attr, &origin))
		return dwarf_dieoffset(&origin);
	return dwarf_dieoffset(die);
}

/*
 * libdw 0.188's own dwarf_decl_file treats file 0 as none; in DWARF 5 it is the main source
 * file, and clang uses it.
 */
static const char *file_of(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Files *files;
	Dwarf_Word index;
	Dwarf_Die unit;
	const char *file;

	if (!dwarf_attr_integrate(die, DW_AT_decl_file, &attr) ||
	    dwarf_formudata(&attr, &index) ||
	    !dwarf_cu_die(attr.cu, &unit, NULL, NULL, NULL, NULL, NULL, NULL) ||
	    dwarf_getsrcfiles(&unit, &files, NULL))
		return NULL;
	file = dwarf_filesrc(files, index, NULL, NULL);
	return file && strcmp(file, "???") ? file : NULL;
}

static void describe(struct kx_line_function *f, Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	int line = 0;

	f->user = UINT32_MAX;
	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr)) {
		f->name = dwarf_formstring(&attr);
		f->is_linkage_name = f->name != NULL;
	}
	if (!f->name && dwarf_attr_integrate(die, DW_AT_name, &attr))
		f->name = dwarf_formstring(&attr);
	if (!f->name)
		f->name = "";
	if (dwarf_decl_line(die, &line) == 0 && line > 0)
		f->line = (uint32_t)line;
	f->file = file_of(die);
}

struct kx_line_function *kx_source_function_of(struct kx_lines *l, Dwarf_Die *die)
{
	struct kx_source_known key = { .offset = identity(die) }, **found = tfind(&key, &l->tree,
									compare_known);
	struct kx_source_known *k;

	if (found)
		return &(*found)->function;
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->offset = key.offset;
	describe(&k->function, die);
	if (!tsearch(k, &l->tree, compare_known)) {
		free(k);
		return NULL;
	}
	k->next = l->all;
	l->all = k;
	return &k->function;
}

bool kx_lines_place(struct kx_lines *l, uint64_t addr, const char **file, uint32_t *line)
{
	Dwarf_Addr at = addr + (uint64_t)l->shift;
	struct kx_source_unit *u = kx_source_unit_of(l, at);
	const struct kx_source_range *r = u ? kx_source_range_of(&u->functions, at) : NULL;
	const struct kx_line_function *f = r ? kx_source_function_of(l, &u->dies[r->index]) : NULL;
	Dwarf_Line *row;
	int number = 0;

	*file = f ? f->file : NULL;
	*line = f ? f->line : 0;
	if (*file && *line)
		return true;
	/* assembly, and functions whose unit is in a file of its own: the first line of their code */
	row = u ? dwarf_getsrc_die(&u->die, at) : NULL;
	if (!row || dwarf_lineno(row, &number) || number <= 0)
		return false;
	*file = dwarf_linesrc(row, NULL, NULL);
	*line = (uint32_t)number;
	return *file;
}

/* Opening */

int kx_lines_open(const char *path, struct kx_lines **out, struct kx_err *err)
{
	return kx_lines_open_fd(-1, path, out, err);
}

int kx_lines_open_fd(int fd, const char *path, struct kx_lines **out, struct kx_err *err)
{
	static char *debug_path; /* the default of libdwfl: beside the file, /usr/lib/debug */
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address,
		.debuginfo_path = &debug_path,
	};
	struct kx_lines *l = calloc(1, sizeof(*l));
	Dwarf_Addr elf_bias = 0, dwarf_bias = 0;
	const char *slash = strrchr(path, '/');
	Dwfl_Module *module;

	if (!l)
		return kx_err_set(err, -ENOMEM, "%s: out of memory", path);
	l->dwfl = dwfl_begin(&callbacks);
	if (!l->dwfl) {
		kx_lines_close(l);
		return kx_err_set(err, -ENOMEM, "%s: out of memory", path);
	}
	/* It has one only with DEBUGINFOD_URLS. Where nothing may be downloaded, the limit is zero. */
	if (getenv("DEBUGINFOD_URLS"))
		kx_debuginfod_limit(dwfl_get_debuginfod_client(l->dwfl), slash ? slash + 1 : path);
	dwfl_report_begin(l->dwfl);
	/* libdwfl closes the descriptor, in case of an error, too */
	module = dwfl_report_offline(l->dwfl, "", path, fd < 0 ? -1 : dup(fd));
	dwfl_report_end(l->dwfl, NULL, NULL);
	if (!module || !dwfl_module_getelf(module, &elf_bias)) {
		kx_lines_close(l);
		return kx_err_set(err, -EBADMSG, "%s: cannot be read: %s", path,
				  dwfl_errmsg(-1));
	}
	l->dwarf = dwfl_module_getdwarf(module, &dwarf_bias);
	if (!l->dwarf) {
		kx_lines_close(l);
		return kx_err_set(err, -ENODATA, "%s: no line information (%s); build it with -g "
				  "or install its debug symbols", path, dwfl_errmsg(-1));
	}
	l->shift = (int64_t)(elf_bias - dwarf_bias);
	if (read_units(l)) {
		kx_lines_close(l);
		return kx_err_set(err, -ENOMEM, "%s: out of memory for its units", path);
	}
	*out = l;
	return 0;
}

static void keep(void *node)
{
	(void)node; /* freed through the list */
}

void kx_lines_close(struct kx_lines *l)
{
	if (!l)
		return;
	tdestroy(l->tree, keep);
	while (l->all) {
		struct kx_source_known *next = l->all->next;

		free(l->all);
		l->all = next;
	}
	for (size_t i = 0; i < l->nunits; i++) {
		free(l->units[i].functions.items);
		free(l->units[i].dies);
	}
	free(l->units);
	free(l->ranges.items);
	if (l->dwfl)
		dwfl_end(l->dwfl);
	free(l);
}
