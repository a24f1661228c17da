// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/functions_price.h"

#include "base/printable.h"
#include "doctor/call_cost.h"
#include "tracer/uprobe_try.h"

static void *measure(void *arg)
{
	struct kx_price_measurement *m = arg;
	enum kx_mechanism mechanism;
	struct kx_call_costs costs;

	if (!kx_mechanism_best(&mechanism, NULL) && !kx_call_costs_measure(mechanism, true, &costs, NULL))
		kx_price_measured(m->sel, &costs, &m->price);
	return NULL;
}

void kx_price_start(struct kx_price_measurement *m)
{
	kx_price_measured(m->sel, NULL, &m->price);
	if (!m->price.functions)
		return;
	m->runs = !pthread_create(&m->thread, NULL, measure, m);
	if (!m->runs)
		measure(m);
}

void kx_price_wait(struct kx_price_measurement *m)
{
	if (m->runs)
		pthread_join(m->thread, NULL);
	m->runs = false;
}

void kx_price_print(const struct kx_price_measurement *m, FILE *to)
{
	char cost[KX_PRICE_TEXT], instead[KX_PRICE_TEXT];
	const struct kx_price *p = &m->price;

	if (!p->functions)
		return;
	kx_price_texts(p, cost, instead);
	kx_print(to, "%zu function%s %s expensive exits, %s; %s\n", p->functions, p->functions == 1 ? "" : "s",
		 p->functions == 1 ? "has" : "have", cost, instead);
}
