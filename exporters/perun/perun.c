// SPDX-License-Identifier: BSD-2-Clause
/*
 * Perun's profile (docs/profile.rst) as Perun 0.21.8 loads, shows, diffs and
 * postprocesses it. Perun has no schema: what its commands look up is written, also where
 * the document does not ask for it (machine.host, trace of every resource, a unit for
 * header.type). Amounts are nanoseconds: Perun's trace collector stores those whatever its
 * unit says.
 *
 * Default form: calls of one function from one stack in one thread are one resource type, with
 * parallel lists; all lists of a type have one length, since Perun cuts to the shortest
 * silently. The lists lie in the file type by type while calls come in order of time, so
 * the trace is walked twice: to count each type's calls, then to put them into a temporary
 * file where they belong. Memory grows with stacks and threads, not with calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exporters/exporter.h"
#include "base/array.h"
#include "base/pair_map.h"
#include "exporters/perun/head.h"

#define OUTERMOST 0x80000000u /* | thread index: in place of a parent node */
#define NONE UINT32_MAX
#define RESIDENT_ITEMS (1u << 18) /* of the temporary file; 10 MiB */

/* One call on disk. */
struct item {
	uint64_t amount, exclusive, timestamp, order;
	uint32_t migrations;
	uint16_t cpu;
	uint16_t repaired;
};

/* A resource type: one stack in one thread. */
struct node {
	uint32_t parent; /* node, or OUTERMOST | thread */
	uint32_t func;
	uint32_t thread;
	bool repaired;   /* has repaired calls */
	uint64_t calls;
	uint64_t start;  /* first item */
	uint64_t filled;
};

struct frame {
	uint64_t order;
	uint64_t migrations; /* of the thread when the call began */
	uint32_t node;
};

struct thread {
	struct frame *frames;
	size_t nframes, size;
	uint64_t migrations;
};

struct perun {
	const struct kx_export *x;
	bool exclusive, snapshots;
	struct thread *threads;
	struct kx_pair_map nodes_of, counters_of;
	struct node *nodes;
	size_t nnodes, nodes_size;
	uint64_t *counters; /* calls so far, by function */
	size_t ncounters, counters_size;
	struct item *items; /* the temporary file; NULL while counting */
	uint64_t nitems, touched;
	bool first;
	uint64_t first_tsc;
};

/* The node of @func below @parent, new with the first call; NONE without memory. */
static uint32_t node_of(struct perun *p, uint32_t parent, uint32_t func, uint32_t thread)
{
	uint32_t index;
	int r;

	if (KX_ARRAY_RESERVE(p->nodes, p->nodes_size, p->nnodes))
		return NONE;
	r = kx_pair_index(&p->nodes_of, parent, func, &index);
	if (r < 0 || index >= OUTERMOST)
		return NONE;
	if (r)
		p->nodes[p->nnodes++] = (struct node){ .parent = parent, .func = func,
						    .thread = thread };
	return index;
}

/* Number of this call among the calls of its function. */
static int next_order(struct perun *p, uint32_t func, uint64_t *order)
{
	uint32_t index;
	int r;

	if (KX_ARRAY_RESERVE(p->counters, p->counters_size, p->ncounters))
		return -ENOMEM;
	r = kx_pair_index(&p->counters_of, func, 0, &index);
	if (r < 0)
		return r;
	if (r)
		p->counters[p->ncounters++] = 0;
	*order = p->counters[index]++;
	return 0;
}

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct perun *p = ctx;
	struct thread *thread = &p->threads[t->index];
	struct frame *f;

	if (KX_ARRAY_RESERVE(thread->frames, thread->size, thread->nframes))
		return -ENOMEM;
	f = &thread->frames[thread->nframes];
	*f = (struct frame){ .migrations = thread->migrations, .node = NONE };
	if (!p->snapshots) {
		f->node = node_of(p, thread->nframes ? f[-1].node : OUTERMOST | t->index,
				  call->func, t->index);
		if (f->node == NONE)
			return -ENOMEM;
	}
	thread->nframes++;
	return next_order(p, call->func, &f->order);
}

static int on_cpu(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t cpu)
{
	struct perun *p = ctx;

	(void)tsc;
	p->threads[t->index].migrations += t->depth && cpu != t->cpu;
	return 0;
}

static struct item item_of(const struct perun *p, const struct thread *thread,
			   const struct frame *f, const struct kx_call *call, uint64_t tsc,
			   enum kx_leave how)
{
	uint64_t hz = p->x->tsc_hz, all = tsc - call->enter;
	uint64_t self = all > call->children ? all - call->children : 0;
	struct item item = {
		.exclusive = kx_trace_ns(self, hz),
		.timestamp = kx_trace_ns(call->enter - p->first_tsc, hz),
		.order = f->order,
		.migrations = (uint32_t)(thread->migrations - f->migrations),
		.cpu = call->cpu,
		.repaired = how == KX_LEAVE_REPAIRED,
	};

	item.amount = p->exclusive ? item.exclusive : kx_trace_ns(all, hz);
	return item;
}

/* Gives pages of the file back from time to time; they stay in the page cache or go to disk. */
static void touch(struct perun *p, uint64_t items)
{
	p->touched += items;
	if (p->touched < RESIDENT_ITEMS)
		return;
	p->touched = 0;
	madvise(p->items, p->nitems * sizeof(*p->items), MADV_DONTNEED);
}

static void key(struct kx_text_out *o, const char *name)
{
	kx_text_str(o, ",\"");
	kx_text_str(o, name);
	kx_text_str(o, "\":");
}

static void name_of(struct perun *p, uint32_t func)
{
	kx_text_json_string(p->x->out, kx_trace_name(p->x->names, func));
}

static void frame_of(struct perun *p, uint32_t func, bool first)
{
	kx_text_str(p->x->out, first ? "{\"func\":" : ",{\"func\":");
	name_of(p, func);
	kx_text_char(p->x->out, '}');
}

static void constants(struct perun *p, uint32_t func, const struct kx_call_thread *t)
{
	struct kx_text_out *o = p->x->out;

	kx_text_str(o, "{\"type\":\"mixed\",\"subtype\":\"time delta\",\"uid\":");
	name_of(p, func);
	kx_text_json_u64(o, "tid", (uint32_t)t->tid);
	kx_text_json_u64(o, "pid", (uint32_t)t->pid);
	key(o, "thread");
	kx_text_json_string(o, t->name);
	key(o, "location");
	kx_text_json_string(o, kx_trace_module(p->x->names, func));
	key(o, "trace");
	kx_text_char(o, '[');
}

/* Snapshots form: one object a call, as soon as it ends. */
static void put_resource(struct perun *p, const struct kx_call_thread *t,
			 const struct kx_call *call, const struct item *i)
{
	struct kx_text_out *o = p->x->out;

	kx_text_str(o, p->first ? "\n" : ",\n");
	p->first = false;
	constants(p, call->func, t);
	for (uint32_t d = 0; d + 1 < t->depth; d++)
		frame_of(p, t->stack[d].func, d == 0);
	kx_text_char(o, ']');
	kx_text_json_u64(o, "amount", i->amount);
	kx_text_json_u64(o, "exclusive", i->exclusive);
	kx_text_json_u64(o, "timestamp", i->timestamp);
	kx_text_json_u64(o, "call-order", i->order);
	if (i->repaired)
		kx_text_json_u64(o, "repaired", 1);
	kx_text_char(o, '}');
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	struct perun *p = ctx;
	struct thread *thread = &p->threads[t->index];
	struct frame *f = &thread->frames[--thread->nframes];
	struct item item;
	struct node *n;

	if (how == KX_LEAVE_OPEN)
		return 0;
	if (!p->snapshots && !p->items) {
		n = &p->nodes[f->node];
		n->calls++;
		n->repaired |= how == KX_LEAVE_REPAIRED;
		return 0;
	}
	item = item_of(p, thread, f, call, tsc, how);
	if (p->snapshots) {
		put_resource(p, t, call, &item);
	} else {
		n = &p->nodes[f->node];
		if (n->filled == n->calls)
			return -EBADMSG;
		p->items[n->start + n->filled++] = item;
		touch(p, 1);
	}
	return p->x->out->error;
}

static int walk(struct perun *p, struct kx_err *err)
{
	const struct kx_export *x = p->x;
	struct kx_call_visitor v = {
		.enter = on_enter, .leave = on_leave, .cpu = on_cpu, .ctx = p,
	};
	struct kx_err own = { 0 };
	int r;

	for (size_t i = 0; i < kx_calls_nthreads(x->calls); i++)
		p->threads[i].nframes = p->threads[i].migrations = 0;
	for (size_t i = 0; i < p->ncounters; i++)
		p->counters[i] = 0;
	/* In order of time, because call-order counts the calls of all threads. */
	r = kx_calls_walk(x->calls, KX_ORDER_TIME, &v, x->progress, x->progress_ctx, &own);
	if (!r)
		return 0;
	if (own.code) {
		*err = own;
		return r;
	}
	if (r == -EBADMSG)
		return kx_err_set(err, r, "perun: the trace changed while it was read");
	return kx_err_set(err, r, "perun: %s", strerror(-r));
}

/* An unlinked file of @size bytes in $TMPDIR, mapped. NULL and errno on failure. */
static void *map_temporary(uint64_t size)
{
	const char *dir = getenv("TMPDIR");
	char *path;
	void *data;
	int fd, error;

	if (!dir || !*dir)
		dir = "/tmp";
	if (asprintf(&path, "%s/kxray-XXXXXX", dir) < 0)
		return NULL;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	free(path);
	if (fd < 0)
		return NULL;
	/* With its blocks: a full disk shows here and not as a signal later. */
	error = posix_fallocate(fd, 0, (off_t)size);
	data = error ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!error && data == MAP_FAILED)
		error = errno;
	close(fd);
	errno = error;
	return error ? NULL : data;
}

static int place_items(struct perun *p, struct kx_err *err)
{
	for (size_t i = 0; i < p->nnodes; i++) {
		p->nodes[i].start = p->nitems;
		p->nitems += p->nodes[i].calls;
	}
	if (!p->nitems)
		return 0;
	p->items = map_temporary(p->nitems * sizeof(*p->items));
	if (!p->items)
		return kx_err_set(err, -errno, "perun: no temporary file of %llu bytes for the "
				  "calls: %s; set TMPDIR to a folder with room",
				  (unsigned long long)(p->nitems * sizeof(*p->items)),
				  strerror(errno));
	return 0;
}

#define LIST(p, n, name, field) do { \
		const struct item *items_ = &(p)->items[(n)->start]; \
		kx_text_str((p)->x->out, "\"" name "\":["); \
		for (uint64_t i_ = 0; i_ < (n)->calls; i_++) { \
			if (i_) \
				kx_text_char((p)->x->out, ','); \
			kx_text_u64((p)->x->out, items_[i_].field); \
			touch(p, 1); \
		} \
		kx_text_char((p)->x->out, ']'); \
	} while (0)

/* UID#N: Perun only asks that the name of a resource type is unique. */
static void type_name(struct perun *p, size_t index, bool first)
{
	const char *name = kx_trace_name(p->x->names, p->nodes[index].func);
	size_t size = strlen(name) + 24;
	char *text = malloc(size);

	kx_text_str(p->x->out, first ? "\n" : ",\n");
	if (!text) {
		p->x->out->error = -ENOMEM;
		return;
	}
	snprintf(text, size, "%s#%zu", name, index);
	kx_text_json_string(p->x->out, text);
	kx_text_char(p->x->out, ':');
	free(text);
}

static int put_lists(struct perun *p)
{
	struct kx_text_out *o = p->x->out;
	bool first = true;

	for (size_t i = 0; i < p->nnodes && !o->error; i++) {
		const struct node *n = &p->nodes[i];

		if (!n->calls)
			continue;
		type_name(p, i, first);
		first = false;
		kx_text_char(o, '{');
		LIST(p, n, "amount", amount);
		kx_text_char(o, ',');
		LIST(p, n, "exclusive", exclusive);
		kx_text_char(o, ',');
		LIST(p, n, "timestamp", timestamp);
		kx_text_char(o, ',');
		LIST(p, n, "call-order", order);
		kx_text_char(o, ',');
		LIST(p, n, "cpu", cpu);
		kx_text_char(o, ',');
		LIST(p, n, "migrations", migrations);
		if (n->repaired) {
			kx_text_char(o, ',');
			LIST(p, n, "repaired", repaired);
		}
		kx_text_char(o, '}');
	}
	return o->error;
}

static int put_types(struct perun *p, const char *workload)
{
	struct kx_text_out *o = p->x->out;
	uint32_t *stack = NULL;
	size_t size = 0;
	bool first = true;

	for (size_t i = 0; i < p->nnodes && !o->error; i++) {
		const struct node *n = &p->nodes[i];
		size_t depth = 0;

		if (!n->calls)
			continue;
		type_name(p, i, first);
		first = false;
		constants(p, n->func, kx_calls_thread(p->x->calls, n->thread));
		for (uint32_t up = n->parent; !(up & OUTERMOST); up = p->nodes[up].parent) {
			if (KX_ARRAY_RESERVE(stack, size, depth)) {
				o->error = -ENOMEM;
				break;
			}
			stack[depth++] = p->nodes[up].func;
		}
		for (size_t d = depth; d; d--)
			frame_of(p, stack[d - 1], d == depth);
		kx_text_char(o, ']');
		key(o, "workload");
		kx_text_json_string(o, workload);
		kx_text_char(o, '}');
	}
	free(stack);
	return o->error;
}

static int put_snapshots(struct perun *p, struct kx_err *err)
{
	int r;

	kx_text_str(p->x->out, "\"snapshots\":[{\"time\":\"0.0\",\"resources\":[");
	p->first = true;
	r = walk(p, err);
	kx_text_str(p->x->out, "\n],\"models\":[]}]}\n");
	return r;
}

static int put_aggregated(struct perun *p, const char *workload, struct kx_err *err)
{
	struct kx_text_out *o = p->x->out;
	int r = walk(p, err);

	if (!r)
		r = place_items(p, err);
	if (!r && p->items)
		r = walk(p, err);
	if (r)
		return r;
	kx_text_str(o, "\"resources\":{");
	r = put_lists(p);
	kx_text_str(o, "\n},\n\"resource_type_map\":{");
	if (!r)
		r = put_types(p, workload);
	kx_text_str(o, "\n},\n\"models\":[]}\n");
	return r == -ENOMEM ? kx_err_set(err, r, "perun: out of memory") : r;
}

static void say_what_is_missing(const struct kx_export *x)
{
	const struct kx_calls_totals *t = kx_calls_get_totals(x->calls);
	char text[160];

	if (!t->open || !x->notice)
		return;
	snprintf(text, sizeof(text), "perun: %llu calls that had not ended are left out",
		 (unsigned long long)t->open);
	x->notice(x, text);
}

static int run(const struct kx_export *x, struct kx_err *err)
{
	struct perun p = {
		.x = x,
		.exclusive = x->option(x, "perun-exclusive") != NULL,
		.snapshots = x->option(x, "perun-snapshots") != NULL,
		.first_tsc = kx_calls_get_totals(x->calls)->first_tsc,
	};
	const char *origin = x->option(x, "perun-origin");
	char *workload;
	int r;

	if (origin && (strlen(origin) != 40 ||
		       strspn(origin, "0123456789abcdef") != 40))
		return kx_err_set(err, -EINVAL, "--perun-origin %s: not a commit; it takes the 40 "
				  "hexadecimal digits of 'git rev-parse HEAD'", origin);
	workload = kx_perun_workload(x);
	p.threads = calloc(kx_calls_nthreads(x->calls) + 1, sizeof(*p.threads));
	r = workload && p.threads ? kx_perun_head(x, workload) : -ENOMEM;
	if (r == -ENOMEM)
		kx_err_set(err, r, "perun: out of memory");
	if (!r)
		r = p.snapshots ? put_snapshots(&p, err) : put_aggregated(&p, workload, err);
	if (!r)
		say_what_is_missing(x);

	if (p.items)
		munmap(p.items, p.nitems * sizeof(*p.items));
	for (size_t i = 0; p.threads && i < kx_calls_nthreads(x->calls); i++)
		free(p.threads[i].frames);
	free(p.threads);
	free(p.nodes);
	free(p.counters);
	kx_pair_map_free(&p.nodes_of);
	kx_pair_map_free(&p.counters_of);
	free(workload);
	return r;
}

static const struct kx_export_option options[] = {
	{ "perun-snapshots", NULL,
	  "one object a call, as Perun's document has it (ten times the size)" },
	{ "perun-exclusive", NULL, "amount is the time without callees (for flame graphs)" },
	{ "perun-origin", "COMMIT",
	  "the 40-digit commit that was traced; 'perun add' asks for it" },
	{ NULL, NULL, NULL },
};

const struct kx_exporter kx_exporter_perun = {
	.name = "perun",
	.suffix = ".perf",
	.summary = "profile of Perun (JSON, nanoseconds)",
	.options = options,
	.run = run,
};
