// SPDX-License-Identifier: BSD-2-Clause
#include "record/probe_sets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "attach/probe_check.h"
#include "attach/syscall_attach.h"
#include "base/array.h"
#include "trace/exit_moves.h"
#include "tracer/clock.h"

/* Functions without probes of further processes that join are only counted. */
#define MAX_GAP_NOTICES 20

struct probe_set {
	int (*attach)(struct kx_probe_sets *s, struct kx_err *err);
	size_t (*functions)(const struct kx_probe_sets *s);
	size_t (*probes)(const struct kx_probe_sets *s);
	uint64_t (*missed)(
		const struct kx_probe_sets *s); /* or NULL: the source counts them, or there are none */
	const char *(*mechanism)(const struct kx_probe_sets *s);
	void (*free)(struct kx_probe_sets *s); /* or NULL */
};

/* Functions in programs and libraries */

static void on_refused(void *ctx, const struct kx_function *f, const char *reason)
{
	const struct kx_probe_sets *s = ctx;

	kx_notice(s->notices, "left out %s: %s", f->sym->pretty, reason);
}

static bool is_shared(void *ctx, const struct kx_module *m)
{
	struct kx_probe_sets *s = ctx;

	return s->follow ? kx_follow_is_shared(s->follow, m) :
			   kx_bystanders_map(&s->bystanders, m);
}

static bool is_left_out(void *ctx, const struct kx_function *f)
{
	const struct kx_probe_sets *s = ctx;

	return kx_in_process_has(s->in_process, f->id);
}

static bool is_target(void *ctx, pid_t pid)
{
	const struct kx_probe_sets *s = ctx;

	for (size_t i = 0; i < s->nprocs; i++)
		if (s->procs[i].pid == pid)
			return true;
	return false;
}

/* Readers subtract what the probes took, which is more at return instructions. What is not known is no error. */
static void on_exits_moved(void *ctx, pid_t pid, uint32_t module, unsigned which)
{
	_Static_assert(KX_DROP_CALLERS == KX_MOVED_CALLERS && KX_DROP_LEAVES == KX_MOVED_LEAVES,
		       "numbers in the map");
	struct kx_probe_sets *s = ctx;
	struct kx_exit_move move = { .tsc = kx_tsc_read(), .pid = pid, .last = UINT32_MAX, .which = which };

	s->exits_moved = true;
	if (!s->moves)
		return;
	for (size_t i = 0; module != KX_EVERY_MODULE && i < s->sel->nfunctions; i++) {
		const struct kx_function *f = &s->sel->functions[i];

		if (f->module != module)
			continue;
		if (!move.first)
			move.first = f->id;
		move.last = f->id;
	}
	kx_exit_move_list_add(s->moves, &move);
}

static int attach_user(struct kx_probe_sets *s, struct kx_err *err)
{
	/* each could have links of its own, but the kernel would mix up their return probes */
	bool several = s->procs && s->nprocs > 1 && kx_probes_filter_process(s->tracer);
	const struct kx_probes_options options = {
		.procs = s->procs,
		.nprocs = s->nprocs,
		.is_shared = s->follow || several ? is_shared : NULL,
		.apart = s->apart,
		.starts_out = s->starts_out,
		.joining = s->follow != NULL,
		.exits_auto = s->exits == KX_EXITS_AUTO,
		.nargs = s->nargs,
		.refused = on_refused,
		.left_out = s->in_process && !s->follow ? is_left_out : NULL,
		/* processes that execute a program need them */
		.withheld = s->in_process && s->follow ? is_left_out : NULL,
		.exits_moved = on_exits_moved,
		.ctx = s,
	};

	int code;

	s->bystanders = (struct kx_bystanders){ .is_traced = is_target, .ctx = s };
	code = kx_probes_attach(s->tracer, s->sel, &options, &s->user, err);
	kx_bystanders_free(&s->bystanders);
	return code;
}

static size_t user_functions(const struct kx_probe_sets *s)
{
	return s->user ? kx_probes_functions(s->user) : 0;
}

static size_t user_probes(const struct kx_probe_sets *s)
{
	return s->user ? kx_probes_count(s->user) : 0;
}

static const char *user_mechanism(const struct kx_probe_sets *s)
{
	return kx_mechanism_name(kx_tracer_prog_mechanism(s->tracer, KX_PROG_RETURN));
}

static void free_user(struct kx_probe_sets *s)
{
	s->waiting = kx_probes_free(s->user);
	s->user = NULL;
}

/* System calls */

static int attach_syscalls(struct kx_probe_sets *s, struct kx_err *err)
{
	return kx_syscalls_attach(s->tracer, s->sel, s->nargs, &s->syscalls, err);
}

static size_t syscall_functions(const struct kx_probe_sets *s)
{
	return s->syscalls;
}

static size_t syscall_probes(const struct kx_probe_sets *s)
{
	return s->syscalls ? KX_SYSCALL_PROBES : 0;
}

static const char *syscall_mechanism(const struct kx_probe_sets *s)
{
	(void)s;
	return "system call tracepoints";
}

/* Kernel functions */

static void on_kernel_refused(void *ctx, const struct kx_kernel_function *f, const char *reason)
{
	const struct kx_probe_sets *s = ctx;

	kx_notice(s->notices, "left out kernel function %s: %s", f->sym->name, reason);
}

static int attach_kernel(struct kx_probe_sets *s, struct kx_err *err)
{
	struct kx_kernel_function *functions = NULL;
	const struct kx_symbols *syms = NULL;
	size_t n = 0;
	int code;

	for (size_t i = 0; i < s->sel->nfunctions; i++) {
		const struct kx_function *f = &s->sel->functions[i];

		if (!kx_select_is_probed_by(s->sel, f, KX_PROBE_KERNEL))
			continue;
		if (!functions)
			functions = calloc(s->sel->nfunctions, sizeof(*functions));
		if (!functions)
			return kx_err_set(err, -ENOMEM, "no memory for the kernel's functions");
		functions[n++] = (struct kx_kernel_function){ .id = f->id, .sym = f->sym, .has_values = f->has_values };
		syms = &s->sel->modules[f->module].syms;
	}
	if (!n)
		return 0;
	code = kx_kernel_attach(s->tracer, syms, functions, n, s->nargs, on_kernel_refused, s,
				&s->kernel, err);
	free(functions);
	return code;
}

static size_t kernel_functions(const struct kx_probe_sets *s)
{
	return kx_kernel_probes_functions(s->kernel);
}

static size_t kernel_probes(const struct kx_probe_sets *s)
{
	return kx_kernel_probes_count(s->kernel);
}

static uint64_t kernel_missed(const struct kx_probe_sets *s)
{
	return s->kernel ? kx_kernel_probes_missed(s->kernel) : 0;
}

static void free_kernel(struct kx_probe_sets *s)
{
	kx_kernel_probes_free(s->kernel);
	s->kernel = NULL;
}

/* In the order in which they are attached; freed the other way round. */
static const struct probe_set sets[] = {
	{ attach_user, user_functions, user_probes, NULL, user_mechanism, free_user },
	{ attach_syscalls, syscall_functions, syscall_probes, NULL, syscall_mechanism, NULL },
	{ attach_kernel, kernel_functions, kernel_probes, kernel_missed,
	  kx_probe_sets_kernel_mechanism, free_kernel },
};

#define NSETS (sizeof(sets) / sizeof(sets[0]))

int kx_probe_sets_attach(struct kx_probe_sets *s, struct kx_err *err)
{
	int code = 0;

	for (size_t i = 0; i < NSETS && !code; i++)
		code = sets[i].attach(s, err);
	return code;
}

/* Whether the gap has been named: a process is checked again when it loads a library. */
static bool is_known(struct kx_probe_sets *s, const struct kx_probe_gap *gap)
{
	const struct kx_known_gap new = { gap->pid, gap->module->device, gap->module->inode };

	for (size_t i = 0; i < s->ngaps; i++)
		if (s->gaps[i].pid == new.pid && s->gaps[i].inode == new.inode &&
		    s->gaps[i].device == new.device)
			return true;
	/* without memory it may be named again */
	if (!KX_ARRAY_RESERVE(s->gaps, s->gaps_room, s->ngaps))
		s->gaps[s->ngaps++] = new;
	return false;
}

struct checking {
	struct kx_probe_sets *s;
	size_t functions;
};

static void on_gap(void *ctx, const struct kx_probe_gap *gap)
{
	struct checking *c = ctx;
	char first[80], module[80];

	if (is_known(c->s, gap))
		return;
	c->functions += gap->functions;
	if (c->s->ngaps > MAX_GAP_NOTICES)
		return;
	snprintf(first, sizeof(first), "%s", gap->first->sym->pretty);
	snprintf(module, sizeof(module), "%s", gap->module->name);
	kx_notice(
		c->s->notices,
		"%zu of %zu functions of %s have no probe in process %d, so their calls there are "
		"not recorded (%s%s): %s",
		gap->functions, gap->all, module, gap->pid, first,
		gap->functions > 1 ? ", ..." : "",
		gap->writable
			? "the code is mapped writable, and the kernel sets no probes in such "
			  "code"
			: "the code differs from what the kernel was asked to set; another "
			  "program may have changed it");
}

size_t kx_probe_sets_check(struct kx_probe_sets *s, const struct kx_select_process *procs,
			   size_t nprocs)
{
	struct checking c = { .s = s };

	if (s->user)
		kx_probe_check(s->user, s->sel, procs, nprocs, on_gap, &c);
	return c.functions;
}

size_t kx_probe_sets_functions(const struct kx_probe_sets *s)
{
	size_t n = 0;

	for (size_t i = 0; i < NSETS; i++)
		n += sets[i].functions(s);
	return n;
}

size_t kx_probe_sets_probes(const struct kx_probe_sets *s)
{
	size_t n = 0;

	for (size_t i = 0; i < NSETS; i++)
		n += sets[i].probes(s);
	return n;
}

uint64_t kx_probe_sets_missed(const struct kx_probe_sets *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < NSETS; i++)
		n += sets[i].missed ? sets[i].missed(s) : 0;
	return n;
}

void kx_probe_sets_mechanisms(const struct kx_probe_sets *s, char *text, size_t size)
{
	size_t used = 0;

	snprintf(text, size, "%s", sets[0].mechanism(s)); /* functions may join later */
	for (size_t i = 0; i < NSETS; i++)
		if (sets[i].functions(s) && used < size)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
						 sets[i].mechanism(s));
}

const char *kx_probe_sets_kernel_mechanism(const struct kx_probe_sets *s)
{
	return s->kernel ? kx_kernel_probes_mechanism(s->kernel) : NULL;
}

void kx_probe_sets_free(struct kx_probe_sets *s)
{
	for (size_t i = NSETS; i--;)
		if (sets[i].free)
			sets[i].free(s);
	free(s->gaps);
	s->gaps = NULL;
	s->ngaps = s->gaps_room = 0;
}
