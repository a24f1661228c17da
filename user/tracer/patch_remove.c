// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "binary/modules.h"
#include "tracer/clock.h"
#include "tracer/debugger.h"
#include "tracer/frozen_group.h"
#include "tracer/patch_area.h"
#include "tracer/patch_find.h"
#include "tracer/patch_parts.h"
#include "tracer/patch_write.h"
#include "tracer/process_state.h"
#include "tracer/remote_calls.h"
#include "tracer/remote_stop.h"
#include "tracer/remote_stub_remove.h"
#include "tracer/remote_threads.h"
#include "tracer/target_rings.h"

#define CALL_MS	 1000
#define RETRY_US 1000
#define RATE_US	 10000

struct removal {
	pid_t pid;
	int mem;
	struct kx_patch_finds finds;
	struct kx_patch_change *changes; /* of all areas, in order of address */
	size_t nchanges;
	struct kx_remote_range *areas; /* code and far of each */
	bool *inside;		       /* by area */
	bool writable;		       /* texts stay so, as no thread can make system calls now */
	bool alone;		       /* other processes go on recording */
	struct kx_patch_removal *out;
	struct kx_err *err;
};

static int open_memory(pid_t pid, struct kx_err *err)
{
	char path[32];
	int fd, code;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)kx_remote_view(pid));
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	code = errno == ENOENT ? -ESRCH : errno == EACCES ? -EPERM : -errno;
	/* it knows more reasons; the code is that of the memory */
	if (!kx_process_check(pid, err))
		kx_err_set(err, code, "the memory of process %d cannot be opened (%s): a security policy protects it; run as root, or with the "
				      "capability CAP_SYS_PTRACE", (int)pid, strerror(-code));
	return code;
}

/* A head that is not there, or is empty (in a forked child), is left alone. */
static void disable(const struct removal *r)
{
	const uint32_t no = 0;

	for (size_t i = 0; i < r->finds.n; i++) {
		const uint64_t at = r->finds.items[i].table->head;
		const bool stays = r->alone && r->finds.items[i].head_is_shared;
		uint64_t magic;

		if (r->finds.items[i].has_head && !stays &&
		    pread(r->mem, &magic, sizeof(magic), (off_t)at) == sizeof(magic) &&
		    magic == KX_PATCH_MAGIC)
			(void)!pwrite(r->mem, &no, sizeof(no),
				      (off_t)(at + offsetof(struct kx_patch_head, enabled)));
	}
}

static int by_address(const void *a, const void *b)
{
	const struct kx_patch_change *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static int list_changes(struct removal *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->finds.n; i++)
		n += r->finds.items[i].table->nsites;
	r->changes = calloc(n + 1, sizeof(*r->changes));
	r->areas = calloc(2 * r->finds.n + 1, sizeof(*r->areas));
	r->inside = calloc(r->finds.n + 1, sizeof(*r->inside));
	if (!r->changes || !r->areas || !r->inside)
		return kx_err_set(r->err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < r->finds.n; i++) {
		const struct kx_patch_table *t = r->finds.items[i].table;

		for (uint64_t k = 0; k < t->nsites; k++) {
			struct kx_patch_change *c = &r->changes[r->nchanges++];

			c->at = t->sites[k].at;
			memcpy(c->from, t->sites[k].jump, KX_PATCH_BYTES);
			memcpy(c->to, t->sites[k].old, KX_PATCH_BYTES);
		}
		r->areas[2 * i] = (struct kx_remote_range){ t->code, t->code + t->code_size };
		if (r->finds.items[i].has_far)
			r->areas[2 * i + 1] =
				(struct kx_remote_range){ t->far, t->far + t->far_size };
	}
	qsort(r->changes, r->nchanges, sizeof(*r->changes), by_address);
	return 0;
}

static void mark_inside(void *ctx, uint64_t value)
{
	struct removal *r = ctx;

	for (size_t i = 0; i < 2 * r->finds.n; i++)
		if (value - r->areas[i].from < r->areas[i].to - r->areas[i].from)
			r->inside[i / 2] = true;
}

static void stays(struct removal *r, const char *why)
{
	if (!r->out->stays)
		snprintf(r->out->why, sizeof(r->out->why), "%.255s", why);
	r->out->stays = true;
}

/* Calls by a thread of the process, some at a time: while all are stopped, or not. */
struct batch {
	struct removal *r;
	struct kx_remote_threads *stopped; /* or NULL */
	struct kx_remote_call calls[KX_MAX_REMOTE_CALLS];
	size_t n;
	bool failed;
};

static void make_calls(struct batch *b)
{
	struct kx_err err = { 0 };
	char why[256];
	int code = 0;

	if (b->n && !b->failed)
		code = b->stopped ? kx_remote_threads_call(b->stopped, b->calls, b->n, &err)
				  : kx_remote_calls(b->r->pid, b->calls, b->n, CALL_MS, &err);
	b->failed |= code != 0;
	if (code == -EAGAIN)
		b->r->writable = true;
	else if (code && code != -ESRCH)
		stays(b->r, err.text);
	for (size_t i = 0; !b->failed && i < b->n; i++)
		if (b->calls[i].result < 0) {
			snprintf(why, sizeof(why), "%s in process %d: %s",
				 b->calls[i].number == SYS_munmap ? "munmap" : "mprotect",
				 (int)b->r->pid, strerror((int)-b->calls[i].result));
			stays(b->r, why);
		}
	b->n = 0;
}

static void add_call(struct batch *b, long number, uint64_t from, uint64_t size, long protection)
{
	if (b->n == KX_MAX_REMOTE_CALLS)
		make_calls(b);
	b->calls[b->n++] =
		(struct kx_remote_call){ .number = number,
					 .args = { (long)from, (long)size, protection } };
}

/* While all threads are stopped: what has taken the place of a module that was unloaded is not touched, and nothing takes it in between. */
static void protect_texts(struct removal *r, struct kx_remote_threads *threads, const struct kx_patch_parts *parts)
{
	struct batch b = { .r = r, .stopped = threads };

	r->writable = false;
	for (size_t i = 0; i < parts->n; i++) {
		const struct kx_patch_part *p = &parts->items[i];

		if (p->opened)
			add_call(&b, SYS_mprotect, p->from, p->to - p->from, PROT_READ | PROT_EXEC);
	}
	make_calls(&b);
}

/* Writes the old bytes, looks whether a thread is inside an area, and makes the texts read-only. */
static int stop_and_restore(struct removal *r)
{
	struct kx_patch_parts parts;
	struct kx_remote_threads threads;
	int code = kx_remote_threads_stop(r->pid, KX_REMOTE_STOP_MS, &threads, r->err);

	if (code)
		return code;
	code = kx_patch_parts_read(kx_remote_view(r->pid), &r->finds, &parts);
	if (code) {
		kx_err_set(r->err, code, "process %d: %s", (int)r->pid, strerror(-code));
	} else {
		/* sites of modules that were unloaded are forgotten, whatever file is there now */
		r->nchanges = kx_patch_parts_keep(&parts, r->changes, r->nchanges);
		kx_patch_write(r->mem, r->changes, r->nchanges);
	}
	memset(r->inside, 0, r->finds.n * sizeof(*r->inside));
	if (!code)
		code = kx_remote_threads_scan(&threads, r->pid, r->mem, r->areas, 2 * r->finds.n,
					      mark_inside, r, r->err);
	if (!code)
		protect_texts(r, &threads, &parts);
	kx_remote_threads_resume(&threads, &r->out->stopped_ms);
	kx_patch_parts_free(&parts);
	return code;
}

static void count(struct removal *r)
{
	for (size_t i = 0; i < r->nchanges; i++) {
		r->out->restored += r->changes[i].result == KX_PATCH_WRITTEN;
		r->out->foreign += r->changes[i].result == KX_PATCH_FOREIGN;
	}
}

static bool is_any_inside(const struct removal *r)
{
	for (size_t i = 0; i < r->finds.n; i++)
		if (r->inside[i])
			return true;
	return false;
}

/* Until no thread is inside, which takes as long as a call of the recorder, unless a signal's
 * handler interrupted it; and until one can make the texts read-only. */
static int restore(struct removal *r)
{
	const double until = kx_monotonic_seconds() + CALL_MS / 1e3;
	int code = 0;

	for (unsigned tries = 0; !code && (!tries || (is_any_inside(r) && tries < KX_PATCH_TRIES) ||
					   (r->writable && kx_monotonic_seconds() < until));
	     tries++) {
		if (tries)
			kx_remote_pause(RETRY_US);
		code = stop_and_restore(r);
		if (!tries && !code)
			count(r);
	}
	return code;
}

/* The code area last: by its table all is found again if this process dies in between. */
static void unmap(struct batch *b, const struct kx_patch_found *f, bool rings)
{
	if (f->has_head)
		add_call(b, SYS_munmap, f->table->head, KX_PATCH_PAGE, 0);
	if (f->has_rings && rings)
		add_call(b, SYS_munmap, f->table->rings, f->table->rings_size, 0);
	if (f->has_far)
		add_call(b, SYS_munmap, f->table->far, f->table->far_size, 0);
	add_call(b, SYS_munmap, f->table->code, f->table->code_size, 0);
}

static void release(struct removal *r)
{
	struct batch b = { .r = r };
	bool rings = !is_any_inside(r); /* areas share them */

	if (r->writable) {
		struct kx_err why;

		kx_remote_no_thread(r->pid, CALL_MS, &why);
		stays(r, why.text);
	}
	for (size_t i = 0; i < r->finds.n; i++) {
		if (r->inside[i]) {
			stays(r, "a thread is inside one of its functions");
			continue;
		}
		unmap(&b, &r->finds.items[i], rings);
		for (size_t k = i + 1; k < r->finds.n; k++)
			if (r->finds.items[k].table->rings == r->finds.items[i].table->rings)
				r->finds.items[k].has_rings = false;
	}
	for (size_t i = 0; i < r->finds.nrings; i++)
		add_call(&b, SYS_munmap, r->finds.rings[i].from,
			 r->finds.rings[i].to - r->finds.rings[i].from, 0);
	make_calls(&b);
}

/* Forgets all finds but the area at @code; its rings stay. */
static void keep_only(struct kx_patch_finds *f, uint64_t code)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		if (f->items[i].table->code == code)
			f->items[n++] = f->items[i];
		else
			free(f->items[i].table);
	f->n = n;
	for (size_t i = 0; i < n; i++)
		f->items[i].has_rings = false;
	f->nrings = 0;
}

/* @only: see kx_patch_remove_area; 0: all areas, and the rings. */
static int remove_all(struct removal *r, uint64_t only)
{
	char name[32];
	pid_t tracer, sharer;
	int code = kx_patch_find(kx_remote_view(r->pid), r->mem, &r->finds);

	if (code)
		return kx_err_set(r->err, code, "process %d: %s", (int)r->pid, strerror(-code));
	if (only)
		keep_only(&r->finds, only);
	r->out->areas = r->finds.n + r->finds.nrings;
	for (size_t i = 0; i < r->finds.n; i++)
		r->out->shared |= r->finds.items[i].has_head && r->finds.items[i].head_is_shared;
	if (!r->out->areas)
		return 0;
	disable(r);
	sharer = kx_process_state_compares() ? kx_process_state_sharer(kx_remote_view(r->pid)) : 0;
	if (sharer)
		return kx_err_set(r->err, -EBUSY, "process %d runs in the memory of process %d, as after vfork",
				  (int)sharer, (int)r->pid);
	tracer = kx_tracer_of(r->pid, name, sizeof(name));
	if (tracer)
		return kx_err_set(r->err, -EBUSY,
				  "process %d is traced by %s (process %d): end that first",
				  (int)r->pid, name, (int)tracer);
	code = list_changes(r);
	if (!code && r->finds.n)
		code = restore(r);
	if (!code)
		release(r);
	return code;
}

/* The instructions by which sleeping threads were borrowed, at last also for the removal itself. */
static void remove_stub(struct removal *r)
{
	struct kx_err err = { 0 };
	const int code = kx_remote_stub_remove(r->pid, r->mem, &err);

	if (code && code != -ESRCH)
		stays(r, err.text);
}

/* @alone, @only: see kx_patch_remove_alone and remove_all. */
static int remove_from(pid_t pid, bool alone, uint64_t only, struct kx_patch_removal *out, struct kx_err *err)
{
	struct removal r = { .pid = pid, .alone = alone, .out = out, .err = err };
	int code;

	*out = (struct kx_patch_removal){ 0 };
	r.mem = open_memory(pid, err);
	if (r.mem < 0)
		return r.mem;
	code = remove_all(&r, only);
	if (!code && !only)
		remove_stub(&r);
	out->frozen = out->stays && kx_frozen_group(kx_remote_view(pid), NULL, 0);
	kx_patch_finds_free(&r.finds);
	free(r.changes);
	free(r.areas);
	free(r.inside);
	close(r.mem);
	return code;
}

int kx_patch_remove(pid_t pid, struct kx_patch_removal *out, struct kx_err *err)
{
	return remove_from(pid, false, 0, out, err);
}

int kx_patch_remove_area(pid_t pid, uint64_t code, struct kx_patch_removal *out, struct kx_err *err)
{
	return remove_from(pid, false, code, out, err);
}

int kx_patch_remove_alone(pid_t pid, struct kx_patch_removal *out, struct kx_err *err)
{
	return remove_from(pid, true, 0, out, err);
}

/* TSC ticks of a second, nearly. */
static double tick_rate(void)
{
	uint64_t ns[2], ticks[2];

	kx_clock_pair(&ns[0], &ticks[0]);
	kx_remote_pause(RATE_US);
	kx_clock_pair(&ns[1], &ticks[1]);
	return (double)(ticks[1] - ticks[0]) * 1e9 / (double)(ns[1] - ns[0]);
}

static bool is_beating(int mem, uint64_t rings, double most)
{
	uint64_t beat, now;

	if (pread(mem, &beat, sizeof(beat),
		  (off_t)(rings + offsetof(struct kx_target_rings, heartbeat))) != sizeof(beat))
		return false;
	now = kx_tsc_read();
	return beat && beat <= now && (double)(now - beat) < most;
}

bool kx_patch_is_read(pid_t pid, double seconds)
{
	struct kx_patch_finds finds = { 0 };
	int mem = open_memory(pid, NULL);
	bool read = false;

	if (mem >= 0 && !kx_patch_find(kx_remote_view(pid), mem, &finds) && (finds.n || finds.nrings)) {
		const double most = seconds * tick_rate();

		for (size_t i = 0; i < finds.n; i++)
			read |= finds.items[i].has_rings &&
				is_beating(mem, finds.items[i].table->rings, most);
		for (size_t i = 0; i < finds.nrings; i++)
			read |= is_beating(mem, finds.rings[i].from, most);
	}
	kx_patch_finds_free(&finds);
	if (mem >= 0)
		close(mem);
	return read;
}
