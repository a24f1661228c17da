// SPDX-License-Identifier: BSD-2-Clause
/*
 * Functions with known instructions, called with random registers and flags as they are, then with
 * jumps in them: with recording off and on, and with a breakpoint's byte at each instruction that a
 * jump replaces. Each call has to leave the same behind in all registers and flags, and records
 * exactly what it should.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include "fast_size.h"
#include "patched.h"

/* Where instructions push what they read, the flags of the window's start have to be kept. */
__asm__(".pushsection .text\n"
	".macro fn name\n .p2align 5\n .globl \\name\n .type \\name,@function\n\\name:\n.endm\n"
	".macro end name\n nop\n nop\n nop\n nop\n .size \\name,.-\\name\n.endm\n"
	/* data in the red zone, over the whole of it */
	"fn red_zone\n mov %rdi,-8(%rsp)\n mov %rsi,-128(%rsp)\n"
	"red_zone_w: lea (%rdi,%rsi),%rax\n xor %ecx,%ecx\n" /* 4 2 */
	" mov -8(%rsp),%rdx\n mov -128(%rsp),%r8\n"
	"red_zone_x: mov %rdx,%r9\nred_zone_e: ret\nend red_zone\n" /* 3 1 */
	/* flags that are read behind the window */
	"fn flags_live\n mov %rdi,%rax\n"
	"flags_live_w: mov %rsi,%rdx\n lea 1(%rdi),%rcx\n" /* 3 4 */
	" pushf\n pop %r8\n"
	"flags_live_x: mov %rdx,%r9\nflags_live_e: ret\nend flags_live\n" /* 3 1 */
	/* flags and the red zone */
	"fn flags_red_zone\n mov %rdi,-8(%rsp)\n mov %rsi,-128(%rsp)\n"
	"flags_red_zone_w: mov %rsi,%rdx\n mov %rdi,%r10\n" /* 3 3 */
	" mov -8(%rsp),%rdx\n mov -128(%rsp),%rcx\n pushf\n pop %r8\n"
	"flags_red_zone_x: mov %rdx,%r9\nflags_red_zone_e: ret\nend flags_red_zone\n" /* 3 1 */
	/* windows behind a push, and before the pop */
	"fn framed\n push %rbx\n"
	"framed_w: mov %rdi,%rbx\n mov %rsi,%rax\n" /* 3 3 */
	" xor %edx,%edx\n"
	"framed_x: add %rbx,%rax\n pop %rbx\nframed_e: ret\nend framed\n" /* 3 1 1 */
	/* an exit that is a tail jump on a condition, near and far */
	"fn tail_target\n lea 7(%rdi,%rsi,2),%r10\n pop %r11\n push %r11\n ret\nend tail_target\n"
	"fn cond_tail\n mov %rdi,%rax\n"
	"cond_tail_w: cmp %rsi,%rdi\ncond_tail_t: je tail_target\n" /* 3 2 */
	" mov %rdx,%rcx\n pushf\n pop %r8\n"
	"cond_tail_x: mov %rcx,%r9\ncond_tail_e: ret\nend cond_tail\n" /* 3 1 */
	" .skip 200,0x90\n"
	"fn cond_far\n mov %rdi,%rax\n"
	"cond_far_w: cmp %rsi,%rdi\ncond_far_t: jg tail_target\n" /* 3 6 */
	" mov %rdx,%rcx\n pushf\n pop %r8\n"
	"cond_far_x: mov %rcx,%r9\ncond_far_e: ret\nend cond_far\n" /* 3 1 */
	/* an indirect tail jump by a register, and by memory */
	"fn register_tail\n lea tail_target(%rip),%r11\n"
	"register_tail_w: mov %rdi,%rax\nregister_tail_t: jmp *%r11\nend register_tail\n" /* 3 3 */
	"fn memory_tail\n mov %rdi,%rax\n"
	"memory_tail_w: jmp *trampoline_pointer(%rip)\nend memory_tail\n" /* 6 */
	"fn direct_tail\n mov %rdi,%rax\n"
	"direct_tail_w: jmp tail_target\nend direct_tail\n" /* 5 */
	/* memory by rip, with an immediate operand behind the displacement too */
	"fn by_rip\n mov %rdi,%rax\n"
	"by_rip_w: mov trampoline_data(%rip),%rcx\n cmpl $5,trampoline_data(%rip)\n" /* 7 7 */
	" pushf\n pop %r8\n"
	"by_rip_x: mov %rdx,%r9\nby_rip_e: ret\nend by_rip\n" /* 3 1 */
	/* a branch that leaves the window for the function */
	"fn branches\n mov %rdi,%rax\n"
	"branches_w: test $1,%dil\n jne 1f\n" /* 4 2 */
	" mov $5,%ecx\n"
	"1: pushf\n pop %r8\n"
	"branches_x: mov %rdx,%r9\nbranches_e: ret\nend branches\n" /* 3 1 */
	/* the callee takes arguments off the stack */
	"fn ret_imm\n mov %rdi,%rax\n"
	"ret_imm_w: mov %rsi,%rcx\n mov %rdi,%r9\nret_imm_t: ret $16\nend ret_imm\n" /* 3 3 3 */
	"fn calls_ret_imm\n push %rdi\n push %rsi\n call ret_imm\n ret\nend calls_ret_imm\n"
	/* what cannot be moved, or is no exit that can be recorded */
	"fn calls\n mov %rdi,%rax\ncalls_w: call tail_target\ncalls_e: ret\nend calls\n"
	"fn loops\n mov %rdi,%rax\nloops_w: mov $1,%ecx\nloops_e: loop loops_w\n ret\nend loops\n"
	"fn long_nops\n .skip 1200,0x90\n ret\nend long_nops\n"
	" .popsection\n"
	" .pushsection .data\n .balign 8\ntrampoline_data: .quad 5\n"
	"trampoline_pointer: .quad tail_target\n .popsection\n");

/* What a call begins and ends with. */
struct registers {
	uint64_t general[15]; /* rax rbx rcx rdx rsi rdi rbp r8 ... r15 */
	uint64_t flags;
	uint64_t sp; /* at the first instruction */
	uint64_t pad;
	uint8_t fx[512]; /* see fxsave: x87, SSE */
} __attribute__((aligned(16)));

void call_with(const void *function, struct registers *r);
__asm__(".pushsection .text\n .type call_with,@function\ncall_with:\n"
	" push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
	" push %rsi\n push %rdi\n"
	" lea -8(%rsp),%rax\n mov %rax,128(%rsi)\n fxrstor64 144(%rsi)\n"
	" mov (%rsi),%rax\n mov 8(%rsi),%rbx\n mov 16(%rsi),%rcx\n mov 24(%rsi),%rdx\n"
	" mov 40(%rsi),%rdi\n mov 48(%rsi),%rbp\n"
	" mov 56(%rsi),%r8\n mov 64(%rsi),%r9\n mov 72(%rsi),%r10\n mov 80(%rsi),%r11\n"
	" mov 88(%rsi),%r12\n mov 96(%rsi),%r13\n"
	" mov 104(%rsi),%r14\n mov 112(%rsi),%r15\n pushq 120(%rsi)\n popf\n mov 32(%rsi),%rsi\n"
	" call *(%rsp)\n"
	" push %rsi\n pushf\n mov 24(%rsp),%rsi\n"
	" mov %rax,(%rsi)\n mov %rbx,8(%rsi)\n mov %rcx,16(%rsi)\n mov %rdx,24(%rsi)\n"
	" mov %rdi,40(%rsi)\n mov %rbp,48(%rsi)\n"
	" mov %r8,56(%rsi)\n mov %r9,64(%rsi)\n mov %r10,72(%rsi)\n mov %r11,80(%rsi)\n"
	" mov %r12,88(%rsi)\n mov %r13,96(%rsi)\n"
	" mov %r14,104(%rsi)\n mov %r15,112(%rsi)\n popq 120(%rsi)\n popq 32(%rsi)\n"
	" fxsave64 144(%rsi)\n cld\n"
	" pop %rdi\n pop %rsi\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n"
	" pop %rbx\n ret\n"
	" .size call_with,.-call_with\n .popsection\n");

#define L(name) ((uintptr_t)(name))
/* not const: jumps are written there */
extern uint8_t red_zone[], red_zone_w[], red_zone_x[], red_zone_e[], flags_live[], flags_live_w[],
	flags_live_x[], flags_live_e[], flags_red_zone[], flags_red_zone_w[], flags_red_zone_x[],
	flags_red_zone_e[], framed[], framed_w[], framed_x[], framed_e[], cond_tail[],
	cond_tail_w[], cond_tail_t[], cond_tail_x[], cond_tail_e[], cond_far[], cond_far_w[],
	cond_far_t[], cond_far_x[], cond_far_e[], register_tail[], register_tail_w[],
	register_tail_t[], memory_tail[], memory_tail_w[], direct_tail[], direct_tail_w[], by_rip[],
	by_rip_w[], by_rip_x[], by_rip_e[], branches[], branches_w[], branches_x[], branches_e[],
	calls_ret_imm[], ret_imm_w[], ret_imm_t[], calls_w[], calls_e[], loops_w[], loops_e[],
	long_nops[];

struct victim {
	const char *name;
	const uint8_t *call;
	struct kx_window windows[2];
	int sp; /* of the recorded call, from that of `call` */
};

#define ENTRY_AT(label, bytes, insns) \
	.start = L(label), .length = (bytes), .starts = (insns), .entry = true
#define RET_OF(name)                                                                     \
	{                                                                                \
		.start = L(name##_x), .length = 5, .starts = 1 << 3, .exit = L(name##_e) \
	}

#define VICTIM(function, ...) .name = #function, .call = function, .windows = { __VA_ARGS__ }

static struct victim victims[] = {
	{ VICTIM(red_zone, { ENTRY_AT(red_zone_w, 6, 1 << 4) }, RET_OF(red_zone)) },
	{ VICTIM(flags_live, { ENTRY_AT(flags_live_w, 7, 1 << 3), .flags_live = true },
		 RET_OF(flags_live)) },
	{ VICTIM(flags_red_zone, { ENTRY_AT(flags_red_zone_w, 6, 1 << 3), .flags_live = true },
		 RET_OF(flags_red_zone)) },
	{ VICTIM(framed, { ENTRY_AT(framed_w, 6, 1 << 3), .entry_frame = 8 },
		 { .start = L(framed_x),
		   .length = 5,
		   .starts = 1 << 3 | 1 << 4,
		   .exit = L(framed_e) }) },
	{ VICTIM(cond_tail,
		 { ENTRY_AT(cond_tail_w, 5, 1 << 3), .exit = L(cond_tail_t), .tail = true },
		 RET_OF(cond_tail)) },
	{ VICTIM(cond_far, { ENTRY_AT(cond_far_w, 9, 1 << 3), .exit = L(cond_far_t), .tail = true },
		 RET_OF(cond_far)) },
	{ VICTIM(register_tail, { ENTRY_AT(register_tail_w, 6, 1 << 3), .exit = L(register_tail_t),
				  .tail = true }) },
	{ VICTIM(memory_tail,
		 { ENTRY_AT(memory_tail_w, 6, 0), .exit = L(memory_tail_w), .tail = true }) },
	{ VICTIM(direct_tail,
		 { ENTRY_AT(direct_tail_w, 5, 0), .exit = L(direct_tail_w), .tail = true }) },
	{ VICTIM(by_rip, { ENTRY_AT(by_rip_w, 14, 0) }, RET_OF(by_rip)) },
	{ VICTIM(branches, { ENTRY_AT(branches_w, 6, 1 << 4) }, RET_OF(branches)) },
	{ VICTIM(calls_ret_imm, { ENTRY_AT(ret_imm_w, 9, 1 << 3), .exit = L(ret_imm_t) }),
	  .sp = -24 },
};
#define VICTIMS (sizeof(victims) / sizeof(victims[0]))

static struct patched p;
static uint64_t random_state = 88172645463325252ull;

static uint64_t any(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* CF PF AF ZF SF OF DF, and the bit that is always set, and that of interrupts. */
#define FLAGS	     0xcd5
#define FLAGS_ALWAYS 0x202
#define XMM_AT	     160
#define XMM_BYTES    256

static void randomize(struct registers *r, unsigned round)
{
	memset(r, 0, sizeof(*r));
	for (unsigned i = 0; i < 15; i++)
		r->general[i] = any() >> any() % 64;
	if (round % 3 == 0)
		r->general[4] = r->general[5]; /* rsi and rdi: compared */
	r->flags = (any() & FLAGS) | FLAGS_ALWAYS;
	__asm__ volatile("fxsave64 %0" : "=m"(r->fx));
	for (unsigned i = 0; i < XMM_BYTES; i++)
		r->fx[XMM_AT + i] = (uint8_t)any();
}

/* What must be the same. The end of a function passes no flags but the direction. */
static void compare(const struct registers *got, const struct registers *want, const char *name,
		    const char *how, unsigned round)
{
	static const char *const names[] = { "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8",
					     "r9",  "r10", "r11", "r12", "r13", "r14", "r15" };

	for (unsigned i = 0; i < 15; i++)
		if (got->general[i] != want->general[i])
			fail_msg("%s %s, round %u: %s is %llx, should be %llx", name, how, round,
				 names[i], (unsigned long long)got->general[i],
				 (unsigned long long)want->general[i]);
	assert_int_equal(got->flags & 0x400, want->flags & 0x400); /* DF */
	assert_memory_equal(got->fx, want->fx, XMM_AT + XMM_BYTES);
}

/* Takes the records of one call, or none, out of the rings of all CPUs; the thread stays on one. */
static void check_records(const struct victim *v, uint32_t func, uint64_t sp, bool recorded)
{
	unsigned n = 0;

	for (unsigned cpu = 0; cpu < p.views->ncpus; cpu++) {
		struct kx_ring *ring = &p.views->items[cpu];
		const struct kx_wire_record *r;

		for (; (r = kx_ring_take(p.views, ring)); n++) {
			assert_int_equal(r->func, n ? func | KX_FUNC_AT_INSTRUCTION : func);
			if (n)
				assert_true(r->kind == KX_EVENT_EXIT ||
					    r->kind == KX_EVENT_TAIL_EXIT);
			else
				assert_int_equal(r->kind, KX_EVENT_ENTRY);
			assert_int_equal(r->sp, sp + (uint64_t)(int64_t)v->sp);
		}
		kx_ring_release(ring);
		assert_int_equal(ring->tail, kx_ring_head(ring));
	}
	assert_int_equal(n, recorded ? 2 : 0);
}

static struct kx_jump jumps[VICTIMS][2];
static uint8_t old[VICTIMS][2][KX_JUMP_SIZE];

static unsigned windows_of(const struct victim *v)
{
	return v->windows[1].start ? 2 : 1;
}

static void put_jumps(unsigned i, bool jump)
{
	for (unsigned k = 0; k < windows_of(&victims[i]); k++)
		assert_true(patched_write(victims[i].windows[k].start,
					  jump ? jumps[i][k].bytes : old[i][k], KX_JUMP_SIZE));
}

static int start(void **state)
{
	const unsigned ncpus = (unsigned)sysconf(_SC_NPROCESSORS_CONF);

	(void)state;
	if (!patched_init(&p, L(red_zone), 512 << 20, 1 << 14, ncpus) ||
	    !patched_open_self(&p, "red_zone", L(red_zone)))
		return -1;
	for (unsigned i = 0; i < VICTIMS; i++)
		for (unsigned k = 0; k < windows_of(&victims[i]); k++) {
			memcpy(old[i][k], (void *)victims[i].windows[k].start, KX_JUMP_SIZE);
			if (!patched_prepare(&p, &victims[i].windows[k], i + 1, &jumps[i][k]))
				return -1;
		}
	return 0;
}

static int end(void **state)
{
	(void)state;
	patched_free(&p);
	return 0;
}

static void call_and_check(unsigned i, const struct registers *before, const struct registers *want,
			   bool recorded, const char *how, unsigned round)
{
	struct registers r = *before;

	call_with(victims[i].call, &r);
	compare(&r, want, victims[i].name, how, round);
	check_records(&victims[i], i + 1, r.sp, recorded);
}

/* The same with a breakpoint on each instruction that began inside of a jump: a byte is 0xcc. */
static void call_with_breakpoints(unsigned i, const struct registers *before,
				  const struct registers *want, unsigned round)
{
	for (unsigned k = 0; k < windows_of(&victims[i]); k++)
		for (unsigned byte = 1; byte < KX_JUMP_SIZE; byte++) {
			const uint64_t at = victims[i].windows[k].start + byte;

			if (!(victims[i].windows[k].starts >> byte & 1))
				continue;
			assert_true(patched_write(at, (const uint8_t[]){ 0xcc }, 1));
			call_and_check(i, before, want, true, "with a breakpoint", round);
			assert_true(patched_write(at, &jumps[i][k].bytes[byte], 1));
		}
}

static void test_calls(void **state)
{
	const unsigned rounds = (unsigned)fast_size(2000, 300);
	unsigned tails = 0;

	(void)state;
	for (unsigned i = 0; i < VICTIMS; i++)
		for (unsigned round = 0; round < rounds; round++) {
			struct registers before, want;

			randomize(&before, round);
			want = before;
			call_with(victims[i].call, &want);
			put_jumps(i, true);
			p.head->enabled = 0;
			call_and_check(i, &before, &want, false, "off", round);
			p.head->enabled = 1;
			call_and_check(i, &before, &want, true, "recorded", round);
			if (round < 100)
				call_with_breakpoints(i, &before, &want, round);
			put_jumps(i, false);
			tails += victims[i].windows[0].tail;
		}
	assert_true(tails > 0);
}

/* Of a tail jump on a condition both ways are recorded: as what they are. */
static void test_kinds(void **state)
{
	(void)state;
	for (unsigned i = 0; i < VICTIMS; i++) {
		const bool tail = victims[i].windows[0].tail,
			   conditional = windows_of(&victims[i]) == 2;

		for (unsigned taken = 0; taken < 2; taken++) {
			struct registers r;
			uint64_t heads = kx_rings_heads(p.views);
			unsigned exits = 0;

			randomize(&r, 1);
			/* rsi and rdi: equal where `je` is taken, less where `jg` is */
			r.general[4] = 1;
			r.general[5] = taken ? (victims[i].call == cond_tail ? 1 : 2) : 0;
			put_jumps(i, true);
			call_with(victims[i].call, &r);
			put_jumps(i, false);
			assert_int_equal(kx_rings_heads(p.views), heads + 2);
			for (unsigned cpu = 0; cpu < p.views->ncpus; cpu++) {
				const struct kx_wire_record *rec;

				while ((rec = kx_ring_take(p.views, &p.views->items[cpu])))
					if (rec->kind != KX_EVENT_ENTRY) {
						assert_int_equal(rec->kind,
								 tail && (taken || !conditional)
									 ? KX_EVENT_TAIL_EXIT
									 : KX_EVENT_EXIT);
						exits++;
					}
				kx_ring_release(&p.views->items[cpu]);
			}
			assert_int_equal(exits, 1);
		}
	}
}

#define THREADS 4
#define CALLS	100000

static void *call_framed(void *arg)
{
	struct registers r;

	randomize(&r, 1);
	for (unsigned i = 0; i < CALLS; i++)
		call_with(framed, &r);
	return arg;
}

/* Exact counts, although the rings get full. */
static void test_threads(void **state)
{
	pthread_t threads[THREADS];
	uint64_t entries = 0, exits = 0, lost = 0, taken = 0;

	(void)state;
	put_jumps(3, true);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, call_framed, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	put_jumps(3, false);
	for (unsigned cpu = 0; cpu < p.views->ncpus; cpu++) {
		while (kx_ring_take(p.views, &p.views->items[cpu]))
			taken++;
		lost += p.views->items[cpu].header->lost[KX_LOSS_RING_FULL];
	}
	for (unsigned i = 0; i < KX_TARGET_LOSSES; i++) {
		entries += p.rings->losses[i].entries;
		exits += p.rings->losses[i].exits;
	}
	assert_int_equal(entries + exits, lost);
	assert_int_equal(taken + lost, THREADS * CALLS * 2);
}

/* Calls @v with a jump to a guard, as @before says; what it leaves is as without. */
static void call_guarded(const struct victim *v, const struct kx_jump *jump, const struct registers *before, unsigned round)
{
	struct registers want = *before, got = *before;
	uint8_t bytes[KX_JUMP_SIZE];

	memcpy(bytes, (void *)v->windows[0].start, sizeof(bytes));
	call_with(v->call, &want);
	assert_true(patched_write(v->windows[0].start, jump->bytes, KX_JUMP_SIZE));
	call_with(v->call, &got);
	assert_true(patched_write(v->windows[0].start, bytes, KX_JUMP_SIZE));
	compare(&got, &want, v->name, "guarded", round);
}

/* rdi, rsi and rdx of a call */
static void set_arguments(struct registers *r, const uint32_t *arguments, uint64_t upper)
{
	r->general[5] = arguments[0] | upper;
	r->general[4] = arguments[1] | upper;
	r->general[3] = arguments[2] | upper;
}

/* Only the calls that forbid the clock are noticed, by any upper half, and only where the head has not been wiped. */
static void check_guard(const struct victim *v, const struct kx_jump *jump, const struct kx_guard *g)
{
	const uint32_t usual = p.rings->cpu_by;
	struct registers before;

	for (unsigned round = 0; round < 200; round++) {
		const struct kx_guard_call *c = &g->calls[round % g->ncalls];
		uint32_t arguments[KX_GUARD_ARGUMENTS] = { (uint32_t)any(), (uint32_t)any(), (uint32_t)any() };
		const unsigned other = round / g->ncalls % (c->n + 1); /* c->n: none is */
		const uint64_t upper = round % 2 ? any() << 32 : 0;

		randomize(&before, 1);
		memcpy(arguments, c->arguments, c->n * sizeof(arguments[0]));
		if (other < c->n)
			arguments[other] += 1 + (uint32_t)any() % 1000;
		set_arguments(&before, arguments, upper);
		p.head->rings = round % 7 ? L(p.rings) : 0;
		call_guarded(v, jump, &before, round);
		assert_int_equal(p.rings->cpu_by, other == c->n && round % 7 ? KX_TARGET_FORBIDDEN : usual);
		p.rings->cpu_by = usual;
	}
	p.head->rings = L(p.rings);
}

static void test_guards(void **state)
{
	const uint64_t heads = kx_rings_heads(p.views);

	(void)state;
	for (unsigned i = 0; i < KX_GUARDS; i++)
		for (unsigned k = 0; k < 3; k++) { /* the red zone, flags, and both */
			struct kx_window w = victims[k].windows[0];
			struct kx_jump jump;

			w.entry = false;
			p.guard = &kx_guards[i];
			assert_true(patched_prepare(&p, &w, 0, &jump));
			check_guard(&victims[k], &jump, p.guard);
		}
	p.guard = NULL;
	assert_int_equal(kx_rings_heads(p.views), heads);
}

/* A function that is guarded and recorded. */
static void test_guarded_and_recorded(void **state)
{
	const uint64_t heads = kx_rings_heads(p.views);
	const uint32_t usual = p.rings->cpu_by;
	struct registers before;
	struct kx_jump jump;

	(void)state;
	p.guard = &kx_guards[0];
	assert_true(patched_prepare(&p, &victims[1].windows[0], 1, &jump));
	p.guard = NULL;
	randomize(&before, 1);
	set_arguments(&before, (const uint32_t[]){ PR_SET_TSC, PR_TSC_ENABLE, 0 }, 0);
	call_guarded(&victims[1], &jump, &before, 0);
	assert_int_equal(kx_rings_heads(p.views), heads + 1);
	set_arguments(&before, (const uint32_t[]){ PR_SET_TSC, PR_TSC_SIGSEGV, 0 }, 0);
	call_guarded(&victims[1], &jump, &before, 1);
	assert_int_equal(kx_rings_heads(p.views), heads + 1);
	assert_int_equal(p.rings->cpu_by, KX_TARGET_FORBIDDEN);
	p.rings->cpu_by = usual;
	for (unsigned cpu = 0; cpu < p.views->ncpus; cpu++) {
		kx_ring_take(p.views, &p.views->items[cpu]);
		kx_ring_release(&p.views->items[cpu]);
	}
}

/* What cannot be done is refused, and not done wrong. */
static void test_refusals(void **state)
{
	struct kx_trampoline_place place = { p.bias, L(p.code), L(p.head), L(p.recorder), NULL };
	struct kx_window w = { .start = L(calls_w) - p.bias, .length = 6, .entry = true };
	uint8_t to[KX_TRAMPOLINE_MOST + 1];

	(void)state;
	to[KX_TRAMPOLINE_MOST] = 0x5a;
	assert_int_equal(kx_trampoline_make(p.decoded, &w, 1, &place, to), 0); /* a call */
	w = (struct kx_window){ .start = L(loops_w) - p.bias,
				.length = 7,
				.exit = L(loops_e) - p.bias };
	assert_int_equal(kx_trampoline_make(p.decoded, &w, 1, &place, to), 0); /* an exit by loop */
	w = (struct kx_window){ .start = L(framed_w) - p.bias, .length = 6, .entry = true };
	assert_in_range(kx_trampoline_make(p.decoded, &w, 1, &place, to), 20, 100);
	place.head += 1ull << 32;
	assert_int_equal(kx_trampoline_make(p.decoded, &w, 1, &place, to), 0);
	place.head = L(p.head);
	place.recorder += 1ull << 32;
	assert_int_equal(kx_trampoline_make(p.decoded, &w, 1, &place, to), 0);
	place.recorder = L(p.recorder);
	place.bias += 1ull << 32; /* the way back */
	assert_int_equal(kx_trampoline_make(p.decoded, &w, 1, &place, to), 0);
	place.bias = p.bias;
	/* longer than a trampoline may be */
	w = (struct kx_window){ .start = L(long_nops) - p.bias,
				.length = KX_TRAMPOLINE_MOST,
				.entry = true };
	assert_int_equal(kx_trampoline_make(p.decoded, &w, 1, &place, to), 0);
	assert_int_equal(to[KX_TRAMPOLINE_MOST], 0x5a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_guards),
		cmocka_unit_test(test_guarded_and_recorded),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, start, end);
}
