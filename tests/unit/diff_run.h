// SPDX-License-Identifier: BSD-2-Clause
/* Two traces, path_a and path_b, compared without the command. Include it after cmocka's headers. */
#ifndef KX_TEST_DIFF_RUN_H
#define KX_TEST_DIFF_RUN_H

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "report/diff.h"
#include "export_run.h"

static char path_a[80], path_b[80];

static inline int make_paths(void **state)
{
	int r = name_files(state);

	snprintf(path_a, sizeof(path_a), "%s/a.xray", folder);
	snprintf(path_b, sizeof(path_b), "%s/b.xray", folder);
	return r;
}

/* The trace in trace_path becomes @path, with its map. */
static inline void keep_as(const char *path)
{
	char from[100], to[100];

	assert_int_equal(rename(trace_path, path), 0);
	snprintf(from, sizeof(from), "%s.map", trace_path);
	snprintf(to, sizeof(to), "%s.map", path);
	if (rename(from, to))
		assert_int_equal(errno, ENOENT);
}

struct compared {
	struct kx_fdr_file *files[2];
	struct kx_symbolizer names[2];
	struct kx_diff *diff;
	const struct kx_diff_row *rows;
	size_t n;
	const struct kx_diff_summary *summary;
};

static inline void compare_paths(struct compared *c, const struct kx_diff_options *options)
{
	struct kx_diff_side sides[2] = { 0 };
	struct kx_err err = { 0 };
	int which = -1;

	memset(c, 0, sizeof(*c));
	for (int i = 0; i < 2; i++) {
		const char *path = i ? path_b : path_a;

		if (kx_fdr_open(path, &c->files[i], &err) || kx_symbolizer_open(path, NULL, &c->names[i], &err))
			fail_msg("%s", err.text);
		sides[i] = (struct kx_diff_side){ .file = c->files[i], .names = &c->names[i] };
	}
	if (kx_diff_new(sides, options, &c->diff, &which, &err))
		fail_msg("%d: %s", which, err.text);
	c->rows = kx_diff_get_rows(c->diff, &c->n);
	c->summary = kx_diff_get_summary(c->diff);
}

static inline void end_compared(struct compared *c)
{
	kx_diff_free(c->diff);
	for (int i = 0; i < 2; i++) {
		kx_symbolizer_free(&c->names[i]);
		kx_fdr_close(c->files[i]);
	}
}

static inline const struct kx_diff_row *row_of(struct compared *c, const char *name)
{
	for (size_t i = 0; i < c->n; i++) {
		int side = c->rows[i].index.b != KX_DIFF_NONE;

		if (!strcmp(kx_trace_name(&c->names[side], c->rows[i].id[side]), name))
			return &c->rows[i];
	}
	fail_msg("no function %s", name);
	return NULL;
}

#endif
