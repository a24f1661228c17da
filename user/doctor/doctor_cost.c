// SPDX-License-Identifier: BSD-2-Clause
/* What recording a call costs here, for each way a function may start. */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "binary/modules.h"
#include "doctor/doctor.h"
#include "doctor/own_functions.h"

#define RUNS 12
#define CALLS 500
#define SLOW_CALLS 60
#define SLOW_NS 4000 /* a call that costs more gets SLOW_CALLS a run */
#define COLD_RUNS 5
#define COLD_CALLS 60
#define WARM_CALLS 20 /* the kernel optimizes a nop5 at its first hit */

KX_OWN_FUNCTION(kx_cost_nop5, "	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n	ret\n");
KX_OWN_FUNCTION(kx_cost_push, "	push %rbp\n	pop %rbp\n	ret\n");
KX_OWN_FUNCTION(kx_cost_endbr, "	endbr64\n	push %rbp\n	pop %rbp\n	ret\n");
KX_OWN_FUNCTION(kx_cost_endbr_at_push, "	endbr64\n	push %rbp\n	pop %rbp\n	ret\n");
KX_OWN_FUNCTION(kx_cost_sub, "	sub $8, %rsp\n	add $8, %rsp\n	ret\n");

/* As much code and data as a core's first-level caches hold. */
KX_OWN_FUNCTION(kx_cost_other_code, "	.fill 4096, 8, 0x841f0f /* nopl 0(%rax,%rax) of 8 bytes */\n	ret\n");
static volatile uint8_t other_data[48 << 10];

static const struct start {
	const char *key, *about;
	void (*call)(void);
	unsigned probe_offset;
	bool is_doctors; /* no call costs are reckoned with it: call_cost.c */
} starts[KX_DOCTOR_COSTS] = {
	{ "nop5", "5-byte nop", kx_cost_nop5, 0, false },
	{ "push", "push", kx_cost_push, 0, false },
	{ "endbr64_push_at_push", "endbr64; push, probed at the push", kx_cost_endbr_at_push, 4, true },
	{ "endbr64_push_at_endbr64", "endbr64; push, probed at the endbr64", kx_cost_endbr, 0, true },
	{ "sub_rsp", "sub $8, %rsp (single-stepped)", kx_cost_sub, 0, false },
};

static double run(void (*call)(void), int calls)
{
	double start = kx_thread_cpu_ns();

	for (int i = 0; i < calls; i++)
		call();
	return (kx_thread_cpu_ns() - start) / calls;
}

static void empty_rings(struct kx_rings *rings)
{
	for (unsigned cpu = 0; cpu < rings->ncpus; cpu++) {
		struct kx_ring *r = &rings->items[cpu];

		if (!r->header)
			continue;
		r->tail = kx_ring_head(r);
		kx_ring_release(r);
	}
}

/* ns a call of the kind @s; every call must leave @expected records. */
static int measure(struct kx_rings *rings, const struct start *s, unsigned expected, double *ns,
		   struct kx_err *err)
{
	int calls = CALLS;

	run(s->call, WARM_CALLS);
	if (run(s->call, WARM_CALLS) > SLOW_NS)
		calls = SLOW_CALLS;
	*ns = 1e18;
	for (int i = 0; i < RUNS; i++) {
		uint64_t before, got;
		double t;

		empty_rings(rings);
		before = kx_rings_heads(rings);
		t = run(s->call, calls);
		got = kx_rings_heads(rings) - before;
		if (got != (uint64_t)calls * expected)
			return kx_err_set(err, -EIO,
					  "%d calls of a function that starts with %s left %llu "
					  "records, not %llu",
					  calls, s->about, (unsigned long long)got,
					  (unsigned long long)calls * expected);
		if (t < *ns)
			*ns = t;
	}
	empty_rings(rings);
	return 0;
}

/* ns a call of @call with others' use of the caches before it; NULL: only of that use. */
static double run_cold(void (*call)(void))
{
	double start = kx_thread_cpu_ns();

	for (int i = 0; i < COLD_CALLS; i++) {
		for (size_t at = 0; at < sizeof(other_data); at += 64)
			other_data[at]++;
		kx_cost_other_code();
		if (call)
			call();
	}
	return (kx_thread_cpu_ns() - start) / COLD_CALLS;
}

/* The least of the runs: what is left of a difference of large numbers is not to be what disturbed one of them. */
static void measure_cold(struct kx_rings *rings, const struct start *s, struct kx_doctor_cost *out)
{
	double with = 1e18, without = 1e18;

	for (int i = 0; i < COLD_RUNS; i++) {
		double a = run_cold(s->call), b = run_cold(NULL);

		empty_rings(rings);
		with = a < with ? a : with;
		without = b < without ? b : without;
	}
	with -= without;
	out->cold_ns = with > out->entry_return_ns ? with - out->entry_return_ns : 0;
}

static void note_refusal(void *ctx, const struct kx_probe *probe, int err)
{
	(void)probe;
	*(int *)ctx = err;
}

static int attach(struct kx_tracer *t, enum kx_tracer_prog prog, const struct kx_module *self,
		  struct kx_links *links, struct kx_err *err)
{
	struct kx_probe probes[KX_DOCTOR_COSTS];
	int refused = 0, code;

	for (uint32_t i = 0; i < KX_DOCTOR_COSTS; i++) {
		uint64_t address = (uintptr_t)starts[i].call + starts[i].probe_offset;

		probes[i] = (struct kx_probe){ .offset = address - self->start + self->map_offset,
					       .cookie = (i + 1) | KX_COOKIE_IS_LEAF,
					       .index = i };
	}
	code = kx_uprobe_link(kx_tracer_prog_mechanism(t, prog), kx_tracer_prog_fd(t, prog),
			 self->open_path, getpid(), prog == KX_PROG_RETURN, probes,
			 KX_DOCTOR_COSTS, links, note_refusal, &refused, err);
	if (!code && refused)
		code = kx_err_set(err, refused, "the kernel refuses a probe on kxray's own code: %s",
				  strerror(-refused));
	return code;
}

/* The probes of the entries stay in @links. */
static int measure_entries(struct kx_tracer *t, bool entries_only, const struct kx_module *self,
			   struct kx_doctor_cost *costs, struct kx_links *links, struct kx_err *err)
{
	struct kx_rings *rings = kx_tracer_rings(t);
	int code = 0, i;

	for (i = 0; i < KX_DOCTOR_COSTS && !code; i++)
		if (!entries_only || !starts[i].is_doctors)
			code = measure(rings, &starts[i], 0, &costs[i].plain_ns, err);
	if (!code)
		code = attach(t, KX_PROG_ENTRY, self, links, err);
	for (i = 0; i < KX_DOCTOR_COSTS && !code; i++)
		if (!entries_only || !starts[i].is_doctors)
			code = measure(rings, &starts[i], 1, &costs[i].entry_ns, err);
	return code;
}

static int measure_returns(struct kx_tracer *t, const struct kx_module *self, struct kx_doctor_cost *costs,
			   struct kx_links *links, struct kx_err *err)
{
	struct kx_rings *rings = kx_tracer_rings(t);
	int code, i;

	/* the session program does both ends; with other mechanisms the entries stay */
	if (kx_tracer_prog_mechanism(t, KX_PROG_RETURN) == KX_MECHANISM_SESSION)
		kx_links_close(links);
	code = attach(t, KX_PROG_RETURN, self, links, err);
	for (i = 0; i < KX_DOCTOR_COSTS && !code; i++)
		code = measure(rings, &starts[i], 2, &costs[i].entry_return_ns, err);
	for (i = 0; i < KX_DOCTOR_COSTS && !code; i++)
		measure_cold(rings, &starts[i], &costs[i]);
	return code;
}

int kx_doctor_costs(struct kx_tracer *t, bool entries_only, struct kx_doctor_cost costs[KX_DOCTOR_COSTS],
		    struct kx_err *err)
{
	struct kx_links links = { 0 };
	struct kx_modules mods;
	cpu_set_t old, one;
	int cpu = sched_getcpu(), code;
	bool pinned;

	code = kx_modules_of_process(getpid(), &mods, err);
	if (code)
		return code;
	for (int i = 0; i < KX_DOCTOR_COSTS; i++)
		costs[i] = (struct kx_doctor_cost){ .key = starts[i].key,
						    .about = starts[i].about,
						    .probe_offset = starts[i].probe_offset };
	/* Machines with more than 1024 CPUs go without a pin. */
	pinned = cpu >= 0 && sched_getaffinity(0, sizeof(old), &old) == 0;
	if (pinned) {
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
	}
	kx_tracer_ready(t, true);
	code = measure_entries(t, entries_only, &mods.items[0], costs, &links, err);
	if (!code && !entries_only)
		code = measure_returns(t, &mods.items[0], costs, &links, err);
	kx_tracer_ready(t, false);
	kx_links_close_soon(&links);
	if (pinned)
		sched_setaffinity(0, sizeof(old), &old);
	kx_modules_free(&mods);
	return code;
}
