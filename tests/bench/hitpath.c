// SPDX-License-Identifier: BSD-2-Clause
/*
 * What each part of a function's probe program costs: for scripts/bench-hitpath.sh.
 *
 *   hitpath ROUNDS CALLS
 *
 * Each part is a BPF program with functions of its own to be called, one for each kind of entry. All are attached at
 * once, and short runs of CALLS calls alternate, so that whatever else happens on the machine affects all alike.
 * Prints a line for each part and kind: "PART KIND NS EMPTY RATIO", the medians of ROUNDS runs: ns a call, ns a call
 * with an empty program, and the former by the latter. First, a line "size PART INSTRUCTIONS BYTES" for kxray's programs,
 * as the verifier leaves them and as they are compiled.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "binary/modules.h"
#include "doctor/own_functions.h"
#include "hitpath.skel.h"
#include "tracer/tracer.h"
#include "tracer/uprobe_try.h"

#define SMALL_RING (64u << 10)
#define LARGE_RING (16u << 20) /* as by default: larger than the caches of one core */
#define WARM_CALLS 200

#define THREE(part)                                                                                \
	KX_OWN_FUNCTION(part##_nop5, "	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n	ret\n");           \
	KX_OWN_FUNCTION(part##_push, "	push %rbp\n	pop %rbp\n	ret\n");                   \
	KX_OWN_FUNCTION(part##_endbr, "	endbr64\n	push %rbp\n	pop %rbp\n	ret\n")
THREE(f_empty);
THREE(f_ids);
THREE(f_task);
THREE(f_cookie);
THREE(f_clock);
THREE(f_stack);
THREE(f_cas);
THREE(f_look);
THREE(f_put);
THREE(f_put_large);
THREE(f_put_hit);
THREE(f_kxray);
THREE(f_general);
THREE(f_asking);

enum { EMPTY, IDS, TASK, COOKIE, CLOCK, STACK, CAS, LOOK, PUT, PUT_LARGE, PUT_HIT, KXRAY, GENERAL, ASKING, PARTS };
enum { KINDS = 3 };
static const char *const kinds[KINDS] = { "nop5", "push", "endbr64+push" };
static const unsigned probe_offset[KINDS] = { 0, 0, 4 };

#define FUNCTIONS(part) { part##_nop5, part##_push, part##_endbr }
static const struct {
	const char *name;
	void (*call[KINDS])(void);
} parts[PARTS] = {
	[EMPTY] = { "empty", FUNCTIONS(f_empty) },
	[IDS] = { "ids", FUNCTIONS(f_ids) },
	[TASK] = { "task", FUNCTIONS(f_task) },
	[COOKIE] = { "cookie", FUNCTIONS(f_cookie) },
	[CLOCK] = { "clock", FUNCTIONS(f_clock) },
	[STACK] = { "stack", FUNCTIONS(f_stack) },
	[CAS] = { "slot", FUNCTIONS(f_cas) },
	[LOOK] = { "loads", FUNCTIONS(f_look) },
	[PUT] = { "record-64K", FUNCTIONS(f_put) },
	[PUT_LARGE] = { "record-16M", FUNCTIONS(f_put_large) },
	[PUT_HIT] = { "record-of-hit", FUNCTIONS(f_put_hit) },
	[KXRAY] = { "kxray", FUNCTIONS(f_kxray) },
	[GENERAL] = { "kxray-general", FUNCTIONS(f_general) },
	[ASKING] = { "kxray-asking", FUNCTIONS(f_asking) },
};

static struct hitpath_bpf *skel, *large; /* the same with a small and a large ring */
/*
 * kxray's own programs: the one for a recording without options, the one with them, and the first where the current
 * tasks are unknown, so that it asks helpers
 */
static struct kx_tracer *tracer, *general, *asking;
static struct kx_rings *rings[5];

static struct hitpath_bpf *load(const struct kx_cpus *cpus, enum kx_wire_clock clock, uint32_t bytes,
				struct kx_rings **out, struct kx_err *err)
{
	uint32_t slots = kx_ring_slots_for(bytes, cpus->n);
	struct hitpath_bpf *s = hitpath_bpf__open();
	struct bpf_program *prog;
	int fd = kx_ring_template(slots);
	__u64 args[] = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	if (!s || fd < 0)
		return NULL;
	bpf_object__for_each_program(prog, s->obj)
		if (bpf_program__type(prog) == BPF_PROG_TYPE_KPROBE)
			bpf_program__set_expected_attach_type(
				prog, (enum bpf_attach_type)kx_mechanism_attach_type(
					      KX_MECHANISM_SESSION));
	s->rodata->kx_clock_kind = clock;
	s->rodata->kx_ring_slots = slots;
	s->rodata->kx_wake_slots = slots / 8;
	bpf_map__set_inner_map_fd(s->maps.kx_rings, fd);
	if (hitpath_bpf__load(s)) {
		kx_err_set(err, -EINVAL, "the programs cannot be loaded: %s", strerror(errno));
		return NULL;
	}
	if (kx_rings_new(bpf_map__fd(s->maps.kx_rings), fd, cpus->online, cpus->n, slots, out, err))
		return NULL;
	for (args[0] = 0; args[0] < cpus->n; args[0]++)
		bpf_prog_test_run_opts(bpf_program__fd(s->progs.kx_find_current), &opts);
	return s;
}

static int program_of(int part)
{
	const struct bpf_program *const programs[] = {
		[EMPTY] = skel->progs.empty,   [IDS] = skel->progs.ids,
		[TASK] = skel->progs.task,     [COOKIE] = skel->progs.cookie,
		[CLOCK] = skel->progs.read_clock, [STACK] = skel->progs.known_stack,
		[CAS] = skel->progs.cas,       [LOOK] = skel->progs.look,
		[PUT] = skel->progs.put,       [PUT_LARGE] = large->progs.put,
		[PUT_HIT] = large->progs.put_hit,
	};

	if (part < KXRAY)
		return bpf_program__fd(programs[part]);
	return kx_tracer_prog_fd(part == KXRAY ? tracer : part == GENERAL ? general : asking,
				 KX_PROG_RETURN);
}

static int attach(int part, const struct kx_module *self, struct kx_links *links, struct kx_err *err)
{
	struct kx_probe probes[KINDS];

	for (int k = 0; k < KINDS; k++) {
		uint64_t address = (uintptr_t)parts[part].call[k] + probe_offset[k];

		probes[k] = (struct kx_probe){ .offset = address - self->start + self->map_offset,
					       .cookie = (uint64_t)(part * KINDS + k + 1),
					       .index = (uint32_t)k };
	}
	return kx_uprobe_link(KX_MECHANISM_SESSION, program_of(part), self->open_path, getpid(), true,
			      probes, KINDS, links, NULL, NULL, err);
}

static int prepare(struct kx_links *links, struct kx_err *err)
{
	const pid_t self = getpid();
	struct kx_tracer_options options = {
		.mechanism = KX_MECHANISM_SESSION,
		.ring_bytes = LARGE_RING,
		.pids = &self,
		.npids = 1,
		.probes_only = true,
	};
	struct kx_modules mods;
	int code = kx_tracer_new(&options, &tracer, err);

	if (!code)
		code = kx_tracer_new(&options, &asking, err);
	options.general = true;
	if (!code)
		code = kx_tracer_new(&options, &general, err);
	if (code)
		return code;
	rings[0] = kx_tracer_rings(tracer);
	rings[3] = kx_tracer_rings(general);
	rings[4] = kx_tracer_rings(asking);
	for (unsigned cpu = 0; cpu < rings[4]->ncpus; cpu++)
		if (rings[4]->items[cpu].header)
			rings[4]->items[cpu].header->current_at = 0;
	skel = load(kx_tracer_cpus(tracer), kx_tracer_clock(tracer)->kind, SMALL_RING, &rings[1], err);
	large = load(kx_tracer_cpus(tracer), kx_tracer_clock(tracer)->kind, LARGE_RING, &rings[2], err);
	if (!skel || !large)
		return -EINVAL;
	code = kx_modules_of_process(self, &mods, err);
	for (int part = 0; part < PARTS && !code; part++)
		code = attach(part, &mods.items[0], links, err);
	kx_tracer_ready(tracer, true);
	kx_tracer_ready(general, true);
	kx_tracer_ready(asking, true);
	return code;
}

static uint64_t empty_rings(void)
{
	uint64_t n = 0;

	for (unsigned r = 0; r < 5; r++)
		for (unsigned cpu = 0; cpu < rings[r]->ncpus; cpu++) {
			struct kx_ring *ring = &rings[r]->items[cpu];

			if (!ring->header)
				continue;
			n += kx_ring_head(ring) - ring->tail;
			ring->tail = kx_ring_head(ring);
			kx_ring_release(ring);
		}
	return n;
}

/* ns a call. Each program that writes records must have written two a call. */
static double run(int part, int kind, int calls)
{
	void (*call)(void) = parts[part].call[kind];
	uint64_t written;
	double start;

	empty_rings();
	start = kx_thread_cpu_ns();
	for (int i = 0; i < calls; i++)
		call();
	start = (kx_thread_cpu_ns() - start) / calls;
	written = empty_rings();
	if (written != (part >= PUT ? 2 * (uint64_t)calls : 0)) {
		fprintf(stderr, "hitpath: %d calls of %s left %llu records\n", calls, parts[part].name,
			(unsigned long long)written);
		exit(1);
	}
	return start;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), by_value);
	return values[n / 2];
}

static void measure(int kind, int rounds, int calls)
{
	double *ns[PARTS], *ratio[PARTS];

	for (int p = 0; p < PARTS; p++) {
		ns[p] = calloc((size_t)rounds, sizeof(double));
		ratio[p] = calloc((size_t)rounds, sizeof(double));
		run(p, kind, WARM_CALLS);
	}
	/* between two runs of the empty program each: their mean is what the ratio is to */
	for (int r = 0; r < rounds; r++) {
		double before = run(EMPTY, kind, calls), after;

		ns[EMPTY][r] = before;
		ratio[EMPTY][r] = 1;
		for (int p = EMPTY + 1; p < PARTS; p++, before = after) {
			ns[p][r] = run(p, kind, calls);
			after = run(EMPTY, kind, calls);
			ratio[p][r] = ns[p][r] * 2 / (before + after);
		}
	}
	for (int p = 0; p < PARTS; p++) {
		double empty = median(ns[EMPTY], rounds);

		printf("%s %s %.1f %.1f %.3f\n", parts[p].name, kinds[kind], median(ns[p], rounds), empty,
		       median(ratio[p], rounds));
	}
	fflush(stdout);
}

static void print_size(const char *name, const struct kx_tracer *t)
{
	struct bpf_prog_info info = { 0 };
	__u32 size = sizeof(info);

	if (!bpf_obj_get_info_by_fd(kx_tracer_prog_fd(t, KX_PROG_RETURN), &info, &size))
		printf("size %s %u %u\n", name, info.xlated_prog_len / 8, info.jited_prog_len);
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[1]) : 0, calls = argc > 2 ? atoi(argv[2]) : 0;
	struct kx_links links = { 0 };
	struct kx_err err = { 0 };
	cpu_set_t one;

	if (rounds < 1 || calls < 1) {
		fprintf(stderr, "usage: hitpath ROUNDS CALLS\n");
		return 2;
	}
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	if (prepare(&links, &err)) {
		fprintf(stderr, "hitpath: %s\n", err.text);
		return 1;
	}
	print_size(parts[KXRAY].name, tracer);
	print_size(parts[GENERAL].name, general);
	for (int kind = 0; kind < KINDS; kind++)
		measure(kind, rounds, calls);
	kx_links_close(&links);
	kx_tracer_free(asking);
	kx_tracer_free(general);
	kx_tracer_free(tracer);
	return 0;
}
