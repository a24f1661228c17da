// SPDX-License-Identifier: BSD-2-Clause
/*
 * What exits at return instructions cost: the kernel single-steps these, unlike most entries. It is by far the largest
 * part of what a recording of a C++ program costs, so it is named where functions are listed and recorded.
 */
#ifndef KX_PRICE_H
#define KX_PRICE_H

#include <stddef.h>

#include "doctor/call_cost.h"
#include "select/select.h"
#include "trace/probe_cost.h"

struct kx_price {
	size_t functions; /* with an exit that is single-stepped */
	double call_ns;   /* a recorded call of one of them, on average; 0: not known */
	double entry_ns;  /* a recorded entry where it is emulated; 0: not known */
};

/* From a recording's calibration (doctor/calibrate.h); @costs without kinds gives the number alone. */
void kx_price_calibrated(const struct kx_selection *sel, const struct kx_probe_costs *costs,
			 double tsc_hz, struct kx_price *out);
/* From measured calls; @costs may be NULL. */
void kx_price_measured(const struct kx_selection *sel, const struct kx_call_costs *costs,
		       struct kx_price *out);

#define KX_PRICE_TEXT 256

/*
 * "about 12 us a call (return instructions are single-stepped, in this virtual machine)", and what --exits=none
 * takes instead, for the end of the same sentence: "--exits=none records entries alone, at about 0.7 us". Both
 * without the figures if they are not known.
 */
void kx_price_texts(const struct kx_price *price, char cost[KX_PRICE_TEXT], char instead[KX_PRICE_TEXT]);

#endif
