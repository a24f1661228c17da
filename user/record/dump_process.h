// SPDX-License-Identifier: BSD-2-Clause
/*
 * A child process that writes one dump. fork(2) gives it a copy of the store and of all else that
 * it needs: what kxray overwrites meanwhile is copied by the kernel, page by page.
 */
#ifndef KX_DUMP_PROCESS_H
#define KX_DUMP_PROCESS_H

#include <stdbool.h>

#include "base/err.h"
#include "collect/flight_dump.h"

/* Of a dump that has ended. */
struct kx_dump_outcome {
	int code; /* 0: the file is complete; else a negative errno, with the reason in err */
	struct kx_err err;
	struct kx_flight_dump_counts counts;
	double seconds; /* that the dump covers */
};

struct kx_dump_process;

/* Errors: -ENOMEM. */
int kx_dump_process_new(struct kx_dump_process **out, struct kx_err *err);
/* Waits for a child that is still running. */
void kx_dump_process_free(struct kx_dump_process *p);

/*
 * Calls @write in a child, which has no open file but its standard ones. @write fills @out in and
 * returns out->code. One at a time. @path: of the file that it writes, so that its temporary files
 * can be removed if the child is killed. Errors: fork(2)'s, -ENOMEM.
 */
int kx_dump_process_start(struct kx_dump_process *p, const char *path,
			  int (*write)(void *ctx, const char *path, struct kx_dump_outcome *out),
			  void *ctx);
bool kx_dump_process_runs(const struct kx_dump_process *p);
/*
 * Whether the child has ended by now (@wait: waits for it); once for each child. *@out is borrowed
 * until the next start. A child that was killed: -EIO.
 */
bool kx_dump_process_reap(struct kx_dump_process *p, bool wait, const struct kx_dump_outcome **out);

#endif
