// SPDX-License-Identifier: BSD-2-Clause
/* kxray functions: what can be traced, where the probes go and what they cost. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/printable.h"
#include "binary/program_path.h"
#include "tracer/uprobe_try.h"
#include "cmd/cmd.h"
#include "cmd/commands.h"
#include "cmd/function_windows.h"
#include "cmd/functions_json.h"
#include "cmd/functions_price.h"
#include "cmd/functions_table.h"
#include "cmd/screen_options.h"
#include "tracer/clock.h"
#include "tracer/keeper.h"
#include "tracer/kernel_mechanism.h"
#include "record/bystanders.h"
#include "record/rate.h"
#include "select/select.h"

#define NAME "functions"

struct arguments {
	pid_t *pids;
	size_t npids;
	const char *binary;
	const char **include, **exclude;
	size_t ninclude, nexclude;
	enum kx_exits exits;
	size_t max_functions;
	double rate_seconds; /* --rate; 0: not given */
	bool json, left_out, in_process;
	struct kx_functions_table table;
	struct kx_screen_arguments screen;
};

/* in the order of enum kx_exits */
static const char *const exits_words[] = { "auto", "return", "instruction", "none", NULL };

static const struct kx_option options[] = {
	{ .name = "pid", .short_name = 'p', .kind = KX_OPTION_IDS, .argument = "PID[,PID...]", .min = 1,
	  KX_LIST(struct arguments, pids, npids), .takes = "process ids, as in 12,34 (by name: -p \"$(pgrep -n NAME)\")",
	  .help = "these running processes; may be repeated" },
	{ .name = "function", .short_name = 'f', .kind = KX_OPTION_TEXTS, .argument = "PATTERN",
	  KX_LIST(struct arguments, include, ninclude),
	  .help = "functions that match [MODULE:]GLOB; '*' is all of the main executable. Without -f: "
		  "those with a loop or at least 200 instructions" },
	{ .name = "filter", .kind = KX_OPTION_TEXTS, .argument = "PATTERN",
	  KX_LIST(struct arguments, include, ninclude) }, /* the older name of --function */
	{ .name = "exclude", .short_name = 'x', .kind = KX_OPTION_TEXTS, .argument = "PATTERN",
	  KX_LIST(struct arguments, exclude, nexclude), .help = "leave these out" },
	{ .name = "exits", .kind = KX_OPTION_CHOICE, .argument = "KIND", .words = exits_words,
	  KX_FIELD(struct arguments, exits), .help = "auto (default), return, instruction or none",
	  .manual = "Where exits would be recorded, as in record." },
	{ .name = "rate", .kind = KX_OPTION_SECONDS, .argument = "TIME", .max = 3600,
	  KX_FIELD(struct arguments, rate_seconds),
	  .help = "count the processes' calls for this long, and predict the share of a CPU that "
		  "recording them takes; needs -p",
	  .manual = "Count for TIME how often the processes of -p call the functions, measure what "
		    "recording a call costs on this machine, and predict the share of one CPU that "
		    "recording them takes, the collector's part included. Counting has a cost too: a "
		    "program that does nothing but call single-stepped functions is counted at the "
		    "lower rate that this leaves it." },
	{ .name = "max-functions", .kind = KX_OPTION_NUMBER, .argument = "N", .min = 1,
	  KX_FIELD(struct arguments, max_functions), .help = "refuse to select more (default 20000)" },
	{ .name = "sort", .short_name = 's', .kind = KX_OPTION_CHOICE, .argument = "KEY",
	  .words = kx_functions_sort_words, KX_FIELD(struct arguments, table.sort),
	  .help = "the table by address (default), name, size, cost or, with --rate, calls" },
	{ .name = "limit", .short_name = 'n', .kind = KX_OPTION_NUMBER, .argument = "N", .min = 1,
	  KX_FIELD(struct arguments, table.limit), .help = "show only the first N functions of the table" },
	{ .name = "json", .kind = KX_OPTION_FLAG, KX_FIELD(struct arguments, json),
	  .help = "a JSON array on standard output" },
	{ .name = "left-out", .kind = KX_OPTION_FLAG, KX_FIELD(struct arguments, left_out),
	  .help = "with --json: list what is left out on standard error" },
	{ .name = "in-process", .kind = KX_OPTION_FLAG, KX_FIELD(struct arguments, in_process),
	  .help = "also whether their code allows recording them without traps (record --in-process), or why not",
	  .manual = "Show whether the code of each function allows recording it without traps (record --in-process): with "
		    "--json as in_process, else in a column, with the reason at the end of lines of any length (--wide). A line for "
		    "each binary goes to standard error. A process may have other reasons that forbid it." },
	KX_HELP_OPTION,
	{ 0 },
};

static const struct kx_option_group groups[] = {
	{ .options = options },
	{ .heading = "How to show it", .options = kx_screen_options, .offset = offsetof(struct arguments, screen) },
	{ 0 },
};

static const struct kx_example examples[] = {
	{ "kxray functions redis-server -f 'process*'",
	  "functions of a program, with the cost of a traced call" },
	{ "kxray functions -p 1234 -f 'libc.so*:*alloc'",
	  "of a library that a process uses" },
	{ "kxray functions -f 'kernel:tcp_*'",
	  "functions of the kernel" },
	{ "sudo kxray functions -p 1234 -f '*' --rate 2s --sort calls",
	  "how often a process calls them, and what recording them takes" },
	{ 0 },
};

const struct kx_command kx_command_functions = {
	.name = NAME,
	.summary = "list what can be traced, where and at what cost",
	.usage = "Usage: kxray functions (-p PID | BINARY) [-f PATTERN]... [-x PATTERN]... [OPTION...]\n"
		 "       kxray functions -f 'kernel:GLOB'|'syscall:GLOB'... [OPTION...]\n"
		 "Lists the functions that 'kxray record' would trace, with the cost of a hit.\n"
		 "BINARY is a file, or a program's name as in a shell.\n",
	.groups = groups,
	.notes = "Cost: 'nop5' is cheapest, 'emulated' costs about two to three times as much, 'stepped'\n"
		 "functions take a second trap ('kxray doctor' measures all three here); calls in the 'kernel'\n"
		 "take none. System calls are listed with placeholder addresses. Exit: 'return' probes replace\n"
		 "return addresses and are used where that is harmless, 'instruction' probes sit on the\n"
		 "function's own ret and tail-call instructions, or on the jumps before the ret.\n",
	.examples = examples,
	.operands = KX_OPERANDS_ONE,
	.operand = offsetof(struct arguments, binary),
	.run = kx_cmd_functions,
};

/* Whether there are patterns and none is about binaries: then no process is needed. */
static bool all_special(const struct arguments *a)
{
	for (size_t i = 0; i < a->ninclude; i++) {
		struct kx_pattern p;
		bool user;

		if (kx_pattern_parse(a->include[i], &p, NULL))
			return false;
		user = p.space == KX_PATTERN_USER || p.space == KX_PATTERN_USDT;
		kx_pattern_free(&p);
		if (user)
			return false;
	}
	return a->ninclude > 0;
}

static int check_arguments(const struct arguments *a, struct kx_err *err)
{
	if (a->binary && a->npids)
		return kx_err_set(err, -EINVAL, "give either -p or a binary, not both");
	if (a->rate_seconds > 0 && !a->npids)
		return kx_err_set(err, -EINVAL, "--rate needs running processes (-p PID)");
	if (a->table.sort == KX_FUNCTIONS_BY_CALLS && !(a->rate_seconds > 0))
		return kx_err_set(err, -EINVAL, "--sort calls needs --rate, which counts them");
	if (!a->binary && !a->npids && !all_special(a))
		return kx_err_set(err, -EINVAL, "name a process (-p PID) or a binary");
	return 0;
}

/* As the kernel behaves; where this user may not try it, as its version promises. */
static bool nop5_optimized(void)
{
	int tried = kx_probe_nop5_optimized();
	unsigned major, minor;
	struct utsname u;

	if (tried >= 0)
		return tried;
	return !uname(&u) && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 18));
}

static void print_left_out(const struct kx_selection *sel, FILE *to)
{
	size_t i;

	for (i = 0; i < sel->nleft_out; i++) {
		const struct kx_left_out *l = &sel->left_out[i];

		kx_print(to, "left out: %s (%s): %s\n", l->sym->pretty,
			 sel->modules[l->module].module->name, l->reason);
	}
}

static bool has_kernel_functions(const struct kx_selection *sel)
{
	for (size_t i = 0; i < sel->nmodules; i++)
		if (sel->modules[i].provider->probe == KX_PROBE_KERNEL)
			return true;
	return false;
}

/* Markers have no exits. */
static bool has_functions(const struct kx_selection *sel)
{
	for (size_t i = 0; i < sel->nmodules; i++)
		if (sel->modules[i].provider == &kx_provider_elf)
			return true;
	return false;
}

static void print_summary(const struct kx_selection *sel, const struct arguments *a,
			  const struct kx_price_measurement *price)
{
	enum kx_kernel_mechanism mechanism;
	struct kx_err why;
	size_t costs[KX_COST_KERNEL + 1] = { 0 }, exits[KX_EXITS_NONE + 1] = { 0 }, i, cheap, user;

	for (i = 0; i < sel->nfunctions; i++)
		if (sel->functions[i].traced) {
			costs[sel->functions[i].plan.entry.cost]++;
			exits[sel->functions[i].plan.exit_kind] +=
				sel->functions[i].plan.entry.cost != KX_COST_KERNEL;
		}
	user = sel->ntraced - costs[KX_COST_KERNEL];
	cheap = costs[KX_COST_NOP5] + costs[KX_COST_EMULATED];
	for (i = 0; i < sel->nnotes; i++)
		kx_print(stderr, "kxray functions: %s\n", sel->notes[i]);
	kx_print(stderr, "%zu function%s: ", sel->ntraced, sel->ntraced == 1 ? "" : "s");
	if (user)
		kx_print(stderr, "%zu nop5, %zu emulated, %zu stepped (%zu %% cheap)",
			 costs[KX_COST_NOP5], costs[KX_COST_EMULATED], costs[KX_COST_STEPPED],
			 cheap * 100 / user);
	if (costs[KX_COST_KERNEL])
		kx_print(stderr, "%s%zu in the kernel", user ? ", " : "", costs[KX_COST_KERNEL]);
	if (sel->nleft_out)
		kx_print(stderr, "; %zu left out because they cannot be traced safely%s",
			 sel->nleft_out, a->json && !a->left_out ? " (--left-out lists them)" : "");
	fputc('\n', stderr);
	if (has_kernel_functions(sel) &&
	    kx_kernel_mechanism_best(KX_KERNEL_NONE, &mechanism, &why))
		kx_print(stderr, "kxray functions: %s\n", why.text);
	if (!user || !has_functions(sel))
		return;
	kx_print(stderr, "exits: %zu return, %zu instruction, %zu none; ", exits[KX_EXITS_RETURN],
		 exits[KX_EXITS_INSTRUCTION], exits[KX_EXITS_NONE]);
	if (a->exits != KX_EXITS_AUTO)
		kx_print(stderr, "as requested by --exits=%s\n", kx_exits_name(a->exits));
	else if (sel->risk.returns_harmless)
		kx_print(stderr, "return probes are harmless here: %s\n", sel->risk.reason);
	else
		kx_print(stderr, "return probes only where nothing can unwind: %s\n",
			 sel->risk.reason);
	kx_price_print(price, stderr);
	if (a->binary)
		kx_print(stderr,
			 "exits may differ in a process, which decides by all of its libraries\n");
	if (sel->by_size)
		kx_print(stderr,
			 "chosen by size: %zu of %zu functions have a loop or at least %d "
			 "instructions; -f '*' shows all\n",
			 sel->ntraced, sel->ncandidates, KX_SELECT_MIN_INSTRUCTIONS);
}

static bool is_named(void *ctx, pid_t pid)
{
	const struct arguments *a = ctx;

	for (size_t i = 0; i < a->npids; i++)
		if (a->pids[i] == pid)
			return true;
	return false;
}

/* Whom a probe for every process would slow down. */
static void print_shared(const struct kx_selection *sel, struct arguments *a)
{
	struct kx_bystanders others = { .is_traced = is_named, .ctx = a };

	for (size_t i = 0; i < sel->nmodules; i++) {
		const struct kx_select_module *m = &sel->modules[i];
		size_t n = m->provider->probe == KX_PROBE_UPROBE ?
				   kx_bystanders_count(&others, m->module) :
				   0;

		if (n)
			kx_print(stderr, "%zu other process%s %s mapped\n", n,
				 n == 1 ? " has" : "es have", m->module->name);
	}
	kx_bystanders_free(&others);
}

static void print_prediction(const struct kx_rates *rates)
{
	kx_print(
		stderr,
		"recording them takes %.*f %% of one CPU, at the rate at which they were called in "
		"%.1f s of counting\n",
		rates->percent < 10 ? 2 : 0, rates->percent, rates->seconds);
}

static int look_at_program(const char *name, struct kx_modules *mods, struct kx_err *err)
{
	char *path = kx_program_path(name);
	int rc = path ? kx_modules_of_file(path, mods, err) :
			kx_err_set(err, -ENOMEM, "no memory for the path of '%s'", name);

	free(path);
	if (rc == -ENOENT && !name[strspn(name, "0123456789")])
		rc = kx_err_set(err, rc, "there is no file '%s'; for the process of this number write -p %s", name, name);
	else if (rc == -ENOENT && !strchr(name, '/'))
		rc = kx_err_set(err, rc,
				"cannot open '%s': there is no such file here, and no program of this name on PATH; name a "
				"program, a library by its path, or a process with -p PID",
				name);
	return rc;
}

/* @windows: NULL if they were not asked for. */
static int show(struct arguments *a, const struct kx_selection *sel, const struct kx_rates *rates,
		const struct kx_function_windows *windows, struct kx_price_measurement *price, struct kx_err *err)
{
	int rc;

	if (!a->json && has_functions(sel))
		kx_price_start(price, sel);
	a->table.screen = kx_screen_of(STDOUT_FILENO, a->screen.color, a->screen.wide);
	if (a->json)
		rc = kx_functions_json(sel, rates, windows, err);
	else
		rc = kx_functions_print(sel, rates, windows, &a->table, err);
	if (!a->json)
		print_left_out(sel, stdout);
	else if (a->left_out)
		print_left_out(sel, stderr);
	/* Both streams may be one terminal: the table ends before the summary. */
	fflush(stdout);
	kx_price_wait(price);
	if (!rc)
		print_summary(sel, a, price);
	if (!rc && a->npids)
		print_shared(sel, a);
	if (!rc && rates)
		print_prediction(rates);
	if (!rc && windows)
		kx_function_windows_print(windows, stderr);
	return rc;
}

/* Of so many functions some will have expensive exits, and planning them takes longer than loading the recorder. */
#define MANY 20000

static void on_chosen(void *ctx, size_t functions)
{
	if (functions >= MANY)
		kx_price_start_early(ctx);
}

static int list_functions(struct arguments *a, struct kx_err *err)
{
	struct kx_price_measurement price = { 0 };
	const bool early = !a->json && a->exits == KX_EXITS_AUTO && !(a->rate_seconds > 0);
	const struct kx_select_options how = {
		.include = a->include, .ninclude = a->ninclude,
		.exclude = a->exclude, .nexclude = a->nexclude,
		.exits = a->exits, .max_functions = a->max_functions,
		.nop5_optimized = nop5_optimized(),
		.nop5_forbidden = kx_probe_nop5_optimized() < 0 ? nop5_optimized() : kx_probe_nop5_harms(),
		.emulated = kx_probe_emulated(),
		.stacks_unguarded = !kx_returns_check_stacks(-1),
		.chosen = early ? on_chosen : NULL,
		.chosen_ctx = &price,
	};
	size_t n = a->binary ? 1 : a->npids, i;
	struct kx_select_process *procs = calloc(n + 1, sizeof(*procs));
	struct kx_modules *mods = calloc(n + 1, sizeof(*mods));
	struct kx_rates rates = { 0 };
	const struct kx_rates *known = a->rate_seconds > 0 ? &rates : NULL;
	struct kx_function_windows windows = { 0 };
	struct kx_selection sel;
	int rc = 0;

	if (!procs || !mods)
		rc = kx_err_set(err, -ENOMEM, "no memory for %zu processes", n);
	for (i = 0; i < n && !rc; i++) {
		procs[i].pid = a->binary ? 0 : a->pids[i];
		procs[i].mods = &mods[i];
		rc = a->binary ? look_at_program(a->binary, &mods[i], err) :
				 kx_modules_of_process(a->pids[i], &mods[i], err);
	}
	if (!rc)
		rc = kx_select_functions(procs, n, &how, &sel, err);
	if (!rc && known) {
		rc = kx_rates_measure(&sel, &how, a->pids, a->npids, a->rate_seconds, &rates, err);
		if (rc)
			kx_selection_free(&sel);
	}
	if (!rc && a->in_process) {
		rc = kx_function_windows_plan(&sel, n == 1 ? procs[0].pid : 0, procs[0].mods, &windows, err);
		if (rc)
			kx_selection_free(&sel);
	}
	if (!rc) {
		rc = show(a, &sel, known, a->in_process ? &windows : NULL, &price, err);
		kx_function_windows_free(&windows);
		kx_selection_free(&sel);
	}
	kx_price_wait(&price);
	kx_rates_free(&rates);
	for (i = 0; mods && i < n; i++)
		kx_modules_free(&mods[i]);
	free(mods);
	free(procs);
	return rc;
}

int kx_cmd_functions(int argc, char **argv)
{
	struct arguments a = { 0 };
	struct kx_err err = { 0 };
	int status = KX_EXIT_DONE, r = kx_options_parse(&kx_command_functions, &a, argc, argv, &err);

	kx_clock_prepare();
	kx_cmd_allow_downloads(NAME);
	if (!r)
		r = check_arguments(&a, &err);
	if (!r)
		kx_keeper_start(NULL); /* for what is tried and measured */
	if (r)
		status = kx_cmd_end_parse(&kx_command_functions, r, &err);
	else if (list_functions(&a, &err))
		status = kx_cmd_fail(NAME, &err);
	kx_keeper_stop();
	kx_options_free(&kx_command_functions, &a);
	return status;
}
