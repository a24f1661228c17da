// SPDX-License-Identifier: BSD-2-Clause
/*
 * Everything here but kx_recorder_code is copied into other processes. So it is in one section,
 * uses no data but what its arguments lead to, calls nothing outside of the section, and is built
 * without vector registers, canaries and sanitizers (Makefile).
 *
 * A signal handler may interrupt it at any instruction and call traced functions, which record in
 * the same ring: a slot belongs to whom the locked compare and exchange has given it, and
 * everything else is added by locked instructions.
 */
#include "attach/recorder_code.h"

#include <stdbool.h>
#include <stddef.h>

#include "tracer/target_rings.h"

/* The linker makes __start_ and __stop_ symbols of a section with such a name. */
#define RECORDER __attribute__((section("kx_recorder"), no_caller_saved_registers, aligned(64)))

extern const uint8_t section_start[] __asm__("__start_kx_recorder"), section_end[] __asm__("__stop_kx_recorder");

/* Threads whose element of losses[] is looked for in so many elements, from the one on that the
 * thread's id gives. */
#define LOSS_PROBES 64

#define KIND_SHIFT  28
#define FUNC_MASK   ((1u << KIND_SHIFT) - 1)
/* In `what` of both kinds of exits, and of no entry. */
#define EXIT_BIT (2u << KIND_SHIFT)
_Static_assert(KX_EVENT_ENTRY == 1 && KX_EVENT_EXIT == 2 && KX_EVENT_TAIL_EXIT == 3, "EXIT_BIT");
_Static_assert(EXIT_BIT << 2 == KX_FUNC_AT_INSTRUCTION, "from one bit to the other by a shift");

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define inlined	    static inline __attribute__((always_inline))

inlined uint64_t read_tsc(void)
{
	uint32_t low, high;

	asm volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
}

/* Where glibc's thread control block has its own address (struct tcbhead_t, self). */
#define TCB_SELF 0x10
/* It is aligned to 32 bytes at least (64 from glibc 2.26 on), so both addresses of its own are in one page. */
#define TCB_ALIGNMENT 32

/* NULL: a thread that the C library did not make, which may have no thread control block, or a shorter one. */
inlined const char *control_block(bool by_fsbase)
{
	uint64_t tcb, again;

	if (by_fsbase) {
		asm volatile("rdfsbase %0" : "=r"(tcb));
		if (unlikely(!tcb || tcb % TCB_ALIGNMENT))
			return NULL;
		again = *(const uint64_t *)(tcb + TCB_SELF);
	} else {
		asm volatile("mov %%fs:%c1, %0" : "=r"(tcb) : "i"(TCB_SELF));
		asm volatile("mov %%fs:0, %0" : "=r"(again));
		if (unlikely(!tcb || tcb % TCB_ALIGNMENT))
			return NULL;
	}
	return likely(tcb == again) ? (const char *)tcb : NULL;
}

inlined uint32_t thread_word(const char *tcb, uint32_t offset, uint32_t without)
{
	return likely(tcb) ? *(const volatile uint32_t *)(tcb + offset) : without;
}

inlined uint32_t thread_id(const struct kx_target_rings *rings, const char *tcb)
{
	return thread_word(tcb, rings->tid_offset, 0);
}

#define NO_CPU UINT32_MAX

inlined uint32_t current_cpu(const struct kx_target_rings *rings, uint32_t cpu_by, const char *tcb)
{
	const uint32_t cpu = likely(cpu_by == KX_TARGET_RSEQ) ? thread_word(tcb, rings->cpu_offset, NO_CPU) : NO_CPU;
	uint64_t limit = NO_CPU;

	if (cpu < rings->ncpus)
		return cpu;
	/* also a thread that is not, or not yet, registered with the kernel */
	if (cpu_by == KX_TARGET_RDPID)
		asm volatile(".byte 0xf3, 0x0f, 0xc7, 0xf8" : "=a"(limit)); /* rdpid %rax, which old assemblers do not know */
	else
		asm volatile("lsl %k1, %k0" : "+r"(limit) : "r"(KX_RECORDER_CPU_SEGMENT) : "cc");
	return limit == NO_CPU ? NO_CPU : (uint32_t)limit & KX_RECORDER_CPU_MASK;
}

/* The element of the thread; NULL if there is no room. It is never given back. */
inlined struct kx_target_loss *own_loss(struct kx_target_rings *rings, uint32_t tid)
{
	for (uint32_t i = 0; i < LOSS_PROBES; i++) {
		struct kx_target_loss *loss = &rings->losses[(tid + i) % KX_TARGET_LOSSES];
		uint32_t owner = __atomic_load_n(&loss->tid, __ATOMIC_RELAXED);

		if (owner == tid)
			return loss;
		if (!owner && (__atomic_compare_exchange_n(&loss->tid, &owner, tid, false,
							   __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
			       owner == tid))
			return loss;
	}
	return NULL;
}

/* The same as kx_note_thread_loss of bpf/ring.bpf.h. */
inlined void note_thread_loss(struct kx_target_rings *rings, struct kx_target_loss *loss,
			      uint32_t what, uint32_t cpu, uint64_t clock)
{
	/* + 1: 0 in a fresh element is no epoch */
	const uint32_t epoch = __atomic_load_n(&rings->epoch, __ATOMIC_RELAXED) + 1;
	uint64_t last = __atomic_load_n(&loss->last_clock, __ATOMIC_RELAXED);

	/* a handler that has interrupted this may have noted a later one */
	while (last < clock && !__atomic_compare_exchange_n(&loss->last_clock, &last, clock, false,
							    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	__atomic_store_n(&loss->cpu, cpu, __ATOMIC_RELAXED);
	if (__atomic_load_n(&loss->epoch, __ATOMIC_RELAXED) != epoch) {
		__atomic_store_n(&loss->first_total,
				 __atomic_load_n(&loss->entries, __ATOMIC_RELAXED) +
					 __atomic_load_n(&loss->exits, __ATOMIC_RELAXED),
				 __ATOMIC_RELAXED);
		__atomic_store_n(&loss->first_clock, clock, __ATOMIC_RELEASE);
		__atomic_store_n(&loss->epoch, epoch, __ATOMIC_RELEASE);
	}
	__atomic_fetch_add(what & EXIT_BIT ? &loss->exits : &loss->entries, 1, __ATOMIC_RELAXED);
}

/* Counts a call's begin or end that does not get into @ring; NULL: there is none on this CPU. */
inlined void lose(struct kx_target_rings *rings, struct kx_ring_header *ring, uint32_t what,
		  uint32_t tid, uint32_t cpu, struct kx_patch_head *head)
{
	struct kx_target_loss *loss = tid ? own_loss(rings, tid) : NULL;
	const uint64_t clock = read_tsc();

	/* the thread's counter first: a reader of the other finds this one */
	if (loss)
		note_thread_loss(rings, loss, what, cpu, clock);
	else
		__atomic_fetch_add(&rings->lost_no_thread, 1, __ATOMIC_RELAXED);
	if (!ring) {
		__atomic_fetch_add(&rings->lost_no_cpu, 1, __ATOMIC_RELAXED);
		return;
	}
	__atomic_fetch_add(&ring->lost[KX_LOSS_RING_FULL], 1, __ATOMIC_RELAXED);
	/* signed: the reader's clock may be some ticks ahead */
	if ((int64_t)(clock - __atomic_load_n(&rings->heartbeat, __ATOMIC_RELAXED)) >
	    (int64_t)rings->patience) {
		__atomic_store_n(&head->enabled, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&rings->switched_off, 1, __ATOMIC_RELAXED);
	}
}

/* Writes the record at @position of @ring, which is this call's own. */
inlined void put(const struct kx_target_rings *rings, struct kx_ring_header *ring,
		 uint64_t position, uint32_t what, uint64_t sp, uint32_t tid, uint32_t cpu)
{
	struct kx_wire_record *rec =
		(struct kx_wire_record *)(ring + 1) + (position & (rings->nslots - 1));

	/* whose an unfinished slot is, the reader may ask; it does not believe in 0 */
	__atomic_store_n(&rec->tid, tid, __ATOMIC_RELAXED);
	rec->func = (what & FUNC_MASK) | (what & EXIT_BIT) << 2;
	rec->sp = sp;
	rec->clock = read_tsc();
	/* cpu, kind, 0 words of payload and commit: after this store the record is whole */
	__atomic_store_n((uint64_t *)&rec->cpu,
			 cpu | (uint64_t)(what >> KIND_SHIFT) << 16 | (position + 1) << 32,
			 __ATOMIC_RELEASE);
}

#define FULL (~0ULL)

/* Takes a slot after reading again how far the reader is. Returns its position or FULL. */
inlined uint64_t take_slot(struct kx_ring_header *ring, uint32_t nslots)
{
	__u64 position = __atomic_load_n(&ring->head, __ATOMIC_RELAXED), limit;

	do {
		limit = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) + nslots;
		/* one that is interrupted here writes an older limit later: correct as well */
		__atomic_store_n(&ring->limit, limit, __ATOMIC_RELAXED);
		if (position >= limit)
			return FULL;
	} while (!__atomic_compare_exchange_n(&ring->head, &position, position + 1, false,
					      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	return position;
}

/* What the entries leave: a limit that has to be read again, another writer in the ring, losses. */
inlined void record_rarely(uint32_t what, uint64_t sp, struct kx_patch_head *head, bool by_fsbase)
{
	struct kx_target_rings *rings = (struct kx_target_rings *)head->rings;
	struct kx_ring_header *ring;
	uint32_t tid, cpu, cpu_by;
	uint64_t position;
	const char *tcb;

	/* see define_entries */
	if (unlikely(!rings))
		return;
	cpu_by = rings->cpu_by;
	if (unlikely(cpu_by >= KX_TARGET_FORBIDDEN))
		return;
	tcb = control_block(by_fsbase);
	tid = thread_id(rings, tcb);
	cpu = current_cpu(rings, cpu_by, tcb);
	ring = cpu < rings->ncpus ? KX_TARGET_RING_AT(rings, cpu) : NULL;
	position = ring ? take_slot(ring, rings->nslots) : FULL;
	if (position == FULL)
		lose(rings, ring, what, tid, cpu, head);
	else
		put(rings, ring, position, what, sp, tid, cpu);
}

RECORDER __attribute__((cold, used)) static void record_rarely_by_fsbase(uint32_t what, uint64_t sp, struct kx_patch_head *head)
{
	record_rarely(what, sp, head, true);
}

RECORDER __attribute__((cold, used)) static void record_rarely_by_segment(uint32_t what, uint64_t sp, struct kx_patch_head *head)
{
	record_rarely(what, sp, head, false);
}

#define SLOT_SHIFT 5
_Static_assert(1 << SLOT_SHIFT == KX_RING_SLOT_SIZE, "SLOT_SHIFT");
_Static_assert(KX_TARGET_RDPID < KX_TARGET_RSEQ && KX_TARGET_RSEQ < KX_TARGET_FORBIDDEN, "two jumps tell them apart");
_Static_assert(offsetof(struct kx_wire_record, func) == offsetof(struct kx_wire_record, tid) + 4, "one store");
_Static_assert(offsetof(struct kx_wire_record, commit) == offsetof(struct kx_wire_record, cpu) + 4, "one store");

kx_recorder_fn kx_entry_by_fsbase __attribute__((visibility("hidden"))), kx_entry_by_segment __attribute__((visibility("hidden")));

/*
 * Both entries: what current_cpu, KX_TARGET_RING_AT, thread_id and put do, in eight registers and four stores. A locked
 * instruction waits until all stores before it have left the processor's store buffer, so each register that has to be
 * saved makes a call dearer: compiled from C, with nine to twelve of them, a recorded call took 32.8 ns where it took 27.0 by
 * this, both with rdpid; with the kernel's word for the CPU's number in its place it takes as long as reading the clock twice
 * (build/tests/in_process, recorded_over_untraced_ns, two_clocks_over_untraced_ns). What is rare leaves with the arguments as they were.
 *
 * A handler of a signal that comes after the trampoline's look at the head may fork: its child goes on here with a head of
 * zeros, so there may be no rings, and they are looked up only once.
 *
 * The guard (attach/tsc_guard.h) has run before the system call: a thread that has the look at cpu_by behind it reads the clock
 * in time, unless it is interrupted by a handler that forbids it.
 */
#define TAKE_SLOT(TCB) /* %r8: the ring; %r9: the rings; %rax: the position; %r10: the commit; %ecx: the CPU */ \
	"	mov %c[rings](%%rdx), %%r9\n"                \
	"	test %%r9, %%r9\n"                           \
	"	jz 3f\n"                                     \
	"	cmpl %[by_rseq], %c[cpu_by](%%r9)\n"         \
	"	ja 3f\n"                                     \
	"	jne 4f\n" TCB("7f")                          \
	"	mov %c[cpu_offset](%%r9), %%ecx\n"           \
	"	mov (%%rax, %%rcx), %%ecx\n"                 \
	"	cmp %c[ncpus](%%r9), %%ecx\n"                \
	"	jae 7f\n"                                    \
	"1:	mov %c[ring_bytes](%%r9), %%r8\n"            \
	"	imul %%rcx, %%r8\n"                          \
	"	lea %c[first_ring](%%r9, %%r8), %%r8\n"      \
	"	mov %c[head](%%r8), %%rax\n"                 \
	"	cmp %c[limit](%%r8), %%rax\n"                \
	"	jae 6f\n"                                    \
	"	lea 1(%%rax), %%r10\n"                       \
	"	lock cmpxchg %%r10, %c[head](%%r8)\n"        \
	"	jne 6f\n"

/* %rax: the thread's control block, else to label @none (control_block). */
#define TCB_BY_FSBASE(none)                                   \
	"	rdfsbase %%rax\n"                            \
	"	test %%rax, %%rax\n"                         \
	"	jz " none "\n"                               \
	"	test %[unaligned], %%al\n"                   \
	"	jnz " none "\n"                              \
	"	cmp %c[tcb_self](%%rax), %%rax\n"            \
	"	jne " none "\n"
#define TCB_BY_SEGMENT(none)                                  \
	"	mov %%fs:%c[tcb_self], %%rax\n"              \
	"	test %%rax, %%rax\n"                         \
	"	jz " none "\n"                               \
	"	test %[unaligned], %%al\n"                   \
	"	jnz " none "\n"                              \
	"	cmp %%fs:0, %%rax\n"                         \
	"	jne " none "\n"

#define TAKE_CPU /* where the thread's struct rseq does not tell it: %ecx */ \
	"4:	cmpl %[by_rdpid], %c[cpu_by](%%r9)\n"        \
	"	jne 7f\n"                                    \
	"	.byte 0xf3, 0x0f, 0xc7, 0xf9\n" /* rdpid %rcx */ \
	"	jmp 8f\n"                                    \
	"7:	mov %[cpu_segment], %%ecx\n"                 \
	"	lsl %%ecx, %%ecx\n"                          \
	"	jnz 6f\n"                                    \
	"8:	and %[cpu_mask], %%ecx\n"                    \
	"	cmp %c[ncpus](%%r9), %%ecx\n"                \
	"	jb 1b\n"                                     \
	"	jmp 6f\n"

#define PUT_RECORD(TCB) /* %r8: the slot. An unfinished slot's thread the reader may ask; it does not believe in 0 */ \
	"	shl %[slot_shift], %%rax\n"                  \
	"	and %c[slot_mask](%%r9), %%rax\n"            \
	"	lea %c[slots](%%r8, %%rax), %%r8\n"          \
	"	mov %c[tid_offset](%%r9), %%edx\n" TCB("5f") \
	"	mov (%%rax, %%rdx), %%eax\n"                 \
	"2:	mov %%rsi, %c[sp](%%r8)\n"                   \
	"	mov %%edi, %%esi\n"                          \
	"	lea (, %%rdi, 4), %%edx\n"                   \
	"	and %[func_mask], %%esi\n"                   \
	"	and %[at_instruction], %%edx\n"              \
	"	or %%edx, %%esi\n"                           \
	"	shl $32, %%rsi\n"                            \
	"	or %%rsi, %%rax\n"                           \
	"	mov %%rax, %c[tid](%%r8)\n"                  \
	"	shr %[kind_shift], %%edi\n"                  \
	"	shl $16, %%edi\n"                            \
	"	or %%edi, %%ecx\n"                           \
	"	shl $32, %%r10\n"                            \
	"	or %%rcx, %%r10\n"                           \
	"	rdtsc\n"                                     \
	"	shl $32, %%rdx\n"                            \
	"	or %%rdx, %%rax\n"                           \
	"	mov %%rax, %c[clock](%%r8)\n"                \
	"	mov %%r10, %c[cpu](%%r8)\n" /* from here on the record is whole */

#define ENTRY(name, TCB, rarely)                              \
	"	.p2align 6\n"                                \
	"	.type " name ", @function\n"                 \
	name ":\n" TAKE_SLOT(TCB) PUT_RECORD(TCB)             \
	"3:	ret\n" TAKE_CPU                              \
	"5:	xor %%eax, %%eax\n"                          \
	"	jmp 2b\n"                                    \
	"6:	jmp %P[" rarely "]\n"                        \
	"	.size " name ", . - " name "\n"

/* Never called: only functions may have operands in their assembly. */
__attribute__((used, noinline)) static void define_entries(void)
{
	asm volatile(".pushsection kx_recorder, \"ax\", @progbits\n"
		     ENTRY("kx_entry_by_fsbase", TCB_BY_FSBASE, "rarely_by_fsbase")
		     ENTRY("kx_entry_by_segment", TCB_BY_SEGMENT, "rarely_by_segment")
		     ".popsection\n"
		     :
		     : [rings] "i"(offsetof(struct kx_patch_head, rings)), [by_rdpid] "i"(KX_TARGET_RDPID),
		       [by_rseq] "i"(KX_TARGET_RSEQ), [cpu_mask] "i"(KX_RECORDER_CPU_MASK), [cpu_segment] "i"(KX_RECORDER_CPU_SEGMENT),
		       [cpu_offset] "i"(offsetof(struct kx_target_rings, cpu_offset)),
		       [cpu_by] "i"(offsetof(struct kx_target_rings, cpu_by)),
		       [ncpus] "i"(offsetof(struct kx_target_rings, ncpus)),
		       [ring_bytes] "i"(offsetof(struct kx_target_rings, ring_bytes)),
		       [slot_mask] "i"(offsetof(struct kx_target_rings, slot_mask)),
		       [tid_offset] "i"(offsetof(struct kx_target_rings, tid_offset)),
		       [first_ring] "i"(sizeof(struct kx_target_rings)),
		       [head] "i"(offsetof(struct kx_ring_header, head)),
		       [limit] "i"(offsetof(struct kx_ring_header, limit)),
		       [slots] "i"(sizeof(struct kx_ring_header)), [slot_shift] "i"(SLOT_SHIFT),
		       [unaligned] "i"(TCB_ALIGNMENT - 1), [tcb_self] "i"(TCB_SELF), [func_mask] "i"(FUNC_MASK),
		       [at_instruction] "i"(KX_FUNC_AT_INSTRUCTION), [kind_shift] "i"(KIND_SHIFT),
		       [clock] "i"(offsetof(struct kx_wire_record, clock)),
		       [sp] "i"(offsetof(struct kx_wire_record, sp)),
		       [tid] "i"(offsetof(struct kx_wire_record, tid)),
		       [cpu] "i"(offsetof(struct kx_wire_record, cpu)),
		       [rarely_by_fsbase] "i"(record_rarely_by_fsbase), [rarely_by_segment] "i"(record_rarely_by_segment));
}

const uint8_t *kx_recorder_code(enum kx_recorder_tcb_by by, size_t *size, size_t *entry)
{
	kx_recorder_fn *const begin = by == KX_RECORDER_TCB_BY_FSBASE ? kx_entry_by_fsbase : kx_entry_by_segment;

	*size = (size_t)(section_end - section_start);
	*entry = (size_t)((const uint8_t *)(uintptr_t)begin - section_start);
	return section_start;
}
