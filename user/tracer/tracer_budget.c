// SPDX-License-Identifier: BSD-2-Clause
/* The kernel side's counts and levels of a budget, in mapped memory: see ../../bpf/budget.bpf.h. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/wire.h"
#include "tracer/tracer_internal.h"

static size_t counts_of(const struct kx_tracer *t)
{
	return (size_t)t->cpus.n * t->budget;
}

int kx_tracer_budget_size(struct kx_tracer *t, uint32_t nfunctions)
{
	int code;

	if (!nfunctions)
		return 0;
	t->budget = nfunctions + 1;
	if (counts_of(t) > UINT32_MAX)
		return -E2BIG;
	t->skel->rodata->kx_budget = t->budget;
	code = bpf_map__set_max_entries(t->skel->maps.kx_budget_rates, t->budget);
	if (!code)
		code = bpf_map__set_max_entries(t->skel->maps.kx_budget_counts, (uint32_t)counts_of(t));
	return code;
}

/* Whole pages, as the kernel allocates it. */
static size_t mapped_size(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

static void *map_array(const struct bpf_map *map, size_t bytes)
{
	void *at = mmap(NULL, mapped_size(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	return at == MAP_FAILED ? NULL : at;
}

int kx_tracer_budget_map(struct kx_tracer *t, struct kx_err *err)
{
	if (!t->budget)
		return 0;
	t->rates = map_array(t->skel->maps.kx_budget_rates, t->budget * sizeof(*t->rates));
	t->counts = map_array(t->skel->maps.kx_budget_counts, counts_of(t) * sizeof(*t->counts));
	if (t->rates && t->counts)
		return 0;
	return kx_err_set(err, -errno, "the counts of the budget cannot be mapped: %s", strerror(errno));
}

void kx_tracer_budget_unmap(struct kx_tracer *t)
{
	if (t->rates)
		munmap(t->rates, mapped_size(t->budget * sizeof(*t->rates)));
	if (t->counts)
		munmap(t->counts, mapped_size(counts_of(t) * sizeof(*t->counts)));
	t->rates = NULL;
	t->counts = NULL;
}

void kx_tracer_set_cost(struct kx_tracer *t, uint32_t func, uint32_t recorded_ns, uint32_t counted_ns)
{
	if (func >= t->budget)
		return;
	t->rates[func].recorded_ns = recorded_ns;
	t->rates[func].counted_ns = counted_ns;
}

void kx_tracer_set_level(struct kx_tracer *t, uint32_t func, uint32_t level)
{
	if (func < t->budget)
		__atomic_store_n(&t->rates[func].level, level, __ATOMIC_RELAXED);
}

static uint64_t sum_of(const struct kx_tracer *t, uint32_t index)
{
	uint64_t sum = 0;

	if (index >= t->budget)
		return 0;
	for (unsigned cpu = 0; cpu < t->cpus.n; cpu++)
		sum += __atomic_load_n(&t->counts[(size_t)cpu * t->budget + index], __ATOMIC_RELAXED);
	return sum;
}

uint64_t kx_tracer_budget_calls(const struct kx_tracer *t, uint32_t func)
{
	return func ? sum_of(t, func) : 0;
}

uint64_t kx_tracer_budget_spent_ns(const struct kx_tracer *t)
{
	return sum_of(t, 0);
}
