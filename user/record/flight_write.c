// SPDX-License-Identifier: BSD-2-Clause
/* One dump of a flight recorder, as its child process writes it. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "record/flight_internal.h"
#include "record/session_info.h"
#include "record/session_map.h"

/* Start of the dump: the oldest time for which all CPUs have all records, or --keep seconds ago. */
static uint64_t window_start(const struct kx_flight *f, uint64_t to, uint64_t hz, bool *cut)
{
	uint64_t complete = kx_flight_store_complete_from(f->store), from = f->c.start_tsc;
	uint64_t keep = (uint64_t)(f->o.keep * (double)hz);

	if (f->o.keep > 0 && to > keep && to - keep > from)
		from = to - keep;
	*cut = complete > from;
	return *cut ? complete : from;
}

static json_t *flight_json(const struct kx_flight *f, const struct kx_flight_dump *dump,
			   double seconds, bool cut)
{
	struct kx_flight_stats stats;
	json_t *j;

	kx_flight_store_stats(f->store, &stats);
	j = json_pack("{s:I,s:I,s:I,s:f,s:I,s:I,s:b,s:I}", "dump", (json_int_t)f->number,
		      "bytes_per_cpu", (json_int_t)stats.bytes_per_cpu, "merged_triggers",
		      (json_int_t)f->request.merged, "seconds", seconds, "from_tsc",
		      (json_int_t)dump->from, "to_tsc", (json_int_t)dump->to, "cut", cut,
		      "overwritten_records", (json_int_t)stats.overwritten);
	if (j && f->o.keep > 0)
		json_object_set_new(j, "keep_seconds", json_real(f->o.keep));
	return j;
}

/* Makes the session's data those of this dump: this process writes nothing else. */
static int describe(struct kx_flight *f, const struct kx_flight_dump *dump,
		    const struct kx_dump_outcome *out, bool cut)
{
	const struct kx_flight_dump_counts *n = &out->counts;
	const struct kx_collector_counts counts = { .events = n->events,
						    .entries = n->entries,
						    .exits = n->exits,
						    .repaired = n->repaired,
						    .orphans = n->orphans,
						    .migrations = n->migrations,
						    .threads = n->threads,
						    .lost = n->lost,
						    .lost_by = { [KX_LOSS_RING_FULL] = n->lost } };
	json_t *info = f->c.info;

	kx_session_info_processes(info, f->c.processes, f->c.start_tsc, dump->tsc_hz);
	kx_session_info_end(info, out->seconds, kx_tracer_clock(f->c.tracer), f->c.clocks, &counts);
	json_object_set_new(info, "trigger", kx_reason_json(&f->request.why, f->c.sel));
	json_object_set_new(info, "flight", flight_json(f, dump, out->seconds, cut));
	return f->c.describe(f->c.ctx, info);
}

static int write_map(const struct kx_flight *f, const char *path, uint64_t from, struct kx_err *err)
{
	struct kx_caller_functions callers;
	const struct kx_session_map map = {
		.sel = f->c.sel,
		.moves = f->c.moves,
		.from = from,
		.info = f->c.info,
		.places = *f->c.places,
		.callers = &callers,
	};
	int code;

	kx_caller_functions_find(f->c.callers, f->c.processes, f->c.sel, &callers);
	code = kx_session_map_write(path, &map, err);
	kx_caller_functions_free(&callers);
	return code;
}

int kx_flight_write(void *ctx, const char *path, struct kx_dump_outcome *out)
{
	struct kx_flight *f = ctx;
	struct kx_clock *clock = kx_tracer_clock(f->c.tracer);
	struct kx_flight_dump dump = { .store = f->store,
				       .final = f->final,
				       .threads = kx_collector_dump_options(f->c.collector),
				       .fdr = f->c.fdr,
				       .tsc_hz = clock->tsc_hz };
	struct kx_output output;
	bool cut, mapped = false;
	int code;

	if (strcmp(clock->hz_origin, "measured") == 0)
		dump.tsc_hz = clock->tsc_hz = kx_clock_measured_hz(clock);
	dump.to = f->final ? kx_tsc_read() : kx_collector_watermark(f->c.collector);
	dump.from = window_start(f, dump.to, dump.tsc_hz, &cut);
	if (dump.to < dump.from)
		dump.to = dump.from;
	out->seconds = (double)(dump.to - dump.from) / (double)dump.tsc_hz;
	code = kx_output_open(&output, path, &out->err);
	if (!code)
		code = kx_flight_dump_write(output.fd, &dump, &out->counts, &out->err);
	if (!code && describe(f, &dump, out, cut))
		code = kx_err_set(&out->err, -ENOMEM, "no memory for the map");
	if (!code) {
		code = write_map(f, output.map_path, dump.from, &out->err);
		mapped = !code;
	}
	if (!code)
		code = kx_output_keep(&output, &out->err);
	if (code && mapped)
		unlink(output.map_path);
	kx_output_close(&output);
	return code;
}
