// SPDX-License-Identifier: BSD-2-Clause
/* Names for a trace: finds its map; also converts ticks to nanoseconds. */
#ifndef KX_SYMBOLIZER_H
#define KX_SYMBOLIZER_H

#include <stdbool.h>

#include "base/decimal.h"
#include "base/err.h"
#include "trace/fdr_reader.h"
#include "trace/map_file.h"
#include "trace/notes.h"

struct kx_symbolizer {
	struct kx_map map;
	bool has_map;
	char id[KX_DECIMAL_SIZE + 2];
};

/*
 * Reads @map_path or, if that is NULL, TRACE.map if it exists; without a map, functions are named
 * "#id". Free with kx_symbolizer_free. Errors: kx_map_read's.
 */
int kx_symbolizer_open(const char *trace, const char *map_path, struct kx_symbolizer *out,
		       struct kx_err *err);
/* The same with kx_map_read_names. */
int kx_symbolizer_open_names(const char *trace, const char *map_path, struct kx_symbolizer *out, struct kx_err *err);
/*
 * Checks that map and trace are from the same recording, by the start of their clocks, if both
 * have it. Errors: -EBADMSG (another recording), -ENOMEM.
 */
int kx_symbolizer_check(const struct kx_symbolizer *names, struct kx_fdr_file *f,
			struct kx_err *err);
void kx_symbolizer_free(struct kx_symbolizer *names);

/*
 * The first note of this kind among the first records of a thread, to be released; false if
 * there is none.
 */
bool kx_trace_first_note(struct kx_fdr_file *f, size_t thread, enum kx_note_kind kind,
			 struct kx_note *out);

/*
 * The same names for another thread, which needs a cache of its own; end with kx_symbolizer_unshare, before
 * @names is freed.
 */
void kx_symbolizer_share(const struct kx_symbolizer *names, struct kx_symbolizer *out);
void kx_symbolizer_unshare(struct kx_symbolizer *shared);

/* Readable name of function @id, "#id" if unknown; valid until the next call. */
const char *kx_trace_name(struct kx_symbolizer *names, uint32_t id);
/*
 * Prefetches function @id for a kx_trace_name soon after: its row of the map, or with @symbol
 * its symbol, whose address is in the row (so call it a second time).
 */
void kx_trace_prefetch(const struct kx_symbolizer *names, uint32_t id, bool symbol);
/* Where function @id is defined in source; false, and a file of NULL, if that is not known. */
bool kx_trace_place(const struct kx_symbolizer *names, uint32_t id, struct kx_map_place *out);
/* Whether the trace has places at all. */
bool kx_trace_has_places(const struct kx_symbolizer *names);
/*
 * Readable name of the function that holds return address @address of the map's module @module - 1 (see struct kx_call:
 * caller, caller_module); NULL if it is not known. Valid until the map is freed.
 */
const char *kx_trace_caller(struct kx_symbolizer *names, uint32_t module, uint64_t address);
const char *kx_trace_module(const struct kx_symbolizer *names, uint32_t id); /* or "" */

/* Converts ticks to nanoseconds, rounded; unchanged if @tsc_hz (ticks a second) is 0. */
uint64_t kx_trace_ns(uint64_t ticks, uint64_t tsc_hz);

#endif
