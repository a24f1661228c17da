// SPDX-License-Identifier: BSD-2-Clause
#include "doctor/price.h"

#include <cpuid.h>
#include <stdbool.h>
#include <stdio.h>

#include "doctor/calibrate.h"

#define HYPERVISOR_BIT (1u << 31) /* of ECX, leaf 1: set by every hypervisor */

static bool is_virtual_machine(void)
{
	unsigned eax, ebx, ecx = 0, edx;

	return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & HYPERVISOR_BIT);
}

static bool has_stepped_exit(const struct kx_function *f)
{
	if (!f->traced || f->plan.exit_kind != KX_EXITS_INSTRUCTION)
		return false;
	for (size_t i = 0; i < f->plan.nexits; i++)
		if (f->plan.exits[i].cost == KX_COST_STEPPED)
			return true;
	return false;
}

void kx_price_calibrated(const struct kx_selection *sel, const struct kx_probe_costs *costs,
			 double tsc_hz, struct kx_price *out)
{
	const struct kx_plan jumps = { .entry.cost = KX_COST_EMULATED,
				       .exit_kind = KX_EXITS_INSTRUCTION };
	uint8_t of_jumps = kx_calibrate_kind(&jumps);
	double ticks = 0;

	*out = (struct kx_price){ 0 };
	for (size_t i = 0; i < sel->nfunctions; i++) {
		uint8_t kind = kx_calibrate_kind(&sel->functions[i].plan);

		if (!has_stepped_exit(&sel->functions[i]))
			continue;
		out->functions++;
		if (kind < costs->nkinds)
			ticks += costs->kinds[kind].cost;
	}
	if (!out->functions || of_jumps >= costs->nkinds || tsc_hz <= 0)
		return;
	out->call_ns = ticks / (double)out->functions * 1e9 / tsc_hz;
	/* both probes of a call that leaves by a jump are emulated */
	out->entry_ns = costs->kinds[of_jumps].tail_cost / 2.0 * 1e9 / tsc_hz;
}

void kx_price_measured(const struct kx_selection *sel, const struct kx_call_costs *costs,
		       struct kx_price *out)
{
	double ns = 0;

	*out = (struct kx_price){ 0 };
	for (size_t i = 0; i < sel->nfunctions; i++) {
		if (!has_stepped_exit(&sel->functions[i]))
			continue;
		out->functions++;
		if (costs)
			ns += kx_call_cost(costs, &sel->functions[i].plan);
	}
	if (!out->functions || !costs)
		return;
	out->call_ns = ns / (double)out->functions;
	out->entry_ns = costs->entry_ns[KX_COST_EMULATED] + costs->event_ns;
}

void kx_price_texts(const struct kx_price *price, char cost[KX_PRICE_TEXT], char instead[KX_PRICE_TEXT])
{
	const char *where = is_virtual_machine() ? ", in this virtual machine" : "";
	const char *how = "return instructions are single-stepped";

	if (price->call_ns > 0)
		snprintf(cost, KX_PRICE_TEXT, "about %.*f us a call (%s%s)",
			 price->call_ns < 10e3, price->call_ns * 1e-3, how, where);
	else
		snprintf(cost, KX_PRICE_TEXT, "%s%s", how, where);
	if (price->entry_ns > 0)
		snprintf(instead, KX_PRICE_TEXT, "--exits=none records entries alone, at about %.1f us",
			 price->entry_ns * 1e-3);
	else
		snprintf(instead, KX_PRICE_TEXT, "--exits=none records entries alone");
}
