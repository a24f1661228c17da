// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is expensive about listed functions, measured by calls of kxray's own in a thread: prepared while they are planned,
 * measured while the list is printed, which keeps one CPU busy.
 */
#ifndef KX_FUNCTIONS_PRICE_H
#define KX_FUNCTIONS_PRICE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>

#include "doctor/call_cost.h"
#include "doctor/price.h"

struct kx_price_measurement {
	const struct kx_selection *sel; /* borrowed */
	struct kx_price price;          /* without functions, if none has expensive exits */
	struct kx_call_costs costs;
	bool started, measured, runs;
	sem_t known; /* posted once the functions are */
	pthread_t thread;
};

/* Prepares the measurement. Until kx_price_wait nothing else may be asked of the keeper (tracer/keeper.h). */
void kx_price_start_early(struct kx_price_measurement *m);
/* Measures, where that is allowed, if that was prepared or some function of @sel has expensive exits. */
void kx_price_start(struct kx_price_measurement *m, const struct kx_selection *sel);
/* Waits for the end, if there was a beginning. Also without a selection. */
void kx_price_wait(struct kx_price_measurement *m);
/* A line, if some function has expensive exits. */
void kx_price_print(const struct kx_price_measurement *m, FILE *to);

#endif
