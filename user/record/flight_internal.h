// SPDX-License-Identifier: BSD-2-Clause
/* What flight.c and flight_write.c share. */
#ifndef KX_FLIGHT_INTERNAL_H
#define KX_FLIGHT_INTERNAL_H

#include "base/pattern.h"
#include "record/dump_process.h"
#include "record/dump_request.h"
#include "record/flight.h"
#include "record/numbered_files.h"

struct kx_flight {
	struct kx_flight_context c;
	struct kx_flight_options o;
	struct kx_pattern *patterns; /* of o.triggers */
	bool *matched;		     /* by trigger: it names some function */
	struct kx_flight_store *store;
	struct kx_dump_request request;

	struct kx_dump_hook *hook; /* NULL: none */
	struct kx_dump_process *process;
	unsigned number; /* of the newest dump */
	char *path;	 /* of the one that is being written */
	char text[512];	 /* its cause */
	enum kx_file_cause cause;
	bool final;	 /* it is the last one, when the recording is over */
	double begun;	 /* when the newest one was */

	unsigned dumps, failed;
	struct kx_numbered_files files; /* dumps that stay */
	uint64_t bytes;
	char last[256];
	struct kx_err last_err;
};

/* In the child: writes the dump and its map. @ctx is the struct kx_flight. */
int kx_flight_write(void *ctx, const char *path, struct kx_dump_outcome *out);

#endif
