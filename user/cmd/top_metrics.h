// SPDX-License-Identifier: BSD-2-Clause
/* --prometheus of kxray top: a port or a file. */
#ifndef KX_TOP_METRICS_H
#define KX_TOP_METRICS_H

#include <stdint.h>

#include "base/err.h"
#include "live/call_rows.h"

struct kx_metrics_server;

/* All zero: neither is wanted, and nothing below does anything. */
struct kx_top_metrics {
	const char *file; /* borrowed; NULL: none */
	struct kx_metrics_server *server;
	const struct kx_call_rows *rows; /* borrowed */
	uint16_t port;			 /* of the server */
};

/* Errors: -EINVAL: @argument is a number, but no port. */
int kx_top_metrics_check(const char *argument, struct kx_err *err);
/* Before anything is attached: whether kx_top_metrics_open and _write will succeed. Leaves nothing
 * behind. Errors: those of kx_metrics_server_open and kx_output_open. */
int kx_top_metrics_try(const char *argument, struct kx_err *err);
/* @argument: PORT|FILE or NULL. Errors: those of kx_metrics_server_open. */
int kx_top_metrics_open(struct kx_top_metrics *m, const char *argument,
			const struct kx_call_rows *rows, struct kx_err *err);
/* Readable when kx_top_metrics_poll has something to do; -1: never. */
int kx_top_metrics_fd(const struct kx_top_metrics *m);
/* Returns within how many ms it is to be called again at the latest. */
int kx_top_metrics_poll(struct kx_top_metrics *m);
/* The rows have changed: replaces the file. Errors: those of kx_output_open and kx_output_keep. */
int kx_top_metrics_write(struct kx_top_metrics *m, struct kx_err *err);
void kx_top_metrics_close(struct kx_top_metrics *m);

#endif
