// SPDX-License-Identifier: BSD-2-Clause
/* How often functions were called: what record --count finds, and how it is shown. */
#ifndef KX_COUNT_H
#define KX_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "select/select.h"

struct kx_count {
	char *name;   /* for people; owned, as are the other texts */
	char *module; /* file name */
	char *path;   /* of the module */
	uint64_t address; /* ELF virtual address; 0 for what is no user function */
	uint64_t calls;
	double out_seconds; /* in which its calls were not counted */
};

struct kx_counts {
	struct kx_count *items; /* those that were called, most often called first */
	size_t nitems;
	size_t ntraced;  /* functions whose calls were counted */
	uint64_t calls;  /* of all together */
};

/* Takes over what kx_recording_options.on_counts gets. Free with kx_counts_free. Errors: -ENOMEM. */
int kx_counts_take(struct kx_counts *c, const struct kx_selection *sel, const uint64_t *calls,
		   const double *out, struct kx_err *err);
void kx_counts_free(struct kx_counts *c);

/*
 * A table, in lines of at most @columns columns (0: any), or one JSON object, of calls that took @seconds; 0 or an error
 * of @to.
 */
int kx_counts_print(const struct kx_counts *c, double seconds, bool json, unsigned columns, FILE *to);

#endif
