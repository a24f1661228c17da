// SPDX-License-Identifier: BSD-2-Clause
/* Profiles of afperf, as text and by the reader of the tests. Include it after cmocka's headers. */
#ifndef KX_TEST_AFPERF_RIG_H
#define KX_TEST_AFPERF_RIG_H

#include "export_run.h"
#include "fast_size.h"

extern const struct kx_exporter kx_exporter_afperf;

#define T0 EXPORT_T0
#define HEADER "# AFPerf v1     "

static const char *const compact[] = { "afperf-compact", NULL };
static const char *const append[] = { "append", NULL };

static inline void export_ok(const char *const *options, bool keep, struct exported *e)
{
	run_export(&kx_exporter_afperf, options, NULL, keep, e);
	if (e->result)
		fail_msg("%s", e->err.text);
}

static inline json_t *run_at(const json_t *json, size_t index)
{
	return json_array_get(json_object_get(json, "runs"), index);
}

#endif
