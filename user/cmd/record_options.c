// SPDX-License-Identifier: BSD-2-Clause
/*
 * The options of `kxray record`. A new one is a row here: its value arrives in the field of
 * struct kx_record_arguments that the row names. What depends on several options is checked in
 * record_arguments.c.
 */
#include "cmd/record_options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/option_values.h"
#include "cmd/record_after.h"
#include "cmd/record_arguments.h"
#include "collect/flight_store.h"
#include "record/dump_hook_words.h"
#include "trace/fdr.h"

#define FIELD(member) KX_FIELD(struct kx_record_arguments, member)
#define LIST(items, n) KX_LIST(struct kx_record_arguments, items, n)
#define HOUR_NS 3600000000000ULL

/* in the order of enum kx_exits, enum kx_wire_clock, enum kx_mechanism + 1, enum kx_kernel_mechanism */
static const char *const follow_words[] = { "exact", NULL };
static const char *const exits[] = { "auto", "return", "instruction", "none", NULL };
static const char *const clocks[] = { "auto", "kfunc", "ktime", NULL };
const char *const kx_mechanism_words[] = { "auto", "session", "multi", "single", NULL };
const char *const kx_kernel_mechanism_words[] = { "auto",   "session", "multi",
						 "fentry", "single",  NULL };

/* A filter on what runs; .constant is its KX_FILTER_... */
static int set_filter(void *field, const struct kx_option *o, const char *value, struct kx_err *err)
{
	return kx_filters_add(field, (uint32_t)o->constant, value, err);
}

/* A number of registers, or "auto". */
static int set_args(void *field, const struct kx_option *o, const char *value, struct kx_err *err)
{
	struct kx_record_arguments *a = field;
	uint64_t n = 0;

	(void)o;
	a->o.automatic_values = !strcmp(value, "auto");
	if (!a->o.automatic_values && !kx_value_number(value, 0, 6, &n))
		return kx_err_set(err, -EINVAL, "--args takes 0 to 6, or auto, not '%s'", value);
	a->o.nargs = (unsigned)n;
	return 0;
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

static int add_condition(void *field, const struct kx_option *o, const char *value, struct kx_err *err)
{
	(void)o;
	return kx_record_add_rule(field, NULL, "--if", value, 0, err);
}

/* Wrong words are wrong usage, told before anything starts. */
static int set_on_dump(void *field, const struct kx_option *o, const char *value, struct kx_err *err)
{
	char **words;
	int code = kx_hook_words(value, &words, err);

	(void)o;
	if (!code)
		kx_hook_words_free(words);
	*(const char **)field = value;
	return code;
}

/* "100M" or "10min": a size has a unit of bytes, a time one of s, min or h. */
static int set_rotate(void *field, const struct kx_option *o, const char *value, struct kx_err *err)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = { { "s", 1 }, { "min", 60 }, { "h", 3600 } };
	struct kx_rotation_options *r = field;
	uint64_t bytes;
	double n;
	char *unit;

	(void)o;
	/* "10m" could be either */
	if (!strchr(value, 'm') && kx_value_size(value, KX_ROTATION_MIN_BYTES, &bytes)) {
		r->bytes = bytes;
		return 0;
	}
	n = strtod(value, &unit);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(unit, units[i].name) || !(n > 0 && n * units[i].seconds <= 1e9) ||
		    !isdigit((unsigned char)*value))
			continue;
		r->seconds = n * units[i].seconds;
		return 0;
	}
	return kx_err_set(err, -EINVAL,
			  "--rotate takes bytes, 64K at least, or a time with its unit (s, min or "
			  "h), as in 100M or 10min, not '%s'",
			  value);
}

const struct kx_option kx_target_options[] = {
	{ .name = "pid", .short_name = 'p', .kind = KX_OPTION_IDS, .argument = "PID[,PID...]", .min = 1,
	  LIST(pids, o.npids),
	  .takes = "process ids, as in 12,34 (by name: -p \"$(pgrep -n NAME)\")",
	  .help = "attach to these processes; may be repeated" },
	{ .name = "all", .short_name = 'a', .kind = KX_OPTION_FLAG, FIELD(o.all),
	  .help = "trace every process, including those that start later; needs -f",
	  .manual = "Trace every process but kxray itself, including those that start later; needs -f. "
		    "Patterns without a module mean the main executable of every process." },
	{ .name = "follow", .kind = KX_OPTION_CHOICE, .argument = "[=exact]", .words = follow_words,
	  .constant = 2, FIELD(follow),
	  .help = "also trace child processes, the programs they run, and libraries loaded later "
		  "(default only for a command that record starts). exact: libraries that other processes use too from the "
		  "first call on, which slows down these processes",
	  .manual = "Also trace child processes of the traced ones, the programs that they run, and "
		    "libraries that are loaded later. This is the default only for a command that record starts. "
		    "The recording ends with the last of the processes. At most 16384 processes at a time "
		    "are followed; the summary counts the others.\n\n"
		    "Files that only traced processes have mapped (above all their own programs) get one set of "
		    "probes for all processes: a child is traced from its first instruction on. In files that "
		    "other processes have mapped as well, such as the C library, each traced process gets "
		    "probes of its own, and no other process is changed. A child has them some milliseconds "
		    "after it was forked; until then its calls there are not recorded. The summary says how "
		    "many processes that concerns and how long it took. It keeps these probes when it "
		    "runs another program. --follow=exact puts the probes into every process that uses the file "
		    "instead: children are traced from the first call on, and every call of these functions in "
		    "any process takes the time of a probe. Before Linux 6.10, which cannot limit probes to a "
		    "process, --follow does the same and says so.\n\n"
		    "With several processes in a file of the second kind, exits come from return instructions, "
		    "which are expensive (single-stepped): the kernel cannot keep return probes of one process "
		    "from others that have probes at the same place.\n\n"
		    "A program or library that no process had mapped before is traced a few milliseconds after "
		    "it is first mapped (scripts/bench-follow.sh measures it), or, if a pattern names it by its "
		    "whole path, its probes are in place before it first runs. A process that starts during the "
		    "recording, without being traced, and maps a file of the first kind runs into its probes." },
	{ .name = "no-follow", .kind = KX_OPTION_CONSTANT, .constant = -1, FIELD(follow),
	  .help = "trace only the processes given (default with -p)" },
	{ .name = "function", .short_name = 'f', .kind = KX_OPTION_TEXTS, .argument = "PATTERN",
	  LIST(include, o.select.ninclude),
	  .help = "trace these functions; [MODULE:]GLOB, may be repeated. Without MODULE: those of the "
		  "main executable. Without -f: functions of the main executable, in record chosen by size, in top so that they cost little. "
		  "MODULE syscall: system calls; kernel: kernel functions; usdt: USDT markers. In record also with values: "
		  "'NAME(arg1:i32, arg2:str) -> ret:i64'",
	  .manual = "Trace the functions that match; may be repeated. Without any, functions of the main "
		    "executable are chosen: in record by size, in top so that they cost little. In record, what calls carry may follow, as in "
		    "'write(arg1:i32, arg3:u64) -> ret:i64'. See PATTERNS, KERNEL FUNCTIONS, SYSTEM CALLS, VALUES and USDT MARKERS." },
	{ .name = "exclude", .short_name = 'x', .kind = KX_OPTION_TEXTS, .argument = "PATTERN",
	  LIST(exclude, o.select.nexclude), .help = "leave these out; may be repeated" },
	{ .name = "comm", .kind = KX_OPTION_CUSTOM, .argument = "GLOB", .set = set_filter,
	  .constant = KX_FILTER_COMM, FIELD(o.filters),
	  .help = "only threads with a matching name, or of a process with a matching name",
	  .manual = "Only threads with a matching name, or of a process with a matching name (that of its "
		    "first thread, which ps(1) shows). The kernel keeps 15 bytes of a name." },
	{ .name = "uid", .kind = KX_OPTION_CUSTOM, .argument = "UID|NAME", .set = set_filter,
	  .constant = KX_FILTER_UID, FIELD(o.filters), .help = "only threads with this real user id" },
	{ .name = "cgroup", .kind = KX_OPTION_CUSTOM, .argument = "PATH", .set = set_filter,
	  .constant = KX_FILTER_CGROUP, FIELD(o.filters),
	  .help = "only threads in this control group (version 2) or one inside it",
	  .manual = "Only threads in this control group (version 2) or in one inside it. PATH is its "
		    "folder, or its path below the mount point of control groups of version 2." },
	{ .name = "cpu", .kind = KX_OPTION_CUSTOM, .argument = "LIST", .set = set_filter,
	  .constant = KX_FILTER_CPU, FIELD(o.filters),
	  .help = "only calls that begin on these CPUs, e.g. 0,2-3",
	  .manual = "Only calls that begin on these CPUs, for example 0,2-3, on whatever CPU they end.\n\n"
		    "--comm, --uid, --cgroup and --cpu apply in addition to -p, -a or the command; a call "
		    "must pass all that are given. The kernel side checks them when a call begins, and "
		    "then records both its entry and its exit. The exception: where exits have their own "
		    "probes (without uprobe sessions) and the thread's name, user or control group changes "
		    "during the call, the call is closed when its caller returns, and counted as repaired.\n\n"
		    "With -a and --comm, --uid or --cgroup only processes that pass are changed, as with --follow: in files "
		    "that others use too, a process gets its probes some milliseconds after it starts or takes "
		    "such a name, or within a second of a change of its user or control group. -a "
		    "--follow=exact puts the probes into every process." },
	{ .name = "exits", .kind = KX_OPTION_CHOICE, .argument = "HOW", .words = exits,
	  FIELD(o.select.exits),
	  .help = "where exits are recorded: auto (default), return, instruction or none. auto never "
		  "endangers the program; return aborts programs that throw through traced functions",
	  .manual = "auto (default) replaces return addresses only where that is harmless and puts probes "
		    "on ret and tail-jump instructions, or on the jumps that lead to a ret, elsewhere and where a return "
		    "probe would need a more expensive (single-stepped) entry; return, instruction and none force a choice. return can abort programs that throw exceptions." },
	{ .name = "max-functions", .kind = KX_OPTION_NUMBER, .argument = "N", .min = 1,
	  .max = KX_FDR_MAX_FUNC, FIELD(o.select.max_functions),
	  .help = "refuse to trace more functions than this (default 20000)" },
	{ 0 },
};

static const struct kx_option payload[] = {
	{ .name = "args", .kind = KX_OPTION_CUSTOM, .argument = "N|auto", .set = set_args,
	  .help = "record the first N integer arguments (0 to 6), and the results of system calls; auto: arguments and "
		  "results by name and type, where they are known",
	  .manual = "Record the first N integer argument registers, up to 6, and the results of system "
		    "calls.\n\n--args=auto records the arguments and the result of each function that has no values of its own "
		    "(-f, see VALUES), with their names and types: of functions that debug information, the kernel's BTF or "
		    "the table of prototypes describes. Structures are left out, and the last arguments where there "
		    "are more than a record holds." },
	{ .name = "results", .kind = KX_OPTION_FLAG, FIELD(o.results),
	  .help = "record what calls return: rax, as a signed number of 64 bits",
	  .manual = "Record what each call returns: the register rax at its exit, as a signed number of 64 bits. What the "
		    "function's type leaves undefined is in it: the upper half for an int, all of it for void, and "
		    "floating-point numbers are in another register (xmm0), which BPF programs cannot read. A call that leaves by "
		    "a tail jump has no result, where its exit is recorded at the jump, and neither has one whose exit was not "
		    "recorded. Exits that are recorded at jumps are recorded at their ret instructions instead, where rax is "
		    "written in between." },
	{ .name = "span", .kind = KX_OPTION_TEXTS, .argument = "MARKER~MARKER", LIST(spans, nspans),
	  .help = "record what lies between two USDT markers like a call: 'usdt:postgresql:query__start ~ query__done'",
	  .manual = "Record what lies between two USDT markers of one thread like a call, as in 'usdt:postgresql:query__start ~ "
		    "query__done'; may be repeated. See USDT MARKERS." },
	{ .name = "callers", .kind = KX_OPTION_FLAG, FIELD(o.callers),
	  .help = "record each call's return address",
	  .manual = "Record the return address of each call, as its last argument; the autofdo export "
		    "needs it. A recorded call takes about 10 % longer, and its two events 32 bytes "
		    "instead of 16 (scripts/bench.sh callers measures it)." },
	{ .name = "sample", .kind = KX_OPTION_NUMBER, .argument = "HZ", .min = 1, .max = 100000,
	  FIELD(o.sample_hz), .takes = "1 to 100000 times per second",
	  .help = "record the current instruction of the threads, HZ times per second of CPU time",
	  .manual = "Record the current instruction of each traced thread, HZ times per second of its CPU "
		    "time." },
	{ .name = "sched", .kind = KX_OPTION_FLAG, FIELD(o.sources[KX_SOURCE_SCHED]),
	  .help = "record when threads run and wait, and which thread wakes them",
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
	{ 0 },
};

static const struct kx_option reduction[] = {
	{ .name = "min-duration", .kind = KX_OPTION_TIME, .argument = "TIME", .min = 1, .max = HOUR_NS,
	  FIELD(o.min_duration_ns),
	  .help = "keep only calls at least this long, e.g. 5us (ns, us, ms or s), and their callers",
	  .manual = "Keep only calls that last at least TIME, for example 5us or 0.5ms (no unit: "
		    "seconds), and their callers. The kernel side decides, so that other calls take no "
		    "room in the rings and no work in user space. A call that is still open when its "
		    "thread or the recording ends is treated as if it ended then. A call whose exit is not "
		    "recorded (longjmp) is left out, unless another record of its thread shows before "
		    "that it lasts." },
	{ .name = "if", .kind = KX_OPTION_CUSTOM, .argument = "CONDITION", .set = add_condition,
	  .help = "keep only calls that meet it, e.g. 'arg3 > 4096 && arg1 == 3', 'path =~ \"/tmp/*\"', 'ret:i32 < 0'; of one "
		  "function: -f 'NAME if CONDITION'. May be repeated: each has to be met",
	  .manual = "Keep only calls that meet this condition, for example 'arg3 > 4096 && arg1 == 3', 'path =~ \"/tmp/*\"' or "
		    "'ret:i32 < 0'; may be repeated, and then each has to be met. It applies to all functions, and each must have the values that it "
		    "names; -f 'NAME if CONDITION' is for the functions of one pattern. The kernel side decides. See CONDITIONS." },
	{ .name = "count", .kind = KX_OPTION_FLAG, FIELD(o.count),
	  .help = "write no trace; only count the calls of each function",
	  .manual = "Write no trace: only count the calls of each function, exactly, and print a table on "
		    "standard output at the end. Exits are not probed, so this costs a fraction of "
		    "recording and is a quick way to find the hot functions. With --max-overhead (without -f: 5) "
		    "the probes of functions whose counting takes too much are taken out and put back as in a recording; the table "
		    "says for how long their calls were not counted. Probes that cannot be taken out stay, and kxray says how "
		    "many these are." },
	{ .name = "depth", .kind = KX_OPTION_NUMBER, .argument = "N", .min = 1, .max = KX_MAX_DEPTH,
	  FIELD(o.max_depth),
	  .help = "only the N outermost traced calls of each stack (1 to 96)",
	  .manual = "Record only the N (at most 96) outermost traced calls that are open in a thread. "
		    "Calls that --min-duration or --depth leave out are not lost: the summary counts "
		    "them as reduced. Every call is in the trace, lost, or reduced. --min-duration tracks 96 "
		    "to 320 nested calls of a thread (fewer, the more arguments are recorded); deeper "
		    "calls are left out, too." },
	{ .name = "by-heat", .kind = KX_OPTION_SECONDS, .argument = "TIME", .max = 3600,
	  FIELD(heat_seconds),
	  .help = "count calls for TIME first, then leave out functions that are called too often; "
		  "without -f the candidates are all functions of the main executable with a cheap "
		  "entry. Needs -p",
	  .manual = "Count calls for TIME first, predict the cost of recording each function, and "
		    "leave out those that are called too often, so that the "
		    "others together cost at most --max-overhead. The functions left out "
		    "are printed. Without -f the candidates are all functions of the main executable "
		    "except those with a single-stepped entry. Needs -p." },
	{ .name = "max-overhead", .kind = KX_OPTION_PERCENT, .argument = "PCT", .max = 100000,
	  FIELD(max_overhead), .takes = "percent of the CPU time that the program uses, as in 5 or 12.5%",
	  .help = "keep what the probes take within PCT percent of the CPU time that the program uses (without "
		  "-f: 5; else no limit): calls are counted and, where it is too much, sampled, or probes "
		  "are taken out for a time",
	  .manual = "What the probes may take, in percent of the CPU time that the processes use; a hundredth of a CPU "
		    "is assumed for those that hardly run, with -a it is that of all processes. 5 without -f, else no limit.\n\n"
		    "While recording, all calls are counted in the kernel. Where their cost would exceed the budget, "
		    "the functions that take most are sampled (one call in 2, 4, ... 4,096 is recorded, with its exit), and if "
		    "even counting takes too much, their probes are taken out; they are put back for a try after 1, 2, ... 64 "
		    "seconds. Probes that each process has for itself, because other processes map the same library, "
		    "system calls and kernel functions are only sampled. Every step is a note in the trace (kxray:budget), and report "
		    "shows the functions and all their calls. Costs are measured when the recording begins. The "
		    "budget of a quarter of a second may be taken at once.\n\n"
		    "Probes of more than 256 functions whose rates are not known go in group by group: the next group when "
		    "what the last one took is made up for, larger if it took little. Calls of a function before "
		    "its probes went in are not recorded; the summary says when the last went in, and how many "
		    "never did.\n\n"
		    "Without -f, and with --by-heat, calls of running processes (-p) are counted before, too, and "
		    "functions are left out, most called first, until recording the others is predicted to stay within "
		    "the budget. That count slows the program down for moments only: functions are counted in "
		    "groups, and a group is detached when its hits have cost 10 ms.\n\n"
		    "With -p and -f on a terminal, but without this option, calls are counted for 0.2 s and the prediction "
		    "is printed; if it is more than 50 percent, kxray records only with --yes. In a script "
		    "a recording with -f begins at once." },
	{ .name = "yes", .short_name = 'y', .kind = KX_OPTION_FLAG, FIELD(yes),
	  .help = "record even if the predicted cost is high" },
	{ 0 },
};

static const struct kx_option flight[] = {
	{ .name = "flight-recorder", .kind = KX_OPTION_SIZE, .argument = "SIZE",
	  .min = KX_FLIGHT_MIN_BYTES, FIELD(flight.bytes),
	  .help = "keep the newest SIZE bytes of each CPU in memory, e.g. 16M; write FILE with a number "
		  "(trace.1.xray) at SIGUSR1, a trigger, the program's crash or exit, and at the end",
	  .manual = "Keep the newest SIZE bytes (64K at least) of each CPU; see FLIGHT RECORDER. A record "
		    "takes 32 bytes, and 32 more for each four arguments. The memory is allocated at the "
		    "start; writing a dump takes at most as much again. A dump begins at the time from "
		    "which on every CPU's records are complete, so the busiest CPU limits its length. "
		    "Exits whose entry is older are left out and counted; calls that are still open stay "
		    "open." },
	{ .name = "keep", .kind = KX_OPTION_SECONDS, .argument = "TIME", FIELD(flight.keep),
	  .help = "write only what happened in the last TIME (buffer: 64 MiB per CPU, or SIZE)",
	  .manual = "Leave older records out of a dump. Without --flight-recorder the buffer has 64 MiB "
		    "for each CPU, or less if that were more than a sixteenth of the memory." },
	{ .name = "trigger", .kind = KX_OPTION_CUSTOM, .argument = "CONDITION", .set = add_trigger,
	  .help = "write a dump when a call ends that lasted longer than a time ('f>10ms'), at each "
		  "call ('f@entry'), or when one meets a condition ('f if ret:i32 < 0'); f is a PATTERN and is traced, too. May be repeated",
	  .manual = "Write a dump when a call ends that lasted longer than a time, for example "
		    "'handle_*>10ms' (ns, us, ms or s; blanks are allowed), or, with 'handle_*@entry', "
		    "when the function is called. 'handle_* if CONDITION' writes one when a call certainly meets the condition (see CONDITIONS), "
		    "and 'handle_*>10ms if CONDITION' if it lasted longer, too; a function can have one trigger with a condition. The first form fires at the end of the call, so a call "
		    "that never returns does not fire it. The function is a PATTERN and is always traced; "
		    "without -f it is the only one. Kernel functions and system calls can be recorded, but "
		    "cannot be triggers. May be repeated." },
	{ .name = "dumps", .kind = KX_OPTION_NUMBER, .argument = "N", .min = 1, .max = 1000000,
	  FIELD(flight.dumps), .help = "keep the newest N files (default 10) that triggers caused, and as many others",
	  .manual = "Keep the newest N dumps of this session (10 by default) that a trigger, a crash or "
		    "the end of a process caused, and the newest N others (SIGUSR1, the end of the "
		    "recording); older ones are removed. So a dump on request never evicts what a "
		    "trigger caught." },
	{ .name = "dump-interval", .kind = KX_OPTION_SECONDS, .argument = "TIME",
	  FIELD(flight.interval), .help = "minimum time between two dumps that calls trigger (default 1)",
	  .manual = "Minimum time from one dump to the next that a call triggers, 1 by default. Dumps "
		    "for other reasons are not delayed." },
	{ .name = "on-dump", .kind = KX_OPTION_CUSTOM, .argument = "COMMAND", .set = set_on_dump,
	  FIELD(flight.on_dump),
	  .help = "run COMMAND for each dump that is written; {} in it becomes the dump's path, as in "
		  "--on-dump 'upload {}'",
	  .manual = "Run COMMAND for each dump that is written, one at a time, while recording continues. "
		    "It is split into words at blanks; quotes and backslashes keep characters as in a shell, "
		    "but there is no shell: {} becomes the dump's path within its one word, whatever "
		    "characters the path has. At most 16 dumps wait; others, and dumps that --dumps "
		    "removed meanwhile, are skipped and counted. The command reads and writes "
		    "/dev/null; under sudo it runs as the user that called sudo. Its process group is "
		    "killed when it ends or reaches its time limit; a process that leaves the group "
		    "(setsid) is not. At the end kxray waits for the remaining runs; a signal (Ctrl-C) "
		    "ends that wait. Failed runs do not change kxray's exit status." },
	{ .name = "on-dump-limit", .kind = KX_OPTION_SECONDS, .argument = "TIME",
	  FIELD(flight.on_dump_seconds), .help = "kill a run of --on-dump after TIME (default 60)" },
	{ 0 },
};

static const struct kx_option recording[] = {
	{ .name = "output", .short_name = 'o', .kind = KX_OPTION_TEXT, .argument = "FILE",
	  FIELD(o.output),
	  .help = "the trace (default trace.xray); FILE.map is written beside it; a trace that is there is kept as FILE.old",
	  .manual = "The trace, by default trace.xray; its map FILE.map is written beside it. A trace that is there before is "
		    "kept as FILE.old, with its map FILE.old.map (with --compress: FILE.old.zst), in place of what had these names. "
		    "Numbered files of --rotate and dumps of the flight recorder are not kept: they replace an earlier session's "
		    "of the same number, so that the disk space they take stays bounded." },
	{ .name = "compress", .kind = KX_OPTION_FLAG, FIELD(o.compress),
	  .help = "compress the trace with zstd (FILE.zst), to about a fifth; all commands read it",
	  .manual = "Compress the trace with zstd, while it is written. FILE gets the suffix .zst, if it has none, and "
		    "a FILE with this suffix is compressed without this option. All commands read it, and "
		    "'zstd -d' restores the very file that would have been written without this option, which "
		    "llvm-xray reads. The map is not compressed: it is FILE.map without .zst. --rotate counts "
		    "compressed bytes. Reading decompresses the trace into a temporary file in TMPDIR (default /tmp)." },
	{ .name = "rotate", .kind = KX_OPTION_CUSTOM, .argument = "SIZE|TIME", .set = set_rotate,
	  FIELD(o.rotation),
	  .help = "write numbered files (trace.1.xray, trace.2.xray, ...), each at most about SIZE large "
		  "or TIME long, e.g. 100M or 10min; may be given twice, for both",
	  .manual = "Write the trace as numbered files, trace.1.xray, trace.2.xray and so on. The next one "
		    "begins when the present one has SIZE bytes (64K at least, for example 100M) or is TIME "
		    "old (for example 30s, 10min or 1h); both may be given. Each file is complete and "
		    "readable by itself with its map; each hit is in exactly one of them. Calls that are "
		    "open at a boundary stay open in the old file, and the new one begins with their "
		    "entries, at their true times, after a note kxray:continued: where such a call ends it "
		    "has its true duration, but what it called before the boundary is in earlier files. A "
		    "size is checked about ten times a second, so that files become somewhat larger." },
	{ .name = "keep-files", .kind = KX_OPTION_NUMBER, .argument = "N", .min = 1, .max = 1000000,
	  FIELD(o.rotation.keep),
	  .help = "with --rotate: keep the newest N files and remove older ones (default: keep all)" },
	{ .name = "label", .kind = KX_OPTION_TEXTS, .argument = "KEY=VALUE", LIST(labels, o.nlabels),
	  .help = "put a label into the trace, as in env=production; may be repeated",
	  .manual = "Put a label into the trace, as in env=production, by which many traces can be told apart; may be repeated, "
		    "at most 32 times with different keys. KEY has letters, digits, '_', '.' and '-', at most 63, and "
		    "begins with a letter or '_'; VALUE is text of at most 255 bytes. Host name, boot id, machine id, systemd unit, "
		    "container and Kubernetes pod need no label: kxray records them. Exporters have labels where their format "
		    "has a place for them; see kxray-formats(5)." },
	{ .name = "open", .kind = KX_OPTION_CUSTOM, .argument = "[=FORMAT]", .set = kx_record_set_open, FIELD(open),
	  .help = "then export the trace, as html (without that format: perfetto) or FORMAT, and open the page if there is a "
		  "desktop, or say where to open it",
	  .manual = "When the recording has ended, export the trace as with 'kxray export -f FORMAT FILE'; without FORMAT as html, or "
		    "perfetto where kxray lacks that. A page is opened with xdg-open, if there is a display, under sudo as the user that "
		    "called it; otherwise kxray says where to open the file. Of --rotate and the flight recorder it is the newest "
		    "file." },
	{ .name = "duration", .short_name = 'd', .kind = KX_OPTION_SECONDS, .argument = "TIME",
	  FIELD(o.seconds),
	  .help = "record for this time; default: until Ctrl-C or the target exits" },
	{ .name = "kill", .kind = KX_OPTION_FLAG, FIELD(kill),
	  .help = "with -d and -- COMMAND: end the command, too, when the time is over",
	  .manual = "With a duration and a command: when the recording ends the command is asked to end, too (SIGTERM), and "
		    "killed after five seconds; kxray's exit status is then that of the recording. Without it kxray waits for the "
		    "command, once it has printed the summary." },
	{ .name = "fdr-version", .kind = KX_OPTION_NUMBER, .argument = "N", .min = KX_FDR_MIN_VERSION,
	  .max = KX_FDR_MAX_VERSION, FIELD(o.fdr_version),
	  .help = "version of the FDR format, 1 to 5 (default 5)" },
	{ .name = "ring-size", .kind = KX_OPTION_SIZE, .argument = "SIZE", .min = 1,
	  FIELD(o.ring_bytes), .help = "size of each CPU's ring buffer, e.g. 4M (default: by memory)",
	  .manual = "Size of each CPU's ring buffer, for example 4M; by default 16 MiB, less on machines "
		    "with little memory." },
	{ .name = "clock", .kind = KX_OPTION_CHOICE, .argument = "KIND", .words = clocks,
	  FIELD(o.clock), .help = "auto (default), kfunc or ktime",
	  .manual = "auto (default) takes the kernel's cycle counter function where it exists (kfunc), else "
		    "its monotonic clock, converted to TSC ticks (ktime)." },
	{ .name = "mechanism", .kind = KX_OPTION_CHOICE, .argument = "M", .words = kx_mechanism_words,
	  .constant = -1, FIELD(o.mechanism), .help = "auto (default), session, multi or single",
	  .manual = "How probes are attached: auto (default: the first of the others that works), session "
		    "(uprobe.session), multi (uprobe.multi) or single (a perf event for each probe). "
		    "kxray doctor shows which work." },
	{ .name = "kernel-mechanism", .kind = KX_OPTION_CHOICE, .argument = "M",
	  .words = kx_kernel_mechanism_words, FIELD(o.kernel_mechanism),
	  .help = "for kernel functions: auto (default), session, multi, fentry or single",
	  .manual = "How kernel functions are traced: auto (default: the first of the others that works), "
		    "session (kprobe.session, Linux 6.10), multi (kprobe.multi, 5.18), fentry (fentry and "
		    "fexit, 5.19; kprobes for functions that cannot have them) or single (a kprobe and a "
		    "kretprobe for each function). kxray doctor shows which work, and why others do not." },
	{ .name = "in-process", .kind = KX_OPTION_FLAG, FIELD(o.in_process),
	  .help = "record by jumps in the process's own code where that is harmless: some 25 ns a call; see kxray-safety(7)",
	  .manual = "Record the functions by jumps that are written into the code of the process (-p), where that is harmless, in place "
		    "of uprobes: a call takes some 25 ns instead of about a microsecond (kxray doctor measures both). The process is changed "
		    "more than by uprobes, and its threads are stopped for some milliseconds at the start and at the end; kxray-safety(7) says "
		    "what is done, which processes and functions are refused, and when not to use it. Functions that are refused keep uprobes; "
		    "'kxray functions --in-process' names the reasons. Libraries that are loaded while kxray records are recorded, too, also "
		    "those that -f names and that are not there at first. What is not harmless for the process as a whole ends the command.\n\n"
		    "Children that the process forks record nothing, or with --follow as it does, from their first instruction on and also "
		    "when it has ended. What a child executes gets uprobes some milliseconds later, as do children that were forked "
		    "before the recording began, and with --follow libraries that are loaded later. Linux 6.10 is needed for that, and "
		    "--follow=exact does not go with it.\n\n"
		    "Options for which a BPF program must run at each call are refused (--args, --results, --callers, --count, --min-duration, "
		    "--depth, --max-overhead, --if, --comm, --uid, --cgroup, --cpu), and so is --exits; functions that --trigger names, or to which -f gives values or a "
		    "condition have uprobes." },
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
	{ .heading = "What to trace", .options = kx_target_options },
	{ .heading = "What to record", .options = payload },
	{ .heading = "Record less (filtered in the kernel)", .options = reduction },
	{ .heading = "Flight recorder: keep recent history in memory, write on demand",
	  .options = flight },
	{ .heading = "Recording", .options = recording },
	{ 0 },
};
