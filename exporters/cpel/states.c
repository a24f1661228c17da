// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/cpel/states.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/temporary_file.h"

int kx_cpel_states_new(struct kx_cpel_states *s, size_t nthreads, struct kx_err *err)
{
	int fd = kx_temporary_file();

	*s = (struct kx_cpel_states){ .nthreads = nthreads };
	if (fd < 0)
		return kx_err_set(err, fd,
				  "cpel: no temporary file for the threads' states: %s; set "
				  "TMPDIR to a folder that can be written",
				  strerror(-fd));
	s->file = fdopen(fd, "w+");
	if (!s->file)
		close(fd);
	s->threads = calloc(nthreads + 1, sizeof(*s->threads));
	s->heap = calloc(nthreads + 1, sizeof(*s->heap));
	if (!s->file || !s->threads || !s->heap)
		return kx_err_set(err, -ENOMEM, "out of memory while exporting to CPEL");
	return 0;
}

void kx_cpel_states_free(struct kx_cpel_states *s)
{
	if (s->changes)
		munmap(s->changes, s->count * sizeof(*s->changes));
	if (s->file)
		fclose(s->file);
	free(s->threads);
	free(s->heap);
	*s = (struct kx_cpel_states){ 0 };
}

/* Storing */

/* A failed write is found in kx_cpel_states_place. */
static void store(struct kx_cpel_states *s, uint64_t tsc, enum kx_cpel_state state, bool ran,
		  char letter)
{
	struct kx_cpel_change change;

	/* Times of a damaged trace may go back. */
	if (tsc > s->newest)
		s->newest = tsc;
	memset(&change, 0, sizeof(change));
	change.tsc = s->newest;
	change.state = (uint16_t)state;
	change.ran = ran;
	change.letter = letter;
	fwrite(&change, sizeof(change), 1, s->file);
	s->count++;
}

void kx_cpel_states_begin(struct kx_cpel_states *s, uint32_t thread, uint64_t tsc)
{
	if (s->begun)
		return;
	s->threads[thread].first = s->count;
	s->begun = s->running = true;
	s->since = tsc;
	s->newest = 0;
}

/* It ran from s->since to @to; false if that is no time. */
static bool store_run(struct kx_cpel_states *s, uint64_t to)
{
	bool ran = s->running && to > s->since;

	if (ran)
		store(s, s->since, KX_CPEL_STATE_RUNS, false, 0);
	return ran;
}

void kx_cpel_states_off(struct kx_cpel_states *s, uint32_t thread,
			const struct kx_sched_interval *i)
{
	bool ran;

	kx_cpel_states_begin(s, thread, i->from);
	ran = store_run(s, i->from);
	if (i->from < i->wake) {
		store(s, i->from, KX_CPEL_STATE_OFF, ran, i->state);
		ran = false;
	}
	if (i->wake < i->to)
		store(s, i->wake, KX_CPEL_STATE_READY, ran, 0);
	s->running = !i->open;
	s->since = i->to;
}

void kx_cpel_states_end(struct kx_cpel_states *s, uint32_t thread, uint64_t tsc)
{
	if (!s->begun)
		return;
	if (store_run(s, tsc))
		store(s, tsc, KX_CPEL_STATE_GONE, true, 0);
	s->threads[thread].end = s->count;
	s->begun = false;
}

int kx_cpel_states_place(struct kx_cpel_states *s, struct kx_err *err)
{
	void *data = NULL;
	int error = 0;

	if (fflush(s->file) || ferror(s->file))
		error = errno ? errno : EIO;
	if (!error && s->count) {
		data = mmap(NULL, s->count * sizeof(*s->changes), PROT_READ, MAP_SHARED,
			    fileno(s->file), 0);
		error = data == MAP_FAILED ? errno : 0;
	}
	if (error)
		return kx_err_set(err, -error,
				  "cpel: no room for the threads' states in a temporary file: "
				  "%s; set TMPDIR to a folder with room",
				  strerror(error));
	s->changes = data;
	return 0;
}

/* Merging */

static bool is_before(const struct kx_cpel_states *s, uint32_t a, uint32_t b)
{
	uint64_t of_a = s->changes[s->threads[a].next].tsc,
		 of_b = s->changes[s->threads[b].next].tsc;

	return of_a != of_b ? of_a < of_b : a < b;
}

static void sift_down(struct kx_cpel_states *s, size_t at)
{
	for (size_t child = 2 * at + 1; child < s->nheap; child = 2 * at + 1) {
		uint32_t thread = s->heap[at];

		if (child + 1 < s->nheap && is_before(s, s->heap[child + 1], s->heap[child]))
			child++;
		if (is_before(s, thread, s->heap[child]))
			break;
		s->heap[at] = s->heap[child];
		s->heap[child] = thread;
		at = child;
	}
}

void kx_cpel_states_rewind(struct kx_cpel_states *s)
{
	s->nheap = 0;
	for (size_t i = 0; i < s->nthreads; i++) {
		s->threads[i].next = s->threads[i].first;
		if (s->threads[i].first < s->threads[i].end)
			s->heap[s->nheap++] = (uint32_t)i;
	}
	for (size_t i = s->nheap / 2; i; i--)
		sift_down(s, i - 1);
}

bool kx_cpel_states_next(struct kx_cpel_states *s, uint64_t until, uint32_t *thread,
			 struct kx_cpel_change *change)
{
	struct kx_cpel_thread_states *t;

	if (!s->nheap)
		return false;
	t = &s->threads[s->heap[0]];
	if (s->changes[t->next].tsc > until)
		return false;
	*thread = s->heap[0];
	*change = s->changes[t->next++];
	if (t->next == t->end)
		s->heap[0] = s->heap[--s->nheap];
	sift_down(s, 0);
	return true;
}
