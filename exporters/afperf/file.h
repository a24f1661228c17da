// SPDX-License-Identifier: BSD-2-Clause
/*
 * Records of an AFPerf file, version 1.0.0: comma-delimited fields, UTF-8 without byte order
 * mark, one record a line. Only the format's document exists; there is no public reader.
 */
#ifndef KX_AFPERF_FILE_H
#define KX_AFPERF_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text_out.h"

#define KX_AFPERF_HEADER "# AFPerf v1     " /* 16 bytes, padding included */
#define KX_AFPERF_VERSION "1.0.0"
/* Ids of the document have 64 bits, but its integers are as strtoll reads them. */
#define KX_AFPERF_MAX_ID INT64_MAX

/* The record's number in the document. */
enum kx_afperf_record {
	KX_AFPERF_MEASUREMENT_TYPE = 1, /* time, run, type, name, datatype, units, summary, text */
	KX_AFPERF_PAUSE_RESUME = 2,     /* end, start, run */
	KX_AFPERF_RUN_AGGREGATE = 7,    /* end, start, run, aggregation, type, value... */
	KX_AFPERF_RUN_INFO = 8,         /* start, units, clock, format, run, name, version, tags */
	KX_AFPERF_RUN_POINT = 9,        /* time, run, type, value */
	KX_AFPERF_SECTION_INFO = 11,    /* time, run, section, label, tags */
	KX_AFPERF_SECTION_POINT = 12,   /* time, section, interval, type, value... */
	KX_AFPERF_SECTION_START = 13,   /* time, section, interval */
	KX_AFPERF_SECTION_STOP = 14,    /* time, section, interval */
};

struct kx_afperf_writer {
	struct kx_text_out *out;
	bool compact; /* records by number instead of name */
};

void kx_afperf_header(struct kx_afperf_writer *w);
/* A record: its type, its fields, its end. */
void kx_afperf_begin(struct kx_afperf_writer *w, enum kx_afperf_record type);
void kx_afperf_number(struct kx_afperf_writer *w, uint64_t value);
void kx_afperf_hex(struct kx_afperf_writer *w, uint64_t value);
/* Quoted where needed. Bytes that are not valid UTF-8, and a byte order mark, become U+FFFD. */
void kx_afperf_text(struct kx_afperf_writer *w, const char *text);
/*
 * The tags field: @n names and their values, one after the other; those with an empty value are
 * left out. The semicolon separates tags and has no escape: in a value it becomes '_'.
 */
void kx_afperf_tags(struct kx_afperf_writer *w, const char *const *names_values, unsigned n);
void kx_afperf_end(struct kx_afperf_writer *w);

struct kx_afperf_old {
	bool empty;        /* the file is empty or does not exist */
	bool open_line;    /* its last line has no line end */
	uint64_t max_section, max_type; /* highest ids in use, of those below 2^62 */
};

/*
 * Reads the file that a run will be appended to. Errors: -EBADMSG, with offset and reason, if it is not an AFPerf
 * file of version 1 that can be continued; open(2)'s, read(2)'s.
 */
int kx_afperf_check_old(const char *path, struct kx_afperf_old *old, struct kx_err *err);

#endif
