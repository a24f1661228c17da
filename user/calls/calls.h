// SPDX-License-Identifier: BSD-2-Clause
/*
 * The calls of a trace, as report and the exporters read them. Other rooms use this header and
 * open_calls.h.
 *
 * A trace holds entries and exits for each thread, and some are missing: calls that began before
 * the recording or had not ended when it stopped, losses, longjmp. The call view matches them,
 * applies the filter, and emits balanced calls to a visitor: for each enter there is exactly one
 * leave, and times never go back. So no exporter repairs anything itself.
 *
 * A pass over the file finds its range of time and the names of threads (calls_scan.c). A walk
 * (calls_walk.c) then reads the records of one thread after the other, or of all threads merged in
 * order of time. Per thread, calls_stream.c balances and filters records into a queue, and
 * calls_emit.c takes them from there to the visitor. Without a filter and in thread order, calls
 * skip the queue (calls_direct.c).
 *
 * Durations are without the probes' own time, if the map has it (trace/probe_cost.h) and unless the filter
 * says raw. Positions in time are as recorded, but for the end of a call: see leave.
 *
 * Cost: memory grows with threads and open calls, and with --min-duration with the other events of
 * that duration, not with the trace. In order of time all threads that have begun are open at once.
 */
#ifndef KX_CALLS_H
#define KX_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trace/values.h"
#include "trace/fdr_reader.h"
#include "trace/off_cpu.h"
#include "trace/symbolizer.h"

/* What to leave out. All zero: nothing. */
struct kx_call_filter {
	uint64_t from_ns, to_ns;     /* since the trace's first record; to_ns 0: to the end. A call
				      * that reaches over a bound is cut there, not dropped */
	const int32_t *pids, *tids;  /* keep these only; NULL: all */
	size_t npids, ntids;
	const char *const *include;  /* [MODULE:]GLOB, as in pattern.h; on "#id" without a map */
	const char *const *exclude;
	size_t ninclude, nexclude;
	uint64_t min_duration_ns;    /* shorter calls are dropped, and so are their callees; and
				      * calls whose end was not recorded */
	uint32_t max_depth;          /* deeper calls are dropped; 1 keeps the outermost; 0: all */
	bool raw;                    /* times as recorded, with the probes' own time */
};

struct kx_call_thread {
	uint32_t index;      /* 0 to kx_calls_nthreads - 1 */
	int32_t pid, tid;
	int32_t ns_pid, ns_tid; /* in its own pid namespace; 0: the same, or unknown */
	uint32_t life;       /* threads that had the same ids before it, in this trace */
	const char *name;    /* "" if unknown */
	const char *process; /* "" if unknown */
	uint16_t cpu;        /* the CPU that it runs on, by its newest record */
	uint32_t depth;      /* open calls, the newest included */
	const struct kx_call *stack; /* outermost first; stack[depth - 1] is the newest */
	void *user;          /* the visitor's own */
};

struct kx_call {
	uint32_t func;
	uint16_t cpu;        /* where it was entered */
	uint8_t nargs;       /* valid words in args; 0 for calls entered before --time's range */
	bool has_caller;
	bool has_result;     /* when it leaves: result is what it returned */
	bool outermost;      /* no other call of this function is open below it: recursion once */
	uint64_t enter;      /* ticks */
	uint64_t took;       /* when it leaves: ticks, without the probes' own time */
	uint64_t children;   /* ticks that direct callees that have ended took; of one without a
			      * measured end only what its own callees took */
	uint64_t number;     /* of this call in the walk, in order of emission, from 0 on */
	uint64_t caller;     /* if has_caller: return address (record --callers), ELF address of its
			      * module if the map knows that, else as recorded */
	uint64_t return_address; /* the same as recorded, a run-time address */
	uint32_t caller_module; /* 1 + index of that module in the map; 0: not known */
	uint64_t args[KX_FDR_READ_ARGS];
	struct kx_value_payload values; /* of the entry: see trace/values.h; borrowed from the trace */
	struct kx_value_payload exit_values; /* when it leaves */
	int64_t result;      /* rax at the exit (record --results); of a system call (--args): -errno if it failed */
	void *user;          /* the visitor's own */
};

enum kx_leave {
	KX_LEAVE_EXIT,
	KX_LEAVE_TAIL,     /* by a tail jump */
	KX_LEAVE_REPAIRED, /* closed by kxray, when recording or here: the end is an upper bound */
	KX_LEAVE_OPEN,     /* still running at the end of the trace (or of --time) */
};

/*
 * Whether the call's end was recorded. The end of a repaired call is the first event that proves
 * it, which can be any time later: statistics take such a call's count, not its time, and that
 * counts as self time of its caller.
 */
static inline bool kx_leave_is_measured(enum kx_leave how)
{
	return how == KX_LEAVE_EXIT || how == KX_LEAVE_TAIL;
}

/*
 * Callbacks, each may be NULL; a negative errno ends the walk. Times are ticks and never go
 * back within a thread (within the trace in KX_ORDER_TIME). Threads without a call, loss or event
 * are left out. Pointers to calls are valid until the callback returns: the stack moves.
 *
 * What a filter drops counts as not recorded. A dropped call is spliced out: its time is self time
 * of its caller, and its callees become callees of its caller.
 */
struct kx_call_visitor {
	/* first of a thread, and again when its name changes or another thread has got its ids */
	int (*thread)(void *ctx, struct kx_call_thread *t, uint64_t tsc);
	/* the call is on t->stack already */
	int (*enter)(void *ctx, struct kx_call_thread *t, struct kx_call *call);
	/*
	 * still on t->stack; its duration is call->took, self = took - children; both are upper
	 * bounds for KX_LEAVE_REPAIRED. @tsc is earlier than recorded by what the call's own probes
	 * took; the time of nested calls' probes is still in it
	 */
	int (*leave)(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		     enum kx_leave how);
	/* the thread moves to CPU @cpu, t->cpu is the old one; at first both are its first CPU */
	int (*cpu)(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t cpu);
	/* a gap: hits between these times are not in the trace */
	int (*loss)(void *ctx, struct kx_call_thread *t, uint64_t from, uint64_t to,
		    uint64_t entries, uint64_t exits);
	/* custom and typed events that are not kxray's own notes; type 0 for custom ones */
	int (*event)(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t type,
		     const uint8_t *data, uint32_t size);
	/*
	 * a note of kxray's (fdr.h) of a kind that has no callback here; of @rec only thread, pid,
	 * tid, tsc, data and size are valid
	 */
	int (*note)(void *ctx, struct kx_call_thread *t, const struct kx_fdr_record *rec);
	/* an on-CPU sample (record --sample): the thread was at this run-time address */
	int (*sample)(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint64_t ip);
	/*
	 * The thread was off the CPU (record --sched); it neither entered nor left a function in
	 * between. Emitted at the interval's end, cut to the range of time.
	 */
	int (*sched)(void *ctx, struct kx_call_thread *t, const struct kx_sched_interval *i);
	/* nothing of this thread follows */
	int (*end)(void *ctx, struct kx_call_thread *t, uint64_t tsc);
	void *ctx;
};

enum kx_order {
	KX_ORDER_THREAD, /* one thread after the other: the fastest */
	KX_ORDER_TIME,   /* all threads merged; equal times: by thread index */
};

struct kx_calls;

struct kx_calls_totals {
	uint64_t first_tsc, last_tsc; /* of all records: --time counts from the first */
	uint64_t calls;    /* emitted, open ones included */
	uint64_t orphans;  /* exits without entry in the range of time, dropped */
	uint64_t added_orphans; /* of these: exits that the recorder had added */
	uint64_t repaired; /* calls closed without an exit of their own, see open_calls.h */
	uint64_t open;     /* at the end of the trace or of --time; they end there */
	uint64_t lost;     /* hits that the recorder lost, by the trace's notes */
};

/*
 * @f and @names are borrowed and must outlive it; @filter may be NULL. A pass over the file finds
 * first_tsc and last_tsc. Errors: -EBADMSG (damaged), -EINVAL (a bad pattern), -ENOMEM.
 */
int kx_calls_new(struct kx_fdr_file *f, struct kx_symbolizer *names,
		 const struct kx_call_filter *filter, struct kx_calls **out, struct kx_err *err);
void kx_calls_free(struct kx_calls *c);

/* Whether the trace has the times that threads were off the CPU (record --sched). */
bool kx_calls_have_sched(const struct kx_calls *c);

/* Whether the calls have return addresses (record --callers). */
bool kx_calls_have_callers(const struct kx_calls *c);

size_t kx_calls_nthreads(const struct kx_calls *c);
/* Filtered ones too. Its names: before and after a walk the last ones, during a walk the current ones. */
const struct kx_call_thread *kx_calls_thread(const struct kx_calls *c, size_t index);

/*
 * Walks the whole trace; may be called again. @progress (NULL for none) gets the bytes read and
 * the bytes of the file, a few times a second. Errors: -EBADMSG, -ENOMEM, or what a callback
 * returned (@err is left to the callback then).
 */
int kx_calls_walk(struct kx_calls *c, enum kx_order order, const struct kx_call_visitor *v,
		  void (*progress)(void *ctx, uint64_t done, uint64_t all), void *progress_ctx,
		  struct kx_err *err);

/*
 * The name of the thread's process for display, with its id in its own pid namespace if that
 * differs: "server", "server (pid 7 in its namespace)"; "" if unknown. Cut at @size.
 */
#define KX_PROCESS_TITLE 128
void kx_call_process_title(const struct kx_call_thread *t, char *out, size_t size);

/* Valid after a walk; first_tsc and last_tsc always. */
const struct kx_calls_totals *kx_calls_get_totals(const struct kx_calls *c);

/* After a walk: the @n-th pattern of the filter that no function in it has matched, or NULL. */
const char *kx_calls_unmatched(const struct kx_calls *c, size_t n);

/* The JSON of the trace's own session note (see map_file.h), not terminated; NULL if it has none. */
const char *kx_calls_session(const struct kx_calls *c, size_t *size);

#endif
