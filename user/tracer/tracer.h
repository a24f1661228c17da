// SPDX-License-Identifier: BSD-2-Clause
/*
 * The kernel side of a recording: the BPF object, its rings and clock, and the variables that user space
 * changes while it runs (see bpf/README.md).
 *
 * In the order of use: kx_tracer_new loads the programs with the gate closed; probes are attached to
 * kx_tracer_prog_fd by attach/, sources by sources.h; kx_tracer_ready opens the gate; the rings are drained by
 * collect/; kx_tracer_ready closes the gate; sources and probes are detached, in any order; kx_tracer_free.
 */
#ifndef KX_TRACER_H
#define KX_TRACER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tracer/uprobe_link.h"
#include "tracer/clock.h"
#include "tracer/cpus.h"
#include "base/err.h"
#include "tracer/filters.h"
#include "tracer/kernel_mechanism.h"
#include "tracer/ring.h"
#include "tracer/sources.h"

/* A thread's open calls are followed to this depth at least, whatever arguments they carry. */
#define KX_MAX_DEPTH 96

struct kx_tracer_options {
	enum kx_mechanism mechanism;
	enum kx_kernel_mechanism kernel; /* of kernel functions; none: load nothing for them */
	enum kx_wire_clock clock; /* 0: the best that works */
	struct kx_clock *borrowed_clock; /* use this one, which outlives the tracer; NULL: a new one */
	bool probes_only;         /* load the programs of function probes and nothing else */
	bool no_functions;        /* load no programs of function probes, since there are no functions of binaries */
	bool sources_only;        /* load the programs of @sources and nothing else */
	bool general;             /* load the general programs, also where kx_tracer_is_plain without this */
	uint64_t ring_bytes;      /* of one CPU's ring; 0: by memory */
	const pid_t *pids;        /* traced processes */
	size_t npids;             /* at least 1, but for @all */
	bool follow;              /* and their children from now on */
	bool all;                 /* every process but kxray */
	bool own_probes;          /* processes have probes of their own: see kx_tracer_replace_session */
	const struct kx_filters *filters; /* or NULL */
	bool sources[KX_SOURCES]; /* the optional ones to load: KX_SOURCE_SCHED and those after it */
	unsigned sample_hz;       /* on-CPU samples per second of CPU time; 0: none */
	bool callers;             /* entries carry their return address */
	bool syscall_results;     /* exits of system calls carry their result */
	bool results;             /* exits of other functions carry rax */
	uint32_t value_functions; /* functions may have values or conditions, for ids up to this: see kx_tracer_set_values; 0: none has */
	bool markers;             /* load the program for USDT markers; with value_functions there are KX_MARKER_TABLES tables for them */
	struct kx_tracer_conditions {
		bool any;     /* functions may have conditions, or triggers may */
		bool results; /* some are about results */
		bool depth;   /* some are about the depth */
		bool values;  /* calls that wait for their results may have values */
	} conditions;
	bool ticks;               /* see kx_tracer_process_runs */
	bool flight;              /* report ends of processes and triggers */
	unsigned nargs;           /* most words of arguments an entry carries beside that */
	unsigned max_depth;       /* deeper calls are not written; 0: all are, else at most KX_MAX_DEPTH */
	uint64_t min_duration_ns; /* shorter calls are not written */
	uint32_t budget_functions; /* calls are counted and may be sampled, for ids up to this; 0: all are recorded */
	uint32_t count_functions; /* calls are only counted, for ids up to this; 0: they are recorded */
	uint32_t top_functions;   /* ... counted and timed; the clock must be KX_CLOCK_KTIME */
};

/*
 * Whether calls are recorded (or timed, for kxray top) as they come, of one process: then a session gets a program without the code for
 * anything else.
 */
bool kx_tracer_is_plain(const struct kx_tracer_options *options);

/* BPF programs a caller attaches; see ../bpf/record.bpf.c. */
enum kx_tracer_prog {
	KX_PROG_ENTRY,   /* entries without a return probe */
	KX_PROG_RETURN,  /* return probes; with KX_MECHANISM_SESSION entries too */
	KX_PROG_EXIT,    /* ret and tail jump instructions */
	KX_PROG_MARK,    /* USDT markers; only with options.markers */
	KX_PROG_DLOPEN,  /* the dynamic linker's _dl_debug_state */
	KX_PROG_STOP,    /* stops the started command at its entry point */
};

struct kx_tracer;

/*
 * Loads the programs, makes rings and clock. The gate is closed: hits are ignored
 * until kx_tracer_ready. Errors: -EPERM, -ENOENT (no BTF), -ENOMEM (rings), the verifier's.
 */
int kx_tracer_new(const struct kx_tracer_options *options, struct kx_tracer **out,
		  struct kx_err *err);
void kx_tracer_free(struct kx_tracer *t);

int kx_tracer_prog_fd(const struct kx_tracer *t, enum kx_tracer_prog prog);
/* The mechanism whose attach type that program was loaded for. */
enum kx_mechanism kx_tracer_prog_mechanism(const struct kx_tracer *t, enum kx_tracer_prog prog);

/* Programs for kernel functions, as requested by options.kernel. */
enum kx_kernel_mechanism kx_tracer_kernel_mechanism(const struct kx_tracer *t);
/* Entries or returns; of a session both. With fentry: those for the kprobes beside it. */
int kx_tracer_kernel_prog(const struct kx_tracer *t, bool is_return);
/* With fentry: loads the program for the function @btf_id. Its descriptor or a negative errno. */
int kx_tracer_kernel_load(const struct kx_tracer *t, bool is_return, uint32_t btf_id);

/*
 * How each system call is traced, by its number: KX_MAX_SYSCALLS of KX_SYSCALL_TRACED (wire.h).
 * To be filled before KX_SOURCE_SYSCALLS is attached.
 */
uint32_t *kx_tracer_syscalls(struct kx_tracer *t);
#define KX_SYSCALL_PROBES 2 /* tracepoints of KX_SOURCE_SYSCALLS */

/*
 * @each is called from kx_tracer_poll_events for processes that may have become translators (KX_PROCESS_TRANSLATES), of the whole system. Not
 * with kx_tracer_follow, which reports them as well.
 */
void kx_tracer_on_process(struct kx_tracer *t, void (*each)(void *ctx, const struct kx_process_event *event), void *ctx);

/*
 * Starts following: children of traced processes are traced from now on (only with options.follow
 * or options.all), and @each is called from kx_tracer_poll_events for processes that need a scan.
 */
int kx_tracer_follow(struct kx_tracer *t,
		     void (*each)(void *ctx, const struct kx_process_event *event), void *ctx,
		     struct kx_err *err);
/*
 * The state of a process: -ENOENT if it has none. How often its list of modules has changed must be
 * read before the list, and be handed to kx_tracer_checked after it.
 */
int kx_tracer_target(const struct kx_tracer *t, pid_t pid, struct kx_target *out);
/* Gives a process a state, if it has none yet. Errors: -E2BIG (too many processes). */
int kx_tracer_add_target(struct kx_tracer *t, pid_t pid);
void kx_tracer_remove_target(struct kx_tracer *t, pid_t pid);
/*
 * When it had @changes, return probes were harmless in the process. @loads: it can load libraries, and its
 * children have no probe in the dynamic linker yet when they begin.
 */
void kx_tracer_checked(struct kx_tracer *t, pid_t pid, uint32_t changes, bool loads);
/*
 * Without options.follow and options.all: whether function *@func of process *@pid was called on a stack
 * that is not its thread's. From then on no call gets a return probe (session mechanism only).
 */
bool kx_tracer_switches_stacks(const struct kx_tracer *t, pid_t *pid, uint32_t *func);
/*
 * From now on calls may end in another thread than they began in (goroutines), and those that do have no recorded exit. Costs each call whose exit is
 * at an instruction some accesses to a hash.
 */
void kx_tracer_calls_move(struct kx_tracer *t);
bool kx_tracer_has_moving_calls(const struct kx_tracer *t);
/* From now on no call gets a return probe (session mechanism, without options.follow and options.all). */
void kx_tracer_forbid_returns(struct kx_tracer *t);
/*
 * From now on the sessions of that group record nothing and place no return probes, and the probes that are on
 * standby (KX_COOKIE_STANDBY_...) record.
 */
void kx_tracer_replace_session(struct kx_tracer *t, uint32_t group);
/* Processes that could not be followed; events that were lost, so that all must be scanned. */
uint64_t kx_tracer_unfollowed(const struct kx_tracer *t);
uint64_t kx_tracer_process_events_lost(const struct kx_tracer *t);

/* Opens or closes the gate: only while it is open, hits are recorded, or counted as lost. */
void kx_tracer_ready(struct kx_tracer *t, bool ready);
/*
 * How often a traced process announced a change of its list of modules. While this differs from
 * the number last passed to kx_tracer_link_map_ack, functions that make calls get no new return
 * probe (session mechanism only); UINT32_MAX keeps it so for good.
 */
uint32_t kx_tracer_link_map_generation(const struct kx_tracer *t);
void kx_tracer_link_map_ack(struct kx_tracer *t, uint32_t changes);

/* Becomes readable when a ring fills up; kx_tracer_poll_events takes the doorbell's content out
 * and passes on process events. */
int kx_tracer_doorbell_fd(const struct kx_tracer *t);
void kx_tracer_poll_events(struct kx_tracer *t);

/*
 * With options.ticks, of a single process, and KX_SOURCE_TICKS attached: whether it has had a CPU since the last call, as far as
 * timer interrupts show. @wake: if not, the doorbell's descriptor becomes readable once when it has one.
 */
bool kx_tracer_process_runs(struct kx_tracer *t, bool wake);

/*
 * Calls of function @func are triggers: each at its entry, or those that last longer than @over_ns (0: none).
 * Before its probes are attached. Errors: -E2BIG (too many such functions).
 */
int kx_tracer_add_trigger(struct kx_tracer *t, uint32_t func, bool on_entry, uint64_t over_ns,
			  struct kx_err *err);
/*
 * Beside these, its calls that meet condition @number and last longer than @over_ns (0: whatever they last) are triggers: once it is known that they
 * do. Errors: -EEXIST (there is such a trigger on it), -E2BIG.
 */
int kx_tracer_add_trigger_if(struct kx_tracer *t, uint32_t func, uint16_t number, uint64_t over_ns, struct kx_err *err);
/*
 * What calls of @func carry; or a marker with table @func: these are the KX_MARKER_TABLES numbers after options.value_functions. Errors:
 * those of bpf(2).
 */
#define KX_MARKER_TABLES 8192
int kx_tracer_set_values(struct kx_tracer *t, uint32_t func, const struct kx_value_table *table, struct kx_err *err);
/* Calls of @func, with whatever values, have condition @number (see kx_tracer_add_condition), and carry @args registers without values. Errors: as above. */
int kx_tracer_set_condition(struct kx_tracer *t, uint32_t func, uint16_t number, uint8_t args, struct kx_err *err);

/*
 * The number of a condition for kx_value_table.condition and kx_trigger_func.condition: from 1 on; equal ones have the same. Errors: -E2BIG (more than
 * KX_MAX_CONDITIONS), -ENOMEM, those of bpf(2).
 */
int kx_tracer_add_condition(struct kx_tracer *t, const struct kx_condition_table *table, uint16_t *number, struct kx_err *err);
/* Glob number @index of the conditions; before the first condition that has it. Errors: those of bpf(2). */
int kx_tracer_set_glob(struct kx_tracer *t, uint32_t index, const struct kx_glob *glob, struct kx_err *err);
/* Calls of functions that have a condition so far, by enum kx_condition_count. */
void kx_tracer_condition_counts(const struct kx_tracer *t, uint64_t counts[KX_CONDITION_COUNTS]);

/* Whether function @func is one; @out may be NULL. */
bool kx_tracer_trigger(const struct kx_tracer *t, uint32_t func, struct kx_trigger_func *out);
/* The next call that fulfils a condition is reported; later ones are only counted until this is called again. */
void kx_tracer_arm_triggers(struct kx_tracer *t);
/* Calls only counted so far; *@lost: ends of processes and calls that found no room. */
uint64_t kx_tracer_triggers_merged(const struct kx_tracer *t, uint64_t *lost);
/* Readable when a trigger has fired; -1 without options.flight. */
int kx_tracer_trigger_fd(const struct kx_tracer *t);
void kx_tracer_read_triggers(struct kx_tracer *t,
			     void (*each)(void *ctx, const struct kx_trigger_event *ev), void *ctx);

/* They live as long as the tracer. */
struct kx_clock *kx_tracer_clock(struct kx_tracer *t);
const struct kx_cpus *kx_tracer_cpus(const struct kx_tracer *t);
struct kx_rings *kx_tracer_rings(struct kx_tracer *t);

/* Whether entries may be written long after they happened (--min-duration). */
bool kx_tracer_delays_entries(const struct kx_tracer *t);

/*
 * When the gate is closed and no probe runs any more: writes the entries of calls that are still open
 * and have lasted long enough. Errors: the kernel has no task iterator, or bpf(2)'s.
 */
int kx_tracer_flush_pending(struct kx_tracer *t, struct kx_err *err);

/*
 * Calls that --depth and --min-duration have left out; @too_deep: those among them
 * nested deeper than can be followed.
 */
void kx_tracer_reduced(const struct kx_tracer *t, uint64_t *calls, uint64_t *too_deep);

/*
 * With count_functions or top_functions: the calls of functions 1 to @n so far, to calls[id - 1]. Errors: bpf(2)'s,
 * -ENOMEM.
 */
int kx_tracer_calls(const struct kx_tracer *t, uint64_t *calls, uint32_t n, struct kx_err *err);

/*
 * With top_functions: the calls of @func since the gate was opened, over all CPUs, read while they go on: of calls that
 * begin or end meanwhile some parts may be counted. @take_max: max_ns begins anew. kx_tracer_calls works, too.
 */
uint32_t kx_tracer_top_functions(const struct kx_tracer *t); /* as in the options */
void kx_tracer_call_stats(struct kx_tracer *t, uint32_t func, bool take_max, struct kx_call_stats *out);

/*
 * With budget_functions: what a call of @func takes of the target's CPU time, ns, if it is recorded and if it is
 * only counted; which calls are recorded (struct kx_budget_rate), from the next one on; how many there were since the
 * gate was opened; and what the probes of all functions have taken so far by these costs. Ids that are not counted are ignored.
 */
void kx_tracer_set_cost(struct kx_tracer *t, uint32_t func, uint32_t recorded_ns, uint32_t counted_ns);
void kx_tracer_set_level(struct kx_tracer *t, uint32_t func, uint32_t level);
uint64_t kx_tracer_budget_calls(const struct kx_tracer *t, uint32_t func);
uint64_t kx_tracer_budget_spent_ns(const struct kx_tracer *t);

/* Function hits lost so far by reason, over all CPUs; @other: migrations and thread records. */
void kx_tracer_losses(const struct kx_tracer *t, uint64_t calls[KX_LOSS_REASONS],
		      uint64_t other[KX_LOSS_REASONS]);

/*
 * Calls @each for every thread that has lost something, with running totals. Then starts a new
 * epoch, so that first_clock of later losses is theirs.
 */
void kx_tracer_thread_losses(struct kx_tracer *t,
			     void (*each)(void *ctx, uint32_t tid,
					  const struct kx_thread_loss *loss),
			     void *ctx);

#endif
