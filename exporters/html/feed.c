// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/html/feed.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/usable_cpus.h"

#define PIECE  2048 /* slices */
#define PIECES 8    /* of which the walk fills one, and the thread empties another */

#define NEW_ROW                                                                                  \
	((1u << 30) - 1) /* in place of a row's number: start, name and end are thread, kind and \
			    depth of a new one */

struct piece {
	struct kx_html_slice items[PIECE]; /* busy: what a measured call took; else UINT64_MAX */
	size_t n;
};

struct kx_html_feed {
	struct kx_html_slices *slices;
	struct kx_html_functions *functions;
	struct piece *piece; /* that is filled */
	uint32_t nrows;
	int error; /* of what was added */
	bool has_thread;
	pthread_t thread;
	pthread_mutex_t lock; /* of these: */
	pthread_cond_t changed;
	size_t filled, emptied; /* pieces so far */
	bool ended;
	struct piece pieces[PIECES];
};

static int add_item(struct kx_html_feed *f, const struct kx_html_slice *item)
{
	uint32_t row;
	int r = 0;

	if (item->row == NEW_ROW)
		return kx_html_row_new(f->slices, (uint32_t)item->start,
				       (enum kx_html_row_kind)item->name, (uint32_t)item->end,
				       &row);
	if (item->busy != UINT64_MAX)
		r = kx_html_functions_add(f->functions, item->name, item->busy);
	return r ? r : kx_html_slice_add(f->slices, item);
}

static void add_piece(struct kx_html_feed *f, struct piece *p)
{
	for (size_t i = 0; i < p->n && !f->error; i++)
		f->error = add_item(f, &p->items[i]);
	p->n = 0;
}

/* The next piece, once there is one; NULL: the walk has ended. */
static struct piece *next_piece(struct kx_html_feed *f)
{
	struct piece *p = NULL;

	pthread_mutex_lock(&f->lock);
	while (f->emptied == f->filled && !f->ended)
		pthread_cond_wait(&f->changed, &f->lock);
	if (f->emptied != f->filled)
		p = &f->pieces[f->emptied % PIECES];
	pthread_mutex_unlock(&f->lock);
	return p;
}

static void *empty_pieces(void *ctx)
{
	struct kx_html_feed *f = ctx;
	struct piece *p;

	while ((p = next_piece(f))) {
		add_piece(f, p);
		pthread_mutex_lock(&f->lock);
		f->emptied++;
		pthread_cond_signal(&f->changed);
		pthread_mutex_unlock(&f->lock);
	}
	return NULL;
}

/* Hands over the piece that is filled, and waits for an empty one. */
static void pass_piece(struct kx_html_feed *f)
{
	if (!f->has_thread) {
		add_piece(f, f->piece);
		return;
	}
	pthread_mutex_lock(&f->lock);
	f->filled++;
	pthread_cond_signal(&f->changed);
	while (f->filled - f->emptied == PIECES)
		pthread_cond_wait(&f->changed, &f->lock);
	pthread_mutex_unlock(&f->lock);
	f->piece = &f->pieces[f->filled % PIECES];
}

struct kx_html_feed *kx_html_feed_new(struct kx_html_slices *slices,
				      struct kx_html_functions *functions)
{
	struct kx_html_feed *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->slices = slices;
	f->functions = functions;
	f->piece = f->pieces;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	f->has_thread = kx_usable_cpus(2) > 1 && !pthread_create(&f->thread, NULL, empty_pieces, f);
	return f;
}

static void put_item(struct kx_html_feed *f, const struct kx_html_slice *item)
{
	f->piece->items[f->piece->n++] = *item;
	if (f->piece->n == PIECE)
		pass_piece(f);
}

uint32_t kx_html_feed_row(struct kx_html_feed *f, uint32_t thread, enum kx_html_row_kind kind,
			  uint32_t depth)
{
	put_item(f, &(struct kx_html_slice){
			    .start = thread, .end = depth, .name = kind, .row = NEW_ROW });
	return f->nrows++;
}

void kx_html_feed_slice(struct kx_html_feed *f, const struct kx_html_slice *slice, uint64_t took)
{
	struct kx_html_slice item = *slice;

	item.busy = took;
	put_item(f, &item);
}

int kx_html_feed_end(struct kx_html_feed *f)
{
	int r;

	if (!f)
		return 0;
	pass_piece(f);
	if (f->has_thread) {
		pthread_mutex_lock(&f->lock);
		f->ended = true;
		pthread_cond_signal(&f->changed);
		pthread_mutex_unlock(&f->lock);
		pthread_join(f->thread, NULL);
	}
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->lock);
	r = f->error;
	free(f);
	return r;
}
