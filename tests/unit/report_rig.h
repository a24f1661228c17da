// SPDX-License-Identifier: BSD-2-Clause
/* Traces byte by byte, and their report. Include it after cmocka's headers. */
#ifndef KX_TEST_REPORT_RIG_H
#define KX_TEST_REPORT_RIG_H

#include <fcntl.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "report/report.h"
#include "trace/symbolizer.h"
#include "fdr_bytes.h"
#include "folder.h"
#include "llvm_xray.h"

static char path[64], out_path[64], err_path[64], source_path[64], binary_path[64];

static inline struct kx_report *report_of(const char *trace, const struct kx_report_options *options)
{
	struct kx_fdr_file *f = NULL;
	struct kx_report *r = NULL;
	struct kx_err err = { 0 };

	if (kx_fdr_open(trace, &f, &err) || kx_report_new(f, options, &r, &err))
		fail_msg("%s", err.text);
	kx_fdr_close(f);
	return r;
}

static inline void begin(struct bytes *b, uint64_t hz)
{
	header(b, 5, 1, hz, 4096);
	preamble(b, 5, 1, 2, 0, 1000);
}

static inline int name_files(void **state)
{
	if (make_folder(state))
		return -1;
	snprintf(path, sizeof(path), "%s/t.xray", folder);
	snprintf(out_path, sizeof(out_path), "%s/out", folder);
	snprintf(err_path, sizeof(err_path), "%s/err", folder);
	snprintf(source_path, sizeof(source_path), "%s/xray.c", folder);
	snprintf(binary_path, sizeof(binary_path), "%s/xray", folder);
	return 0;
}

/* Nothing else may be left. */
static inline int remove_files(void **state)
{
	(void)state;
	unlink(path);
	unlink(out_path);
	unlink(err_path);
	unlink(source_path);
	unlink(binary_path);
	return rmdir(folder);
}

#endif
