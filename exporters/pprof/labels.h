// SPDX-License-Identifier: BSD-2-Clause
/* Samples that are split by a value of their calls (--pprof-label), which they carry as a label. */
#ifndef KX_PPROF_LABELS_H
#define KX_PPROF_LABELS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pair_map.h"
#include "calls/calls.h"
#include "exporters/common/protobuf.h"
#include "trace/value_index.h"

/* The calls of a stack that have one value. */
struct kx_pprof_labelled {
	uint32_t value; /* in values */
	uint32_t next;	/* of the same stack, index + 1; 0: none */
	uint64_t calls;
	uint64_t self; /* ticks */
};

struct kx_pprof_labels {
	const char *label; /* name of the value; NULL: samples are not split */
	struct kx_value_map map;
	struct kx_value_index values;
	struct kx_pair_map index; /* (stack, value) */
	struct kx_pprof_labelled *items;
	size_t room;
};

/* @label: as above, borrowed, as @session is. Free in any case. Errors: -ENOMEM. */
int kx_pprof_labels_init(struct kx_pprof_labels *l, const char *label, const json_t *session);
void kx_pprof_labels_free(struct kx_pprof_labels *l);

/*
 * Where a call of stack @stack that leaves counts; NULL: it has no such value. @newest: the stack's
 * newest, index + 1, which is updated. Errors: -ENOMEM.
 */
int kx_pprof_labels_find(struct kx_pprof_labels *l, const struct kx_call *call, uint32_t stack,
			 uint32_t *newest, struct kx_pprof_labelled **out);

/* The value as text for pprof, which shows no empty one; false: it is a number. */
bool kx_pprof_label_text(const struct kx_pprof_labels *l, uint32_t value, char *text, size_t size);
/* Adds the label to a sample. @key, @text: numbers of strings; text 0: a number. */
void kx_pprof_label_put(const struct kx_pprof_labels *l, uint32_t value, struct kx_bytes *pb,
			uint64_t key, uint64_t text);

#endif
