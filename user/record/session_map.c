// SPDX-License-Identifier: BSD-2-Clause
#include "record/session_map.h"

#include <errno.h>
#include <stdlib.h>

#include "doctor/calibrate.h"
#include "trace/map_file.h"
#include "trace/probe_cost.h"

static int describe_kinds(const struct kx_selection *sel, const struct kx_exit_move_list *moves, uint64_t from,
			  json_t *info)
{
	uint8_t *kinds = calloc(sel->nfunctions + 1, 1), *moved = calloc(sel->nfunctions + 1, 1);
	bool *leaf = calloc(sel->nfunctions + 1, sizeof(*leaf));
	int code = -ENOMEM;

	for (size_t i = 0; kinds && moved && leaf && i < sel->nfunctions; i++) {
		const struct kx_plan *plan = &sel->functions[i].plan;

		if (!sel->functions[i].traced)
			continue;
		kinds[i] = kx_calibrate_kind(plan);
		moved[i] = kx_calibrate_moved_kind(plan);
		leaf[i] = !plan->makes_calls;
	}
	if (kinds && moved && leaf)
		code = kx_probe_costs_write_functions(info, kinds, sel->nfunctions);
	if (!code)
		code = kx_exit_moves_write(moves, from, moved, leaf, sel->nfunctions, info);
	free(kinds);
	free(moved);
	free(leaf);
	return code;
}

static void add_selected(struct kx_map *map, const struct kx_selection *sel)
{
	map->nmodules = sel->nmodules;
	map->nfunctions = sel->nfunctions;
	for (size_t i = 0; i < map->nmodules; i++) {
		const struct kx_select_module *sm = &sel->modules[i];

		map->modules[i] =
			(struct kx_map_module){ .name = sm->module->name,
						.path = sm->module->path,
						.called = sm->module->called,
						.build_id = sm->elf ? kx_elf_build_id(sm->elf) : "",
						.load_bias = sm->module->load_bias };
	}
	for (size_t i = 0; i < map->nfunctions; i++) {
		const struct kx_function *f = &sel->functions[i];

		map->functions[i] = (struct kx_map_function){ .symbol = f->sym->name,
							      .module = f->module,
							      .address = f->sym->addr,
							      .size = kx_map_function_size(f->sym->size) };
	}
}

/* Modules of callers follow those of the selection. */
static void add_callers(struct kx_map *map, const struct kx_caller_functions *callers)
{
	for (size_t i = 0; i < callers->nmodules; i++)
		map->modules[map->nmodules++] = callers->modules[i];
	map->callers = callers->functions;
	map->ncallers = callers->nfunctions;
}

int kx_session_map_write(const char *path, const struct kx_session_map *what, struct kx_err *err)
{
	const struct kx_selection *sel = what->sel;
	struct kx_map_place *places = kx_source_places_get(what->places, sel);
	struct kx_map map = { .session = what->info, .places = places };
	int code = -ENOMEM;

	map.modules = calloc(sel->nmodules + (what->callers ? what->callers->nmodules : 0) + 1, sizeof(*map.modules));
	map.functions = calloc(sel->nfunctions + 1, sizeof(*map.functions));
	if (map.modules && map.functions) {
		add_selected(&map, sel);
		if (what->callers)
			add_callers(&map, what->callers);
		code = describe_kinds(sel, what->moves, what->from, what->info);
	}
	code = code ? kx_err_set(err, code, "no memory for the map") : kx_map_write(path, &map, err);
	free(map.modules);
	free(map.functions);
	free(places);
	return code;
}
