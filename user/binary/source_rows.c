// SPDX-License-Identifier: BSD-2-Clause
/* The line table by address, with the functions inlined at each place. */
#include <dwarf.h>
#include <errno.h>

#include "base/bisect.h"
#include "binary/source_lines_internal.h"

static uint32_t number(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attr) || dwarf_formudata(&attr, &value) || value > UINT32_MAX)
		return 0;
	return (uint32_t)value;
}

/* Descends from a function's DIE to the innermost inlined call that contains @addr. */
static size_t inlined_levels(struct kx_lines *l, struct kx_source_unit *u, Dwarf_Die *function,
			     Dwarf_Addr addr, struct kx_line_level *levels)
{
	Dwarf_Die scope = *function, die;
	size_t n = 1;

	levels[0] = (struct kx_line_level){ .function = kx_source_function_of(l, function) };
	for (unsigned depth = 0; levels[n - 1].function && depth < KX_SOURCE_NESTING; depth++) {
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
		levels[n++] = (struct kx_line_level){ .function = kx_source_function_of(l, &die) };
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
	struct kx_source_unit *u = kx_source_unit_of(l, at);
	const struct kx_source_range *r = u ? kx_source_range_of(&u->functions, at) : NULL;
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

static Dwarf_Addr address_of(const struct kx_source_unit *u, size_t row)
{
	Dwarf_Addr at = 0;

	dwarf_lineaddr(dwarf_onesrcline(u->lines, row), &at);
	return at;
}

/* First row at @addr or after it. */
static size_t first_row(const struct kx_source_unit *u, Dwarf_Addr addr)
{
	return KX_COUNT_LEADING(u->nlines, i, address_of(u, i) < addr);
}

static int rows_of_range(struct kx_lines *l, struct kx_source_unit *u, const struct kx_source_range *r,
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
	struct kx_source_unit *u = kx_source_unit_of(l, at);
	const struct kx_source_range *f = u ? kx_source_range_of(&u->functions, at) : NULL;
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
