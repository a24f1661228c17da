// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/patch_area.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bisect.h"
#include "base/monotonic.h"
#include "tracer/patch_texts.h"
#include "tracer/patch_write.h"
#include "tracer/remote_stop.h"
#include "tracer/remote_threads.h"

/* Between two tries: a thread that was preempted in a window gets out of it meanwhile. */
#define RETRY_US 500
/* How long a thread that can make system calls is waited for, and between two looks. */
#define CALLS_MS 2000
#define CALLS_US 2000
/* Pages that are copied in one stop: each takes about 2 us. */
#define COPIED_PAGES 256

/* A stop in which so many sites were written ends the writing if it has taken so long already. */
#define CHUNK_SITES  256
#define STOP_SECONDS 0.0025

/* An installation: by site of all jobs, in order of address. */
struct install {
	struct kx_patch_job **jobs; /* in order of address */
	size_t njobs;
	struct kx_patch_text *texts; /* room for those of all */
	pid_t pid;
	int mem;
	size_t n;
	struct kx_remote_range *ranges; /* by job */
	uint8_t *window_length;
	bool *left_out;
	bool *inside;  /* a thread or a stack, in this stop */
	bool *settled; /* the site holds the jump, or is left out */
	struct kx_patch_change *to_jump, *to_old;
	struct kx_patch_change *now; /* some changes of this stop */
	size_t *of_now;		     /* their sites */
};

/* The site in whose window @pc is, behind its first byte; NULL. */
static void mark_inside(void *ctx, uint64_t pc)
{
	struct install *in = ctx;
	const size_t end = KX_COUNT_LEADING(in->n, i, in->to_jump[i].at < pc);

	if (end) {
		const uint64_t length = in->window_length[end - 1];

		if (pc - in->to_jump[end - 1].at <
		    (length > KX_PATCH_BYTES ? length : KX_PATCH_BYTES))
			in->inside[end - 1] = true;
	}
}

static size_t count_texts(struct kx_patch_job *const *jobs, size_t n)
{
	size_t all = 0;

	for (size_t k = 0; k < n; k++)
		all += jobs[k]->area->ntexts;
	return all;
}

/*
 * Marks the jobs whose modules are no longer there, while all threads are stopped. The mappings are
 * read once, for all of them, if that is none. @texts: room for those of all.
 */
static void mark_gone(struct kx_patch_job *const *jobs, size_t n, struct kx_patch_text *texts,
		      bool writable)
{
	size_t all = 0;

	for (size_t k = 0; k < n; k++)
		for (size_t i = 0; i < jobs[k]->area->ntexts && !jobs[k]->gone; i++)
			texts[all++] = jobs[k]->area->texts[i];
	if (!all ||
	    kx_patch_texts_are_there(kx_remote_view(jobs[0]->area->pid), texts, all, writable))
		return;
	for (size_t k = 0; k < n; k++) {
		const struct kx_patch_area *area = jobs[k]->area;

		if (area->ntexts && !kx_patch_texts_are_there(kx_remote_view(area->pid),
							      area->texts, area->ntexts, writable))
			jobs[k]->gone = true;
	}
}

static bool is_in_texts(const struct kx_patch_area *area, uint64_t at)
{
	for (size_t i = 0; i < area->ntexts; i++)
		if (at >= area->texts[i].from && at + KX_PATCH_BYTES <= area->texts[i].to)
			return true;
	return !area->ntexts;
}

/* To be called in each stop: nothing is written any more where another module may be. */
static void settle_gone(struct install *in)
{
	size_t n = 0;

	mark_gone(in->jobs, in->njobs, in->texts, true);
	for (size_t k = 0; k < in->njobs; n += in->jobs[k++]->nsites)
		for (size_t i = 0; i < in->jobs[k]->nsites && in->jobs[k]->gone; i++)
			in->settled[n + i] = in->left_out[n + i] = true;
}

static void write_chunk(struct install *in, size_t n)
{
	kx_patch_write(in->mem, in->now, n);
	for (size_t k = 0; k < n; k++) {
		const size_t i = in->of_now[k];

		in->settled[i] = true;
		if (in->now[k].result != KX_PATCH_WRITTEN && in->now[k].result != KX_PATCH_ALREADY)
			in->left_out[i] = true;
	}
}

/* Writes what can be written in a stop that has begun at @since; returns how many sites still wait.
 */
static size_t write_sites(struct install *in, double since)
{
	size_t n = 0, waiting = 0;
	bool in_time = true;

	for (size_t i = 0; i < in->n; i++) {
		if (in->settled[i])
			continue;
		if (!in_time || (!in->left_out[i] && in->inside[i])) {
			waiting++;
			continue;
		}
		in->of_now[n] = i;
		in->now[n++] = in->left_out[i] ? in->to_old[i] : in->to_jump[i];
		if (n == CHUNK_SITES) {
			write_chunk(in, n);
			n = 0;
			in_time = kx_monotonic_seconds() - since < STOP_SECONDS;
		}
	}
	write_chunk(in, n);
	return waiting;
}

static int stop_and_write(struct install *in, size_t *waiting, struct kx_patch_times *times,
			  struct kx_err *err)
{
	struct kx_remote_threads threads;
	int code = kx_remote_threads_stop(in->pid, KX_REMOTE_STOP_MS, &threads, err);

	if (code)
		return code;
	settle_gone(in);
	memset(in->inside, 0, in->n);
	code = kx_remote_threads_scan(&threads, in->pid, in->mem, in->ranges, in->njobs,
				      mark_inside, in, err);
	if (!code)
		*waiting = write_sites(in, threads.since);
	kx_remote_threads_resume(&threads, &times->stopped_ms);
	times->tries++;
	return code;
}

/* The first change behind so many pages as are copied in one stop. */
static size_t end_of_stop(const struct install *in, size_t first)
{
	size_t pages = 1, i = first;

	while (++i < in->n) {
		pages += in->to_jump[i].at / KX_PATCH_PAGE != in->to_jump[i - 1].at / KX_PATCH_PAGE;
		if (pages > COPIED_PAGES)
			break;
	}
	return i;
}

static int stop_and_copy(struct install *in, size_t first, size_t end, struct kx_patch_times *times,
			 struct kx_err *err)
{
	struct kx_remote_threads threads;
	int code = kx_remote_threads_stop(in->pid, KX_REMOTE_STOP_MS, &threads, err);

	if (code)
		return code;
	settle_gone(in);
	for (size_t k = 0, n = 0; k < in->njobs; n += in->jobs[k++]->nsites) {
		const size_t from = n > first ? n : first, after = n + in->jobs[k]->nsites;
		const size_t to = after < end ? after : end;

		if (from < to && !in->jobs[k]->gone)
			kx_patch_copy_pages(in->mem, in->to_jump + from, to - from);
	}
	kx_remote_threads_resume(&threads, &times->stopped_ms);
	return 0;
}

/* Before the stops in which much is written. A few pages are copied there. */
static int copy_pages(struct install *in, struct kx_patch_times *times, struct kx_err *err)
{
	int code = 0;

	if (!count_texts(in->jobs, in->njobs)) {
		kx_patch_copy_pages(in->mem, in->to_jump, in->n);
		return 0;
	}
	for (size_t i = 0, end = 0; i < in->n && !code; i = end) {
		end = end_of_stop(in, i);
		if (!i && end == in->n && in->n < COPIED_PAGES)
			break;
		code = stop_and_copy(in, i, end, times, err);
	}
	return code;
}

static int install(struct install *in, struct kx_patch_times *times, struct kx_err *err)
{
	size_t waiting = in->n;
	int code = copy_pages(in, times, err);

	for (unsigned tries = 0; waiting && !code && tries < KX_PATCH_TRIES; tries++) {
		const size_t before = waiting;

		if (times->tries)
			kx_remote_pause(RETRY_US);
		code = stop_and_write(in, &waiting, times, err);
		if (waiting < before)
			tries = 0;
	}
	for (size_t i = 0; !code && i < in->n; i++)
		in->left_out[i] |= !in->settled[i];
	return code;
}

static int by_address(const void *a, const void *b)
{
	const struct kx_patch_job *const *x = a, *const *y = b;
	const uint64_t ax = (*x)->area->table->sites[0].at, ay = (*y)->area->table->sites[0].at;

	return ax < ay ? -1 : ax > ay;
}

/* The tables are memory of the target, too: they are copied. */
static void copy_sites(struct install *in)
{
	size_t n = 0;

	for (size_t k = 0; k < in->njobs; k++) {
		const struct kx_patch_job *job = in->jobs[k];

		for (size_t i = 0; i < job->nsites; i++, n++) {
			const struct kx_patch_site site = job->area->table->sites[i];

			in->to_jump[n].at = in->to_old[n].at = site.at;
			memcpy(in->to_jump[n].from, site.old, KX_PATCH_BYTES);
			memcpy(in->to_jump[n].to, site.jump, KX_PATCH_BYTES);
			memcpy(in->to_old[n].from, site.jump, KX_PATCH_BYTES);
			memcpy(in->to_old[n].to, site.old, KX_PATCH_BYTES);
			in->window_length[n] = job->window_length[i];
			in->left_out[n] = job->left_out[i] || !is_in_texts(job->area, site.at);
		}
		in->ranges[k] = (struct kx_remote_range){ in->to_jump[n - job->nsites].at,
							  in->to_jump[n - 1].at + UINT8_MAX };
	}
}

/* Those with sites that are still there, in order of address. */
static void copy_jobs(struct install *in, struct kx_patch_job *jobs, size_t njobs)
{
	for (size_t k = 0; k < njobs; k++)
		if (jobs[k].nsites && !jobs[k].gone) {
			in->jobs[in->njobs++] = &jobs[k];
			in->n += jobs[k].nsites;
			in->pid = jobs[k].area->pid;
			in->mem = jobs[k].area->mem;
		}
	qsort(in->jobs, in->njobs, sizeof(*in->jobs), by_address);
}

static bool allocate(struct install *in)
{
	in->texts = calloc(count_texts(in->jobs, in->njobs) + 1, sizeof(*in->texts));
	in->ranges = calloc(in->njobs + 1, sizeof(*in->ranges));
	in->window_length = calloc(in->n + 1, sizeof(*in->window_length));
	in->left_out = calloc(in->n + 1, sizeof(*in->left_out));
	in->inside = calloc(in->n + 1, sizeof(*in->inside));
	in->settled = calloc(in->n + 1, sizeof(*in->settled));
	in->to_jump = calloc(in->n + 1, sizeof(*in->to_jump));
	in->to_old = calloc(in->n + 1, sizeof(*in->to_old));
	in->now = calloc(CHUNK_SITES, sizeof(*in->now));
	in->of_now = calloc(CHUNK_SITES, sizeof(*in->of_now));
	return in->texts && in->ranges && in->window_length && in->left_out && in->inside &&
	       in->settled && in->to_jump && in->to_old && in->now && in->of_now;
}

static void free_install(struct install *in)
{
	free(in->jobs);
	free(in->texts);
	free(in->ranges);
	free(in->window_length);
	free(in->left_out);
	free(in->inside);
	free(in->settled);
	free(in->to_jump);
	free(in->to_old);
	free(in->now);
	free(in->of_now);
}

int kx_patch_install(struct kx_patch_job *jobs, size_t njobs, struct kx_patch_times *times,
		     struct kx_err *err)
{
	struct install in = { .jobs = calloc(njobs + 1, sizeof(*in.jobs)) };
	size_t n = 0;
	int code = 0;

	*times = (struct kx_patch_times){ 0 };
	if (in.jobs)
		copy_jobs(&in, jobs, njobs);
	if (!in.jobs || !allocate(&in)) {
		code = kx_err_set(err, -ENOMEM, "out of memory");
	} else if (in.n) {
		copy_sites(&in);
		code = install(&in, times, err);
		for (size_t k = 0; k < in.njobs; n += in.jobs[k++]->nsites)
			memcpy(in.jobs[k]->left_out, in.left_out + n, in.jobs[k]->nsites);
	}
	free_install(&in);
	return code;
}

static int open_texts(const struct kx_patch_area *area, struct kx_remote_threads *threads,
		      struct kx_err *err)
{
	struct kx_remote_call calls[KX_MAX_REMOTE_CALLS];
	int code = 0;

	for (size_t i = 0; i < area->ntexts && !code;) {
		size_t n = 0;

		for (; i < area->ntexts && n < KX_MAX_REMOTE_CALLS; i++)
			calls[n++] = (struct kx_remote_call){
				.number = SYS_mprotect,
				.args = { (long)area->texts[i].from,
					  (long)(area->texts[i].to - area->texts[i].from),
					  PROT_READ | PROT_WRITE | PROT_EXEC }
			};
		code = kx_remote_threads_call(threads, calls, n, err);
		for (size_t k = 0; k < n && !code; k++)
			if (calls[k].result)
				code = kx_err_set(err, -EOPNOTSUPP,
						  "the process may not make its code writable: %s",
						  strerror((int)-calls[k].result));
	}
	return code;
}

/* Jobs whose texts are still to be made writable. */
struct opening {
	struct kx_patch_job **jobs;
	size_t n;
	struct kx_patch_text *texts; /* room for those of all */
};

/* In one stop: looks and changes. A job of which only a part could be made writable counts as gone
 * in the next one. */
static int stop_and_open(struct opening *o, double *stopped_ms, struct kx_err *err)
{
	const pid_t pid = o->jobs[0]->area->pid;
	struct kx_remote_threads threads;
	size_t done = 0;
	int code = kx_remote_threads_stop(pid, KX_REMOTE_STOP_MS, &threads, err);

	if (code)
		return code;
	mark_gone(o->jobs, o->n, o->texts, false);
	while (done < o->n && !code) {
		if (!o->jobs[done]->gone)
			code = open_texts(o->jobs[done]->area, &threads, err);
		done += !code;
		if (kx_monotonic_seconds() - threads.since >= STOP_SECONDS)
			break;
	}
	kx_remote_threads_resume(&threads, stopped_ms);
	o->jobs += done;
	o->n -= done;
	return code;
}

static int open_all(struct opening *o, double *stopped_ms, struct kx_err *err)
{
	double until = kx_monotonic_seconds() + CALLS_MS / 1e3;

	while (o->n) {
		const size_t before = o->n;
		const int code = stop_and_open(o, stopped_ms, err);

		if (code && code != -EAGAIN)
			return code;
		if (o->n < before)
			until = kx_monotonic_seconds() + CALLS_MS / 1e3;
		else if (kx_monotonic_seconds() > until)
			return kx_remote_no_thread(o->jobs[0]->area->pid, CALLS_MS, err);
		if (o->n)
			kx_remote_pause(CALLS_US);
	}
	return 0;
}

int kx_patch_make_writable(struct kx_patch_job *jobs, size_t njobs, double *stopped_ms,
			   struct kx_err *err)
{
	struct kx_patch_job **all = calloc(njobs + 1, sizeof(*all));
	struct opening o = { .jobs = all };
	int code = -ENOMEM;

	for (size_t k = 0; all && k < njobs; k++)
		if (jobs[k].nsites && !jobs[k].gone)
			all[o.n++] = &jobs[k];
	if (all)
		o.texts = calloc(count_texts(all, o.n) + 1, sizeof(*o.texts));
	code = o.texts ? open_all(&o, stopped_ms, err) : kx_err_set(err, code, "out of memory");
	free(o.texts);
	free(all);
	return code;
}

int kx_patch_enable(const struct kx_patch_area *area, bool enabled)
{
	const uint32_t value = enabled;
	const uint64_t at = area->table->head + offsetof(struct kx_patch_head, enabled);

	if (area->head) {
		__atomic_store_n(&area->head->enabled, value, __ATOMIC_SEQ_CST);
		return 0;
	}
	return pwrite(area->mem, &value, sizeof(value), (off_t)at) == (ssize_t)sizeof(value)
		       ? 0
		       : -ESRCH;
}
