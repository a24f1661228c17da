// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/csv/columns.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/near_names.h"
#include "exporters/csv/row.h"

#define PUT(name) void name(struct kx_csv *c, struct kx_text_out *o, const struct kx_csv_column *column)
#define UNUSED (void)column

bool kx_csv_never(const struct kx_csv *c)
{
	(void)c;
	return false;
}

PUT(kx_csv_put_pid)
{
	UNUSED;
	kx_csv_put_signed(o, c->thread->pid);
}

PUT(kx_csv_put_tid)
{
	UNUSED;
	kx_csv_put_signed(o, c->thread->tid);
}

PUT(kx_csv_put_thread)
{
	UNUSED;
	kx_csv_put_text(o, c->thread->name);
}

PUT(kx_csv_put_function)
{
	UNUSED;
	if (c->func)
		kx_csv_put_text(o, kx_trace_name(c->x->names, c->func));
}

PUT(kx_csv_put_module)
{
	UNUSED;
	if (c->func)
		kx_csv_put_text(o, kx_trace_module(c->x->names, c->func));
}

PUT(kx_csv_put_function_id)
{
	UNUSED;
	kx_text_u64(o, c->func);
}

#define FNV_BASIS 0xcbf29ce484222325
#define FNV_PRIME 0x100000001b3

static uint64_t hashed(uint64_t hash, const void *data, size_t size)
{
	for (const uint8_t *p = data, *end = p + size; p < end; p++)
		hash = (hash ^ *p) * FNV_PRIME;
	return hash;
}

/*
 * FNV-1a of the module's name, its build id and the symbol, each with its NUL, and in a module with a build
 * id the address, little-endian: there it is the same wherever this build runs. The kernel's differs after
 * each boot. 63 bits, since databases have signed integers.
 */
PUT(kx_csv_put_function_key)
{
	const struct kx_symbolizer *names = c->x->names;
	const struct kx_map_module *m;
	const struct kx_map_function *f;
	uint64_t hash = FNV_BASIS;
	const char *name;

	UNUSED;
	if (!c->func) {
		kx_text_char(o, '0');
		return;
	}
	if (!names->has_map || c->func > names->map.nfunctions) {
		name = kx_trace_name(c->x->names, c->func);
		hash = hashed(hash, name, strlen(name) + 1);
	} else {
		f = &names->map.functions[c->func - 1];
		m = &names->map.modules[f->module];
		hash = hashed(hash, m->name, strlen(m->name) + 1);
		hash = hashed(hash, m->build_id, strlen(m->build_id) + 1);
		hash = hashed(hash, f->symbol, strlen(f->symbol) + 1);
		if (*m->build_id)
			hash = hashed(hash, &f->address, sizeof(f->address));
	}
	kx_text_u64(o, hash & INT64_MAX);
}

PUT(kx_csv_put_file)
{
	struct kx_map_place place;

	UNUSED;
	if (kx_trace_place(c->x->names, c->func, &place))
		kx_csv_put_text(o, place.file);
}

PUT(kx_csv_put_line)
{
	struct kx_map_place place;

	UNUSED;
	if (kx_trace_place(c->x->names, c->func, &place))
		kx_text_u64(o, place.line);
	else
		kx_csv_put_null(c, o);
}

static const char *host_of(const struct kx_csv *c)
{
	return json_string_value(json_object_get(json_object_get(c->x->session, "host"), "name"));
}

static PUT(put_host)
{
	UNUSED;
	kx_csv_put_text(o, host_of(c));
}

static int check_host(const struct kx_csv *c, struct kx_err *err)
{
	if (host_of(c))
		return 0;
	return kx_err_set(err, -EINVAL, "the trace does not say on which host it was recorded: give the column a value, "
					"host=NAME");
}

static PUT(put_trace)
{
	UNUSED;
	kx_text_u64(o, c->trace);
}

static int check_trace(const struct kx_csv *c, struct kx_err *err)
{
	if (c->has_trace)
		return 0;
	return kx_err_set(err, -EINVAL, "the trace does not say when it was recorded: give the column a value, trace=NUMBER");
}

static PUT(put_value)
{
	(void)c;
	kx_csv_put_text(o, column->value);
}

/* Of every table. */
static const struct kx_csv_column common[] = {
	{ "host", KX_CSV_OF_THREAD, .put = put_host, .check = check_host },
	{ "trace", KX_CSV_OF_THREAD, .put = put_trace, .check = check_trace },
	{ 0 },
};

static const struct kx_csv_column *find(const struct kx_csv_column *list, const char *name)
{
	for (; list->name; list++)
		if (!strcmp(list->name, name))
			return list;
	return NULL;
}

static int no_column(const struct kx_csv *c, const char *name, struct kx_err *err)
{
	struct kx_near_names near = { .wanted = name };
	char all[512] = "";
	size_t used = 0;

	for (unsigned i = 0; i < 2; i++)
		for (const struct kx_csv_column *k = i ? common : c->table->columns; k->name; k++) {
			kx_near_names_look(&near, k->name);
			if (used < sizeof(all))
				used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", used ? ", " : "", k->name);
		}
	if (*near.text)
		return kx_err_set(err, -EINVAL, "the table %s has no column '%s'; is it %s?", c->table->name, name, near.text);
	return kx_err_set(err, -EINVAL, "the table %s has no column '%s': it has %s, and takes NAME=VALUE", c->table->name,
			  name, all);
}

/* @word stays in place: names and values of constant columns are parts of it. */
static int add(struct kx_csv *c, char *word, struct kx_err *err)
{
	char *value = strchr(word, '=');
	struct kx_csv_column constant = { word, KX_CSV_OF_THREAD, .put = put_value };
	const struct kx_csv_column *column = value ? &constant : find(c->table->columns, word);
	int r = 0;

	if (value) {
		*value = 0;
		constant.value = value + 1;
	}
	if (!*word)
		return kx_err_set(err, -EINVAL, "--csv-columns takes names of columns, separated by commas, and NAME=VALUE");
	if (!column)
		column = find(common, word);
	if (!column) {
		constant.value = json_string_value(json_object_get(json_object_get(c->x->session, "labels"), word));
		column = constant.value ? &constant : NULL;
	}
	if (!column)
		return no_column(c, word, err);
	for (size_t i = 0; i < c->ncolumns; i++)
		if (!strcmp(c->columns[i].name, word))
			return kx_err_set(err, -EINVAL, "--csv-columns: the column '%s' is there twice", word);
	if (column->check)
		r = column->check(c, err);
	if (!r)
		c->columns[c->ncolumns++] = *column;
	return r;
}

static void add_default(struct kx_csv *c)
{
	for (const struct kx_csv_column *i = c->table->columns; i->name; i++)
		if (!i->by_default || i->by_default(c))
			c->columns[c->ncolumns++] = *i;
}

int kx_csv_columns_choose(struct kx_csv *c, const char *list, struct kx_err *err)
{
	bool adds = !list || *list == '+';
	const char *words = list ? list + adds : "";
	size_t room = 1;
	char *rest, *word;
	int r = 0;

	for (const struct kx_csv_column *i = c->table->columns; i->name; i++)
		room++;
	for (const char *i = words; *i; i++)
		room += *i == ',';
	c->columns = calloc(room, sizeof(*c->columns));
	c->names = rest = strdup(words);
	if (!c->columns || !rest)
		return kx_err_set(err, -ENOMEM, "out of memory");
	if (adds)
		add_default(c);
	while (list && !r && (word = strsep(&rest, ",")))
		r = add(c, word, err);
	return r;
}

void kx_csv_columns_free(struct kx_csv *c)
{
	free(c->columns);
	free(c->names);
}
