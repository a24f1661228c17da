// SPDX-License-Identifier: BSD-2-Clause
/*
 * libdw's own lookups by address need .debug_aranges, which clang does not write. So the
 * ranges of all units are read once, and the functions of a unit at its first lookup.
 */
#include "exporters/autofdo/lines.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#ifndef DW_AT_GNU_discriminator
#define DW_AT_GNU_discriminator 0x2136
#endif

#define MAX_NESTING 256 /* of scopes in DWARF, against damaged files */

struct range {
	Dwarf_Addr low, high; /* as in the DWARF */
	size_t index;         /* of the unit; in a unit: of the function's DIE */
};

struct ranges {
	struct range *items;
	size_t count, size;
};

struct unit {
	Dwarf_Die die;
	bool indexed;
	struct ranges functions;
	Dwarf_Die *dies;
	size_t ndies, dies_size;
	Dwarf_Lines *lines;
	size_t nlines;
	Dwarf_Files *files;
};

/* In a search tree by the DIE of the function (the abstract one, if it has one). */
struct known {
	Dwarf_Off offset;
	struct kx_line_function function;
	struct known *next;
};

struct kx_lines {
	Dwfl *dwfl;
	Dwarf *dwarf;
	int64_t shift; /* DWARF address minus ELF virtual address */
	struct ranges ranges;
	struct unit *units;
	size_t nunits, units_size;
	void *tree;
	struct known *all;
};

static int compare_ranges(const void *x, const void *y)
{
	const struct range *a = x, *b = y;

	if (a->low != b->low)
		return a->low < b->low ? -1 : 1;
	return a->high < b->high ? -1 : a->high > b->high;
}

/* All ranges of @die. Functions that the linker has dropped are at address 0. */
static int add_ranges(struct ranges *r, Dwarf_Die *die, size_t index)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
		if (!low || low >= high)
			continue;
		if (KX_ARRAY_RESERVE(r->items, r->size, r->count))
			return -ENOMEM;
		r->items[r->count++] = (struct range){ low, high, index };
	}
	return 0;
}

static const struct range *find(const struct ranges *r, Dwarf_Addr addr)
{
	size_t low = 0, high = r->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (r->items[middle].low <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	/* The nearest one that starts before it: ranges overlap only in damaged files. */
	return low && addr < r->items[low - 1].high ? &r->items[low - 1] : NULL;
}

static int read_units(struct kx_lines *l)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint8_t type;

	while (dwarf_get_units(l->dwarf, cu, &cu, NULL, &type, &die, NULL) == 0) {
		struct unit *u;

		if (type != DW_UT_compile || dwarf_tag(&die) != DW_TAG_compile_unit)
			continue;
		if (KX_ARRAY_RESERVE(l->units, l->units_size, l->nunits))
			return -ENOMEM;
		u = &l->units[l->nunits];
		*u = (struct unit){ .die = die };
		if (add_ranges(&l->ranges, &u->die, l->nunits))
			return -ENOMEM;
		l->nunits++;
	}
	qsort(l->ranges.items, l->ranges.count, sizeof(*l->ranges.items), compare_ranges);
	return 0;
}

static bool may_hold_functions(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_structure_type ||
	       tag == DW_TAG_class_type || tag == DW_TAG_union_type || tag == DW_TAG_subprogram ||
	       tag == DW_TAG_lexical_block || tag == DW_TAG_enumeration_type;
}

static int index_functions(struct unit *u, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;
	int r = 0;

	if (depth > MAX_NESTING || dwarf_child(parent, &die))
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
		if (!r && may_hold_functions(tag))
			r = index_functions(u, &die, depth + 1);
	} while (!r && dwarf_siblingof(&die, &die) == 0);
	return r;
}

static struct unit *unit_of(struct kx_lines *l, Dwarf_Addr addr)
{
	const struct range *r = find(&l->ranges, addr);
	struct unit *u;

	if (!r)
		return NULL;
	u = &l->units[r->index];
	if (u->indexed)
		return u;
	u->indexed = true;
	if (dwarf_getsrclines(&u->die, &u->lines, &u->nlines))
		u->nlines = 0;
	if (dwarf_getsrcfiles(&u->die, &u->files, NULL))
		u->files = NULL;
	/* Without memory some functions stay unknown. */
	index_functions(u, &u->die, 0);
	qsort(u->functions.items, u->functions.count, sizeof(*u->functions.items),
	      compare_ranges);
	return u;
}

/* Functions */

static int compare_known(const void *x, const void *y)
{
	const struct known *a = x, *b = y;

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

static struct kx_line_function *function_of(struct kx_lines *l, Dwarf_Die *die)
{
	struct known key = { .offset = identity(die) }, **found = tfind(&key, &l->tree,
									compare_known);
	struct known *k;

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

static uint32_t number(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attr) || dwarf_formudata(&attr, &value) || value > UINT32_MAX)
		return 0;
	return (uint32_t)value;
}

/* Descends from a function's DIE to the innermost inlined call that contains @addr. */
static size_t inlined_levels(struct kx_lines *l, struct unit *u, Dwarf_Die *function,
			     Dwarf_Addr addr, struct kx_line_level *levels)
{
	Dwarf_Die scope = *function, die;
	size_t n = 1;

	levels[0] = (struct kx_line_level){ .function = function_of(l, function) };
	for (unsigned depth = 0; levels[n - 1].function && depth < MAX_NESTING; depth++) {
		bool found = false;

		if (dwarf_child(&scope, &die))
			return n;
		do {
			int tag = dwarf_tag(&die);

			found = (tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
				 tag == DW_TAG_catch_block || tag == DW_TAG_inlined_subroutine) &&
				dwarf_haspc(&die, addr) == 1;
		} while (!found && dwarf_siblingof(&die, &die) == 0);
		if (!found)
			return n;
		scope = die;
		if (dwarf_tag(&die) != DW_TAG_inlined_subroutine)
			continue;
		if (n == KX_LINE_LEVELS)
			return n;
		levels[n - 1].line = number(&die, DW_AT_call_line);
		levels[n - 1].disc = number(&die, DW_AT_GNU_discriminator);
		levels[n - 1].file = u->files ? dwarf_filesrc(u->files,
							      number(&die, DW_AT_call_file),
							      NULL, NULL) : NULL;
		levels[n++] = (struct kx_line_level){ .function = function_of(l, &die) };
	}
	return levels[n - 1].function ? n : 0;
}

static void put_row(struct kx_line_level *level, Dwarf_Line *line)
{
	int number_of_line = 0;
	unsigned disc = 0;

	dwarf_lineno(line, &number_of_line);
	dwarf_linediscriminator(line, &disc);
	level->line = number_of_line > 0 ? (uint32_t)number_of_line : 0;
	level->disc = disc;
	level->file = dwarf_linesrc(line, NULL, NULL);
}

size_t kx_lines_at(struct kx_lines *l, uint64_t addr, struct kx_line_level levels[KX_LINE_LEVELS])
{
	Dwarf_Addr at = addr + (uint64_t)l->shift;
	struct unit *u = unit_of(l, at);
	const struct range *r = u ? find(&u->functions, at) : NULL;
	Dwarf_Line *line;
	size_t n;

	if (!r)
		return 0;
	line = dwarf_getsrc_die(&u->die, at);
	n = inlined_levels(l, u, &u->dies[r->index], at, levels);
	if (!n || !line)
		return 0;
	put_row(&levels[n - 1], line);
	return n;
}

/* First row at @addr or after it. */
static size_t first_row(const struct unit *u, Dwarf_Addr addr)
{
	size_t low = 0, high = u->nlines;

	while (low < high) {
		size_t middle = (low + high) / 2;
		Dwarf_Addr at = 0;

		dwarf_lineaddr(dwarf_onesrcline(u->lines, middle), &at);
		if (at < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int rows_of_range(struct kx_lines *l, struct unit *u, const struct range *r,
			 int (*row)(void *, const struct kx_line_level *, size_t, uint64_t),
			 void *ctx)
{
	for (size_t i = first_row(u, r->low); i < u->nlines; i++) {
		Dwarf_Line *line = dwarf_onesrcline(u->lines, i);
		struct kx_line_level levels[KX_LINE_LEVELS];
		Dwarf_Addr at = 0, next = r->high;
		bool ends = false;
		size_t n;
		int ret;

		dwarf_lineaddr(line, &at);
		if (at >= r->high)
			break;
		dwarf_lineendsequence(line, &ends);
		if (ends)
			continue;
		if (i + 1 < u->nlines)
			dwarf_lineaddr(dwarf_onesrcline(u->lines, i + 1), &next);
		if (next > r->high)
			next = r->high;
		n = inlined_levels(l, u, &u->dies[r->index], at, levels);
		if (!n)
			return -ENOMEM;
		put_row(&levels[n - 1], line);
		ret = row(ctx, levels, n, next - at);
		if (ret)
			return ret;
	}
	return 0;
}

int kx_lines_rows(struct kx_lines *l, uint64_t addr,
		  int (*row)(void *ctx, const struct kx_line_level *levels, size_t nlevels,
			     uint64_t bytes),
		  void *ctx)
{
	Dwarf_Addr at = addr + (uint64_t)l->shift;
	struct unit *u = unit_of(l, at);
	const struct range *f = u ? find(&u->functions, at) : NULL;
	size_t index;
	int ret = 0;

	if (!f)
		return -ENOENT;
	index = f->index;
	for (size_t i = 0; !ret && i < u->functions.count; i++)
		if (u->functions.items[i].index == index)
			ret = rows_of_range(l, u, &u->functions.items[i], row, ctx);
	return ret;
}

/* Opening */

int kx_lines_open(const char *path, struct kx_lines **out, struct kx_err *err)
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
	Dwfl_Module *module;

	if (!l)
		return kx_err_set(err, -ENOMEM, "%s: out of memory", path);
	l->dwfl = dwfl_begin(&callbacks);
	if (!l->dwfl) {
		kx_lines_close(l);
		return kx_err_set(err, -ENOMEM, "%s: out of memory", path);
	}
	dwfl_report_begin(l->dwfl);
	module = dwfl_report_offline(l->dwfl, "", path, -1);
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
		struct known *next = l->all->next;

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
