// SPDX-License-Identifier: BSD-2-Clause
/*
 * --rotate: the trace is a row of numbered files, each complete with its map. The change happens
 * between two passes of the collector, so nothing waits in the rings any longer than usual.
 */
#include "record/recording_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "base/old_output.h"
#include "base/temporary_file.h"
#include "record/session_info.h"
#include "record/session_map.h"

#define MAP_COUNTS_ROOM (64u << 10) /* bytes: counts, and processes that join */
#define MAP_LEAST_ROOM	(8u << 10)

static bool is_rotated(const struct recording *r)
{
	return r->o->rotation.bytes || r->o->rotation.seconds > 0;
}

static int open_part(const struct recording *r, unsigned number, struct kx_output *out,
		     struct kx_err *err)
{
	char *path = kx_numbered_path(r->o->output, number);
	int code = path ? kx_output_open(out, path, err) : kx_err_set(err, -ENOMEM, "no memory");

	free(path);
	return code;
}

char *kx_recording_first_path(const struct recording *r)
{
	return is_rotated(r) ? kx_numbered_path(r->o->output, 1) : strdup(r->o->output);
}

int kx_recording_open_output(struct recording *r, struct kx_err *err)
{
	char *path = kx_recording_first_path(r);
	int code = path ? kx_output_open(&r->output, path, err)
			: kx_err_set(err, -ENOMEM, "no memory");

	free(path);
	return code;
}

int kx_recording_keep_old(struct recording *r, struct kx_err *err)
{
	char *kept = NULL;
	int code = is_rotated(r) ? 0 : kx_old_output_keep(r->o->output, &kept, err);

	if (!code && kept) {
		snprintf(r->result->kept, sizeof(r->result->kept), "%s", kept);
		kx_notice(&r->notices, "the earlier trace is kept as '%s'", kept);
	}
	free(kept);
	return code;
}

/* The part's place among the others, for its map. */
static int describe_part(const struct recording *r, json_t *info, uint64_t to)
{
	const struct rotation *part = &r->rotation;
	json_t *j;

	if (!part->number)
		return 0;
	j = json_pack("{s:i,s:I,s:I}", "file", (int)part->number, "from_tsc",
		      (json_int_t)part->from, "continued", (json_int_t)part->continued);
	if (j && to)
		json_object_set_new(j, "to_tsc", json_integer((json_int_t)to));
	return json_object_set_new(info, "rotation", j) ? -ENOMEM : 0;
}

int kx_recording_put_map(const struct recording *r, json_t *info, struct kx_err *err)
{
	struct kx_caller_functions callers;
	const struct kx_session_map map = {
		.sel = &r->sel,
		.moves = &r->moves,
		.from = r->rotation.from,
		.info = info,
		.places = r->places,
		.callers = &callers,
	};
	int code;

	kx_caller_functions_find(&r->callers, r->processes, &r->sel, &callers);
	code = kx_session_map_write(r->output.map_path, &map, err);
	kx_caller_functions_free(&callers);
	return code;
}

/* The map that a part has from its start on, so that it can be read while it grows. */
static int write_first_map(const struct recording *r, struct kx_err *err)
{
	json_t *info = json_copy(r->info);
	int code = info && !describe_part(r, info, 0) ? 0 : kx_err_set(err, -ENOMEM, "no memory");

	if (!code)
		code = kx_recording_put_map(r, info, err);
	json_decref(info);
	return code;
}

void kx_recording_reserve_map_room(struct recording *r)
{
	struct stat st;

	if (stat(r->output.map_path, &st))
		return;
	r->map_room = kx_reserve_room(r->output.map_path, (uint64_t)st.st_size * 5 / 4 + MAP_COUNTS_ROOM);
	/* on a disk that is nearly full, room for the counts of what is lost at least */
	if (r->map_room < 0)
		r->map_room = kx_reserve_room(r->output.map_path,
					      (uint64_t)st.st_size * 5 / 4 + MAP_LEAST_ROOM);
}

/* The newest part stays; older ones may not. */
static int count_part(struct recording *r, struct kx_err *err)
{
	struct rotation *part = &r->rotation;

	part->begun = kx_monotonic_seconds();
	part->first_bytes = kx_fdr_writer_bytes_flushed(r->writer); /* else many continued calls could fill a small part */
	if (kx_numbered_add(&part->files, r->o->output, part->number, KX_FILE_REQUESTED,
			    r->o->rotation.keep))
		return kx_err_set(err, -ENOMEM, "no memory");
	r->result->files = part->number;
	r->result->files_kept = (unsigned)part->files.count;
	snprintf(r->result->newest, sizeof(r->result->newest), "%s", r->output.path);
	return 0;
}

int kx_recording_begin_rotation(struct recording *r, struct kx_err *err)
{
	if (!is_rotated(r))
		return 0;
	r->rotation.number = 1;
	r->rotation.from = r->rotation.cut = r->start_tsc;
	return count_part(r, err);
}

static uint64_t since(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* What belongs to the present part alone. */
static struct kx_collector_counts part_of(const struct rotation *part,
					  const struct kx_collector_counts *now, uint64_t threads,
					  bool last)
{
	const struct kx_collector_counts *was = &part->before;
	struct kx_collector_counts n = *now;

	n.events = since(now->events, was->events);
	n.entries = since(now->entries, was->entries);
	n.exits = since(now->exits, was->exits);
	n.repaired = since(now->repaired, was->repaired);
	n.reduced = since(now->reduced, was->reduced);
	n.too_deep = since(now->too_deep, was->too_deep);
	/* calls that have not ended are no change of a part */
	for (int i = 0; i < KX_CONDITION_UNDECIDED; i++)
		n.conditions[i] = since(now->conditions[i], was->conditions[i]);
	n.orphans = since(now->orphans, was->orphans);
	n.lost_partner = since(now->lost_partner, was->lost_partner);
	n.lost_invalid = since(now->lost_invalid, was->lost_invalid);
	n.lost_migrations = since(now->lost_migrations, was->lost_migrations);
	n.migrations = since(now->migrations, was->migrations);
	n.unnamed = since(now->unnamed, was->unnamed);
	n.threads = threads;
	/* what waits for its order is not written yet, and not lost; the kernel counts at the end */
	n.lost_unwritten = last ? now->lost_unwritten : 0;
	n.lost_missed = last ? now->lost_missed : 0;
	n.lost = n.lost_partner + n.lost_unwritten + n.lost_missed + n.lost_invalid;
	for (int i = 0; i < KX_LOSS_REASONS; i++) {
		n.lost_by[i] = since(now->lost_by[i], was->lost_by[i]);
		n.lost += n.lost_by[i];
	}
	return n;
}

int kx_recording_write_map(struct recording *r, const struct kx_collector_counts *totals, bool last,
			   struct kx_err *err)
{
	const struct kx_clock *clock = kx_tracer_clock(r->tracer);
	const struct rotation *part = &r->rotation;
	uint64_t to = last ? kx_tsc_read() : kx_collector_watermark(r->collector);
	struct kx_collector_counts counts = *totals;
	double seconds = r->result->seconds;
	json_t *info = json_copy(r->info);
	int code = info ? 0 : -ENOMEM;

	if (part->number) {
		counts = part_of(part, totals, kx_fdr_writer_threads(r->writer), last);
		seconds = (double)since(to, part->cut) / (double)clock->tsc_hz;
	}
	if (!code)
		code = kx_session_info_processes(info, r->processes, r->start_tsc, clock->tsc_hz);
	if (!code)
		code = describe_part(r, info, to);
	if (!code)
		code = kx_recording_budget_describe(r, info);
	if (code) {
		json_decref(info);
		return kx_err_set(err, code, "no memory for the map");
	}
	kx_session_info_end(info, seconds, clock, &r->clocks, &counts);
	code = kx_recording_put_map(r, info, err);
	json_decref(info);
	return code;
}

static bool is_due(const struct recording *r)
{
	const struct kx_rotation_options *o = &r->o->rotation;

	if (o->bytes && kx_fdr_writer_bytes_flushed(r->writer) >= r->rotation.first_bytes + o->bytes)
		return true;
	return o->seconds > 0 && kx_monotonic_seconds() - r->rotation.begun >= o->seconds;
}

/* The old part is complete but for its header and map. */
static int end_part(struct recording *r, struct kx_err *err)
{
	struct kx_clock *clock = kx_tracer_clock(r->tracer);
	struct kx_collector_counts totals;
	uint64_t hz = 0;
	int code;

	if (strcmp(clock->hz_origin, "measured") == 0)
		hz = kx_clock_measured_hz(clock);
	code = kx_fdr_finish(r->writer, hz, err);
	kx_collector_get_counts(r->collector, &totals);
	if (!code)
		code = kx_recording_write_map(r, &totals, false, err);
	r->rotation.before = totals;
	r->rotation.bytes += kx_fdr_writer_bytes(r->writer);
	kx_fdr_writer_free(r->writer);
	kx_output_close(&r->output);
	return code;
}

static int change_part(struct recording *r, struct kx_output *output, struct kx_fdr_writer *writer,
		       uint64_t from, struct kx_err *err)
{
	uint64_t continued, cut = kx_collector_watermark(r->collector);
	int code = kx_collector_switch(r->collector, writer, &continued, err), end;

	end = end_part(r, code ? NULL : err);
	code = code ? code : end;
	r->writer = writer;
	r->output = *output;
	r->rotation.number++;
	r->rotation.from = from;
	r->rotation.cut = cut;
	kx_clock_log_cut(&r->clocks, from);
	r->rotation.continued = continued;
	end = write_first_map(r, code ? NULL : err);
	if (!end)
		end = kx_output_keep(&r->output, code ? NULL : err);
	code = code ? code : end;
	return code ? code : count_part(r, err);
}

int kx_recording_rotate(struct recording *r, struct kx_err *err)
{
	struct kx_fdr_writer *writer;
	struct kx_fdr_options fdr = r->fdr;
	struct kx_output output;
	uint64_t from;
	int code;

	if (!r->rotation.number || !is_due(r))
		return 0;
	code = open_part(r, r->rotation.number + 1, &output, err);
	if (code)
		return code;
	from = kx_collector_oldest(r->collector);
	fdr.tsc_hz = kx_tracer_clock(r->tracer)->tsc_hz;
	fdr = kx_fdr_options_at(&fdr, from);
	code = kx_fdr_writer_new(output.fd, &fdr, &writer, err);
	if (code) {
		kx_output_close(&output);
		return code;
	}
	return change_part(r, &output, writer, from, err);
}
