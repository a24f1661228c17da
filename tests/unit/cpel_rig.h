// SPDX-License-Identifier: BSD-2-Clause
/* CPEL files, read byte by byte. Include it after cmocka's headers. */
#ifndef KX_TEST_CPEL_RIG_H
#define KX_TEST_CPEL_RIG_H

#include "exporters/cpel/file.h"
#include "export_run.h"

extern const struct kx_exporter kx_exporter_cpel;

#define T0 EXPORT_T0

/* Big-endian numbers of the file. */
static inline uint32_t be32(const struct exported *e, size_t at)
{
	assert_true(at + 4 <= e->size);
	return (uint32_t)e->data[at] << 24 | (uint32_t)e->data[at + 1] << 16 |
	       (uint32_t)e->data[at + 2] << 8 | e->data[at + 3];
}

static inline void export_ok(const char *const *options, const struct kx_call_filter *filter,
			     struct exported *e)
{
	run_export(&kx_exporter_cpel, options, filter, false, e);
	if (e->result)
		fail_msg("%s", e->err.text);
}

struct event {
	uint64_t ticks;
	uint32_t code, datum;
};

#endif
