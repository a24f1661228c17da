// SPDX-License-Identifier: BSD-2-Clause
/* The command line of `kxray top`. */
#ifndef KX_TOP_ARGUMENTS_H
#define KX_TOP_ARGUMENTS_H

#include "cmd/record_arguments.h"
#include "cmd/screen_options.h"
#include "live/call_rows.h"

struct kx_top_arguments {
	struct kx_record_arguments r; /* what to trace */
	struct kx_screen_arguments screen;
	double interval; /* seconds */
	uint64_t count;	 /* intervals; 0: any number */
	uint64_t limit;	 /* rows; 0: all, or as many as fit */
	enum kx_call_sort sort;
	bool batch;		/* tables, even on a terminal */
	const char *prometheus; /* a port on the loopback interface, or a file; NULL: neither */
};

extern const struct kx_option_group kx_top_options[];

/*
 * Fills @a, all zero but for r.o.mechanism (-1), r.o.argc and r.o.argv, from the command line of
 * @c. Returns as kx_options_parse does. In any case free with kx_top_arguments_free.
 */
int kx_top_parse(const struct kx_command *c, struct kx_top_arguments *a, int argc, char **argv,
		 struct kx_err *err);
void kx_top_arguments_free(const struct kx_command *c, struct kx_top_arguments *a);

#endif
