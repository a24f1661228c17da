// SPDX-License-Identifier: BSD-2-Clause
/*
 * The trace file while it is written: under a temporary name until the recording
 * really starts, so that a recording that never starts leaves nothing behind and
 * spoils no older trace.
 */
#ifndef KX_OUTPUT_H
#define KX_OUTPUT_H

#include "base/err.h"

struct kx_output {
	char *path;      /* the final name */
	char *temp_path; /* while not kept; NULL after kx_output_keep */
	char *map_path;  /* path + ".map" */
	int fd;
};

/* Creates the temporary file beside @path. Errors: open(2)'s, with the reason for people. */
int kx_output_open(struct kx_output *o, const char *path, struct kx_err *err);
/* From now on the file has its final name. Errors: rename(2)'s. */
int kx_output_keep(struct kx_output *o, struct kx_err *err);
/* Closes it; removes it if it was not kept. */
void kx_output_close(struct kx_output *o);

#endif
