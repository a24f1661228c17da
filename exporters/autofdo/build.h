// SPDX-License-Identifier: BSD-2-Clause
/* Converts counts of addresses to counts of source lines. */
#ifndef KX_AUTOFDO_BUILD_H
#define KX_AUTOFDO_BUILD_H

#include "exporters/autofdo/collect.h"
#include "exporters/autofdo/model.h"
#include "exporters/autofdo/modules.h"

struct kx_afdo_options {
	int version;           /* 2, 3, 4 */
	bool compact, text;    /* version 4 */
	bool fill;             /* lines without a measurement get the function's calls */
	bool discriminators;
	const char *binary;    /* NULL: by the map */
};

/* Counts that have no place in the profile. */
struct kx_afdo_losses {
	uint64_t functions;    /* left out: without lines, or without call sites */
	uint64_t unknown_code; /* call instructions in no known binary */
	uint64_t tail_calls;   /* pairs of call instruction and callee */
	uint64_t no_line;      /* call instructions without a line of their function */
};

/*
 * Fills the model and finishes it. Sorts the trace's tables. Errors: -ENOMEM.
 *
 * A place's count is the largest of its call instructions' counts (executions of the line, not
 * calls), a target's the sum over them. Samples estimate executions where nothing is counted: samples *
 * cycles between two of them / instructions there, at one instruction a cycle and four bytes an
 * instruction. Samples at the place of a probe measure the probe and are not used.
 */
int kx_afdo_build(const struct kx_export *x, const struct kx_afdo_options *options,
		  struct kx_afdo_modules *modules, struct kx_afdo_trace *trace,
		  struct kx_afdo *out, struct kx_afdo_losses *losses);

#endif
