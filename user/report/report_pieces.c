// SPDX-License-Identifier: BSD-2-Clause
#include "report/report_pieces.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/usable_cpus.h"

#define PIECE	    4096 /* rows */
#define MAX_THREADS 8

struct worker {
	struct view view;
	struct kx_symbolizer names;
	struct kx_text_out out; /* in memory */
	size_t first, end;
	kx_print_rows print;
	const void *ctx;
	pthread_t thread;
	bool started;
};

static void *print_piece(void *ctx)
{
	struct worker *w = ctx;

	w->print(&w->view, w->first, w->end, w->ctx);
	kx_text_flush(&w->out);
	return NULL;
}

static size_t count_workers(size_t rows)
{
	return rows < 2 * PIECE ? 0 : kx_usable_cpus(MAX_THREADS) - 1;
}

static void begin_worker(struct worker *w, const struct view *v, kx_print_rows print,
			 const void *ctx)
{
	w->print = print;
	w->ctx = ctx;
	w->view = *v;
	w->view.out = &w->out;
	w->view.names = &w->names;
	kx_symbolizer_share(v->names, &w->names);
	kx_text_init_memory(&w->out);
}

static void start_piece(struct worker *w, size_t first, size_t end)
{
	w->first = first < end ? first : end;
	w->end = end - w->first < PIECE ? end : w->first + PIECE;
	w->started = w->first < w->end && !pthread_create(&w->thread, NULL, print_piece, w);
}

/* Adds the worker's piece to the output; prints it here if there was no thread for it. */
static void end_piece(struct worker *w, const struct view *v)
{
	if (!w->started) {
		if (w->first < w->end)
			w->print(v, w->first, w->end, w->ctx);
		return;
	}
	pthread_join(w->thread, NULL);
	if (w->out.error && !v->out->error)
		v->out->error = w->out.error;
	kx_text_bytes(v->out, w->out.memory, w->out.stored);
	w->out.stored = 0;
}

void kx_rows_print(const struct view *v, size_t first, size_t end, kx_print_rows print,
		   const void *ctx)
{
	size_t n = count_workers(end - first);
	struct worker *workers = n ? calloc(n, sizeof(*workers)) : NULL;

	if (!workers) {
		print(v, first, end, ctx);
		return;
	}
	for (size_t i = 0; i < n; i++)
		begin_worker(&workers[i], v, print, ctx);
	/* the first piece of each round is this thread's */
	for (size_t at = first; at < end && !v->out->error; at += (n + 1) * PIECE) {
		for (size_t i = 0; i < n; i++)
			start_piece(&workers[i], at + (i + 1) * PIECE, end);
		print(v, at, end - at < PIECE ? end : at + PIECE, ctx);
		for (size_t i = 0; i < n; i++)
			end_piece(&workers[i], v);
	}
	for (size_t i = 0; i < n; i++) {
		kx_symbolizer_unshare(&workers[i].names);
		free(workers[i].out.memory);
	}
	free(workers);
}
