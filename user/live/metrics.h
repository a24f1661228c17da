// SPDX-License-Identifier: BSD-2-Clause
/*
 * Rows of calls as metrics in the text format of Prometheus, version 0.0.4
 * (https://prometheus.io/docs/instrumenting/exposition_formats/): two counters and a classic
 * histogram in seconds for each function that was called, with the labels function and module.
 *
 *     kxray_calls_total{function="f",module="m"} 3
 *     kxray_call_duration_seconds_bucket{function="f",module="m",le="1.023e-06"} 2
 *     ...
 *     kxray_call_duration_seconds_bucket{function="f",module="m",le="+Inf"} 3
 *     kxray_call_duration_seconds_sum{function="f",module="m"} 5.1e-06
 *     kxray_call_duration_seconds_count{function="f",module="m"} 3
 *
 * Series must be unique: functions of equal name and module are added up. Durations are whole ns,
 * so that a bound of 2^n - 1 ns separates them exactly as the kernel side's buckets do. The bounds
 * are the same for all functions and at all times.
 */
#ifndef KX_METRICS_H
#define KX_METRICS_H

#include "base/text_out.h"
#include "live/call_rows.h"

/* Errors: -ENOMEM. */
int kx_put_metrics(struct kx_text_out *out, const struct kx_call_rows *rows);

/*
 * The value of a label, quotes included. Any bytes give a valid one, and different ones different
 * values: what is not printable (printable.h) becomes \n, \t or \xNN and a backslash becomes two,
 * and in this text, as the format wants it, backslashes and quotes are escaped once more.
 */
void kx_put_label(struct kx_text_out *out, const char *text);

#endif
