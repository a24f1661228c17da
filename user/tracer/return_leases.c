// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/return_leases.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "tracer/tracer_internal.h"

#define REST_MS	     1000
#define MOST_REST_MS 60000
#define STEP_MS	     50
#define ALERT_STEPS  10 /* for how long the lease and the waiting must last */
#define GAP_STEPS    20 /* ends with the leases, or then: other tools' return probes in the thread set its timer, too */

/* What one look at threads has found. Those beyond the room get their turn later. */
struct look {
	struct kx_lease leases[KX_MAX_LEASED], waits[KX_MAX_LEASED];
	size_t nleases, nwaits;
};

struct kx_return_leases {
	struct kx_tracer *tracer;
	struct bpf_link *own, *all; /* iterators over the threads of the traced process, if it is one, and over all */
	int stop;		    /* eventfd(2) */
	pthread_t thread;
	struct look held, now;
	int rest_ms;
	uint32_t waiter; /* for whom the last gap was */
	struct kx_return_gaps gaps;
};

/* Whether it is to stop. */
static bool sleeps(const struct kx_return_leases *l, int ms)
{
	struct pollfd stop = { .fd = l->stop, .events = POLLIN };

	return poll(&stop, 1, ms) > 0;
}

static void add(struct look *look, const struct kx_lease *found)
{
	if (found->holds && look->nleases < KX_MAX_LEASED)
		look->leases[look->nleases++] = *found;
	if (found->waits && look->nwaits < KX_MAX_LEASED)
		look->waits[look->nwaits++] = *found;
}

static void look_at_threads(const struct bpf_link *iterator, struct look *out)
{
	struct kx_lease found[64];
	int fd = bpf_iter_create(bpf_link__fd(iterator));
	ssize_t n;

	out->nleases = out->nwaits = 0;
	while (fd >= 0 && (n = read(fd, found, sizeof(found))) > 0)
		for (size_t i = 0; i < (size_t)n / sizeof(found[0]); i++)
			add(out, &found[i]);
	if (fd >= 0)
		close(fd);
}

static bool has_lease(const struct look *look, uint32_t tid)
{
	for (size_t i = 0; i < look->nleases; i++)
		if (look->leases[i].tid == tid)
			return true;
	return false;
}

/* @waits: as it was seen before; then it has not gone on meanwhile. 0: whatever it did. */
static bool has_wait(const struct look *look, uint32_t tid, uint64_t waits)
{
	for (size_t i = 0; i < look->nwaits; i++)
		if (look->waits[i].tid == tid && (!waits || look->waits[i].waits == waits))
			return true;
	return false;
}

/* Whether it waits for the end of leases, as far as its place in the kernel shows: all waiters for any SRCU are there. */
static bool waits_for_leases(uint32_t tid)
{
	char path[32], place[64] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/wchan", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, place, sizeof(place) - 1) < 0)
		place[0] = 0;
	close(fd);
	return strstr(place, "synchronize_srcu");
}

static void keep_waiters(struct look *look)
{
	size_t n = 0;

	for (size_t i = 0; i < look->nwaits; i++)
		if (waits_for_leases(look->waits[i].tid))
			look->waits[n++] = look->waits[i];
	look->nwaits = n;
}

/* Of @held what @now has, too. */
static void keep_common(struct look *held, const struct look *now)
{
	size_t nleases = 0, nwaits = 0;

	for (size_t i = 0; i < held->nleases; i++)
		if (has_lease(now, held->leases[i].tid))
			held->leases[nleases++] = held->leases[i];
	for (size_t i = 0; i < held->nwaits; i++)
		if (has_wait(now, held->waits[i].tid, held->waits[i].waits))
			held->waits[nwaits++] = held->waits[i];
	held->nleases = nleases;
	held->nwaits = nwaits;
}

static int map_of(const struct kx_return_leases *l)
{
	return bpf_map__fd(l->tracer->skel->maps.kx_leased_threads);
}

static void set_states(const struct kx_return_leases *l, uint32_t state)
{
	for (size_t i = 0; i < l->held.nleases; i++)
		bpf_map_update_elem(map_of(l), &l->held.leases[i].tid, &state, BPF_ANY);
	__atomic_store_n(&l->tracer->skel->bss->kx_leased, (uint32_t)l->held.nleases, __ATOMIC_RELEASE);
}

static void clear_states(const struct kx_return_leases *l)
{
	uint32_t *leased = &l->tracer->skel->bss->kx_leased, tid;

	if (!*leased)
		return;
	__atomic_store_n(leased, 0, __ATOMIC_RELEASE);
	while (!bpf_map_get_next_key(map_of(l), NULL, &tid) && !bpf_map_delete_elem(map_of(l), &tid))
		;
}

/* Of the watched threads those that still are. */
static void keep_watched(struct kx_return_leases *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->held.nleases; i++) {
		uint32_t state = KX_LEASE_ENDED;

		if (!bpf_map_lookup_elem(map_of(l), &l->held.leases[i].tid, &state) && state == KX_LEASE_WATCHED)
			l->held.leases[n++] = l->held.leases[i];
	}
	l->held.nleases = n;
}

/* Whether the same calls hold leases, and the same tasks wait, all the time. They are in @l->held. */
static bool someone_is_stuck(struct kx_return_leases *l)
{
	look_at_threads(l->own, &l->held);
	if (!l->held.nleases)
		return false;
	if (l->own != l->all)
		look_at_threads(l->all, &l->held);
	keep_waiters(&l->held);
	if (!l->held.nleases || !l->held.nwaits)
		return false;
	set_states(l, KX_LEASE_WATCHED);
	for (int i = 0; i < ALERT_STEPS && l->held.nleases && l->held.nwaits; i++) {
		if (sleeps(l, STEP_MS))
			l->held.nleases = 0;
		look_at_threads(l->all, &l->now);
		keep_common(&l->held, &l->now);
	}
	keep_watched(l);
	return l->held.nleases && l->held.nwaits;
}

/* The calls of the threads in @l->held get no return probes until the leases have ended. */
static void make_gap(struct kx_return_leases *l)
{
	const double begin = kx_monotonic_seconds();
	size_t left = l->held.nleases;

	l->gaps.threads += (unsigned)left;
	set_states(l, KX_LEASE_GAP);
	for (int step = 0; step < GAP_STEPS && left && !sleeps(l, STEP_MS); step++) {
		size_t n = 0;

		look_at_threads(l->own, &l->now);
		for (size_t i = 0; i < left; i++)
			if (has_lease(&l->now, l->held.leases[i].tid))
				l->held.leases[n++] = l->held.leases[i];
			else
				bpf_map_delete_elem(map_of(l), &l->held.leases[i].tid);
		left = n;
	}
	l->gaps.ns += (uint64_t)((kx_monotonic_seconds() - begin) * 1e9);
}

static void *watch(void *ctx)
{
	struct kx_return_leases *l = ctx;

	while (!sleeps(l, l->rest_ms)) {
		bool again;

		if (!someone_is_stuck(l)) {
			clear_states(l);
			l->rest_ms = REST_MS;
			continue;
		}
		/* one that still waits does not wait for these threads */
		again = has_wait(&l->held, l->waiter, 0);
		l->rest_ms = !again ? REST_MS : l->rest_ms < MOST_REST_MS / 2 ? l->rest_ms * 2 : MOST_REST_MS;
		l->waiter = l->held.waits[0].tid;
		make_gap(l);
		clear_states(l);
	}
	return NULL;
}

static int open_iterators(struct kx_return_leases *l)
{
	const struct record_bpf *s = l->tracer->skel;
	union bpf_iter_link_info one = { .task.pid = s->rodata->kx_only_tgid };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &one, .link_info_len = sizeof(one));

	l->all = bpf_program__attach_iter(s->progs.kx_find_leases, NULL);
	if (!l->all)
		return -errno;
	if (s->rodata->kx_scope == KX_SCOPE_ONE)
		l->own = bpf_program__attach_iter(s->progs.kx_find_leases, &opts);
	if (!l->own)
		l->own = l->all;
	return 0;
}

static void free_leases(struct kx_return_leases *l)
{
	if (l->own != l->all)
		bpf_link__destroy(l->own);
	bpf_link__destroy(l->all);
	if (l->stop >= 0)
		close(l->stop);
	free(l);
}

static int start_thread(struct kx_return_leases *l)
{
	sigset_t all, before;
	int code;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	code = pthread_create(&l->thread, NULL, watch, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code;
}

struct kx_return_leases *kx_return_leases_start(struct kx_tracer *tracer)
{
	struct kx_return_leases *l;

	if (bpf_program__fd(tracer->skel->progs.kx_find_leases) < 0)
		return NULL;
	l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->tracer = tracer;
	l->rest_ms = REST_MS;
	l->stop = eventfd(0, EFD_CLOEXEC);
	if (l->stop >= 0 && !open_iterators(l) && !start_thread(l))
		return l;
	free_leases(l);
	return NULL;
}

void kx_return_leases_stop(struct kx_return_leases *l, struct kx_return_gaps *gaps)
{
	const uint64_t one = 1;

	*gaps = (struct kx_return_gaps){ 0 };
	if (!l)
		return;
	if (write(l->stop, &one, sizeof(one)) == sizeof(one))
		pthread_join(l->thread, NULL);
	*gaps = l->gaps;
	free_leases(l);
}
