// SPDX-License-Identifier: BSD-2-Clause
#include "doctor/call_cost.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "collect/collector.h"
#include "doctor/doctor.h"
#include "trace/fdr_writer.h"
#include "collect/process_table.h"
#include "collect/tracer_input.h"
#include "tracer/tracer.h"

#define RING_BYTES (1u << 20)
/* After so much of its own work a program has used the first-level caches. */
#define COLD_SECONDS 5e-6
#define RUNS	   5
#define CALLS	   2000
/* Of one system call alone: runs short enough that most are not interrupted, even where others take the CPU away. */
#define SHORT_RUNS  50
#define SHORT_CALLS 200
#define LEAST_NS    50 /* a program that looks up and counts takes more, so less is a disturbed measurement */

/* ns a call. */
static double time_syscalls(int calls)
{
	double start = kx_thread_cpu_ns();

	for (int i = 0; i < calls; i++)
		syscall(SYS_getppid);
	return (kx_thread_cpu_ns() - start) / calls;
}

/* Takes everything out of the rings, as a recording does; ns a record. */
static int time_collector(struct kx_tracer *t, double *ns, struct kx_err *err)
{
	static const uint8_t traits[2];
	struct kx_fdr_options options = { .tsc_hz = kx_tracer_clock(t)->tsc_hz, .start_tsc = 1 };
	struct kx_process_table *processes = kx_process_table_new();
	struct kx_collector_options collect = {
		.input = kx_tracer_input(t), .traits = traits, .ntraits = 2,
		.processes = processes, .start_tsc = 1,
	};
	struct kx_collector_counts counts;
	struct kx_collector *collector = NULL;
	struct kx_fdr_writer *writer = NULL;
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC), code = 0;
	double start;

	if (fd < 0 || !processes)
		code = kx_err_set(err, fd < 0 ? -errno : -ENOMEM, "/dev/null cannot be opened");
	if (!code)
		code = kx_fdr_writer_new(fd, &options, &writer, err);
	collect.writer = writer;
	if (!code)
		code = kx_collector_new(&collect, &collector, err);
	start = kx_thread_cpu_ns();
	if (!code)
		code = kx_collector_finish(collector, err);
	if (!code)
		code = kx_fdr_finish(writer, 0, err);
	if (!code) {
		kx_collector_get_counts(collector, &counts);
		*ns = counts.events ? (kx_thread_cpu_ns() - start) / (double)counts.events : 0;
	}
	kx_collector_free(collector);
	kx_fdr_writer_free(writer);
	kx_process_table_free(processes);
	if (fd >= 0)
		close(fd);
	return code;
}

static int measure_syscalls(struct kx_tracer *t, struct kx_call_costs *out, struct kx_err *err)
{
	double plain = 1e18, traced = 1e18;
	int code;

	for (int run = 0; run < RUNS; run++) {
		double ns = time_syscalls(CALLS);

		if (ns < plain)
			plain = ns;
	}
	kx_tracer_syscalls(t)[SYS_getppid] = KX_SYSCALL_TRACED(1, 0);
	code = kx_sources_attach(t, KX_SOURCE_SYSCALLS, err);
	if (code)
		return code;
	out->event_ns = 1e18;
	for (int run = 0; run < RUNS && !code; run++) {
		double ns, event_ns = 0;

		kx_tracer_ready(t, true);
		ns = time_syscalls(CALLS);
		kx_tracer_ready(t, false);
		code = time_collector(t, &event_ns, err);
		if (ns < traced)
			traced = ns;
		if (event_ns < out->event_ns)
			out->event_ns = event_ns;
	}
	kx_sources_detach_all(t);
	out->syscall_ns = traced > plain ? traced - plain : 0;
	return code;
}

int kx_call_costs_prepare(enum kx_mechanism mechanism, struct kx_tracer **out, struct kx_err *err)
{
	pid_t self = getpid();
	struct kx_tracer_options options = { .mechanism = mechanism,
					     .ring_bytes = RING_BYTES,
					     .sources = { [KX_SOURCE_SYSCALLS] = true },
					     .pids = &self,
					     .npids = 1 };

	return kx_tracer_new(&options, out, err);
}

int kx_call_costs_measure_by(struct kx_tracer *t, bool entries_only, struct kx_call_costs *out, struct kx_err *err)
{
	static const struct {
		const char *key; /* see doctor_cost.c */
		enum kx_cost cost;
	} starts[] = { { "nop5", KX_COST_NOP5 }, { "push", KX_COST_EMULATED },
		       { "sub_rsp", KX_COST_STEPPED } };
	struct kx_doctor_cost costs[KX_DOCTOR_COSTS];
	int code;

	memset(out, 0, sizeof(*out));
	code = kx_doctor_costs(t, entries_only, costs, err);
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]) && !code; i++)
		for (int k = 0; k < KX_DOCTOR_COSTS; k++) {
			if (strcmp(costs[k].key, starts[i].key) != 0)
				continue;
			out->entry_ns[starts[i].cost] = costs[k].entry_ns - costs[k].plain_ns;
			if (entries_only)
				continue;
			out->cold_ns[starts[i].cost] = costs[k].cold_ns;
			out->return_ns[starts[i].cost] = costs[k].entry_return_ns - costs[k].plain_ns;
		}
	if (!code)
		code = measure_syscalls(t, out, err);
	kx_tracer_free(t);
	return code;
}

int kx_call_costs_measure(enum kx_mechanism mechanism, bool entries_only, struct kx_call_costs *out,
			  struct kx_err *err)
{
	struct kx_tracer *t = NULL;
	int code = kx_call_costs_prepare(mechanism, &t, err);

	return code ? code : kx_call_costs_measure_by(t, entries_only, out, err);
}

/* The fastest of several runs, ns a call. */
static double time_best(struct kx_tracer *t, bool traced)
{
	double best = 1e18;

	kx_tracer_ready(t, traced);
	for (int run = 0; run < SHORT_RUNS; run++) {
		double ns = time_syscalls(SHORT_CALLS);

		if (ns < best)
			best = ns;
	}
	kx_tracer_ready(t, false);
	return best;
}

int kx_syscall_costs_measure(enum kx_mechanism mechanism, struct kx_syscall_costs *out, struct kx_err *err)
{
	pid_t self = getpid();
	struct kx_tracer_options options = { .mechanism = mechanism,
					     .ring_bytes = RING_BYTES * 4,
					     .sources = { [KX_SOURCE_SYSCALLS] = true },
					     .sources_only = true,
					     .pids = &self,
					     .npids = 1,
					     .budget_functions = 1 };
	struct kx_syscall_costs measured = { 0 };
	struct kx_tracer *t;
	double plain;
	int code = kx_tracer_new(&options, &t, err);

	if (code)
		return code;
	plain = time_best(t, false);
	kx_tracer_syscalls(t)[SYS_getppid] = KX_SYSCALL_TRACED(1, 0);
	code = kx_sources_attach(t, KX_SOURCE_SYSCALLS, err);
	if (!code) {
		measured.recorded_ns = time_best(t, true) - plain;
		kx_tracer_set_level(t, 1, KX_BUDGET_NONE);
		measured.counted_ns = time_best(t, true) - plain;
	}
	kx_sources_detach_all(t);
	kx_tracer_free(t);
	if (code)
		return code;
	if (measured.recorded_ns < LEAST_NS || measured.counted_ns < LEAST_NS)
		return kx_err_set(err, -EIO, "other programs disturbed its measurement");
	*out = measured;
	return 0;
}

/* Which exits the calls take is not known: assume all of them equally often. */
static double mean_exit(const struct kx_call_costs *costs, const struct kx_plan *plan)
{
	double sum = 0;

	for (size_t i = 0; i < plan->nexits; i++)
		sum += costs->entry_ns[plan->exits[i].cost];
	return plan->nexits ? sum / (double)plan->nexits : 0;
}

double kx_call_cost(const struct kx_call_costs *costs, const struct kx_plan *plan)
{
	if (plan->entry.cost > KX_COST_STEPPED)
		return -1;
	switch (plan->exit_kind) {
	case KX_EXITS_RETURN:
		return costs->return_ns[plan->entry.cost] + 2 * costs->event_ns;
	case KX_EXITS_INSTRUCTION:
		return costs->entry_ns[plan->entry.cost] + mean_exit(costs, plan) +
		       (plan->nexits ? 2 : 1) * costs->event_ns;
	default:
		return costs->entry_ns[plan->entry.cost] + costs->event_ns;
	}
}

double kx_call_cost_cold(const struct kx_call_costs *costs, const struct kx_plan *plan, double pause)
{
	if (plan->entry.cost > KX_COST_STEPPED)
		return 0;
	return costs->cold_ns[plan->entry.cost] * (pause < COLD_SECONDS ? pause / COLD_SECONDS : 1);
}

double kx_call_cost_syscall(const struct kx_call_costs *costs)
{
	return costs->syscall_ns + 2 * costs->event_ns;
}
