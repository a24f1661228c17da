// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/functions_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "base/printable.h"
#include "cmd/function_places.h"
#include "cmd/marker_arguments.h"

const char *const kx_functions_sort_words[] = { "address", "name", "size", "cost", "calls", NULL };

struct table {
	const struct kx_selection *sel;
	const struct kx_rates *rates;
	const struct kx_function_windows *windows;
	const struct kx_functions_table *o;
	size_t *rows; /* indexes into the selection's functions */
	size_t n;
	bool address, instructions; /* columns that narrow screens lack */
	bool no_reasons;	    /* of functions that cannot be recorded in process, for the same reason */
	size_t name;		    /* columns; 0: no limit */
	struct kx_function_places places;
};

#define LEAST_NAME 28
#define RATE_WIDTH 34
#define ADDRESS_WIDTH 20
#define INSNS_WIDTH 8
#define OTHER_WIDTH 31 /* COST, EXIT, SIZE */
#define WINDOWS_WIDTH 12
#define COLUMNS_MAX 128 /* bytes of the columns before the name, also with the largest numbers */

static int compare(const void *pa, const void *pb, void *ctx)
{
	const struct table *t = ctx;
	size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
	const struct kx_function *fa = &t->sel->functions[a], *fb = &t->sel->functions[b];
	int order = 0;

	if (t->o->sort == KX_FUNCTIONS_BY_NAME)
		order = strcmp(fa->sym->pretty, fb->sym->pretty);
	else if (t->o->sort == KX_FUNCTIONS_BY_SIZE)
		order = fa->sym->size < fb->sym->size ? 1 : -(fa->sym->size > fb->sym->size);
	else if (t->o->sort == KX_FUNCTIONS_BY_COST)
		order = (int)fb->plan.entry.cost - (int)fa->plan.entry.cost;
	else if (t->o->sort == KX_FUNCTIONS_BY_CALLS)
		order = t->rates->items[a].per_second < t->rates->items[b].per_second ?
				1 : -(t->rates->items[a].per_second > t->rates->items[b].per_second);
	/* else as selected: by module and address */
	return order ? order : a < b ? -1 : 1;
}

static void choose_columns(struct table *t)
{
	size_t columns = t->o->screen.columns, used = OTHER_WIDTH;

	used += (t->rates ? RATE_WIDTH : 0) + (t->windows ? WINDOWS_WIDTH : 0);
	t->instructions = !columns || used + INSNS_WIDTH + LEAST_NAME <= columns;
	used += t->instructions ? INSNS_WIDTH : 0;
	t->address = !columns || used + ADDRESS_WIDTH + LEAST_NAME <= columns;
	used += t->address ? ADDRESS_WIDTH : 0;
	t->name = !columns ? 0 : columns > used + 8 ? columns - used : 8;
}

static void print_heads(const struct table *t)
{
	printf("%s", kx_screen_style(&t->o->screen, KX_STYLE_HEAD));
	if (t->rates)
		printf("%12s  %8s  %8s  ", "CALLS/S", "NS/CALL", "CPU");
	printf("%-8s  %-11s  ", "COST", "EXIT");
	if (t->windows)
		printf("%-10s  ", "IN PROCESS");
	if (t->address)
		printf("%18s  ", "ADDRESS");
	printf("%6s  ", "SIZE");
	if (t->instructions)
		printf("%6s  ", "INSNS");
	printf("FUNCTION%s\n", kx_screen_style(&t->o->screen, KX_STYLE_PLAIN));
}

static void print_rate(const struct kx_rate *r)
{
	if (r->cost_ns < 0)
		printf("%12.0f  %8s  %8s  ", r->per_second, "?", "?");
	else
		printf("%12.0f  %8.0f  %7.2f%%  ", r->per_second, r->cost_ns, r->percent);
}

/* The columns of a row, without printf: the rows are written by one thread while all others wait. */
static char *add_text(char *at, const char *text, size_t width)
{
	char *end = stpcpy(at, text);

	while (end < at + width + 2)
		*end++ = ' ';
	return end;
}

/* The same on the right, in base 10 or, as with %#x, 16. */
static char *add_number(char *at, uint64_t value, unsigned base, size_t width)
{
	char text[24];
	const bool prefix = base == 16 && value;
	size_t n = 0;

	do
		text[n++] = "0123456789abcdef"[value % base];
	while (value /= base);
	if (prefix) {
		text[n++] = 'x';
		text[n++] = '0';
	}
	for (size_t i = n; i < width; i++)
		*at++ = ' ';
	while (n)
		*at++ = text[--n];
	*at++ = ' ';
	*at++ = ' ';
	return at;
}

static int print_row(struct table *t, size_t index)
{
	const struct kx_function *f = &t->sel->functions[index];
	char line[COLUMNS_MAX], *at;
	size_t module_at;
	const char *file, *in_process = t->windows ? kx_function_windows_answer(t->windows, f) : NULL;
	const bool possible = in_process && !strcmp(in_process, "yes");
	uint32_t number;
	char *marker = kx_select_is_usdt(t->sel, f) ? kx_marker_text(t->sel, f) : NULL;
	char *name = kx_display_function(marker ? marker : f->sym->pretty, t->sel->modules[f->module].module->name, t->name,
					 &module_at);

	free(marker);
	if (!name)
		return -ENOMEM;
	if (t->rates)
		print_rate(&t->rates->items[index]);
	at = add_text(line, kx_cost_name(f->plan.entry.cost), 8);
	at = add_text(at, kx_exits_name(f->plan.exit_kind), 11);
	if (in_process)
		at = add_text(at, possible ? "yes" : "no", 10);
	if (t->address)
		at = add_number(at, f->sym->addr, 16, 18);
	at = add_number(at, f->sym->size, 10, 6);
	if (t->instructions)
		at = add_number(at, f->plan.instructions, 10, 6);
	fwrite(line, 1, (size_t)(at - line), stdout);
	fwrite(name, 1, module_at, stdout);
	fputs(kx_screen_style(&t->o->screen, KX_STYLE_DIM), stdout);
	fputs(name + module_at, stdout);
	/* where lines may be long */
	if (!t->name && kx_function_place(&t->places, f, &file, &number))
		kx_print(stdout, " %s:%" PRIu32, file, number);
	if (!t->name && in_process && !possible)
		kx_print(stdout, ": %s", in_process);
	t->no_reasons |= t->name && in_process && !possible;
	fputs(kx_screen_style(&t->o->screen, KX_STYLE_PLAIN), stdout);
	putchar('\n');
	free(name);
	return 0;
}

static void print_what_is_left_out(const struct table *t)
{
	const char *columns = t->address ? "" : t->instructions ? "ADDRESS" : "ADDRESS, INSNS";

	if (*columns || t->no_reasons)
		printf("%sToo narrow for %s%s%s: --wide%s\n", kx_screen_style(&t->o->screen, KX_STYLE_DIM), columns,
		       *columns && t->no_reasons ? " and " : "", t->no_reasons ? "why not in process" : "",
		       kx_screen_style(&t->o->screen, KX_STYLE_PLAIN));
}

int kx_functions_print(const struct kx_selection *sel, const struct kx_rates *rates, const struct kx_function_windows *windows,
		       const struct kx_functions_table *o, struct kx_err *err)
{
	struct table t = { .sel = sel, .rates = rates, .windows = windows, .o = o, .places = { .sel = sel } };
	size_t shown;
	int r = 0;

	t.rows = calloc(sel->nfunctions + 1, sizeof(*t.rows));
	if (!t.rows)
		return kx_err_set(err, -ENOMEM, "out of memory for the table");
	for (size_t i = 0; i < sel->nfunctions; i++)
		if (sel->functions[i].traced)
			t.rows[t.n++] = i;
	if (o->sort != KX_FUNCTIONS_BY_ADDRESS)
		qsort_r(t.rows, t.n, sizeof(*t.rows), compare, &t);
	choose_columns(&t);
	print_heads(&t);
	shown = o->limit && o->limit < t.n ? o->limit : t.n;
	for (size_t i = 0; i < shown && !r; i++)
		r = print_row(&t, t.rows[i]);
	if (shown < t.n)
		printf("all %zu functions, %zu shown\n", t.n, shown);
	print_what_is_left_out(&t);
	kx_function_places_free(&t.places);
	free(t.rows);
	return r ? kx_err_set(err, r, "out of memory for the table") : 0;
}
