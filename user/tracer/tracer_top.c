// SPDX-License-Identifier: BSD-2-Clause
/* The kernel side's counts and durations of kxray top, in mapped memory: see ../../bpf/top.bpf.h.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "top.skel.h"
#include "tracer/tracer_internal.h"

/* Both objects are compiled from the same source (bpf/top.bpf.c): the same maps, programs and
 * variables, in the same places. */
#define SAME_SIZE(type)                                                                 \
	_Static_assert(sizeof(struct record_bpf##type) == sizeof(struct top_bpf##type), \
		       "two objects differ")
#define SAME_PLACE(type, member)                                       \
	_Static_assert(offsetof(struct record_bpf##type, member) ==    \
			       offsetof(struct top_bpf##type, member), \
		       "two objects differ")
SAME_SIZE();
SAME_SIZE(__rodata);
SAME_SIZE(__bss);
SAME_PLACE(, maps.kx_top_stats);
SAME_PLACE(, progs.kx_session);
SAME_PLACE(, progs.kx_session_plain);
SAME_PLACE(, progs.kx_exit);
SAME_PLACE(, progs.kx_look_at_caller);
SAME_PLACE(, links.kx_migrate);
SAME_PLACE(__rodata, kx_top);
SAME_PLACE(__rodata, kx_only_tgid);
SAME_PLACE(__bss, kx_ready);
SAME_PLACE(__bss, kx_calls_move);

struct record_bpf *kx_tracer_top_open(void)
{
	return (struct record_bpf *)top_bpf__open();
}

static size_t stats_of(const struct kx_tracer *t)
{
	return (size_t)t->cpus.n * t->top;
}

/* Whole pages, as the kernel allocates it. */
static size_t mapped_size(const struct kx_tracer *t)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = stats_of(t) * sizeof(*t->stats);

	return (bytes + page - 1) / page * page;
}

int kx_tracer_top_size(struct kx_tracer *t, uint32_t nfunctions)
{
	if (!nfunctions)
		return 0;
	t->top = nfunctions + 1;
	if (stats_of(t) > UINT32_MAX / sizeof(*t->stats))
		return -E2BIG;
	t->skel->rodata->kx_top = t->top;
	return bpf_map__set_max_entries(t->skel->maps.kx_top_stats, (uint32_t)stats_of(t));
}

int kx_tracer_top_map(struct kx_tracer *t, struct kx_err *err)
{
	void *at;

	if (!t->top)
		return 0;
	at = mmap(NULL, mapped_size(t), PROT_READ | PROT_WRITE, MAP_SHARED,
		  bpf_map__fd(t->skel->maps.kx_top_stats), 0);
	if (at == MAP_FAILED)
		return kx_err_set(err, -errno, "the kernel side's statistics cannot be mapped: %s",
				  strerror(errno));
	t->stats = at;
	return 0;
}

void kx_tracer_top_lines(struct kx_tracer *t)
{
	for (unsigned cpu = 0; t->top && cpu < t->cpus.n && cpu < t->rings->ncpus; cpu++) {
		struct kx_ring_header *line =
			(struct kx_ring_header *)&t->stats[(size_t)cpu * t->top];
		const struct kx_ring_header *from = t->rings->items[cpu].header;

		if (from)
			line->current_at = from->current_at;
	}
}

void kx_tracer_top_unmap(struct kx_tracer *t)
{
	if (t->stats)
		munmap(t->stats, mapped_size(t));
	t->stats = NULL;
}

uint32_t kx_tracer_top_functions(const struct kx_tracer *t)
{
	return t->top ? t->top - 1 : 0;
}

/* Those of one CPU, added to @out. */
static void add(struct kx_call_stats *s, bool take_max, struct kx_call_stats *out)
{
	uint64_t max = __atomic_load_n(&s->max_ns, __ATOMIC_RELAXED);

	if (max && take_max)
		max = __atomic_exchange_n(&s->max_ns, 0, __ATOMIC_RELAXED);
	/* an end is not counted without its beginning: buckets before calls */
	for (unsigned i = 0; i < KX_CALL_BUCKETS; i++)
		out->buckets[i] += __atomic_load_n(&s->buckets[i], __ATOMIC_ACQUIRE);
	out->sum_ns += __atomic_load_n(&s->sum_ns, __ATOMIC_ACQUIRE);
	out->calls += __atomic_load_n(&s->calls, __ATOMIC_ACQUIRE);
	out->max_ns = max > out->max_ns ? max : out->max_ns;
}

void kx_tracer_call_stats(struct kx_tracer *t, uint32_t func, bool take_max,
			  struct kx_call_stats *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned cpu = 0; func < t->top && cpu < t->cpus.n; cpu++) {
		struct kx_call_stats *s = &t->stats[(size_t)cpu * t->top + func];

		/* most functions have never run on most CPUs */
		if (__atomic_load_n(&s->calls, __ATOMIC_RELAXED) ||
		    __atomic_load_n(&s->sum_ns, __ATOMIC_RELAXED))
			add(s, take_max, out);
	}
}

uint64_t kx_tracer_top_calls(const struct kx_tracer *t, uint32_t func)
{
	uint64_t sum = 0;

	for (unsigned cpu = 0; func < t->top && cpu < t->cpus.n; cpu++)
		sum += __atomic_load_n(&t->stats[(size_t)cpu * t->top + func].calls,
				       __ATOMIC_RELAXED);
	return sum;
}
