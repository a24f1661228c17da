// SPDX-License-Identifier: BSD-2-Clause
/*
 * pprof's profile.proto, compressed with gzip: one sample for each distinct stack, with the
 * calls and the self time of its innermost function; pprof's cumulated values are then the
 * total times. With --pprof-label, one for each value that the calls of a stack have. Field numbers are those of pprof's public proto/profile.proto.
 *
 * A message's fields may come in any order. Memory grows with distinct stacks and functions.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "exporters/common/text.h"
#include "exporters/exporter.h"
#include "base/array.h"
#include "base/pair_map.h"
#include "exporters/common/protobuf.h"
#include "exporters/pprof/labels.h"
#include "trace/labels.h"

enum profile {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_TYPE = 14,
};

enum { TYPE_TYPE = 1, TYPE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2 };

enum mapping {
	MAPPING_ID = 1,
	MAPPING_LIMIT = 3,
	MAPPING_FILENAME = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILENAMES = 8,
	MAPPING_HAS_LINE_NUMBERS = 9,
};

enum { LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_LINE = 2 };

enum function {
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_SYSTEM_NAME = 3,
	FUNCTION_FILENAME = 4,
	FUNCTION_START_LINE = 5,
};

#define NO_STACK UINT32_MAX /* the caller of the outermost functions */
#define FLUSH_AT (32u << 10) /* bytes of protobuf to compress at once */

/* A distinct stack: a function that was called from another stack. */
struct stack {
	uint32_t from; /* index, or NO_STACK */
	uint32_t func;
	uint64_t calls;
	uint64_t self; /* ticks */
	uint32_t labelled; /* its newest labelled sample, index + 1; 0: none */
};

struct pprof {
	const struct kx_export *x;
	struct kx_err *err;
	struct kx_pair_map index; /* (from, function) of stacks */
	struct stack *stacks;
	size_t room;              /* of stacks */
	struct kx_pprof_labels labels;
	uint64_t label_key; /* string */
	struct kx_pair_map seen;  /* (0, function): its location's id - 1 */
	struct kx_pair_map mapped; /* (0, module) */
	int64_t nstrings;
	struct kx_bytes pb;
	z_stream gzip;
};

/* Collecting */

static int stack_of(struct pprof *p, uint32_t from, uint32_t func, uint32_t *stack)
{
	int r = kx_pair_index(&p->index, from, func, stack);

	if (r > 0 && KX_ARRAY_RESERVE(p->stacks, p->room, *stack))
		return -ENOMEM;
	if (r > 0)
		p->stacks[*stack] = (struct stack){ .from = from, .func = func };
	return r < 0 ? r : 0;
}

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct pprof *p = ctx;
	uint32_t from = NO_STACK, stack;
	int r;

	if (t->depth > 1)
		from = (uint32_t)(uintptr_t)t->stack[t->depth - 2].user;
	r = stack_of(p, from, call->func, &stack);
	call->user = (void *)(uintptr_t)stack;
	return r ? kx_err_set(p->err, r, "out of memory for the distinct stacks of the trace") : 0;
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	struct pprof *p = ctx;
	uint32_t stack = (uint32_t)(uintptr_t)call->user;
	struct stack *s = &p->stacks[stack];
	struct kx_pprof_labelled *labelled;
	uint64_t took = call->took, self;

	(void)t;
	(void)tsc;
	/* the time of a repaired call is not known: it counts as its caller's */
	self = how != KX_LEAVE_REPAIRED && took > call->children ? took - call->children : 0;
	if (kx_pprof_labels_find(&p->labels, call, stack, &s->labelled, &labelled))
		return kx_err_set(p->err, -ENOMEM, "out of memory for the distinct values of the trace");
	if (labelled) {
		labelled->calls++;
		labelled->self += self;
	} else {
		s->calls++;
		s->self += self;
	}
	return 0;
}

/* Compressed output */

static int compress_more(struct pprof *p, int flush)
{
	uint8_t out[16 << 10];
	int r;

	p->gzip.next_in = p->pb.data;
	p->gzip.avail_in = (uInt)p->pb.size;
	do {
		p->gzip.next_out = out;
		p->gzip.avail_out = sizeof(out);
		r = deflate(&p->gzip, flush);
		kx_text_bytes(p->x->out, (char *)out, sizeof(out) - p->gzip.avail_out);
	} while (r == Z_OK && !p->gzip.avail_out);
	p->pb.size = 0;
	return p->x->out->error;
}

/* To be called between two fields of the profile. */
static int send(struct pprof *p)
{
	if (p->pb.failed)
		return kx_err_set(p->err, -ENOMEM, "out of memory for a sample of the profile");
	return p->pb.size < FLUSH_AT ? 0 : compress_more(p, Z_NO_FLUSH);
}

/* Index of @text, which is added; the empty string is 0 and the first. */
static uint64_t add_string(struct pprof *p, const char *text)
{
	if (!*text && p->nstrings)
		return 0;
	kx_pb_text(&p->pb, PROFILE_STRING, text);
	return (uint64_t)p->nstrings++;
}

static void put_value_type(struct pprof *p, enum profile field, uint64_t type, uint64_t unit)
{
	size_t opened = kx_pb_open(&p->pb, field);

	kx_pb_number(&p->pb, TYPE_TYPE, type);
	kx_pb_number(&p->pb, TYPE_UNIT, unit);
	kx_pb_close(&p->pb, opened);
}

/* Comments, since a sample's labels would be the same for all. */
static void put_labels(struct pprof *p)
{
	json_t *labels = kx_session_labels(p->x->session), *value;
	char text[KX_LABEL_KEY_SIZE + KX_LABEL_VALUE_SIZE];
	const char *key;

	json_object_foreach (labels, key, value) {
		snprintf(text, sizeof(text), "%s=%s", key, json_string_value(value));
		kx_pb_number(&p->pb, PROFILE_COMMENT, add_string(p, text));
	}
	json_decref(labels);
}

static void put_head(struct pprof *p)
{
	const struct kx_calls_totals *totals = kx_calls_get_totals(p->x->calls);
	uint64_t calls, count, time;
	char lost[80];
	uint32_t nsec;
	int64_t sec;

	add_string(p, "");
	calls = add_string(p, "calls");
	count = add_string(p, "count");
	time = add_string(p, "time");
	put_value_type(p, PROFILE_SAMPLE_TYPE, calls, count);
	put_value_type(p, PROFILE_SAMPLE_TYPE, time, add_string(p, "nanoseconds"));
	/* every call is there; Pyroscope cannot merge profiles without a period */
	put_value_type(p, PROFILE_PERIOD_TYPE, calls, count);
	kx_pb_number(&p->pb, PROFILE_PERIOD, 1);
	kx_pb_number(&p->pb, PROFILE_DEFAULT_TYPE, time);
	if (kx_trace_started(p->x, totals->first_tsc, &sec, &nsec))
		kx_pb_number(&p->pb, PROFILE_TIME_NANOS,
			     (uint64_t)sec * 1000000000 + nsec);
	kx_pb_number(&p->pb, PROFILE_DURATION_NANOS,
		     kx_trace_ns(totals->last_tsc - totals->first_tsc, p->x->tsc_hz));
	put_labels(p);
	if (totals->lost) {
		snprintf(lost, sizeof(lost), "kxray: %" PRIu64 " events were lost while recording",
			 totals->lost);
		kx_pb_number(&p->pb, PROFILE_COMMENT, add_string(p, lost));
	}
}

/*
 * Addresses are those of the ELF file, wherever the process had loaded it: hence a mapping that covers
 * all addresses. With it pprof's disassembly and source views find the code.
 */
static void put_mapping(struct pprof *p, uint32_t id, const struct kx_map_module *m)
{
	uint64_t name = add_string(p, m->path && *m->path ? m->path : m->name ? m->name : "");
	uint64_t build_id = add_string(p, m->build_id ? m->build_id : "");
	size_t opened = kx_pb_open(&p->pb, PROFILE_MAPPING);

	kx_pb_number(&p->pb, MAPPING_ID, id);
	kx_pb_number(&p->pb, MAPPING_LIMIT, UINT64_MAX);
	kx_pb_number(&p->pb, MAPPING_FILENAME, name);
	kx_pb_number(&p->pb, MAPPING_BUILD_ID, build_id);
	kx_pb_number(&p->pb, MAPPING_HAS_FUNCTIONS, true);
	if (kx_trace_has_places(p->x->names)) {
		kx_pb_number(&p->pb, MAPPING_HAS_FILENAMES, true);
		kx_pb_number(&p->pb, MAPPING_HAS_LINE_NUMBERS, true);
	}
	kx_pb_close(&p->pb, opened);
}

/* The number of the module with that file in the map; the number of modules if it has none. */
static size_t module_of(const struct kx_map *map, const char *path)
{
	size_t i = 0;

	while (i < map->nmodules && (!map->modules[i].path || strcmp(map->modules[i].path, path)))
		i++;
	return i;
}

/*
 * pprof takes the first mapping for the main binary: the executable of the first process, or of several
 * processes the first that has traced functions. Traces without the processes' mappings have none in this place.
 */
static int put_main_mapping(struct pprof *p)
{
	const struct kx_map *map = &p->x->names->map;
	const char *path = NULL, *executable;
	struct kx_map_module other = { 0 };
	size_t i, module = map->nmodules;
	const json_t *process, *first;
	uint32_t mapping;
	int r;

	json_array_foreach(json_object_get(p->x->session, "processes"), i, process) {
		/* the session has a process's executable first */
		first = json_array_get(json_object_get(process, "mappings"), 0);
		executable = json_string_value(json_object_get(first, "path"));
		if (!executable)
			continue;
		path = path ? path : executable;
		module = module_of(map, executable);
		if (module < map->nmodules)
			break;
	}
	if (!path)
		return 0;
	other.path = path;
	r = kx_pair_index(&p->mapped, 0, (uint32_t)module, &mapping);
	if (r < 0)
		return kx_err_set(p->err, r, "out of memory for the modules");
	put_mapping(p, mapping + 1, module < map->nmodules ? &map->modules[module] : &other);
	return 0;
}

static int put_function(struct pprof *p, uint32_t id, uint32_t func)
{
	const struct kx_map *map = &p->x->names->map;
	uint64_t name = add_string(p, kx_trace_name(p->x->names, func)), system_name = name;
	const struct kx_map_function *f = NULL;
	struct kx_map_place place;
	uint64_t file = 0;
	uint32_t mapping;
	size_t opened, line;
	int r;

	if (p->x->names->has_map && func && func <= map->nfunctions)
		f = &map->functions[func - 1];
	if (f && f->symbol)
		system_name = add_string(p, f->symbol);
	if (f && f->module < map->nmodules) {
		r = kx_pair_index(&p->mapped, 0, f->module, &mapping);
		if (r < 0)
			return kx_err_set(p->err, r, "out of memory for the modules");
		if (r)
			put_mapping(p, mapping + 1, &map->modules[f->module]);
	} else {
		f = NULL;
	}
	if (kx_trace_place(p->x->names, func, &place))
		file = add_string(p, place.file);
	opened = kx_pb_open(&p->pb, PROFILE_FUNCTION);
	kx_pb_number(&p->pb, FUNCTION_ID, id);
	kx_pb_number(&p->pb, FUNCTION_NAME, name);
	kx_pb_number(&p->pb, FUNCTION_SYSTEM_NAME, system_name);
	if (file) {
		kx_pb_number(&p->pb, FUNCTION_FILENAME, file);
		kx_pb_number(&p->pb, FUNCTION_START_LINE, place.line);
	}
	kx_pb_close(&p->pb, opened);
	opened = kx_pb_open(&p->pb, PROFILE_LOCATION);
	kx_pb_number(&p->pb, LOCATION_ID, id);
	if (f) {
		kx_pb_number(&p->pb, LOCATION_MAPPING, mapping + 1u);
		kx_pb_number(&p->pb, LOCATION_ADDRESS, f->address);
	}
	line = kx_pb_open(&p->pb, LOCATION_LINE);
	kx_pb_number(&p->pb, LINE_FUNCTION, id);
	/* of the function, since a call has no place of its own */
	if (file)
		kx_pb_number(&p->pb, LINE_LINE, place.line);
	kx_pb_close(&p->pb, line);
	kx_pb_close(&p->pb, opened);
	return send(p);
}

/* The function of each frame, innermost first. @labelled: the value of its calls; NULL: none. */
static int put_sample(struct pprof *p, const struct stack *s, uint64_t calls, uint64_t self,
		      const struct kx_pprof_labelled *labelled)
{
	char text[KX_VALUE_TEXT];
	uint64_t string = 0;
	size_t opened, list;
	uint32_t location;

	if (labelled && kx_pprof_label_text(&p->labels, labelled->value, text, sizeof(text)))
		string = add_string(p, text);
	opened = kx_pb_open(&p->pb, PROFILE_SAMPLE);
	list = kx_pb_open(&p->pb, SAMPLE_LOCATION);
	for (const struct stack *at = s;; at = &p->stacks[at->from]) {
		kx_pair_index(&p->seen, 0, at->func, &location);
		kx_bytes_varint(&p->pb, location + 1u);
		if (at->from == NO_STACK)
			break;
	}
	kx_pb_close(&p->pb, list);
	list = kx_pb_open(&p->pb, SAMPLE_VALUE);
	kx_bytes_varint(&p->pb, calls);
	kx_bytes_varint(&p->pb, kx_trace_ns(self, p->x->tsc_hz));
	kx_pb_close(&p->pb, list);
	if (labelled)
		kx_pprof_label_put(&p->labels, labelled->value, &p->pb, p->label_key, string);
	kx_pb_close(&p->pb, opened);
	return send(p);
}

/* The samples of a stack. A function is written before its first sample. */
static int put_stack(struct pprof *p, const struct stack *s)
{
	uint32_t location;
	int r = kx_pair_index(&p->seen, 0, s->func, &location);

	if (r < 0)
		return kx_err_set(p->err, r, "out of memory for the functions");
	/* Its caller is a stack with a lower index, whose functions are written already. */
	if (r)
		r = put_function(p, location + 1, s->func);
	if (!r && s->calls)
		r = put_sample(p, s, s->calls, s->self, NULL);
	for (uint32_t at = s->labelled; at && !r; at = p->labels.items[at - 1].next) {
		const struct kx_pprof_labelled *l = &p->labels.items[at - 1];

		r = put_sample(p, s, l->calls, l->self, l);
	}
	return r;
}

static int put_profile(struct pprof *p)
{
	int r;

	put_head(p);
	p->label_key = p->labels.label ? add_string(p, p->labels.label) : 0;
	r = put_main_mapping(p);
	for (size_t i = 0; i < p->index.count && !r; i++)
		r = put_stack(p, &p->stacks[i]);
	return r ? r : compress_more(p, Z_FINISH);
}

static int run(const struct kx_export *x, struct kx_err *err)
{
	struct pprof p = { .x = x, .err = err };
	const struct kx_call_visitor visitor = {
		.enter = on_enter, .leave = on_leave, .ctx = &p,
	};
	int r = kx_pprof_labels_init(&p.labels, x->option(x, "pprof-label"), x->session);

	if (!r)
		r = kx_calls_walk(x->calls, KX_ORDER_THREAD, &visitor, x->progress, x->progress_ctx, err);
	if (!r && p.labels.label && !p.labels.values.count)
		r = kx_err_set(err, -ENODATA, "no call of the trace has a value '%s' for --pprof-label", p.labels.label);
	/* 16: with gzip's header instead of zlib's */
	if (!r && deflateInit2(&p.gzip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8,
			       Z_DEFAULT_STRATEGY) != Z_OK)
		r = kx_err_set(err, -ENOMEM, "out of memory for compression");
	else if (!r) {
		r = put_profile(&p);
		deflateEnd(&p.gzip);
	}
	kx_pair_map_free(&p.index);
	kx_pair_map_free(&p.seen);
	kx_pair_map_free(&p.mapped);
	kx_pprof_labels_free(&p.labels);
	free(p.stacks);
	kx_bytes_free(&p.pb);
	return r;
}

static const struct kx_export_option options[] = {
	{ "pprof-label", "NAME", "samples carry the value NAME of their calls (record -f 'f(NAME:TYPE)') as a label" },
	{ 0 },
};

const struct kx_exporter kx_exporter_pprof = {
	.name = "pprof",
	.suffix = ".pb.gz",
	.summary = "profile.proto with calls and time of every stack, for pprof",
	.options = options,
	.open_hint = "open it: go tool pprof -http=: FILE",
	.run = run,
};
