// SPDX-License-Identifier: BSD-2-Clause
/*
 * Folded stacks, one "process;outer;inner VALUE" line for each distinct stack: the input of
 * flamegraph.pl, inferno and speedscope. flamegraph.pl splits a line at its last blank, so names
 * may contain blanks, but neither ';' nor line ends.
 *
 * Stacks are the nodes of a tree (calls/stacks.h); memory grows with distinct stacks.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/pair_map.h"
#include "base/printable.h"
#include "base/string_set.h"
#include "calls/stacks.h"
#include "exporters/exporter.h"

#define AHEAD 16 /* nodes */

struct folded {
	const struct kx_export *x;
	bool count, by_thread;
	struct kx_stacks stacks; /* values: ticks or calls */
	uint32_t *path;   /* nodes of the line written last, outermost first */
	size_t *ends;     /* where each one's name ends in line */
	uint32_t *depths; /* of all nodes while lines are written: frames above it */
	size_t path_room;
	char *line;
	size_t line_room;
	struct kx_string_set ambiguous; /* symbols that functions of several modules have */
};

/* The walk */

static int on_thread(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct folded *f = ctx;
	char text[128];
	uint32_t node;
	int r;

	(void)tsc;
	if (*t->process || *t->name)
		r = kx_stacks_named(&f->stacks, KX_STACKS_ROOT, *t->process ? t->process : t->name, &node);
	else if (snprintf(text, sizeof(text), "pid %d", t->pid) && t->pid)
		r = kx_stacks_named(&f->stacks, KX_STACKS_ROOT, text, &node);
	else
		r = kx_stacks_named(&f->stacks, KX_STACKS_ROOT, "unknown process", &node);
	if (!r && f->by_thread) {
		snprintf(text, sizeof(text), "%s%s%d", t->name, *t->name ? "-" : "tid ", t->tid);
		r = kx_stacks_named(&f->stacks, node, text, &node);
	}
	t->user = (void *)(uintptr_t)node;
	return r;
}

static inline int enter_node(struct folded *f, struct kx_call *call, uint32_t node)
{
	call->user = (void *)(uintptr_t)node;
	if (f->count)
		f->stacks.nodes[node].value++;
	return 0;
}

/* Not inline: rarely needed. */
static __attribute__((noinline)) int enter_other(struct folded *f, struct kx_call *call, uint32_t parent)
{
	uint32_t node;
	int r = kx_stacks_other_child(&f->stacks, parent, call->func, &node);

	return r ? r : enter_node(f, call, node);
}

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct folded *f = ctx;
	uint32_t parent = (uint32_t)(uintptr_t)(t->depth > 1 ? call[-1].user : t->user);
	uint32_t node = kx_stacks_last_child(&f->stacks, parent, call->func);

	return __builtin_expect(node != 0, 1) ? enter_node(f, call, node) : enter_other(f, call, parent);
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	struct folded *f = ctx;

	(void)t;
	(void)tsc;
	/* the time of a repaired call is not known: it counts as its caller's */
	if (how != KX_LEAVE_REPAIRED)
		f->stacks.nodes[(uintptr_t)call->user].value += call->took - call->children;
	return 0;
}

/* Names that need their module */

static int by_symbol_and_module(const void *a, const void *b)
{
	const struct kx_map_function *x = *(const struct kx_map_function *const *)a;
	const struct kx_map_function *y = *(const struct kx_map_function *const *)b;
	int order = strcmp(x->symbol, y->symbol);

	return order ? order : (x->module > y->module) - (x->module < y->module);
}

/* Fills f->ambiguous from @n functions, whose symbols are in @all. */
static int compare_modules(struct folded *f, const struct kx_map_function **functions, size_t n,
			   const struct kx_string_set *all)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (kx_string_set_times(all, functions[i]->symbol) > 1)
			functions[kept++] = functions[i];
	qsort(functions, kept, sizeof(*functions), by_symbol_and_module);
	for (size_t i = 1; i < kept; i++) {
		const struct kx_map_function *a = functions[i - 1], *b = functions[i];

		if (a->module != b->module && !strcmp(a->symbol, b->symbol) &&
		    kx_string_set_add(&f->ambiguous, a->symbol))
			return -ENOMEM;
	}
	return 0;
}

/* A viewer adds up stacks of the same text: functions of several modules must not have the same. */
static int find_ambiguous(struct folded *f)
{
	const struct kx_map *map = &f->x->names->map;
	const struct kx_map_function **functions = NULL;
	struct kx_string_set all = { 0 };
	struct kx_pair_map seen = { 0 };
	size_t n = 0, room = 0;
	uint32_t index;
	int r = 0;

	for (size_t i = 0; map->nmodules > 1 && i < f->stacks.nnodes && r >= 0; i++) {
		const struct kx_stack *node = &f->stacks.nodes[i];

		if (node->is_name || !node->func || node->func > map->nfunctions ||
		    !map->functions[node->func - 1].symbol)
			continue;
		r = kx_pair_index(&seen, 0, node->func, &index);
		if (r <= 0)
			continue;
		r = KX_ARRAY_RESERVE(functions, room, n);
		if (!r) {
			functions[n++] = &map->functions[node->func - 1];
			r = kx_string_set_add(&all, functions[n - 1]->symbol);
		}
	}
	if (r >= 0 && all.count < n)
		r = compare_modules(f, functions, n, &all);
	kx_string_set_free(&all);
	kx_pair_map_free(&seen);
	free(functions);
	return r < 0 ? r : 0;
}

/* The lines */

static int path_room(struct folded *f, size_t depth)
{
	size_t room = f->path_room ? f->path_room : 64;
	uint32_t *path;
	size_t *ends;

	if (depth < f->path_room)
		return 0;
	while (room <= depth)
		room *= 2;
	path = reallocarray(f->path, room, sizeof(*path));
	if (path)
		f->path = path;
	ends = reallocarray(f->ends, room, sizeof(*ends));
	if (ends)
		f->ends = ends;
	if (!path || !ends)
		return -ENOMEM;
	f->path_room = room;
	return 0;
}

/* What stands for a byte that is no valid UTF-8 character of several bytes. */
static char plain_char(char c)
{
	if ((unsigned char)c < ' ' || c == 0x7f)
		return ' ';
	return c == ';' ? ':' : (unsigned char)c > 0x7f ? '?' : c;
}

/*
 * Copies the first characters that stand for themselves in a line, as nearly all names have no others,
 * eight at a time; returns their number.
 */
static size_t copy_plain(char *to, const char *from, size_t len)
{
	const uint64_t ones = 0x0101010101010101u, high = 0x80 * ones;
	size_t i = 0;

	for (; len - i >= 8; i += 8) {
		uint64_t word, semicolons;

		memcpy(&word, from + i, 8);
		semicolons = word ^ ';' * ones;
		/* a byte below ' ', one of 0x7f or more, a ';' (carries only make other bytes suspect) */
		if ((((word - ' ' * ones) | word | (word + ones) | (semicolons - ones)) & high))
			break;
		memcpy(to + i, &word, 8);
	}
	for (; i < len && from[i] >= ' ' && from[i] < 0x7f && from[i] != ';'; i++)
		to[i] = from[i];
	return i;
}

static int add_text(struct folded *f, size_t depth, const char *name)
{
	size_t at = depth ? f->ends[depth - 1] : 0, len = strlen(name);
	char *p;

	if (at + len + 2 > f->line_room) {
		size_t room = (at + len + 2) * 2;

		p = realloc(f->line, room);
		if (!p)
			return -ENOMEM;
		f->line = p;
		f->line_room = room;
	}
	p = f->line + at;
	if (depth)
		*p++ = ';';
	for (size_t i = copy_plain(p, name, len), n; i < len; i += n) {
		n = kx_utf8_length((const unsigned char *)name + i, len - i);
		if (n)
			memcpy(p + i, name + i, n);
		else
			p[i] = plain_char(name[i]);
		n += !n;
	}
	f->ends[depth] = (size_t)(p - f->line) + len;
	return 0;
}

static int add_function(struct folded *f, size_t depth, uint32_t func)
{
	const struct kx_map *map = &f->x->names->map;
	char *text;
	int r;

	if (!f->ambiguous.count || !func || func > map->nfunctions ||
	    !map->functions[func - 1].symbol ||
	    !kx_string_set_times(&f->ambiguous, map->functions[func - 1].symbol))
		return add_text(f, depth, kx_trace_name(f->x->names, func));
	if (asprintf(&text, "%s [%s]", kx_trace_name(f->x->names, func),
		     kx_trace_module(f->x->names, func)) < 0)
		return -ENOMEM;
	r = add_text(f, depth, text);
	free(text);
	return r;
}

/* Keeps what the line has in common with the last one: most nodes follow their parent. */
static int build_line(struct folded *f, uint32_t index, size_t *valid)
{
	size_t depth = f->depths[index], common = depth + 1;
	uint32_t at = index;
	int r = path_room(f, depth);

	if (r)
		return r;
	while (common && (common > *valid || f->path[common - 1] != at)) {
		f->path[--common] = at;
		at = f->stacks.nodes[at].parent;
	}
	for (size_t i = common; i <= depth && !r; i++) {
		const struct kx_stack *node = &f->stacks.nodes[f->path[i]];

		r = node->is_name ? add_text(f, i, f->stacks.names[node->func])
				  : add_function(f, i, node->func);
	}
	*valid = r ? 0 : depth + 1;
	return r;
}

/* With hundreds of thousands of functions, most names are not in the CPU's cache. */
static void prefetch_name(const struct folded *f, size_t index, bool text)
{
	if (index < f->stacks.nnodes && !f->stacks.nodes[index].is_name)
		kx_trace_prefetch(f->x->names, f->stacks.nodes[index].func, text);
}

static int write_lines(struct folded *f)
{
	struct kx_text_out *o = f->x->out;
	size_t valid = 0;

	f->depths = calloc(f->stacks.nnodes + 1, sizeof(*f->depths));
	if (!f->depths)
		return -ENOMEM;
	for (size_t i = 0; i < f->stacks.nnodes && !o->error; i++) {
		uint32_t parent = f->stacks.nodes[i].parent;
		uint64_t value = f->stacks.nodes[i].value;
		int r;

		f->depths[i] = parent == KX_STACKS_ROOT ? 0 : f->depths[parent] + 1;
		prefetch_name(f, i + 2 * AHEAD, false);
		prefetch_name(f, i + AHEAD, true);

		if (!f->count)
			value = kx_trace_ns(value, f->x->tsc_hz);
		if (!value)
			continue;
		r = build_line(f, (uint32_t)i, &valid);
		if (r)
			return r;
		kx_text_bytes(o, f->line, f->ends[valid - 1]);
		kx_text_char(o, ' ');
		kx_text_u64(o, value);
		kx_text_char(o, '\n');
	}
	return 0;
}

static void free_folded(struct folded *f)
{
	kx_stacks_free(&f->stacks);
	kx_string_set_free(&f->ambiguous);
	free(f->path);
	free(f->ends);
	free(f->depths);
	free(f->line);
}

static int run(const struct kx_export *x, struct kx_err *err)
{
	struct folded f = {
		.x = x, .count = x->option(x, "folded-count"),
		.by_thread = x->option(x, "folded-by-thread"),
	};
	const struct kx_call_visitor visitor = {
		.thread = on_thread, .enter = on_enter, .leave = f.count ? NULL : on_leave, .ctx = &f,
	};
	int r = kx_stacks_init(&f.stacks);

	if (!r)
		r = kx_calls_walk(x->calls, KX_ORDER_THREAD, &visitor, x->progress,
				  x->progress_ctx, err);
	if (!r)
		r = find_ambiguous(&f);
	if (!r)
		r = write_lines(&f);
	if (r == -ENOMEM)
		kx_err_set(err, r, "out of memory for the stacks of the trace");
	free_folded(&f);
	return r;
}

static const struct kx_export_option options[] = {
	{ "folded-count", NULL, "values are calls, not nanoseconds of self time" },
	{ "folded-by-thread", NULL, "a frame for each thread below its process" },
	{ 0 },
};

const struct kx_exporter kx_exporter_folded = {
	.name = "folded",
	.suffix = ".folded",
	.summary = "stacks with their self time, for flamegraph.pl, inferno and speedscope",
	.options = options,
	.open_hint = "open it in https://www.speedscope.app, or draw it: flamegraph.pl FILE > flame.svg",
	.run = run,
};
