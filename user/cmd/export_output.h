// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where an export goes: standard output, a pipe or device, or a file that has a temporary name
 * until it is whole and is gone when the export fails or is interrupted. One at a time.
 */
#ifndef KX_EXPORT_OUTPUT_H
#define KX_EXPORT_OUTPUT_H

#include <stdbool.h>

#include "base/err.h"
#include "base/output.h"

struct kx_export_output {
	const char *path; /* borrowed; NULL: standard output */
	int fd;
	bool is_temporary;
	struct kx_output file; /* if it is */
};

/* SIGINT, SIGTERM and SIGHUP, unless ignored, remove what is half-done and exit with 128 + n. */
void kx_export_output_signals(void);

/*
 * NULL or "-" is standard output. With @append the file at @path, if there is one, is copied and
 * the descriptor is at its end. Errors: open(2)'s, write(2)'s. Close it also after an error.
 */
int kx_export_output_open(struct kx_export_output *o, const char *path, bool append,
			  struct kx_err *err);
/* After success: gives the file its name. Errors: rename(2)'s. */
int kx_export_output_keep(struct kx_export_output *o, struct kx_err *err);
void kx_export_output_close(struct kx_export_output *o);

#endif
