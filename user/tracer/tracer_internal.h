// SPDX-License-Identifier: BSD-2-Clause
/* What tracer*.c and sources.c share. */
#ifndef KX_TRACER_INTERNAL_H
#define KX_TRACER_INTERNAL_H

#include <bpf/libbpf.h>

#include "record.skel.h"
#include "tracer/tracer.h"

struct kx_tracer {
	struct record_bpf *skel;
	struct kx_clock *clock;
	bool borrows_clock;
	struct kx_cpus cpus;
	struct kx_rings *rings;
	int template_fd; /* of the rings, until there are some; -1: none */
	struct bpf_program *session; /* the one that is loaded for the mechanism session */
	struct ring_buffer *doorbell;
	struct ring_buffer *triggers; /* NULL without options.flight */
	bool any_trigger;
	void (*on_trigger)(void *ctx, const struct kx_trigger_event *ev); /* while they are read */
	void *on_trigger_ctx;
	struct kx_links samplers; /* one link a CPU */
	void (*on_process)(void *ctx, const struct kx_process_event *event);
	void *on_process_ctx;
	enum kx_mechanism mechanism;
	enum kx_kernel_mechanism kernel;
	bool wanted[KX_SOURCES]; /* see sources.c */
	unsigned sample_hz;
	uint32_t ticks; /* as last read */
	uint32_t budget; /* ids below this are counted and sampled; 0: there is no budget */
	struct kx_budget_rate *rates; /* by id */
	uint64_t *counts;	      /* [CPU * budget + id] */
	uint32_t top; /* ids below this are counted and timed; 0: this is not kxray top */
	struct kx_call_stats *stats; /* [CPU * top + id] */
	struct kx_condition_table *conditions; /* of nconditions */
	uint16_t nconditions;
};

/* tracer_values.c: before the object is loaded. */
int kx_tracer_values_size(struct kx_tracer *t, uint32_t nfunctions, bool markers);
int kx_tracer_scratches_size(struct kx_tracer *t);
/* tracer_conditions.c: likewise; @other_words: that a call's frame keeps. */
int kx_tracer_conditions_size(struct kx_tracer *t, const struct kx_tracer_conditions *o, uint32_t other_words);
/* tracer_sums.c: @n values of a per-CPU array from @first on, each summed over all CPUs. Errors: -ENOMEM, those of bpf(2). */
int kx_tracer_sums(const struct bpf_map *map, uint32_t first, uint64_t *sums, uint32_t n);

/* tracer_triggers.c */
int kx_tracer_open_triggers(struct kx_tracer *t, struct kx_err *err);

/* tracer_budget.c: before the object is loaded, and after it. Errors: -E2BIG, mmap(2)'s. */
int kx_tracer_budget_size(struct kx_tracer *t, uint32_t nfunctions);
int kx_tracer_budget_map(struct kx_tracer *t, struct kx_err *err);
void kx_tracer_budget_unmap(struct kx_tracer *t);

/* tracer_top.c: the object for top_functions, in place of the recorder's; NULL: see errno. */
struct record_bpf *kx_tracer_top_open(void);
/* Likewise. Errors: -E2BIG; mmap(2)'s. */
int kx_tracer_top_size(struct kx_tracer *t, uint32_t nfunctions);
int kx_tracer_top_map(struct kx_tracer *t, struct kx_err *err);
/* When the rings know where each CPU has its current task: tells the programs of kxray top, too. */
void kx_tracer_top_lines(struct kx_tracer *t);
void kx_tracer_top_unmap(struct kx_tracer *t);
uint64_t kx_tracer_top_calls(const struct kx_tracer *t, uint32_t func);

/* tracer_load.c: chooses the programs, sets their constants, loads them. */
int kx_tracer_load(struct kx_tracer *t, const struct kx_tracer_options *o, struct kx_err *err);

/* sources.c: before the object is loaded, which programs of the sources are to be. */
void kx_sources_choose(struct kx_tracer *t, const struct kx_tracer_options *o);

#endif
