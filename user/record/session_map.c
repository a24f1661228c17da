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

int kx_session_map_write(const char *path, const struct kx_selection *sel, const struct kx_exit_move_list *moves,
			 uint64_t from, json_t *info, struct kx_err *err)
{
	struct kx_map map = { .session = info };
	int code;

	map.modules = calloc(sel->nmodules, sizeof(*map.modules));
	map.functions = calloc(sel->nfunctions, sizeof(*map.functions));
	if (!map.modules || !map.functions) {
		free(map.modules);
		free(map.functions);
		return kx_err_set(err, -ENOMEM, "no memory for the map");
	}
	map.nmodules = sel->nmodules;
	map.nfunctions = sel->nfunctions;
	for (size_t i = 0; i < map.nmodules; i++) {
		const struct kx_select_module *sm = &sel->modules[i];

		map.modules[i] =
			(struct kx_map_module){ .name = sm->module->name,
						.path = sm->module->path,
						.called = sm->module->called,
						.build_id = sm->elf ? kx_elf_build_id(sm->elf) : "",
						.load_bias = sm->module->load_bias };
	}
	for (size_t i = 0; i < map.nfunctions; i++) {
		const struct kx_function *f = &sel->functions[i];

		map.functions[i] = (struct kx_map_function){ .symbol = f->sym->name,
							     .module = f->module,
							     .address = f->sym->addr,
							     .size = kx_map_function_size(f->sym->size) };
	}
	code = describe_kinds(sel, moves, from, info);
	code = code ? kx_err_set(err, code, "no memory for the map") : kx_map_write(path, &map, err);
	free(map.modules);
	free(map.functions);
	return code;
}
