// SPDX-License-Identifier: BSD-2-Clause
/* A whole trace exported as by `kxray export -f FORMAT TRACE`, by other commands. */
#ifndef KX_CMD_EXPORT_H
#define KX_CMD_EXPORT_H

#include <stdbool.h>

#include "exporters/exporter.h"

/* Where it goes: @trace without .xray (or .xray.zst), with the format's suffix, before it @part if not NULL; allocated, NULL on
 * -ENOMEM. */
char *kx_export_default_path(const char *trace, const char *part, const struct kx_exporter *format);

/*
 * Exports and prints what the command prints, or with @quiet errors only; returns its exit status.
 * SIGINT, SIGTERM and SIGHUP end the process from now on, see kx_export_output_signals.
 */
int kx_export_trace(const char *trace, const struct kx_exporter *format, bool quiet);

#endif
