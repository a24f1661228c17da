// SPDX-License-Identifier: BSD-2-Clause
#include "report/report_view.h"

#include <errno.h>
#include <string.h>

#include "report/report_head.h"
#include "report/report_json.h"
#include "report/report_text.h"
#include "report/report_view_internal.h"

static const char *const keys[] = {
	"total", "self", "count", "min", "p50", "p90", "p99", "max", "open", "no-exit", "name",
	"on-cpu", "off-cpu", "wait",
};

int kx_report_key(const char *name)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(name, keys[i]))
			return (int)i;
	return -1;
}

int kx_report_print(const struct kx_report *report, const struct kx_report_view *view,
		    const struct kx_fdr_info *info, struct kx_symbolizer *names,
		    struct kx_text_out *out, struct kx_err *err)
{
	struct view v = {
		.o = view, .info = info, .report = report, .totals = kx_report_get_totals(report),
		.names = names, .out = out, .screen = &view->screen,
	};
	int r;

	if (view->sort >= KX_REPORT_BY_ON && !v.totals->has_sched)
		return kx_err_set(err, -ENODATA,
				  "the trace does not contain times off the CPU, so it cannot be "
				  "sorted by %s; record with --sched", keys[view->sort]);
	names->map.names_once = true;
	r = kx_rows_sort(&v);
	if (r)
		kx_err_set(err, r, "out of memory for the table");
	else if (view->json)
		kx_view_json(&v);
	else
		kx_view_table(&v);
	kx_rows_free(&v);
	if (r)
		return r;
	return kx_view_flush(out, err);
}
