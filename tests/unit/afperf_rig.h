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

/* Two calls, with a migration to another CPU inside the inner one. */
static inline void tiny_trace(void)
{
	static const char *const names[] = { "outer", "inner", "unused" };
	struct kx_fdr_thread *t;
	struct kx_fdr_writer *w;
	int fd;

	w = begin_trace(0, EXPORT_HZ, &fd);
	t = kx_fdr_writer_thread(w, 10, 20, "worker", "server");
	enter(t, T0 + 2000, 3, 1);
	enter(t, T0 + 4000, 3, 2);
	assert_int_equal(kx_fdr_cpu(t, T0 + 5000, 65535), 0);
	leave(t, T0 + 6000, 65535, 2);
	leave(t, T0 + 9001, 65535, 1);
	end_trace(w, fd);
	write_map(names, 3, "{\"started\":\"2026-01-31T23:59:58.999999999Z\"}");
}

#endif
