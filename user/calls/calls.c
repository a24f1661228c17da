// SPDX-License-Identifier: BSD-2-Clause
#include "calls/calls.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "calls/calls_filter.h"
#include "calls/calls_internal.h"
#include "calls/calls_notes.h"
#include "calls/calls_scan.h"
#include "calls/calls_walk.h"

void kx_call_process_title(const struct kx_call_thread *t, char *out, size_t size)
{
	if (t->ns_pid)
		snprintf(out, size, "%s%s(pid %d in its namespace)", t->process,
			 *t->process ? " " : "", (int)t->ns_pid);
	else
		snprintf(out, size, "%s", t->process);
}

static bool is_one_of(int32_t id, const int32_t *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == id)
			return true;
	return !n;
}

static int init_threads(struct kx_calls *c, const struct kx_call_filter *filter)
{
	size_t n = kx_fdr_nthreads(c->f);

	c->threads = calloc(n + 1, sizeof(*c->threads));
	c->facts = calloc(n + 1, sizeof(*c->facts));
	if (!c->threads || !c->facts)
		return -ENOMEM;
	c->nthreads = n;
	for (size_t i = 0; i < n; i++) {
		struct kx_call_thread *t = &c->threads[i];

		t->index = (uint32_t)i;
		t->name = t->process = "";
		kx_fdr_thread_ids(c->f, i, &t->pid, &t->tid);
		c->facts[i].wanted = is_one_of(t->pid, filter->pids, filter->npids) &&
				     is_one_of(t->tid, filter->tids, filter->ntids);
	}
	return 0;
}

int kx_calls_new(struct kx_fdr_file *f, struct kx_symbolizer *names,
		 const struct kx_call_filter *filter, struct kx_calls **out, struct kx_err *err)
{
	static const struct kx_call_filter nothing;
	struct kx_calls *c = calloc(1, sizeof(*c));
	int r;

	if (!filter)
		filter = &nothing;
	if (!c)
		return kx_err_set(err, -ENOMEM, "out of memory for the calls of the trace");
	c->f = f;
	c->names = names;
	c->has_callers = names->has_map &&
			 json_is_true(json_object_get(names->map.session, "callers"));
	c->has_sched = names->has_map && json_is_true(json_object_get(names->map.session, "sched"));
	r = kx_address_space_init(&c->space, c->has_callers ? &names->map : NULL);
	if (!r && names->has_map && !filter->raw)
		r = kx_probe_costs_read(names->map.session, &c->costs);
	if (!r)
		r = init_threads(c, filter);
	if (r)
		kx_err_set(err, r, "out of memory for the threads of the trace");
	if (!r)
		r = kx_filter_init(&c->filter, filter, names, kx_fdr_get_info(f)->tsc_hz, err);
	if (!r)
		r = kx_calls_scan(c, err);
	if (r) {
		kx_calls_free(c);
		return r;
	}
	kx_filter_bounds(&c->filter, filter, c->totals.first_tsc, c->totals.last_tsc);
	*out = c;
	return 0;
}

void kx_calls_free(struct kx_calls *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->nthreads; i++)
		kx_call_thread_clear_names(&c->threads[i]);
	kx_filter_free(&c->filter);
	kx_probe_costs_free(&c->costs);
	kx_address_space_free(&c->space);
	free(c->threads);
	free(c->facts);
	free(c);
}

bool kx_calls_have_callers(const struct kx_calls *c)
{
	return c->has_callers;
}

bool kx_calls_have_sched(const struct kx_calls *c)
{
	return c->has_sched;
}

size_t kx_calls_nthreads(const struct kx_calls *c)
{
	return c->nthreads;
}

const struct kx_call_thread *kx_calls_thread(const struct kx_calls *c, size_t index)
{
	return &c->threads[index];
}

const struct kx_calls_totals *kx_calls_get_totals(const struct kx_calls *c)
{
	return &c->totals;
}

const char *kx_calls_unmatched(const struct kx_calls *c, size_t n)
{
	return kx_filter_unmatched(&c->filter, n);
}

const char *kx_calls_session(const struct kx_calls *c, size_t *size)
{
	*size = c->session_size;
	return (const char *)c->session;
}

int kx_calls_walk(struct kx_calls *c, enum kx_order order, const struct kx_call_visitor *v,
		  void (*progress)(void *ctx, uint64_t done, uint64_t all), void *progress_ctx,
		  struct kx_err *err)
{
	struct kx_walk w = {
		.c = c, .progress = progress, .progress_ctx = progress_ctx, .err = err,
	};
	uint64_t size = kx_fdr_get_info(c->f)->file_size;
	int r;

	c->visitor = v;
	c->bytes_read = 0;
	c->totals = (struct kx_calls_totals){
		.first_tsc = c->totals.first_tsc, .last_tsc = c->totals.last_tsc,
	};
	r = kx_walk_run(&w, order);
	c->visitor = NULL;
	if (!r && progress)
		progress(progress_ctx, size, size);
	return r;
}
