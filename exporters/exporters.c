// SPDX-License-Identifier: BSD-2-Clause
/* The table of export formats: one line each, in the order of `kxray export --list`. */
#include "exporters/exporter.h"

#define EXPORTERS(X) \
	X(kx_exporter_xray) \
	X(kx_exporter_cpel) \
	X(kx_exporter_afperf) \
	X(kx_exporter_perun) \
	X(kx_exporter_autofdo) \
	X(kx_exporter_html) \
	X(kx_exporter_perfetto) \
	X(kx_exporter_chrome) \
	X(kx_exporter_speedscope) \
	X(kx_exporter_folded) \
	X(kx_exporter_pprof) \
	X(kx_exporter_csv)

#define DECLARE(exporter) extern const struct kx_exporter exporter;
#define REFER(exporter) &exporter,

EXPORTERS(DECLARE)

const struct kx_exporter *const kx_exporters[] = { EXPORTERS(REFER) NULL };
