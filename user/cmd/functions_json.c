// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/functions_json.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "base/json_text.h"
#include "cmd/cmd.h"
#include "cmd/function_places.h"
#include "cmd/marker_arguments.h"

#define JSON_TEXT_MAX (64u << 10)

/* A number; of the kernel's, which are above all that JSON libraries take, in hexadecimal. */
static json_t *address_json(uint64_t address)
{
	char text[24];

	if (address <= INT64_MAX)
		return json_integer((json_int_t)address);
	snprintf(text, sizeof(text), "%#" PRIx64, address);
	return json_string(text);
}

/* @windows: NULL without --in-process. */
static json_t *function_json(const struct kx_selection *sel, const struct kx_function *f,
			     struct kx_function_places *places, const struct kx_function_windows *windows)
{
	const struct kx_symbol *s = f->sym;
	const char *file;
	uint32_t line;
	json_t *json;

	json = json_pack("{s:i, s:o, s:o, s:o, s:o, s:I, s:I, s:s, s:s, s:I}", "schema",
			 KX_JSON_SCHEMA, "name", kx_json_text(s->pretty, JSON_TEXT_MAX), "symbol",
			 kx_json_text(s->name, JSON_TEXT_MAX), "module",
			 kx_json_text(sel->modules[f->module].module->name, JSON_TEXT_MAX),
			 "address", address_json(s->addr), "size", (json_int_t)s->size,
			 "probe_offset", (json_int_t)(f->plan.entry.addr - s->addr), "cost",
			 kx_cost_name(f->plan.entry.cost), "exit", kx_exits_name(f->plan.exit_kind),
			 "instructions", (json_int_t)f->plan.instructions);
	if (json && kx_function_place(places, f, &file, &line) &&
	    (json_object_set_new(json, "file", kx_json_text(file, JSON_TEXT_MAX)) ||
	     json_object_set_new(json, "line", json_integer(line)))) {
		json_decref(json);
		return NULL;
	}
	if (json && kx_select_is_usdt(sel, f) && kx_marker_add_json(sel, f, json)) {
		json_decref(json);
		return NULL;
	}
	if (json && windows &&
	    json_object_set_new(json, "in_process", kx_json_text(kx_function_windows_answer(windows, f), JSON_TEXT_MAX))) {
		json_decref(json);
		return NULL;
	}
	return json;
}

static int add_rate(json_t *function, const struct kx_rate *r)
{
	return json_object_set_new(function, "calls_per_second", json_real(r->per_second)) ||
	       json_object_set_new(function, "cost_ns",
				   r->cost_ns < 0 ? json_null() : json_real(r->cost_ns)) ||
	       json_object_set_new(function, "predicted_cpu_percent",
				   r->cost_ns < 0 ? json_null() : json_real(r->percent));
}

int kx_functions_json(const struct kx_selection *sel, const struct kx_rates *rates, const struct kx_function_windows *windows,
		      struct kx_err *err)
{
	struct kx_function_places places = { .sel = sel };
	json_t *all = json_array();
	size_t i;
	int rc = all ? 0 : -1;

	for (i = 0; i < sel->nfunctions && !rc; i++) {
		json_t *function;

		if (!sel->functions[i].traced)
			continue;
		function = function_json(sel, &sel->functions[i], &places, windows);
		if (function && rates && add_rate(function, &rates->items[i]))
			rc = -1;
		if (json_array_append_new(all, function))
			rc = -1;
	}
	kx_function_places_free(&places);
	if (!rc && rates) {
		json_t *whole = json_pack("{s:i, s:f, s:f, s:O}", "schema", KX_JSON_SCHEMA,
					  "seconds", rates->seconds, "predicted_cpu_percent",
					  rates->percent, "functions", all);

		json_decref(all);
		all = whole;
		rc = all ? 0 : -1;
	}
	if (rc)
		kx_err_set(err, -ENOMEM, "no memory for the list of %zu functions", sel->ntraced);
	else if (json_dumpf(all, stdout, JSON_INDENT(1)) || putchar('\n') == EOF)
		rc = kx_err_set(err, -EIO, "cannot write to standard output");
	json_decref(all);
	return rc;
}
