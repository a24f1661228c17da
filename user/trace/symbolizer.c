// SPDX-License-Identifier: BSD-2-Clause
#include "trace/symbolizer.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"

/* The notes about a thread and the session follow the preamble. */
#define NOTE_RECORDS 8

static int open_map(const char *trace, const char *map_path, bool names_only, struct kx_symbolizer *out,
		    struct kx_err *err)
{
	char *beside = NULL;
	int r = 0;

	memset(out, 0, sizeof(*out));
	if (!map_path && strcmp(trace, "-")) {
		beside = kx_output_map_path(trace);
		if (!beside)
			return kx_err_set(err, -ENOMEM, "out of memory");
		if (!access(beside, F_OK))
			map_path = beside;
	}
	if (map_path) {
		r = names_only ? kx_map_read_names(map_path, &out->map, err) :
				 kx_map_read(map_path, &out->map, err);
		out->has_map = !r;
	}
	free(beside);
	return r;
}

int kx_symbolizer_open(const char *trace, const char *map_path, struct kx_symbolizer *out,
		       struct kx_err *err)
{
	return open_map(trace, map_path, false, out, err);
}

int kx_symbolizer_open_names(const char *trace, const char *map_path, struct kx_symbolizer *out, struct kx_err *err)
{
	return open_map(trace, map_path, true, out, err);
}

/* When a session began: ticks, and the time of day ("" if unknown). */
static json_int_t session_start(const json_t *session, const char **when)
{
	const char *text = json_string_value(json_object_get(session, "started"));

	*when = text ? text : "";
	return json_integer_value(json_object_get(json_object_get(session, "clock"), "start_tsc"));
}

bool kx_trace_first_note(struct kx_fdr_file *f, size_t thread, enum kx_note_kind kind,
			 struct kx_note *out)
{
	struct kx_fdr_cursor *c;
	struct kx_fdr_record rec;
	const uint8_t *body;
	bool found = false;
	uint32_t size;

	if (kx_fdr_thread_cursor(f, thread, &c))
		return false;
	for (int i = 0; i < NOTE_RECORDS && !found && kx_fdr_next(c, &rec, NULL) > 0; i++)
		found = kx_note_find(&rec, &body, &size) == kind && kx_note_read(&rec, out);
	kx_fdr_cursor_free(c);
	return found;
}

int kx_symbolizer_check(const struct kx_symbolizer *names, struct kx_fdr_file *f,
			struct kx_err *err)
{
	const char *map_when, *trace_when;
	json_int_t map_start, trace_start = 0;
	struct kx_note note;
	bool found = false;
	int r = 0;

	if (!names->has_map || !names->map.session)
		return 0;
	map_start = session_start(names->map.session, &map_when);
	for (size_t i = 0; i < kx_fdr_nthreads(f) && !found; i++)
		found = kx_trace_first_note(f, i, KX_NOTE_SESSION, &note);
	if (found)
		trace_start = session_start(note.json, &trace_when);
	if (map_start && trace_start && map_start != trace_start)
		r = kx_err_set(
			err, -EBADMSG,
			"the map does not belong to this trace: it is of the recording of %s, the "
			"trace of %s; name the right one with -m",
			map_when, trace_when);
	if (found)
		kx_note_release(&note);
	return r;
}

void kx_symbolizer_free(struct kx_symbolizer *names)
{
	if (names->has_map)
		kx_map_free(&names->map);
	names->has_map = false;
}

void kx_symbolizer_share(const struct kx_symbolizer *names, struct kx_symbolizer *out)
{
	*out = *names;
	out->map.storage = NULL; /* the map's owner keeps what is in it */
}

void kx_symbolizer_unshare(struct kx_symbolizer *shared)
{
	kx_map_free(&shared->map);
}

const char *kx_trace_name(struct kx_symbolizer *names, uint32_t id)
{
	if (names->has_map && id && id <= names->map.nfunctions)
		return kx_map_name(&names->map, id);
	names->id[0] = '#';
	names->id[1 + kx_decimal(names->id + 1, id)] = 0;
	return names->id;
}

void kx_trace_prefetch(const struct kx_symbolizer *names, uint32_t id, bool symbol)
{
	if (names->has_map)
		kx_map_prefetch(&names->map, id, symbol);
}

const char *kx_trace_module(const struct kx_symbolizer *names, uint32_t id)
{
	if (names->has_map && id && id <= names->map.nfunctions)
		return kx_map_module_name(&names->map, id);
	return "";
}

bool kx_trace_place(const struct kx_symbolizer *names, uint32_t id, struct kx_map_place *out)
{
	*out = (struct kx_map_place){ 0 };
	return names->has_map && kx_map_get_place(&names->map, id, out);
}

bool kx_trace_has_places(const struct kx_symbolizer *names)
{
	return names->has_map && kx_map_has_places(&names->map);
}

const char *kx_trace_caller(struct kx_symbolizer *names, uint32_t module, uint64_t address)
{
	/* a call may be a function's last instruction, so that it returns to the next function */
	return names->has_map && module ? kx_map_name_at(&names->map, module - 1, address - 1) : NULL;
}

uint64_t kx_trace_ns(uint64_t ticks, uint64_t tsc_hz)
{
	unsigned __int128 ns;

	if (!tsc_hz)
		return ticks;
	if (ticks < 1ull << 33 && tsc_hz < 1ull << 62) /* fits into 64 bits, which is much faster */
		return (ticks * 1000000000 + tsc_hz / 2) / tsc_hz;
	if (tsc_hz < 1ull << 33 && ticks / tsc_hz < 1ull << 33) /* whole seconds apart: the rest fits, too */
		return ticks / tsc_hz * 1000000000 + (ticks % tsc_hz * 1000000000 + tsc_hz / 2) / tsc_hz;
	ns = ((unsigned __int128)ticks * 1000000000 + tsc_hz / 2) / tsc_hz;
	return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}
