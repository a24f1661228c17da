// SPDX-License-Identifier: BSD-2-Clause
/*
 * Comma-separated values after RFC 4180, for spreadsheets, databases and scripts: a line of names,
 * then one row for each call, or with --csv-table for each function, process, time off the CPU or
 * loss. table.h says how tables are made, and each table's file what is in it.
 *
 * The rows of one trace, table and list of columns are always the same ones in the same order: a load
 * that was interrupted goes on with --csv-skip, where the database has all rows up to there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/near_names.h"
#include "exporters/common/text.h"
#include "exporters/csv/columns.h"
#include "exporters/csv/row.h"

static const struct kx_csv_table *const tables[] = {
	&kx_csv_calls, &kx_csv_functions, &kx_csv_processes, &kx_csv_sched, &kx_csv_losses,
};

static int choose_table(struct kx_csv *c, const char *name, struct kx_err *err)
{
	struct kx_near_names near = { .wanted = name };

	c->table = tables[0];
	for (size_t i = 0; name && i < sizeof(tables) / sizeof(*tables); i++) {
		c->table = tables[i];
		if (!strcmp(name, tables[i]->name))
			return 0;
		kx_near_names_look(&near, tables[i]->name);
	}
	if (!name)
		return 0;
	if (*near.text)
		return kx_err_set(err, -EINVAL, "csv has no table '%s'; is it %s?", name, near.text);
	return kx_err_set(err, -EINVAL, "csv has no table '%s': take calls, functions, processes, sched or losses", name);
}

static int parse_skip(struct kx_csv *c, const char *text, struct kx_err *err)
{
	char *end;

	if (!text)
		return 0;
	errno = 0;
	c->skip = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno)
		return kx_err_set(err, -EINVAL, "--csv-skip takes a number of rows, not '%s'", text);
	return 0;
}

static int prepare(struct kx_csv *c, struct kx_err *err)
{
	const struct kx_export *x = c->x;
	int r = choose_table(c, x->option(x, "csv-table"), err);
	uint32_t nsec;
	int64_t sec;

	c->null = x->option(x, "csv-null");
	c->null = c->null ? c->null : "";
	c->first_tsc = kx_calls_get_totals(x->calls)->first_tsc;
	c->has_trace = kx_trace_started(x, c->first_tsc, &sec, &nsec) && sec >= 0;
	if (c->has_trace)
		c->trace = (uint64_t)sec * 1000000000 + nsec;
	if (!r && kx_value_map_read(&c->values, x->session))
		r = kx_err_set(err, -ENOMEM, "out of memory");
	if (!r)
		r = parse_skip(c, x->option(x, "csv-skip"), err);
	if (!r)
		r = kx_csv_columns_choose(c, x->option(x, "csv-columns"), err);
	if (!r && kx_csv_begin(c))
		r = kx_err_set(err, -ENOMEM, "out of memory");
	return r;
}

static int run(const struct kx_export *x, struct kx_err *err)
{
	struct kx_csv c = { .x = x };
	int r = prepare(&c, err);

	if (!r)
		r = c.table->run(&c, err);
	if (r == -ENOMEM && !*err->text)
		kx_err_set(err, r, "out of memory");
	kx_csv_end(&c);
	kx_csv_columns_free(&c);
	kx_value_map_free(&c.values);
	return r;
}

static const struct kx_export_option options[] = {
	{ "csv-table", "TABLE", "rows of calls (default), functions, processes, sched or losses" },
	{ "csv-columns", "LIST", "these columns, or with + before them these too; NAME=VALUE is a constant" },
	{ "csv-null", "TEXT", "for numbers that are not known: '\\N' for ClickHouse; default nothing" },
	{ "csv-skip", "N", "leave out the first N rows, to go on with a load" },
	{ 0 },
};

const struct kx_exporter kx_exporter_csv = {
	.name = "csv",
	.suffix = ".csv",
	.summary = "one row per call, for spreadsheets, databases and scripts (RFC 4180)",
	.open_hint = "open it in a spreadsheet, or read it by a script",
	.options = options,
	.part_option = "csv-table",
	.run = run,
};
