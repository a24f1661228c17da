// SPDX-License-Identifier: BSD-2-Clause
/*
 * The options of `kxray record`. A new one is a row here: its value arrives in the field of
 * struct kx_record_arguments that the row names. What depends on several options is checked in
 * record_arguments.c.
 */
#include "cmd/record_options.h"

#include <errno.h>
#include <stdlib.h>

#include "cmd/record_arguments.h"
#include "collect/flight_store.h"
#include "trace/fdr.h"

#define FIELD(member) KX_FIELD(struct kx_record_arguments, member)
#define LIST(items, n) KX_LIST(struct kx_record_arguments, items, n)
#define HOUR_NS 3600000000000ULL

/* in the order of enum kx_exits, enum kx_wire_clock, enum kx_mechanism + 1, enum kx_kernel_mechanism */
static const char *const exits[] = { "auto", "return", "instruction", "none", NULL };
static const char *const clocks[] = { "auto", "kfunc", "perf", "ktime", NULL };
static const char *const mechanisms[] = { "auto", "session", "multi", "single", NULL };
static const char *const kernel_mechanisms[] = { "auto",   "session", "multi",
						 "fentry", "single",  NULL };

/* A filter on what runs; .constant is its KX_FILTER_... */
static int set_filter(void *field, const struct kx_option *o, const char *value, struct kx_err *err)
{
	return kx_filters_add(field, (uint32_t)o->constant, value, err);
}

static int add_trigger(void *field, const struct kx_option *o, const char *value, struct kx_err *err)
{
	struct kx_record_arguments *a = field;
	size_t n = a->flight.ntriggers;
	struct kx_trigger *grown = reallocarray(a->triggers, n + 1, sizeof(*grown));
	int r;

	(void)o;
	if (!grown)
		return kx_err_set(err, -ENOMEM, "out of memory");
	a->triggers = grown;
	r = kx_trigger_parse(value, &grown[n], err);
	if (!r)
		a->flight.ntriggers++;
	return r;
}

static const struct kx_option targets[] = {
	{ .name = "pid", .short_name = 'p', .kind = KX_OPTION_IDS, .argument = "PID[,PID...]", .min = 1,
	  LIST(pids, o.npids),
	  .takes = "process ids, as in 12,34 (by name: -p \"$(pgrep -n NAME)\")",
	  .help = "attach to these processes; may be repeated" },
	{ .name = "all", .short_name = 'a', .kind = KX_OPTION_FLAG, FIELD(o.all),
	  .help = "trace every process, including those that start later; needs -f",
	  .manual = "Trace every process but kxray itself, including those that start later; needs -f. "
		    "Patterns without a module mean the main executable of every process." },
	{ .name = "follow", .kind = KX_OPTION_CONSTANT, .constant = 1, FIELD(follow),
	  .help = "trace child processes, the programs they run and libraries loaded later, too "
		  "(default with -- COMMAND only)",
	  .manual = "Trace child processes of the traced ones, the programs that they run and the "
		    "libraries that are loaded later. This is the default with -- COMMAND only. A child "
		    "is traced from its first instruction on; a program or library that no process had "
		    "mapped before is traced a few milliseconds after it is first mapped "
		    "(scripts/bench-follow.sh measures it), or, if a pattern names it by its whole path, "
		    "its probes are in place before it first runs. The recording ends with the last of "
		    "the processes. At most 16384 processes at a time are followed; the summary counts "
		    "the others." },
	{ .name = "no-follow", .kind = KX_OPTION_CONSTANT, .constant = -1, FIELD(follow),
	  .help = "trace the processes or the command only (default with -p)" },
	{ .name = "function", .short_name = 'f', .kind = KX_OPTION_TEXTS, .argument = "PATTERN",
	  LIST(include, o.select.ninclude),
	  .help = "trace these functions; [MODULE:]GLOB, may be repeated. Without MODULE: of the main "
		  "executable. Without -f: functions of the main executable chosen by size. MODULE "
		  "syscall: the system calls of that name; MODULE kernel: the kernel functions",
	  .manual = "Trace the functions that match; may be repeated. Without any, functions of the main "
		    "executable are chosen by size. See PATTERNS, KERNEL FUNCTIONS and SYSTEM CALLS." },
	{ .name = "exclude", .short_name = 'x', .kind = KX_OPTION_TEXTS, .argument = "PATTERN",
	  LIST(exclude, o.select.nexclude), .help = "leave these out; may be repeated" },
	{ .name = "comm", .kind = KX_OPTION_CUSTOM, .argument = "GLOB", .set = set_filter,
	  .constant = KX_FILTER_COMM, FIELD(o.filters),
	  .help = "only threads with such a name, or of a process with such a name",
	  .manual = "Only threads with such a name, or of a process with such a name (the one of its first "
		    "thread, which ps(1) shows). The kernel keeps 15 bytes of a name." },
	{ .name = "uid", .kind = KX_OPTION_CUSTOM, .argument = "UID|NAME", .set = set_filter,
	  .constant = KX_FILTER_UID, FIELD(o.filters), .help = "only threads with this real user id" },
	{ .name = "cgroup", .kind = KX_OPTION_CUSTOM, .argument = "PATH", .set = set_filter,
	  .constant = KX_FILTER_CGROUP, FIELD(o.filters),
	  .help = "only this control group (version 2) and those inside it",
	  .manual = "Only what runs in this control group or in one inside it: its folder, or its path "
		    "below the place where control groups of version 2 are mounted." },
	{ .name = "cpu", .kind = KX_OPTION_CUSTOM, .argument = "LIST", .set = set_filter,
	  .constant = KX_FILTER_CPU, FIELD(o.filters),
	  .help = "only calls that begin on these CPUs, e.g. 0,2-3",
	  .manual = "Only calls that begin on these CPUs, e.g. 0,2-3; wherever they end.\n\n"
		    "--comm, --uid, --cgroup and --cpu apply in addition to -p, -a or the command, and all "
		    "that are given must hold. The kernel side checks them when a call begins; a call "
		    "that passes is recorded whole. Only where exits have probes of their own (without "
		    "uprobe sessions) and name, user or control group change before the call ends, it is "
		    "closed when its caller returns, and counted as repaired." },
	{ .name = "exits", .kind = KX_OPTION_CHOICE, .argument = "HOW", .words = exits,
	  FIELD(o.select.exits),
	  .help = "where exits are recorded: auto (default), return, instruction or none. auto never "
		  "endangers the program; return aborts programs that throw through traced functions",
	  .manual = "auto (default) replaces return addresses only where that is harmless and puts probes "
		    "on ret and tail-jump instructions elsewhere; return, instruction and none force a "
		    "choice. return can abort programs that throw exceptions." },
	{ .name = "args", .kind = KX_OPTION_NUMBER, .argument = "N", .max = 6, FIELD(o.nargs),
	  .help = "record the first N integer arguments (0 to 6), and what system calls return",
	  .manual = "Record the first N integer argument registers, up to 6, and what system calls "
		    "return." },
	{ .name = "callers", .kind = KX_OPTION_FLAG, FIELD(o.callers),
	  .help = "record each call's return address",
	  .manual = "Record the return address of each call, as its last argument; the autofdo export "
		    "needs it. A recorded call takes about 10 % longer, and its two events 32 bytes "
		    "instead of 16 (scripts/bench.sh callers measures it)." },
	{ .name = "sample", .kind = KX_OPTION_NUMBER, .argument = "HZ", .min = 1, .max = 100000,
	  FIELD(o.sample_hz), .takes = "1 to 100000 times per second",
	  .help = "record HZ times per second of CPU time which instruction the threads execute",
	  .manual = "Record which instruction the traced threads execute, HZ times per second of CPU "
		    "time." },
	{ .name = "sched", .kind = KX_OPTION_FLAG, FIELD(o.sources[KX_SOURCE_SCHED]),
	  .help = "record when the threads run, wait and are woken, and by whom",
	  .manual = "Also record when each traced thread is on a CPU, why and how long it is off, when it "
		    "became runnable and which thread woke it. report then splits each function's time "
		    "into on-CPU and off-CPU, and timelines show it. Threads that call no traced function "
		    "are recorded too." },
	{ .name = "faults", .kind = KX_OPTION_FLAG, FIELD(o.sources[KX_SOURCE_FAULTS]),
	  .help = "record page faults, with address and function",
	  .manual = "Also record the page faults of the traced threads, in user space and in system calls: the "
		    "address, the instruction, whether it was a read, a write or an execution, and the innermost "
		    "traced call. dump, perfetto, chrome and csv show them. Threads that call no traced function "
		    "are recorded too." },
	{ .name = "max-functions", .kind = KX_OPTION_NUMBER, .argument = "N", .min = 1,
	  .max = KX_FDR_MAX_FUNC, FIELD(o.select.max_functions),
	  .help = "refuse to trace more functions than this (default 20000)" },
	{ 0 },
};

static const struct kx_option reduction[] = {
	{ .name = "min-duration", .kind = KX_OPTION_TIME, .argument = "TIME", .min = 1, .max = HOUR_NS,
	  FIELD(o.min_duration_ns),
	  .help = "keep only calls at least this long, e.g. 5us (ns, us, ms or s), and their callers",
	  .manual = "Keep only calls that last at least TIME, for example 5us or 0.5ms (no unit: "
		    "seconds), and their callers. The kernel side decides, so that other calls take no "
		    "room in the rings and no work in user space. A call that is still open when its "
		    "thread or the recording ends counts as lasting until then." },
	{ .name = "count", .kind = KX_OPTION_FLAG, FIELD(o.count),
	  .help = "write no trace, only count the calls of each function",
	  .manual = "Write no trace: only count, exactly, how often each function is called, and print a "
		    "table on standard output when the counting ends. No exits are probed, so this costs "
		    "a fraction of recording; a first look at which functions are hot." },
	{ .name = "depth", .kind = KX_OPTION_NUMBER, .argument = "N", .min = 1, .max = KX_MAX_DEPTH,
	  FIELD(o.max_depth),
	  .help = "only the N outermost traced calls of each stack (1 to 96)",
	  .manual = "Record only the N (at most 96) outermost of the traced calls that are open in a "
		    "thread. Calls that --min-duration or --depth leave out are not lost: the summary "
		    "counts them as reduced, and every hit is an event, lost, reduced, or the exit of a "
		    "call from before the recording. Calls nested deeper than 96 to 320 levels in one "
		    "thread (fewer, the more arguments are recorded) are beyond what --min-duration "
		    "tracks, and are left out as well." },
	{ .name = "by-heat", .kind = KX_OPTION_SECONDS, .argument = "SECONDS", .max = 3600,
	  FIELD(heat_seconds),
	  .help = "count calls for this long first, then leave out functions called too often; without "
		  "-f the candidates are all functions of the main executable with a cheap entry. "
		  "Needs -p",
	  .manual = "Count calls for SECONDS first, predict as kxray functions --rate does what recording "
		    "each function takes, and leave out those that are called too often: the others "
		    "together take at most the CPU share of --max-overhead. The functions left out are "
		    "printed. Without -f the candidates are all functions of the main executable but "
		    "those with a single-stepped entry. Needs -p." },
	{ .name = "max-overhead", .kind = KX_OPTION_PERCENT, .argument = "PCT", .max = 100000,
	  FIELD(max_overhead), .takes = "percent of one CPU, as in 5 or 12.5%",
	  .help = "most percent of one CPU that --by-heat may predict (default 5)" },
	{ 0 },
};

static const struct kx_option flight[] = {
	{ .name = "flight-recorder", .kind = KX_OPTION_SIZE, .argument = "SIZE",
	  .min = KX_FLIGHT_MIN_BYTES, FIELD(flight.bytes),
	  .help = "keep the newest SIZE bytes of each CPU in memory, e.g. 16M; write FILE with a number "
		  "(trace.1.xray) at SIGUSR1, a trigger, the program's crash or exit, and at the end",
	  .manual = "Keep the newest SIZE bytes (64K at least) of each CPU, see FLIGHT RECORDER. A record "
		    "takes 32 bytes, and 32 more for each four arguments. The memory is taken at the "
		    "start; while a dump is written, at most as much again. A dump begins where no CPU "
		    "has overwritten anything, so the busiest CPU decides how far back it goes. Exits "
		    "whose entry is older are left out and counted; calls that are still open stay "
		    "open." },
	{ .name = "keep", .kind = KX_OPTION_SECONDS, .argument = "SECONDS", FIELD(flight.keep),
	  .help = "write the last SECONDS (of the newest 64 MiB a CPU, or of SIZE)",
	  .manual = "Leave older records out of a dump. Without --flight-recorder the buffer has 64 MiB "
		    "for each CPU, less where that would be over a sixteenth of all memory." },
	{ .name = "trigger", .kind = KX_OPTION_CUSTOM, .argument = "CONDITION", .set = add_trigger,
	  .help = "write when a call lasted longer than a time, as in 'f>10ms', or at each call, as in "
		  "'f@entry'; f is a PATTERN and is traced, too. May be repeated",
	  .manual = "Write a dump when a call of a function ends that lasted longer than a time, for "
		    "example 'handle_*>10ms' (ns, us, ms or s; blanks are allowed), or, with "
		    "'handle_*@entry', when the function is called. The first form fires at the call's "
		    "end: a call that never returns does not fire it. The function is a PATTERN and is "
		    "traced in any case; without -f nothing else is. Kernel functions and system calls "
		    "can be recorded, but cannot be triggers. May be repeated." },
	{ .name = "dumps", .kind = KX_OPTION_NUMBER, .argument = "N", .min = 1, .max = 1000000,
	  FIELD(flight.dumps), .help = "keep the newest N files (default 10)",
	  .manual = "Keep the newest N dumps of this session (10 by default) and remove older ones." },
	{ .name = "dump-interval", .kind = KX_OPTION_SECONDS, .argument = "SECONDS",
	  FIELD(flight.interval), .help = "least time between two dumps for calls (default 1)",
	  .manual = "Least time from one dump to the next that a call triggers, 1 by default. Other "
		    "causes do not wait." },
	{ 0 },
};

static const struct kx_option recording[] = {
	{ .name = "output", .short_name = 'o', .kind = KX_OPTION_TEXT, .argument = "FILE",
	  FIELD(o.output),
	  .help = "the trace (default trace.xray); FILE.map is written beside it" },
	{ .name = "duration", .short_name = 'd', .kind = KX_OPTION_SECONDS, .argument = "SECONDS",
	  FIELD(o.seconds),
	  .help = "how long to record; default: until Ctrl-C or the target exits" },
	{ .name = "fdr-version", .kind = KX_OPTION_NUMBER, .argument = "N", .min = KX_FDR_MIN_VERSION,
	  .max = KX_FDR_MAX_VERSION, FIELD(o.fdr_version),
	  .help = "version of the FDR format, 1 to 5 (default 5)" },
	{ .name = "ring-size", .kind = KX_OPTION_SIZE, .argument = "SIZE", .min = 1,
	  FIELD(o.ring_bytes), .help = "ring buffer of each CPU, e.g. 4M (default: by memory)",
	  .manual = "Ring buffer of each CPU, for example 4M; by default 16 MiB, less where memory is "
		    "scarce." },
	{ .name = "clock", .kind = KX_OPTION_CHOICE, .argument = "KIND", .words = clocks,
	  FIELD(o.clock), .help = "auto (default), kfunc, perf or ktime",
	  .manual = "auto (default) takes the kernel's cycle counter function where it exists (kfunc), else "
		    "the msr/tsc/ perf event (perf), else ktime. ktime can be the cheapest one; kxray "
		    "doctor shows all." },
	{ .name = "mechanism", .kind = KX_OPTION_CHOICE, .argument = "M", .words = mechanisms,
	  .constant = -1, FIELD(o.mechanism), .help = "auto (default), session, multi or single",
	  .manual = "auto (default), session, multi or single: how probes are attached, from the newest "
		    "kernels' way to the oldest." },
	{ .name = "kernel-mechanism", .kind = KX_OPTION_CHOICE, .argument = "M",
	  .words = kernel_mechanisms, FIELD(o.kernel_mechanism),
	  .help = "for kernel functions: auto (default), session, multi, fentry or single",
	  .manual = "auto (default), session, multi, fentry or single: how kernel functions are traced, by "
		    "kprobe.session (Linux 6.10), kprobe.multi (5.18), fentry and fexit (5.19; functions "
		    "that these cannot have get kprobes), or a kprobe and a kretprobe for each function. "
		    "The first that works is taken, found by trying; kxray doctor shows all four, with "
		    "the reason where one does not work." },
	{ .name = "fail-on-loss", .kind = KX_OPTION_FLAG, FIELD(fail_on_loss),
	  .help = "exit with status 3 if any event was lost" },
	{ .name = "json", .kind = KX_OPTION_FLAG, FIELD(json),
	  .help = "print the summary as one JSON object on standard output" },
	{ .name = "quiet", .short_name = 'q', .kind = KX_OPTION_FLAG, FIELD(quiet),
	  .help = "print errors only" },
	KX_HELP_OPTION,
	{ 0 },
};

const struct kx_option_group kx_record_options[] = {
	{ .heading = "What to trace", .options = targets },
	{ .heading = "Record less (filtered in the kernel)", .options = reduction },
	{ .heading = "Flight recorder: keep recent history in memory, write on demand",
	  .options = flight },
	{ .heading = "Recording", .options = recording },
	{ 0 },
};
