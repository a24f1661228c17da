// SPDX-License-Identifier: BSD-2-Clause
/* What is expensive about listed functions, measured by calls of kxray's own, in a thread while the list is printed. */
#ifndef KX_FUNCTIONS_PRICE_H
#define KX_FUNCTIONS_PRICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "doctor/price.h"

struct kx_price_measurement {
	const struct kx_selection *sel; /* borrowed */
	struct kx_price price;          /* without functions, if none has expensive exits */
	pthread_t thread;
	bool runs;
};

/*
 * Begins to measure, where that is allowed and some function has expensive exits. Until kx_price_wait nothing else may be
 * asked of the keeper (tracer/keeper.h).
 */
void kx_price_start(struct kx_price_measurement *m);
void kx_price_wait(struct kx_price_measurement *m);
/* A line, if it was started and some function has expensive exits. */
void kx_price_print(const struct kx_price_measurement *m, FILE *to);

#endif
