// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/cpel/head.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exporters/common/text.h"

#define NDEFINITIONS (sizeof(definitions) / sizeof(definitions[0]))
/* A module's addresses in the map keep their low 24 bits (see map_file.h). */
#define MODULE_ALIGN (16ull << 20)

static const struct {
	enum kx_cpel_code code;
	const char *name, *datum;
} definitions[] = {
	{ KX_CPEL_RUNNING, "THREAD/THRUNNING", "%s" }, { KX_CPEL_READY, "THREAD/THREADY", "%s" },
	{ KX_CPEL_ENTER, "FUNC/ENTER", "%s" },	       { KX_CPEL_EXIT, "FUNC/EXIT", "%s" },
	{ KX_CPEL_ON_CPU, "THREAD/CPU", "%u" },	       { KX_CPEL_LOST, "TRACE/LOST", "%u" },
	{ KX_CPEL_CUSTOM, "TRACE/EVENT", "%s" },       { KX_CPEL_OFF, "THREAD/OFFCPU", "%s" },
};

/* "comm tTID(PID)": cpelatency takes the first "(" and the "t" before it. */
static int track_name(struct kx_cpel_contents *c, size_t thread, uint32_t *offset)
{
	const struct kx_call_thread *t = kx_calls_thread(c->x->calls, thread);
	/* The names after a walk are the last ones; the first is often that of the parent. */
	const char *from = *t->name ? t->name : *t->process ? t->process : "thread";
	char text[512];
	size_t at = 0;

	/* Track names are printf formats. */
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

/* Addresses as in the map; those of more than 32 bits are left out. */
static int make_symbols(struct kx_cpel_contents *c, struct symbol **out, uint32_t *nout)
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
	for (size_t i = 0; i < c->nfunctions; i++) {
		uint32_t id = c->functions[i].id;
		const struct kx_map_function *f;
		uint64_t base, value;

		if (!id || id > map->nfunctions)
			continue;
		f = &map->functions[id - 1];
		base = map->modules[f->module].map_base;
		value = base ? base + f->address - (lowest[f->module] & ~(MODULE_ALIGN - 1))
			     : f->address;
		if (value <= UINT32_MAX) {
			(*out)[n].value = (uint32_t)value;
			(*out)[n++].name = c->functions[i].name;
		}
	}
	free(lowest);
	qsort(*out, n, sizeof(**out), compare_symbols);
	*nout = n;
	return 0;
}

static void write_symbols(const struct kx_cpel_contents *c, const struct symbol *symbols, uint32_t n)
{
	struct kx_text_out *o = c->x->out;

	kx_cpel_section(o, KX_CPEL_SYMTAB, 68 + 8ull * n, c->little);
	kx_cpel_table(o, n, c->little);
	for (uint32_t i = 0; i < n; i++) {
		kx_cpel_put32(o, symbols[i].value, c->little);
		kx_cpel_put32(o, symbols[i].name, c->little);
	}
}

static void write_definitions(const struct kx_cpel_contents *c, const uint32_t *names, const uint32_t *datums)
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

/* cpeldump stops reading at a track that is defined twice, so tracks are numbered by thread index, not tid. */
static void write_tracks(const struct kx_cpel_contents *c, const uint32_t *names, uint32_t n)
{
	struct kx_text_out *o = c->x->out;

	kx_cpel_section(o, KX_CPEL_TRACKDEF, 68 + 8ull * n, c->little);
	kx_cpel_table(o, n, c->little);
	for (size_t i = 0; i <= c->nthreads; i++) {
		if (!c->has_track[i])
			continue;
		kx_cpel_put32(o, (uint32_t)i, c->little);
		kx_cpel_put32(o, names[i], c->little);
	}
}

static void write_file_header(const struct kx_cpel_contents *c, uint16_t nsections)
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

int kx_cpel_head_write(struct kx_cpel_contents *c)
{
	uint32_t names[NDEFINITIONS], datums[NDEFINITIONS], ntracks = 0, nsymbols = 0;
	uint32_t *tracks = calloc(c->nthreads + 1, sizeof(*tracks));
	struct symbol *symbols = NULL;
	int r = tracks ? make_symbols(c, &symbols, &nsymbols) : -ENOMEM;

	for (size_t i = 0; !r && i < NDEFINITIONS; i++) {
		r = kx_cpel_string(&c->strings, definitions[i].name, &names[i]);
		if (!r)
			r = kx_cpel_string(&c->strings, definitions[i].datum, &datums[i]);
	}
	for (size_t i = 0; !r && i <= c->nthreads; i++) {
		if (!c->has_track[i])
			continue;
		ntracks++;
		r = i < c->nthreads ? track_name(c, i, &tracks[i])
				    : kx_cpel_string(&c->strings, KX_CPEL_NOBODY, &tracks[i]);
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
	return r;
}
