/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * The wire record: what BPF programs put into the per-CPU rings and the
 * collector takes out. This header holds that and nothing else; it is the one
 * header that both sides of the kernel boundary include.
 *
 * A ring is one mmapable BPF array, owned by one CPU and seen as 32-byte slots. Slots
 * 0 to KX_RING_HEADER_SLOTS-1 hold the positions, the rest hold records. A
 * record takes one slot, and more where it carries a payload; the slots of one
 * record are consecutive positions (they may wrap round the end of the ring).
 */
#ifndef KX_WIRE_H
#define KX_WIRE_H

#include <linux/types.h>

/*
 * What happened in a thread: in the wire record, and from there to the trace. The numbers are in no
 * file. A new kind gets the next number here and a row in user/collect/event.c.
 */
enum kx_event_kind {
	KX_EVENT_PAD = 0,         /* no record, only fills its slots */
	KX_EVENT_ENTRY = 1,       /* payload: captured arguments, then the caller if asked for */
	KX_EVENT_EXIT = 2,        /* the function returned; payload: its result, if asked for */
	KX_EVENT_TAIL_EXIT = 3,   /* the function left by a tail jump */
	KX_EVENT_MIGRATE = 4,     /* the thread moves to CPU `func` */
	KX_EVENT_THREAD_EXIT = 5, /* func is the tgid; payload: comm, 2 words */
	KX_EVENT_THREAD_NAME = 6, /* func is the tgid; payload: new comm, 2 words */
	KX_EVENT_SAMPLE = 7,      /* sp is the user-space instruction pointer */
	KX_EVENT_THREAD_NEW = 8,  /* func is the tgid; payload: comm, 2 words; 1 word: the parent's
				   * tgid, in the high half the tid in the thread's own pid namespace */
	KX_EVENT_SCHED_OUT = 9,   /* leaves its CPU; func is its state (0: preempted), sp: see
				   * KX_SCHED_SWITCHES */
	KX_EVENT_SCHED_IN = 10,   /* runs on `cpu`; sp is its switches, the same as when it left */
	KX_EVENT_WAKE = 11,       /* becomes runnable; func is the waker's tid, sp 1 for a new thread */
	KX_EVENT_UNWIND = 12,     /* this call, and all that it called, was found to have ended */
	KX_EVENT_LOSS = 13,       /* not in the rings: the collector makes it. A gap that ends at
				   * `clock`; payload: where it begins, lost entries, lost exits */
	KX_EVENT_FAULT = 14,      /* page fault: sp is the address, func the bits KX_FAULT_...;
				   * payload: the instruction pointer */
	KX_EVENT_BUDGET = 15,     /* not in the rings: a step of the budget for function func; payload: one
				   * call in so many is recorded (0: its probes are out), calls so far */
	KX_EVENT_KINDS
};

/* Of KX_EVENT_FAULT, as the CPU's error code has them; a read is neither a write nor an execution. */
#define KX_FAULT_WRITE 2
#define KX_FAULT_USER 4 /* else the kernel accessed the address, in a system call of the thread */
#define KX_FAULT_EXEC 16

/* Whether it is a hit of a function's probe. */
#define KX_EVENT_IS_CALL(kind) ((kind) >= KX_EVENT_ENTRY && (kind) <= KX_EVENT_TAIL_EXIT)

struct kx_wire_record {
	__u64 clock;  /* see enum kx_wire_clock */
	__u64 sp;     /* stack pointer as it was at the function's entry */
	__u32 tid;    /* thread id as the initial pid namespace sees it */
	__u32 func;   /* function id, 1 to 2^28-1 */
	__u16 cpu;    /* where it happened: the ring's CPU, but for entries written late */
	__u8 kind;    /* enum kx_event_kind */
	__u8 words;   /* 8-byte words of payload: 3 in each further slot */
	__u32 commit; /* low 32 bits of the record's position + 1; written last */
};

_Static_assert(sizeof(struct kx_wire_record) == 32, "wire record is 32 bytes");

/* In func of an exit: a probe at the function's own instruction has seen it, and not a return probe. */
#define KX_FUNC_AT_INSTRUCTION (1U << 31)
/* In func of an entry or an exit: the payload is values, see struct kx_fetch. */
#define KX_FUNC_VALUES (1U << 30)
/* In func of an entry with values: the last word is the caller. */
#define KX_FUNC_CALLER (1U << 29)
/* In func of an exit: entries of older calls of the thread may follow, which wait for their results. */
#define KX_FUNC_HELD KX_FUNC_CALLER
#define KX_FUNC_FLAGS (KX_FUNC_AT_INSTRUCTION | KX_FUNC_VALUES | KX_FUNC_CALLER | (1U << 28) /* KX_FUNC_MARKER */)

/*
 * In func of an entry or an exit: it comes from a USDT marker. The stack pointer is as if the marker were called, and says nothing of
 * where a span ends. An entry is an instant with KX_FUNC_INSTANT, which has no exit, and else begins a span.
 */
#define KX_FUNC_MARKER (1U << 28)
#define KX_FUNC_INSTANT KX_FUNC_AT_INSTRUCTION

/* Typed values of a call: how one is fetched. They travel in the payload of its entry and its exit. */
#define KX_MAX_VALUES 8 /* of one function: at entry and exit together */
#define KX_FETCH_HOPS 5 /* reads of memory, at most */

/* Numbers are append-only. */
enum kx_fetch_from {
	KX_FROM_DI = 0,
	KX_FROM_SI = 1,
	KX_FROM_DX = 2,
	KX_FROM_CX = 3,
	KX_FROM_R8 = 4,
	KX_FROM_R9 = 5,
	KX_FROM_SP = 6, /* as it was at the function's first instruction */
	KX_FROM_AX = 7,
	KX_FROM_CONSTANT = 8, /* 0: the address or number is offset[0] */
	KX_FROM_BX = 9,
	KX_FROM_BP = 10,
	KX_FROM_R10 = 11,
	KX_FROM_R11 = 12,
	KX_FROM_R12 = 13,
	KX_FROM_R13 = 14,
	KX_FROM_R14 = 15,
	KX_FROM_R15 = 16,
	KX_FROM_IP = 17, /* of the marker */
	KX_FROM_COUNT
};

#define KX_FETCH_EXIT 1	   /* at the call's exit */
#define KX_FETCH_COUNTED 2 /* a string as long as the value `length` says, and not up to a NUL */
#define KX_FETCH_SIGNED 4  /* a number that is sign-extended to 64 bits */

/*
 * Value = register. For each hop: value = the 8 bytes (at the last hop of a number: `size` bytes) at value + offset[hop].
 * Without hops a number is register + offset[0]; a string is at value + offset[hops].
 */
struct kx_fetch {
	__u8 from;   /* enum kx_fetch_from */
	__u8 hops;   /* up to KX_FETCH_HOPS */
	__u8 size;   /* of a number: 1, 2, 4, 8; 0: a string */
	__u8 flags;  /* KX_FETCH_... */
	__u16 most;  /* bytes of a string that are kept, at most */
	__u8 length; /* KX_FETCH_COUNTED: which value of the same event has the length, from 0 on; one before its own */
	__u8 pad;
	__s32 offset[KX_FETCH_HOPS + 1];
};

_Static_assert(sizeof(struct kx_fetch) == 32, "a fetch is 32 bytes");

/*
 * The payload: one word whose bit i says that value i of this event could not be read, and bit 32 + i that string i was
 * cut. Then for each value one word, the number, or of a string its bytes, which follow in as many words as they need,
 * padded with zeros.
 */
#define KX_VALUES_CUT 32 /* first bit */
/* In that word, of an entry: whether the call met the function's condition is unknown. */
#define KX_VALUES_IF_UNKNOWN (1ULL << 31)
/* Words of a value at most. */
#define KX_STRING_WORDS(most) (1 + ((most) + 7) / 8)
#define KX_STRING_MOST 64   /* default of kx_fetch.most */
#define KX_STRING_LONGEST 168 /* largest kx_fetch.most: beside it are the first word, its length and the caller */

/* Of one function. */
struct kx_value_table {
	__u8 entry, exit; /* fetches at its entry, which come first, and at its exit */
	__u8 zero;	  /* always 0, which the verifier does not know */
	__u8 args;	  /* without values: argument registers to capture */
	__u16 condition;  /* number of its struct kx_condition_table + 1; 0: it has none */
	__u8 pad[2];
	struct kx_fetch fetches[KX_MAX_VALUES];
};

/* KX_COOKIE_NARGS of a function that has values or a condition, in place of arguments. */
#define KX_NARGS_VALUES 7

/*
 * Which calls are recorded. A condition is a table of comparisons, walked from the first one on: where it goes from each of them depends
 * on whether it holds. One whose memory cannot be read is unknown, and goes the way that leads to KX_TERM_ACCEPT if there is any (negations are
 * in the comparisons, not in the ways): so a call that is left out did certainly not meet the condition.
 */
#define KX_MAX_TERMS 8 /* of a function */
#define KX_MAX_CONDITIONS 1024 /* different ones */
#define KX_MAX_GLOBS 32	       /* different ones */

/* What is compared. */
enum kx_term_of {
	KX_TERM_VALUE = 0,  /* what `fetch` fetches */
	KX_TERM_THREAD = 1, /* the thread's name */
	KX_TERM_TID = 2,
	KX_TERM_DEPTH = 3, /* traced calls that are open in the thread, with this one */
};

enum kx_term_how {
	KX_TERM_NUMBER = 0, /* with `constant` */
	KX_TERM_BITS = 1,   /* whether any bit of `constant` is set */
	KX_TERM_GLOB = 2,   /* a string with glob number `constant` */
};

/* Bits of kx_term.holds: of KX_TERM_NUMBER; the others have HELD and NOT. */
#define KX_TERM_EQUAL 1
#define KX_TERM_LESS 2
#define KX_TERM_MORE 4
#define KX_TERM_HELD 1
#define KX_TERM_NOT 2

/* Numbers of terms that end the walk. */
#define KX_TERM_ACCEPT 254
#define KX_TERM_REJECT 255

struct kx_term {
	struct kx_fetch fetch;	/* a string's KX_FETCH_COUNTED: `length` is its length */
	struct kx_fetch length;
	__u64 constant; /* of a signed value with `flip` applied */
	__u64 flip;	/* the sign's bit if the comparison is signed, else 0: it is exclusive-ored to the value */
	__u8 of;	/* enum kx_term_of */
	__u8 how;	/* enum kx_term_how */
	__u8 holds;	/* for which outcomes */
	__u8 yes, no;	/* the next term, which is a later one, or KX_TERM_ACCEPT, KX_TERM_REJECT */
	__u8 pad[3];
};

struct kx_condition_table {
	__u8 n;	       /* terms */
	__u8 at_exit;  /* bit i: term i is about the result */
	__u8 by_depth; /* some term is KX_TERM_DEPTH */
	__u8 pad[5];
	struct kx_term terms[KX_MAX_TERMS];
};

/* See user/base/glob_steps.h. */
struct kx_glob {
	__u64 step[256];
	__u64 loop;
	__u64 accept;
};

/* Which conditions there are. */
#define KX_CONDITIONS_ANY 1
#define KX_CONDITIONS_RESULT 2 /* some are about results */
#define KX_CONDITIONS_DEPTH 4  /* some are about the depth */
#define KX_CONDITIONS_KEEP 8   /* some calls with values wait for their result */

/* Whether every call has a frame: see bpf/reduce.bpf.h. */
#define KX_FRAMED 1
#define KX_FRAMED_RESULTS 2 /* some calls wait for their results */

/* Calls of functions that have a condition; sums over all CPUs. */
enum kx_condition_count {
	KX_CONDITION_MET,	/* it held */
	KX_CONDITION_REJECTED,	/* it did not: the call is not recorded */
	KX_CONDITION_UNKNOWN,	/* memory could not be read, or there is no result: the call is recorded */
	KX_CONDITION_UNDECIDED, /* about the result of a call that has not ended yet, or whose exit did not come */
	KX_CONDITION_COUNTS
};

/* Slots of a record with that many words of payload. */
#define KX_WIRE_SLOTS(words) (1 + ((words) + 2) / 3)
#define KX_WIRE_MAX_WORDS 24
/* Of all records but those with values. */
#define KX_WIRE_PLAIN_WORDS 9

/* Why a hit is not in the ring. Numbers are append-only. */
enum kx_wire_loss {
	KX_LOSS_RING_FULL = 0,   /* no room: the collector fell behind */
	KX_LOSS_RING_BUSY = 1,   /* too many writers raced for one slot */
	KX_LOSS_NO_RING = 2,     /* the CPU came online after the start */
	KX_LOSS_REASONS = 3,
};

/*
 * The header of a ring. The writers' words share a cache line, so that a hit touches one; the reader's word and the
 * losses have lines of their own.
 */
struct kx_ring_header {
	__u64 head;  /* next free position; writers advance it by cmpxchg */
	__u64 limit; /* tail + slots, as a writer has last read them: head may advance up to this at least */
	__u64 current_at; /* kernel address of the CPU's pointer to its current task; 0: unknown */
	/* the native stack of the thread that was last asked about on this CPU: see native_stack.bpf.h */
	__u64 stack_task;
	__u64 stack_mm;
	__u64 stack_from;
	__u64 stack_size;
	__u32 stack_tid; /* 0: none; KX_STACK_BUSY: being written */
	__u32 pad0;
	__u64 tail; /* first position not yet consumed; only the reader writes */
	__u64 pad1[7];
	__u64 lost[KX_LOSS_REASONS];       /* function entries and exits */
	__u64 pad2;
	__u64 lost_other[KX_LOSS_REASONS]; /* migrations and thread records */
	__u64 pad3;
};

#define KX_STACK_BUSY (~0U)
#define KX_RING_SLOT_SIZE 32
#define KX_RING_HEADER_SLOTS 6
/* An element of the array: a cache line of the header, or two slots. */
#define KX_RING_VALUE_SIZE 64
#define KX_RING_VALUES(slots) ((KX_RING_HEADER_SLOTS + (slots)) / 2)
_Static_assert(sizeof(struct kx_ring_header) ==
		       KX_RING_HEADER_SLOTS * KX_RING_SLOT_SIZE,
	       "ring header fills whole slots");

/* Losses of one thread, kept in a hash by tid; totals only grow. */
struct kx_thread_loss {
	__u64 entries;
	__u64 exits;
	/* First loss since the collector bumped the epoch. An older one that the collector has not read is
	 * hidden by it; first_total shows that. Written after first_total, read before. */
	__u64 first_clock;
	__u64 first_total; /* entries + exits before that loss */
	__u64 last_clock;  /* newest loss */
	__u32 epoch;
	__u32 last_cpu;
};

/* How often a thread had left a CPU by then, and how many ns it had run just before. */
#define KX_SCHED_SWITCHES(sp) ((__u32)(sp))
#define KX_SCHED_RAN_NS(sp) ((__u32)((sp) >> 32))
#define KX_SCHED_RAN_UNKNOWN 0xffffffffU /* too long for this field, or not reported by the kernel */
#define KX_SCHED_SP(switches, ran_ns) ((__u64)(ran_ns) << 32 | (__u32)(switches))

enum kx_wire_clock {
	KX_CLOCK_KFUNC = 1, /* TSC through the kernel's cycle counter kfunc */
	KX_CLOCK_KTIME = 2, /* nanoseconds of CLOCK_MONOTONIC */
};

/* Filters on what runs, beside that. */
#define KX_FILTER_CPU 1
#define KX_FILTER_UID 2
#define KX_FILTER_CGROUP 4
#define KX_FILTER_COMM 8

#define KX_FILTER_MAX_CPUS 4096

/* Which processes are traced. */
enum kx_wire_scope {
	KX_SCOPE_ONE = 0, /* one, with all its threads */
	KX_SCOPE_SET = 1, /* those in a map; with --follow their children too */
	KX_SCOPE_ALL = 2, /* all but kxray */
};

/* Beside a function: its thread had its system calls dispatched to a handler. */
#define KX_SWITCHING_DISPATCHED (1U << 31)

/* A traced process. */
struct kx_target {
	__u32 changes; /* of its list of modules, exec included; BPF programs add 1 */
	__u32 checked; /* the value of changes at which return probes were last found harmless */
	__u32 switching; /* a function that ran on a stack that is not its thread's, or KX_SWITCHING_DISPATCHED; 0: none since exec */
	__u32 loads;   /* its children may load libraries before anything notices: see kx_fork */
};

/* A thread that holds leases, or waits for those of others: see lease.bpf.h. */
struct kx_lease {
	__u32 tid;
	__u32 holds;	/* one of its calls has a lease */
	__u64 waits;	/* it sleeps and nothing can wake it, perhaps for leases: how often it has begun to sleep; 0: it does not */
};

#define KX_MAX_LEASED 1024 /* threads that are watched, or without return probes, at a time */

/* Of a thread that held a lease when user space looked. */
enum kx_lease_state {
	KX_LEASE_ENDED,	  /* a call began, and none around it had one */
	KX_LEASE_WATCHED, /* none has begun so since user space looked */
	KX_LEASE_GAP,	  /* its calls get no return probes */
};

enum kx_process_event_kind {
	KX_PROCESS_FORKED = 1,  /* a traced process has a child, traced too */
	KX_PROCESS_EXECED = 2,
	KX_PROCESS_MODULES = 3, /* its list of modules may have changed */
	KX_PROCESS_ENDED = 4,
	KX_PROCESS_TRANSLATES = 5, /* one that is traced or not: it executes a program whose name is that of a translator (binary/translator.h) */
};

/* A process that user space must scan soon; in a ring buffer of its own. */
struct kx_process_event {
	__u32 kind;   /* enum kx_process_event_kind */
	__u32 tgid;
	__u32 parent; /* KX_PROCESS_FORKED */
	__u32 child;  /* the same: KX_CHILD_... */
	__u64 ns;     /* CLOCK_MONOTONIC */
	/*
	 * KX_PROCESS_FORKED: where the kernel writes the child's id before it runs (CLONE_CHILD_SETTID), from its thread
	 * pointer on; or KX_NO_TID
	 */
	__u64 tid_at;
};

#define KX_CHILD_SHARES_MEMORY 1u /* with its parent, as after vfork */
#define KX_CHILD_NAMESPACED    2u /* it begins a PID namespace: its own ids are others than its parent knows */
#define KX_NO_TID	       (~0ULL)

/* Groups of modules by which functions get no more return probes; see KX_COOKIE_GROUP. */
#define KX_MAX_GROUPS 4096

/*
 * The stack pointer that orders the calls of a thread is made up for calls inside the kernel, far
 * below any of user space: a system call is inside the user function that made it, a kernel function
 * inside the system call, and what an interrupt brings inside both.
 */
#define KX_SYSCALL_SP 0xc001
#define KX_KERNEL_SP_BASE 0x8000 /* plus the distance from the lower end of the task's stack */
#define KX_KERNEL_SP_END 0x10000 /* all of these are below, and no stack of user space is */
#define KX_IRQ_SP_MASK 0x3fff /* less the distance from the upper end of the stack for interrupts */

/* Numbers of system calls below this can be traced. */
#define KX_MAX_SYSCALLS 512
/* How a system call is traced, 0 if it is not: its function id and the arguments to capture. */
#define KX_SYSCALL_TRACED(func, nargs) ((func) | (__u32)(nargs) << 28)
#define KX_SYSCALL_FUNC(traced) ((traced) & 0x0fffffff)
#define KX_SYSCALL_NARGS(traced) ((traced) >> 28)

/* Why a flight recorder dumps. */
enum kx_trigger_kind {
	KX_TRIGGER_ENTRY = 1, /* a call of `func` began */
	KX_TRIGGER_SLOW = 2,  /* a call of `func` ended that lasted too long */
	KX_TRIGGER_END = 3,   /* a process ended */
	KX_TRIGGER_IF = 4,    /* a call of `func` met a condition */
};

struct kx_trigger_event {
	__u64 clock;  /* see enum kx_wire_clock */
	__u64 value;  /* SLOW: ns that the call lasted; END: start time of the process, which identifies it */
	__u32 kind;   /* enum kx_trigger_kind */
	__u32 func;
	__u32 tid;
	__u32 tgid;
	__u32 status; /* END: as wait(2) gives it */
	__u32 pad;
	char comm[16]; /* of the thread; END: of the process */
};

struct kx_trigger_func {
	__u64 over_ns;	  /* calls that last longer; 0: not timed */
	__u32 on_entry;	  /* every call */
	__u32 condition;  /* beside that, calls that meet this condition: its number + 1; 0: there is none */
	__u64 if_over_ns; /* and that last longer; 0: whatever they last */
};

/*
 * With a budget: how much of a function is recorded, and what its probes take of the target's time. Written by user
 * space.
 */
struct kx_budget_rate {
	__u32 level; /* one call in 2^level is recorded, up to KX_BUDGET_MAX_LEVEL; KX_BUDGET_NONE: none is */
	__u32 recorded_ns, counted_ns; /* of a call that is recorded, of one that is only counted */
	__u32 pad;
};

/*
 * With kxray top: the calls of one function that began or ended on one CPU, since the gate was opened. Only max_ns is ever
 * set back, by user space. An element fills whole cache lines.
 */
#define KX_CALL_BUCKETS 45
struct kx_call_stats {
	__u64 calls;  /* that have begun */
	__u64 sum_ns; /* of the measured durations, which the buckets count */
	__u64 max_ns; /* since user space has last set it to 0 */
	__u64 buckets[KX_CALL_BUCKETS]; /* i: from 2^i to below 2^(i + 1) ns; 0: also 0 ns; the last: all longer ones */
};

_Static_assert(sizeof(struct kx_call_stats) == 384, "statistics of a function fill 6 cache lines");

#define KX_BUDGET_MAX_LEVEL 12
#define KX_BUDGET_NONE 64
#define KX_BUDGET_WAKE_NS (1u << 20) /* a power of two */

/* The probe's cookie: bits 0-27 function id, 28-30 arguments to capture, of an entry 31-35 the eights of bytes by
 * which the stack pointer is below its value at the function's first instruction, of an exit
 * 32-35 x86 condition of a conditional exit, 36 set if there is one (of an entry: on standby),
 * 37 set if the exit is a tail jump, and of an entry if the function may leave by one and its
 * exit is recorded by a return probe, 38 set if the function makes no calls,
 * 39 set if the function is a trigger, 40-51 of a session's probe its place in its page (the same in the file and in memory), set by
 * kx_uprobe_link, of an exit the eights of bytes by which the stack pointer is below its value at the function's first instruction,
 * 52-63 the module's group, see kx_replaced. Of an exit, which has no arguments, bit 28: on standby, bit 29: with values.
 * What is on standby begins to record when its group is replaced: see kx_replaced. */
#define KX_COOKIE_FUNC(c) ((__u32)(c) & 0x0fffffff)
#define KX_COOKIE_NARGS(c) ((__u32)((c) >> 28) & 0x7)
#define KX_COOKIE_FRAME(c) ((c) >> 28 & 0xf8) /* bytes */
#define KX_COOKIE_WITH_FRAME(c, bytes) ((c) | (__u64)(bytes) << 28)
#define KX_COOKIE_COND(c) ((__u32)((c) >> 32) & 0xf)
#define KX_COOKIE_IS_COND (1ULL << 36)
#define KX_COOKIE_STANDBY_ENTRY (1ULL << 36)
#define KX_COOKIE_STANDBY_EXIT (1ULL << 28)
#define KX_COOKIE_EXIT_VALUES (1ULL << 29)
#define KX_COOKIE_IS_TAIL (1ULL << 37)
#define KX_COOKIE_CHAINS (1ULL << 37)
#define KX_COOKIE_IS_LEAF (1ULL << 38)
#define KX_COOKIE_HAS_TRIGGER (1ULL << 39)
#define KX_COOKIE_PLACE(c) ((__u32)((c) >> 40) & 0xfff)
#define KX_COOKIE_GROUP(c) ((__u32)((c) >> 52) & (KX_MAX_GROUPS - 1))
#define KX_COOKIE_EXIT_FRAME(c) ((__u32)((c) >> 37) & 0x7ff8) /* bytes */
#define KX_COOKIE_WITH_EXIT_FRAME(c, bytes) ((c) | (__u64)(bytes) << 37)
/*
 * Of a USDT marker's probe: bits 0-27 as above, 28 set if it begins a span, 29 if it ends one, 30 if it has values, which 31-51
 * say the table of.
 */
#define KX_COOKIE_SPAN_BEGIN (1ULL << 28)
#define KX_COOKIE_SPAN_END (1ULL << 29)
#define KX_COOKIE_MARK_VALUES (1ULL << 30)
#define KX_MAX_TABLES (1U << 20)
#define KX_COOKIE_TABLE(c) ((__u32)((c) >> 31) & (KX_MAX_TABLES - 1))
#define KX_COOKIE_WITH_TABLE(table) (KX_COOKIE_MARK_VALUES | (__u64)(table) << 31)
#define KX_COOKIE_WITH_PLACE(c, offset) ((c) | ((offset) & 0xfff) << 40)

#endif
