// SPDX-License-Identifier: BSD-2-Clause
#include "doctor/own_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "binary/modules.h"
#include "doctor/own_functions.h"

KX_OWN_FUNCTION(kx_idle_nop5, "	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n	ret\n");
KX_OWN_FUNCTION(kx_idle_push, "	push %rbp\n	pop %rbp\n	ret\n");
KX_OWN_FUNCTION(kx_idle_sub, "	sub $8, %rsp\n	add $8, %rsp\n	ret\n");
KX_OWN_FUNCTION(kx_idle_nop5_exit, "	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n	ret\n");
KX_OWN_FUNCTION(kx_idle_push_exit, "	push %rbp\n	pop %rbp\n	ret\n");
KX_OWN_FUNCTION(kx_idle_sub_exit, "	sub $8, %rsp\n	add $8, %rsp\n	ret\n");
KX_OWN_FUNCTION(kx_idle_push_tail, "	push %rbp\n	pop %rbp\n	jmp 1f\n	.balign 16\n1:	ret\n");
KX_OWN_FUNCTION(kx_pause_push, "	push %rbp\n	call kx_pause\n	pop %rbp\n	ret\n");
KX_OWN_FUNCTION(kx_pause_sub, "	sub $8, %rsp\n	call kx_pause\n	add $8, %rsp\n	ret\n");

static const struct own {
	void (*call)(void);
	unsigned exit; /* offset of the probed exit; 0: a return probe */
	bool tail;
} own[KX_OWN_CALLS] = {
	[KX_OWN_RETURN] = { .call = kx_idle_nop5 },
	{ .call = kx_idle_push },
	{ .call = kx_idle_sub },
	[KX_OWN_PAUSE_PUSH] = { .call = kx_pause_push },
	[KX_OWN_PAUSE_SUB] = { .call = kx_pause_sub },
	[KX_OWN_EXIT] = { .call = kx_idle_nop5_exit, .exit = 5 },
	{ .call = kx_idle_push_exit, .exit = 2 },
	{ .call = kx_idle_sub_exit, .exit = 8 },
	[KX_OWN_TAIL] = { .call = kx_idle_push_tail, .exit = 2, .tail = true },
};

static int link_probes(struct kx_tracer *t, enum kx_tracer_prog prog, const struct kx_module *self,
		       unsigned from, unsigned to, uint64_t cookie, struct kx_links *links,
		       struct kx_err *err)
{
	struct kx_probe probes[KX_OWN_CALLS];
	size_t n = 0;

	for (unsigned i = from; i < to; i++, n++) {
		uint64_t address = (uintptr_t)own[i].call + (prog == KX_PROG_EXIT ? own[i].exit : 0);

		probes[n] = (struct kx_probe){
			.offset = address - self->start + self->map_offset,
			.cookie = (i + 1) | cookie | (own[i].tail ? KX_COOKIE_IS_TAIL : 0),
			.index = i,
		};
	}
	return kx_uprobe_link(kx_tracer_prog_mechanism(t, prog), kx_tracer_prog_fd(t, prog),
			      self->open_path, getpid(), prog == KX_PROG_RETURN, probes, n, links, NULL,
			      NULL, err);
}

int kx_own_calls_attach(struct kx_tracer *t, unsigned nargs, struct kx_links *links, struct kx_err *err)
{
	bool session = kx_tracer_prog_mechanism(t, KX_PROG_RETURN) == KX_MECHANISM_SESSION;
	const uint64_t arguments = (uint64_t)nargs << 28;
	struct kx_modules mods;
	int code = kx_modules_of_process(getpid(), &mods, err);

	if (code)
		return code;
	code = link_probes(t, KX_PROG_EXIT, &mods.items[0], KX_OWN_EXIT, KX_OWN_CALLS, 0, links, err);
	/* a session's program does both ends */
	if (!code)
		code = link_probes(t, KX_PROG_ENTRY, &mods.items[0], session ? KX_OWN_EXIT : KX_OWN_RETURN,
				   KX_OWN_CALLS, arguments, links, err);
	if (!code)
		code = link_probes(t, KX_PROG_RETURN, &mods.items[0], KX_OWN_RETURN, KX_OWN_EXIT,
				   session ? arguments : 0, links, err);
	kx_modules_free(&mods);
	return code;
}

static int by_clock(const void *a, const void *b)
{
	const struct kx_wire_record *x = a, *y = b;

	return (x->clock > y->clock) - (x->clock < y->clock);
}

size_t kx_own_calls_take(struct kx_rings *rings, unsigned i, struct kx_wire_record *out, size_t max)
{
	size_t n = 0;

	for (unsigned cpu = 0; cpu < rings->ncpus; cpu++) {
		struct kx_ring *ring = &rings->items[cpu];
		const struct kx_wire_record *rec;

		if (!ring->header)
			continue;
		while ((rec = kx_ring_take(rings, ring)))
			if (KX_EVENT_IS_CALL(rec->kind) &&
			    (rec->func & ~KX_FUNC_AT_INSTRUCTION) == i + 1 && n < max)
				out[n++] = *rec;
		kx_ring_release(ring);
	}
	qsort(out, n, sizeof(*out), by_clock);
	return n;
}

static int expect_records(size_t got, size_t want, struct kx_err *err)
{
	if (got == want)
		return 0;
	return kx_err_set(err, -EIO, "%zu calls of a function of kxray itself left %zu records", want / 2,
			  got);
}

uint64_t kx_own_calls_now(const struct kx_clock *clock)
{
	struct timespec t;

	if (clock->kind == KX_CLOCK_KFUNC)
		return __rdtsc();
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void kx_own_call(unsigned i)
{
	own[i].call();
}

int kx_own_calls_idle(struct kx_tracer *t, unsigned i, unsigned warm, size_t n,
		      struct kx_own_taken *out, struct kx_err *err)
{
	struct kx_wire_record records[2 * (KX_OWN_IDLE_MAX + 1)];
	struct kx_rings *rings = kx_tracer_rings(t);
	int code;

	for (unsigned call = 0; call < warm; call++)
		own[i].call();
	kx_own_calls_take(rings, i, records, 0);
	for (size_t call = 0; call <= n; call++)
		own[i].call();
	code = expect_records(kx_own_calls_take(rings, i, records, 2 * (n + 1)), 2 * (n + 1), err);
	for (size_t call = 0; call < n && !code; call++)
		out[call] = (struct kx_own_taken){
			.offset = records[2 * call + 1].clock - records[2 * call].clock,
			.cost = records[2 * call + 2].clock - records[2 * call].clock,
		};
	return code;
}

static struct {
	const struct kx_clock *clock;
	uint64_t length, took; /* in what the clock counts */
} pause_of;

/* Lasts for pause_of.length. It uses no memory: what a traced program's own data drives out is not the probes'. */
static __attribute__((used, noinline)) void kx_pause(void)
{
	uint64_t begin = kx_own_calls_now(pause_of.clock);

	do
		pause_of.took = kx_own_calls_now(pause_of.clock) - begin;
	while (pause_of.took < pause_of.length);
}

/*
 * A call of the series: its records are taken later, since taking them would use the caches. Returns what it has
 * taken from its caller, the pause apart; *@inside: the pause.
 */
static uint64_t call_and_pause(unsigned i, uint64_t length, uint64_t *inside)
{
	uint64_t begin = kx_own_calls_now(pause_of.clock);

	pause_of.length = length;
	own[i].call();
	*inside = pause_of.took;
	return kx_own_calls_now(pause_of.clock) - begin - pause_of.took;
}

int kx_own_calls_pause(struct kx_tracer *t, unsigned i, uint64_t length, unsigned again,
		       struct kx_own_taken out[KX_OWN_SERIES + KX_OWN_AGAIN_MAX], struct kx_err *err)
{
	struct kx_wire_record records[2 * (KX_OWN_SERIES + KX_OWN_AGAIN_MAX)];
	uint64_t inside[KX_OWN_SERIES + KX_OWN_AGAIN_MAX];
	const unsigned n = KX_OWN_SERIES + again;
	int code;

	pause_of.clock = kx_tracer_clock(t);
	pause_of.length = length;
	kx_pause();
	for (unsigned s = 0; s < n; s++)
		out[s].cost = call_and_pause(i, s == KX_OWN_BEFORE_ENTRY ? 0 : length, &inside[s]);
	code = expect_records(kx_own_calls_take(kx_tracer_rings(t), i, records, 2 * n), 2 * n, err);
	for (unsigned s = 0; s < n && !code; s++)
		out[s].offset = records[2 * s + 1].clock - records[2 * s].clock - inside[s];
	return code;
}
