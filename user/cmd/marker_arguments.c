// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/marker_arguments.h"

#include <stdio.h>
#include <stdlib.h>

#include "select/provider_usdt.h"

/* Of all places of the marker: each argument where it is known. Returns how many. */
static size_t read_arguments(const struct kx_selection *sel, const struct kx_function *f, const struct kx_usdt_marker **marker,
			     struct kx_usdt_argument out[KX_USDT_MAX_ARGUMENTS])
{
	const struct kx_select_module *m = &sel->modules[f->module];
	struct kx_usdt_argument one[KX_USDT_MAX_ARGUMENTS];
	const struct kx_usdt_marker *last;
	size_t most = 0;

	kx_usdt_role(m, f->sym, marker, &last);
	for (size_t i = 0; i < (*marker)->nplaces; i++) {
		size_t n = kx_usdt_place_arguments(m->elf, &(*marker)->places[i], one);

		for (size_t k = 0; k < n; k++)
			if (k >= most || out[k].unknown)
				out[k] = one[k];
		most = n > most ? n : most;
	}
	return most;
}

char *kx_marker_text(const struct kx_selection *sel, const struct kx_function *f)
{
	struct kx_usdt_argument arguments[KX_USDT_MAX_ARGUMENTS];
	const struct kx_usdt_marker *marker;
	size_t n = read_arguments(sel, f, &marker, arguments), used = 0;
	char list[KX_USDT_MAX_ARGUMENTS * 16] = "", *text;

	for (size_t i = 0; i < n && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%sarg%zu:%s", i ? ", " : "", i + 1,
					 arguments[i].unknown ? "?" : kx_usdt_argument_type(&arguments[i]));
	return asprintf(&text, "%s(%s)", f->sym->pretty, list) < 0 ? NULL : text;
}

int kx_marker_add_json(const struct kx_selection *sel, const struct kx_function *f, json_t *function)
{
	struct kx_usdt_argument arguments[KX_USDT_MAX_ARGUMENTS];
	const struct kx_usdt_marker *marker;
	size_t n = read_arguments(sel, f, &marker, arguments);
	json_t *list = json_array();

	for (size_t i = 0; i < n && list; i++) {
		const struct kx_usdt_argument *a = &arguments[i];

		if (json_array_append_new(list, a->unknown ? json_pack("{s:s}", "unknown", a->unknown) :
							     json_pack("{s:s}", "type", kx_usdt_argument_type(a)))) {
			json_decref(list);
			return -1;
		}
	}
	if (!list || json_object_set_new(function, "arguments", list))
		return -1;
	return json_object_set_new(function, "places", json_integer((json_int_t)marker->nplaces)) ||
			       json_object_set_new(function, "semaphore", json_boolean(marker->places[0].semaphore != 0)) ?
		       -1 :
		       0;
}
