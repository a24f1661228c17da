// SPDX-License-Identifier: BSD-2-Clause
/* What a recording's collector and the dumps of a flight recorder share. */
#ifndef KX_COLLECTOR_INTERNAL_H
#define KX_COLLECTOR_INTERNAL_H

#include "collect/thread_table.h"

/*
 * Hands a record to its thread. @tsc stands for its clock, @payload has rec->words words.
 * Returns 1 if an event waits for its turn now, 0 if none does; errors: -ENOMEM.
 */
int kx_collect_record(struct kx_thread_table *threads, const struct kx_wire_record *rec,
		      uint64_t tsc, const uint64_t *payload);

#endif
