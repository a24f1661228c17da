// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a recording without a budget takes of the program's time: from how many calls of each function were recorded, or
 * counted (--count), and what a call's probes take. Warns once when it is much, and fills the result.
 */
#ifndef KX_COST_WATCH_H
#define KX_COST_WATCH_H

struct recording;
struct kx_cost_watch;

/* Before the collector is made. Without memory there is no warning. */
void kx_cost_watch_begin(struct recording *r);
/* In each pass; looks once a second. */
void kx_cost_watch_poll(struct recording *r);
/* The gate is closed and the rings are drained. */
void kx_cost_watch_end(struct recording *r);
void kx_cost_watch_free(struct recording *r);

#endif
