// SPDX-License-Identifier: BSD-2-Clause
/*
 * Answers GET /metrics on the loopback interface, for a Prometheus on this machine. It runs in the
 * caller's loop: without a thread, and only when the caller finds its descriptor readable. Anybody
 * on this machine can read the names and counts.
 */
#ifndef KX_METRICS_SERVER_H
#define KX_METRICS_SERVER_H

#include <stdint.h>

#include "base/err.h"
#include "base/text_out.h"

struct kx_metrics_server;

/*
 * Listens at 127.0.0.1:@port; 0: any free port, see kx_metrics_server_port. @metrics puts the text
 * of an answer into
 * @out, when it is asked for: 0, or a negative errno, and then the answer is "500 Internal Server
 * Error". Errors: -ENOMEM; -EADDRINUSE; socket(2)'s, bind(2)'s.
 */
int kx_metrics_server_open(uint16_t port, int (*metrics)(void *ctx, struct kx_text_out *out),
			   void *ctx, struct kx_metrics_server **out, struct kx_err *err);
void kx_metrics_server_close(struct kx_metrics_server *s);

uint16_t kx_metrics_server_port(const struct kx_metrics_server *s);
/* Readable when kx_metrics_server_poll has something to do. */
int kx_metrics_server_fd(const struct kx_metrics_server *s);
/* Does it without waiting. Returns within how many ms it is to be called again at the latest. */
int kx_metrics_server_poll(struct kx_metrics_server *s);

#endif
