// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/functions_price.h"

#include <errno.h>

#include "base/printable.h"
#include "tracer/uprobe_try.h"

static void *measure(void *arg)
{
	struct kx_price_measurement *m = arg;
	struct kx_tracer *tracer = NULL;
	enum kx_mechanism mechanism;

	if (kx_mechanism_best(&mechanism, NULL) || kx_call_costs_prepare(mechanism, &tracer, NULL))
		return NULL;
	while (sem_wait(&m->known) && errno == EINTR)
		;
	m->measured = !kx_call_costs_measure_by(tracer, true, &m->costs, NULL);
	return NULL;
}

static void start(struct kx_price_measurement *m)
{
	m->started = !sem_init(&m->known, 0, 0);
	m->runs = m->started && !pthread_create(&m->thread, NULL, measure, m);
}

void kx_price_start_early(struct kx_price_measurement *m)
{
	start(m);
}

void kx_price_start(struct kx_price_measurement *m, const struct kx_selection *sel)
{
	m->sel = sel;
	kx_price_measured(sel, NULL, &m->price);
	if (!m->started && m->price.functions)
		start(m);
	if (m->started)
		sem_post(&m->known);
}

void kx_price_wait(struct kx_price_measurement *m)
{
	if (m->started)
		sem_post(&m->known);
	if (m->runs)
		pthread_join(m->thread, NULL);
	if (m->started)
		sem_destroy(&m->known);
	m->runs = m->started = false;
	if (m->sel && m->measured)
		kx_price_measured(m->sel, &m->costs, &m->price);
	m->sel = NULL;
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
