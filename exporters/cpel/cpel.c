// SPDX-License-Identifier: BSD-2-Clause
/*
 * CPEL, the event log of VPP's performance tools (cpeldump, cpelatency, cpelstate, cpelinreg,
 * g2). By default the file is what these tools read: big-endian, clock in ticks a
 * second, one event section in order of time, event codes of old. With --cpel-document
 * it is what the format's document says where the tools differ.
 *
 * The event section says how many there are before the first of them, and the strings stand
 * before it: the trace is walked twice.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exporters/cpel/file.h"
#include "exporters/common/text.h"
#include "exporters/exporter.h"

/* 1 to 4 are the historical codes, which the tools take by default. */
enum code {
	RUNNING = 1, /* first seen at work after READY: datum "pid:P tid:T", cpelatency's key */
	READY = 2,   /* put on another CPU */
	ENTER = 3,
	EXIT = 4,
	ON_CPU = 5,  /* datum: number of the CPU that it was put on */
	LOST = 6,    /* datum: hits that are missing here */
	EVENT = 7,   /* a custom or typed event as text */
};

static const struct {
	enum code code;
	const char *name, *datum;
} definitions[] = {
	{ RUNNING, "THREAD/THRUNNING", "%s" }, { READY, "THREAD/THREADY", "%s" },
	{ ENTER, "FUNC/ENTER", "%s" },         { EXIT, "FUNC/EXIT", "%s" },
	{ ON_CPU, "THREAD/CPU", "%u" },        { LOST, "TRACE/LOST", "%u" },
	{ EVENT, "TRACE/EVENT", "%s" },
};

#define NDEFINITIONS (sizeof(definitions) / sizeof(definitions[0]))
/* The text of events lives in memory until the end: no more of it than this, in bytes. */
#define MAX_EVENT_TEXT (64u << 20)
#define LEFT_OUT "(text left out)"
#define CPELINREG_DEPTH 128 /* nested calls at which cpelinreg gives up */
/* A module's addresses in the map keep their low 24 bits (see map_file.h). */
#define MODULE_ALIGN (16ull << 20)

struct track {
	bool has_events;
	bool on_cpu;      /* its first CPU is known */
	bool running;
	uint32_t ids;     /* string "pid:P tid:T"; valid if has_events */
};

struct function {
	uint32_t id;
	uint32_t name;    /* string + 1; 0: free place */
};

struct cpel {
	const struct kx_export *x;
	bool document, little;
	bool ns;          /* times are nanoseconds, not the trace's ticks */
	uint32_t clock;   /* ticks a second, or a microsecond in the document's form */
	uint64_t first;   /* ticks */
	uint64_t newest;  /* time of the newest event written */
	bool counting;    /* the first walk */
	uint64_t nevents, written;
	uint32_t depth;
	size_t event_text;
	bool text_left_out;
	struct kx_cpel_strings strings;
	struct function *functions; /* by id, open addressing */
	size_t nfunctions, nplaces;
	struct track *tracks;       /* by thread index */
	size_t ntracks;
	struct kx_err *err;
};

static int no_memory(struct cpel *c, int code)
{
	if (code == -EFBIG)
		return kx_err_set(c->err, code,
				  "the names do not fit into a CPEL file, whose string table ends "
				  "at 4 GiB; choose fewer functions with -f or -x");
	return kx_err_set(c->err, code, "out of memory while exporting to CPEL");
}

/* Functions */

static struct function *find_function(struct function *functions, size_t n, uint32_t id)
{
	size_t at = id & (n - 1);

	while (functions[at].name && functions[at].id != id)
		at = (at + 1) & (n - 1);
	return &functions[at];
}

static int grow_functions(struct cpel *c)
{
	size_t n = c->nplaces ? c->nplaces * 2 : 1024;
	struct function *functions = calloc(n, sizeof(*functions));

	if (!functions)
		return -ENOMEM;
	for (size_t i = 0; i < c->nplaces; i++)
		if (c->functions[i].name)
			*find_function(functions, n, c->functions[i].id) = c->functions[i];
	free(c->functions);
	c->functions = functions;
	c->nplaces = n;
	return 0;
}

static int function_name(struct cpel *c, uint32_t id, uint32_t *name)
{
	struct function *f;
	int r;

	if (c->nfunctions * 2 >= c->nplaces && grow_functions(c))
		return -ENOMEM;
	f = find_function(c->functions, c->nplaces, id);
	if (!f->name) {
		r = kx_cpel_string(&c->strings, kx_trace_name(c->x->names, id), name);
		if (r)
			return r;
		f->id = id;
		f->name = *name + 1;
		c->nfunctions++;
	}
	*name = f->name - 1;
	return 0;
}

/* Events */

static void write_event(struct cpel *c, const struct kx_call_thread *t, uint64_t tsc,
			enum code code, uint32_t datum)
{
	uint64_t ticks = tsc > c->first ? tsc - c->first : 0;
	/* The first tick is 1: cpelatency takes 0 for "not set". */
	uint64_t now = 1 + (c->ns ? kx_trace_ns(ticks, c->x->tsc_hz) : ticks);
	uint8_t bytes[KX_CPEL_EVENT_SIZE];

	/* Readers search in order of time; a gap is told when it ends. */
	if (now < c->newest)
		now = c->newest;
	c->newest = now;
	kx_cpel_set32(bytes, (uint32_t)(now >> 32), c->little);
	kx_cpel_set32(bytes + 4, (uint32_t)now, c->little);
	kx_cpel_set32(bytes + 8, t->index, c->little);
	kx_cpel_set32(bytes + 12, (uint32_t)code, c->little);
	kx_cpel_set32(bytes + 16, datum, c->little);
	kx_text_bytes(c->x->out, (const char *)bytes, sizeof(bytes));
	c->written++;
}

static int put(struct cpel *c, struct kx_call_thread *t, uint64_t tsc, enum code code,
	       uint32_t datum)
{
	if (!c->counting) {
		write_event(c, t, tsc, code, datum);
		return c->x->out->error;
	}
	c->tracks[t->index].has_events = true;
	c->nevents++;
	return 0;
}

static int put_ids(struct cpel *c, struct kx_call_thread *t, uint64_t tsc, enum code code)
{
	struct track *track = &c->tracks[t->index];
	char text[64];
	int r;

	if (c->counting) {
		snprintf(text, sizeof(text), "pid:%" PRId32 " tid:%" PRId32, t->pid, t->tid);
		r = kx_cpel_string(&c->strings, text, &track->ids);
		if (r)
			return no_memory(c, r);
	}
	return put(c, t, tsc, code, track->ids);
}

/* The thread does something, so it runs: the first sign of it after it came to a CPU. */
static int running(struct cpel *c, struct kx_call_thread *t, uint64_t tsc)
{
	if (c->tracks[t->index].running)
		return 0;
	c->tracks[t->index].running = true;
	return put_ids(c, t, tsc, RUNNING);
}

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct cpel *c = ctx;
	uint32_t name;
	int r = running(c, t, call->enter);

	if (r)
		return r;
	if (t->depth > c->depth)
		c->depth = t->depth;
	r = function_name(c, call->func, &name);
	return r ? no_memory(c, r) : put(c, t, call->enter, ENTER, name);
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	struct cpel *c = ctx;
	uint32_t name;
	int r = 0;

	if (how == KX_LEAVE_EXIT || how == KX_LEAVE_TAIL)
		r = running(c, t, tsc);
	if (r)
		return r;
	r = function_name(c, call->func, &name);
	return r ? no_memory(c, r) : put(c, t, tsc, EXIT, name);
}

static int on_cpu(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t cpu)
{
	struct cpel *c = ctx;
	struct track *track = &c->tracks[t->index];
	int r = 0;

	/* A thread is moved when it wakes up or waits for a CPU, never while it runs. */
	if (track->on_cpu) {
		track->running = false;
		r = put_ids(c, t, tsc, READY);
	}
	track->on_cpu = true;
	return r ? r : put(c, t, tsc, ON_CPU, cpu);
}

static int on_loss(void *ctx, struct kx_call_thread *t, uint64_t from, uint64_t to,
		   uint64_t entries, uint64_t exits)
{
	uint64_t hits = entries + exits;

	(void)to;
	return put(ctx, t, from, LOST, hits > UINT32_MAX ? UINT32_MAX : (uint32_t)hits);
}

static int on_event(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t type,
		    const uint8_t *data, uint32_t size)
{
	struct cpel *c = ctx;
	char text[KX_EVENT_TEXT];
	uint32_t datum;
	int r = running(c, t, tsc);

	if (r)
		return r;
	kx_event_text(text, type, data, size);
	/* The first walk decides which texts are in the table: the second has another order. */
	if (!kx_cpel_string_find(&c->strings, text, &datum)) {
		bool full = c->event_text > MAX_EVENT_TEXT || !c->counting;
		size_t before = c->strings.size;

		r = kx_cpel_string(&c->strings, full ? LEFT_OUT : text, &datum);
		if (r)
			return no_memory(c, r);
		c->event_text += c->strings.size - before;
		c->text_left_out |= full;
	}
	return put(c, t, tsc, EVENT, datum);
}

/* Walks */

static void progress(void *ctx, uint64_t done, uint64_t all)
{
	const struct cpel *c = ctx;

	c->x->progress(c->x->progress_ctx, done / 2 + (c->counting ? 0 : all / 2), all);
}

static int walk(struct cpel *c, enum kx_order order)
{
	const struct kx_call_visitor v = {
		.enter = on_enter, .leave = on_leave, .cpu = on_cpu,
		.loss = on_loss, .event = on_event, .ctx = c,
	};

	for (size_t i = 0; i < c->ntracks; i++)
		c->tracks[i].on_cpu = c->tracks[i].running = false;
	return kx_calls_walk(c->x->calls, order, &v, c->x->progress ? progress : NULL, c, c->err);
}

static int count(struct cpel *c)
{
	int r;

	c->counting = true;
	/* The same events in the order that costs least. */
	r = walk(c, KX_ORDER_THREAD);
	c->counting = false;
	if (!r && c->nevents > KX_CPEL_MAX_EVENTS)
		r = kx_err_set(c->err, -EFBIG,
			       "the trace has %" PRIu64 " events and a CPEL file holds no more "
			       "than %u; choose a part of it with --time FROM..TO",
			       c->nevents, KX_CPEL_MAX_EVENTS);
	return r;
}

/* Sections */

/* "comm tTID(PID)": cpelatency takes the first "(" and the "t" before it. */
static int track_name(struct cpel *c, size_t thread, uint32_t *offset)
{
	const struct kx_call_thread *t = kx_calls_thread(c->x->calls, thread);
	/* The names after a walk are the last ones; the first is often that of the parent. */
	const char *from = *t->name ? t->name : *t->process ? t->process : "thread";
	char text[512];
	size_t at = 0;

	/* Track names are formats. */
	for (; *from && at < sizeof(text) - 64; from++) {
		char ch = *from;

		if (ch == '%' && c->document)
			text[at++] = '%';
		else if (ch == '%')
			ch = '_';
		else if (!c->document && (ch == '(' || ch == ')'))
			ch = ch == '(' ? '[' : ']';
		if ((ch >= 0 && ch < ' ') || ch == 0x7f)
			ch = '_';
		text[at++] = ch;
	}
	snprintf(text + at, sizeof(text) - at, " t%" PRId32 "(%" PRId32 ")", t->tid, t->pid);
	return kx_cpel_string(&c->strings, text, offset);
}

struct symbol {
	uint32_t value, name;
};

static int compare_symbols(const void *pa, const void *pb)
{
	const struct symbol *a = pa, *b = pb;

	if (a->value != b->value)
		return a->value < b->value ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

/* Addresses as in the map, as far as they have 32 bits. */
static int make_symbols(struct cpel *c, struct symbol **out, uint32_t *nout)
{
	const struct kx_map *map = &c->x->names->map;
	uint64_t *lowest;
	uint32_t n = 0;

	*out = NULL;
	*nout = 0;
	if (!c->x->names->has_map)
		return 0;
	lowest = calloc(map->nmodules + 1, sizeof(*lowest));
	*out = calloc(c->nfunctions + 1, sizeof(**out));
	if (!lowest || !*out) {
		free(lowest);
		return -ENOMEM;
	}
	for (size_t i = 0; i < map->nmodules; i++)
		lowest[i] = UINT64_MAX;
	for (size_t i = 0; i < map->nfunctions; i++) {
		const struct kx_map_function *f = &map->functions[i];

		if (f->address < lowest[f->module])
			lowest[f->module] = f->address;
	}
	for (size_t i = 0; i < c->nplaces; i++) {
		const struct function *place = &c->functions[i];
		const struct kx_map_function *f;
		uint64_t base, value;

		if (!place->name || !place->id || place->id > map->nfunctions)
			continue;
		f = &map->functions[place->id - 1];
		base = map->modules[f->module].map_base;
		value = base ? base + f->address - (lowest[f->module] & ~(MODULE_ALIGN - 1))
			     : f->address;
		if (value <= UINT32_MAX) {
			(*out)[n].value = (uint32_t)value;
			(*out)[n++].name = place->name - 1;
		}
	}
	free(lowest);
	qsort(*out, n, sizeof(**out), compare_symbols);
	*nout = n;
	return 0;
}

static void write_symbols(const struct cpel *c, const struct symbol *symbols, uint32_t n)
{
	struct kx_text_out *o = c->x->out;

	kx_cpel_section(o, KX_CPEL_SYMTAB, 68 + 8ull * n, c->little);
	kx_cpel_table(o, n, c->little);
	for (uint32_t i = 0; i < n; i++) {
		kx_cpel_put32(o, symbols[i].value, c->little);
		kx_cpel_put32(o, symbols[i].name, c->little);
	}
}

static void write_definitions(const struct cpel *c, const uint32_t *names, const uint32_t *datums)
{
	struct kx_text_out *o = c->x->out;

	kx_cpel_section(o, KX_CPEL_EVTDEF, 68 + 12 * NDEFINITIONS, c->little);
	kx_cpel_table(o, NDEFINITIONS, c->little);
	for (size_t i = 0; i < NDEFINITIONS; i++) {
		kx_cpel_put32(o, (uint32_t)definitions[i].code, c->little);
		kx_cpel_put32(o, names[i], c->little);
		kx_cpel_put32(o, datums[i], c->little);
	}
}

/* A track that is defined twice stops cpeldump from reading on, so their ids are our own. */
static void write_tracks(const struct cpel *c, const uint32_t *names, uint32_t n)
{
	struct kx_text_out *o = c->x->out;

	kx_cpel_section(o, KX_CPEL_TRACKDEF, 68 + 8ull * n, c->little);
	kx_cpel_table(o, n, c->little);
	for (size_t i = 0; i < c->ntracks; i++) {
		if (!c->tracks[i].has_events)
			continue;
		kx_cpel_put32(o, (uint32_t)i, c->little);
		kx_cpel_put32(o, names[i], c->little);
	}
}

static void write_file_header(const struct cpel *c, uint16_t nsections)
{
	struct kx_text_out *o = c->x->out;
	int64_t date;
	uint32_t nsec;

	kx_text_char(o, (char)(KX_CPEL_VERSION | (c->little ? KX_CPEL_LITTLE : 0)));
	kx_text_char(o, 0);
	kx_cpel_put16(o, nsections, c->little);
	if (!kx_trace_started(c->x, c->first, &date, &nsec))
		date = time(NULL);
	kx_cpel_put32(o, (uint32_t)date, c->little);
}

/* All that stands before the events. */
static int write_head(struct cpel *c)
{
	uint32_t names[NDEFINITIONS], datums[NDEFINITIONS], ntracks = 0, nsymbols = 0;
	uint32_t *tracks = calloc(c->ntracks + 1, sizeof(*tracks));
	struct symbol *symbols = NULL;
	int r = tracks ? make_symbols(c, &symbols, &nsymbols) : -ENOMEM;

	for (size_t i = 0; !r && i < NDEFINITIONS; i++) {
		r = kx_cpel_string(&c->strings, definitions[i].name, &names[i]);
		if (!r)
			r = kx_cpel_string(&c->strings, definitions[i].datum, &datums[i]);
	}
	for (size_t i = 0; !r && i < c->ntracks; i++) {
		if (!c->tracks[i].has_events)
			continue;
		ntracks++;
		r = track_name(c, i, &tracks[i]);
	}
	if (!r) {
		write_file_header(c, nsymbols ? 5 : 4);
		/* VPP's own writer aligns to 8 bytes, the document says 4. */
		kx_cpel_strings_write(&c->strings, c->x->out, c->document ? 4 : 8, c->little);
		if (nsymbols)
			write_symbols(c, symbols, nsymbols);
		write_definitions(c, names, datums);
		write_tracks(c, tracks, ntracks);
		kx_cpel_section(c->x->out, KX_CPEL_EVENT,
				KX_CPEL_EVENT_HEADER + c->nevents * KX_CPEL_EVENT_SIZE, c->little);
		kx_cpel_table(c->x->out, (uint32_t)c->nevents, c->little);
		kx_cpel_put32(c->x->out, c->clock, c->little);
	}
	free(symbols);
	free(tracks);
	return r ? no_memory(c, r) : 0;
}

static void tell(const struct cpel *c)
{
	if (!c->x->notice)
		return;
	if (!c->nevents)
		c->x->notice(c->x, "the trace has no events; the viewer g2 crashes on such a file");
	if (c->depth > CPELINREG_DEPTH && !c->document)
		c->x->notice(c->x, "calls are nested more than 128 deep, where cpelinreg gives up; "
				   "--depth 128 leaves the deeper ones out");
	if (c->text_left_out)
		c->x->notice(c->x, "the text of events beyond 64 MiB is left out");
}

static int set_options(struct cpel *c)
{
	const struct kx_export *x = c->x;

	c->document = x->option(x, "cpel-document") != NULL;
	c->little = x->option(x, "cpel-little") != NULL;
	if (c->little && !c->document)
		return kx_err_set(c->err, -EINVAL,
				  "--cpel-little goes with --cpel-document only, because VPP's "
				  "tools read no little-endian files");
	/* Ticks as they are where the field holds their frequency, so that nothing is rounded. */
	c->ns = c->document || x->tsc_hz > UINT32_MAX;
	c->clock = c->document ? 1000 : c->ns ? 1000000000 : (uint32_t)x->tsc_hz;
	return 0;
}

static int export(struct cpel *c)
{
	int r = set_options(c);

	if (r)
		return r;
	c->first = kx_calls_get_totals(c->x->calls)->first_tsc;
	c->ntracks = kx_calls_nthreads(c->x->calls);
	c->tracks = calloc(c->ntracks + 1, sizeof(*c->tracks));
	if (!c->tracks || kx_cpel_strings_new(&c->strings))
		return no_memory(c, -ENOMEM);
	r = count(c);
	if (!r)
		r = write_head(c);
	if (!r)
		r = walk(c, KX_ORDER_TIME);
	if (!r && c->written != c->nevents)
		r = kx_err_set(c->err, -EIO,
			       "the trace changed while it was exported: %" PRIu64 " events, then "
			       "%" PRIu64, c->nevents, c->written);
	if (!r)
		tell(c);
	return r;
}

static int run(const struct kx_export *x, struct kx_err *err)
{
	struct cpel c = { .x = x, .err = err };
	int r = export(&c);

	free(c.tracks);
	free(c.functions);
	kx_cpel_strings_free(&c.strings);
	return r;
}

static const struct kx_export_option options[] = {
	{ "cpel-document", NULL, "ticks per microsecond and padding as in the format's document" },
	{ "cpel-little", NULL, "with --cpel-document: little-endian" },
	{ NULL, NULL, NULL },
};

const struct kx_exporter kx_exporter_cpel = {
	.name = "cpel",
	.suffix = ".cpel",
	.summary = "event log for VPP's cpeldump, cpelatency, cpelstate, cpelinreg and g2",
	.options = options,
	.run = run,
};
