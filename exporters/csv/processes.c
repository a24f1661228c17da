// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table processes: one row for each process of the session, in its order. Times are ns since the start of the trace,
 * empty for processes that were there before it and after it. command: the arguments, separated by blanks.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "exporters/csv/columns.h"
#include "exporters/csv/row.h"

#define PUT(name) static void name(struct kx_csv *c, struct kx_text_out *o, const struct kx_csv_column *column)

/* These columns have the names of the session's fields. */
static const json_t *field_of(const struct kx_csv *c, const struct kx_csv_column *column)
{
	return json_object_get(c->row, column->name);
}

PUT(put_integer)
{
	const json_t *value = field_of(c, column);

	if (json_is_integer(value))
		kx_csv_put_signed(o, json_integer_value(value));
	else
		kx_csv_put_null(c, o);
}

PUT(put_string)
{
	const char *text = json_string_value(field_of(c, column));

	kx_csv_put_text(o, text ? text : "");
}

PUT(put_command)
{
	const json_t *argument;
	char *joined = NULL;
	size_t i, size;
	FILE *to = open_memstream(&joined, &size);

	if (!to) {
		o->error = -ENOMEM;
		return;
	}
	json_array_foreach (field_of(c, column), i, argument)
		fprintf(to, "%s%s", i ? " " : "", json_string_value(argument) ? json_string_value(argument) : "");
	if (fclose(to))
		o->error = -ENOMEM;
	else
		kx_csv_put_text(o, joined);
	free(joined);
}

static void put_seconds(struct kx_csv *c, struct kx_text_out *o, const char *name)
{
	const json_t *value = json_object_get(c->row, name);
	double seconds = json_number_value(value);

	if (json_is_number(value) && seconds >= 0 && seconds < 1e9)
		kx_text_u64(o, (uint64_t)llround(seconds * 1e9));
	else
		kx_csv_put_null(c, o);
}

PUT(put_started)
{
	(void)column;
	put_seconds(c, o, "started");
}

PUT(put_ended)
{
	(void)column;
	put_seconds(c, o, "ended");
}

static const struct kx_csv_column columns[] = {
	{ "pid", .put = put_integer },
	{ "ns_pid", .put = put_integer },
	{ "parent", .put = put_integer },
	{ "name", .put = put_string },
	{ "command", .put = put_command },
	{ "started_ns", .put = put_started },
	{ "ended_ns", .put = put_ended },
	{ "unit", .put = put_string, .by_default = kx_csv_never },
	{ "container", .put = put_string, .by_default = kx_csv_never },
	{ "pod", .put = put_string, .by_default = kx_csv_never },
	{ 0 },
};

static int run(struct kx_csv *c, struct kx_err *err)
{
	const json_t *process;
	size_t i;
	int r = 0;

	(void)err;
	json_array_foreach (json_object_get(c->x->session, "processes"), i, process) {
		c->row = process;
		r = kx_csv_row(c);
		if (r)
			break;
	}
	return r;
}

const struct kx_csv_table kx_csv_processes = { .name = "processes", .columns = columns, .run = run };
