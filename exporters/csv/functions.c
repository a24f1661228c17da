// SPDX-License-Identifier: BSD-2-Clause
/* The table functions: one row for each function of the map, traced calls or not. */
#include "exporters/csv/columns.h"
#include "exporters/csv/row.h"

#define PUT(name) static void name(struct kx_csv *c, struct kx_text_out *o, const struct kx_csv_column *column)

static const struct kx_map_function *function_of(const struct kx_csv *c)
{
	return &c->x->names->map.functions[c->func - 1];
}

PUT(put_symbol)
{
	(void)column;
	kx_csv_put_text(o, function_of(c)->symbol);
}

PUT(put_build_id)
{
	(void)column;
	kx_csv_put_text(o, c->x->names->map.modules[function_of(c)->module].build_id);
}

PUT(put_address)
{
	(void)column;
	kx_csv_put_hex(o, function_of(c)->address);
}

PUT(put_size)
{
	(void)column;
	kx_text_u64(o, function_of(c)->size);
}

static const struct kx_csv_column columns[] = {
	{ "function_id", KX_CSV_OF_FUNCTION, .put = kx_csv_put_function_id },
	{ "function_key", KX_CSV_OF_FUNCTION, .put = kx_csv_put_function_key },
	KX_CSV_FUNCTION_COLUMNS,
	{ "build_id", KX_CSV_OF_FUNCTION, .put = put_build_id },
	{ "address", KX_CSV_OF_FUNCTION, .put = put_address },
	{ "size", KX_CSV_OF_FUNCTION, .put = put_size },
	{ "file", KX_CSV_OF_FUNCTION, .put = kx_csv_put_file },
	{ "line", KX_CSV_OF_FUNCTION, .put = kx_csv_put_line },
	{ "symbol", KX_CSV_OF_FUNCTION, .put = put_symbol, .by_default = kx_csv_never },
	{ 0 },
};

static int run(struct kx_csv *c, struct kx_err *err)
{
	struct kx_symbolizer *names = c->x->names;
	int r = 0;

	(void)err;
	if (!names->has_map)
		c->x->notice(c->x, "the trace has no map, so nothing is known of its functions");
	names->map.names_once = true;
	for (size_t id = 1; names->has_map && !r && id <= names->map.nfunctions; id++) {
		c->func = (uint32_t)id;
		r = kx_csv_row(c);
	}
	return r;
}

const struct kx_csv_table kx_csv_functions = { .name = "functions", .columns = columns, .run = run };
