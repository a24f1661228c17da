// SPDX-License-Identifier: BSD-2-Clause
/* Where the windows of one function go. */
#ifndef KX_WINDOW_PLACES_H
#define KX_WINDOW_PLACES_H

#include "plan/function.h"
#include "plan/landing_map.h"
#include "plan/plan.h"
#include "plan/windows.h"

struct kx_window_ground {
	const struct kx_code *code;
	const struct kx_landing_map *landings;
	const struct kx_function_code *function;
	bool faults_stay; /* no instruction that may fault is moved */
	bool frame;	  /* rbp is the function's frame; only with faults_stay */
};

/* A window for the function's entry and one for each of @exits, which are in the order of their addresses. */
enum kx_window_refusal kx_window_places(const struct kx_window_ground *g, const struct kx_plan *exits, struct kx_windows *out);

#endif
