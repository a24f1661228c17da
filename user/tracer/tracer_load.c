// SPDX-License-Identifier: BSD-2-Clause
/* Which BPF programs are loaded, and with which constants. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include "base/large.h"
#include "base/process_limits.h"
#include "tracer/keeper.h"
#include "tracer/kernel_link.h"
#include "tracer/permission.h"
#include "tracer/tracer_internal.h"

/* What loading takes: maps and programs; libbpf reads the types of the kernel and of its modules. */
#define LOAD_FILES 64
#define LOAD_BYTES (32u << 20)
#define TYPES_BYTES (16u << 20) /* what libbpf takes for the kernel's */

/* All programs for kernel functions are optional and loaded only if requested. */
static void choose_kernel_programs(struct kx_tracer *t)
{
	const struct record_bpf *s = t->skel;
	bool session = t->kernel == KX_KERNEL_SESSION, fentry = t->kernel == KX_KERNEL_FENTRY;
	enum bpf_attach_type type = (enum bpf_attach_type)(
		t->kernel == KX_KERNEL_MULTI ? KX_BPF_TRACE_KPROBE_MULTI : 0);

	if (t->kernel == KX_KERNEL_NONE)
		return;
	bpf_program__set_autoload(s->progs.kx_kernel_session, session);
	bpf_program__set_autoload(s->progs.kx_kernel_entry, !session);
	bpf_program__set_autoload(s->progs.kx_kernel_return, !session);
	bpf_program__set_autoload(s->progs.kx_kernel_fentry, fentry);
	bpf_program__set_autoload(s->progs.kx_kernel_fexit, fentry);
	bpf_program__set_expected_attach_type(s->progs.kx_kernel_session,
					      (enum bpf_attach_type)KX_BPF_TRACE_KPROBE_SESSION);
	bpf_program__set_expected_attach_type(s->progs.kx_kernel_entry, type);
	bpf_program__set_expected_attach_type(s->progs.kx_kernel_return, type);
}

bool kx_tracer_is_plain(const struct kx_tracer_options *o)
{
	return !o->general && o->npids == 1 && !o->follow && !o->all && !o->own_probes && !o->filters && !o->nargs && !o->results &&
	       !o->value_functions && !o->conditions.any &&
	       !o->callers && !o->flight && !o->max_depth && !o->min_duration_ns && !o->count_functions &&
	       !o->budget_functions;
}

/* The programs of function probes are the largest: the verifier takes a tenth of a second for them. */
static void leave_out_probes(const struct kx_tracer *t)
{
	const struct record_bpf *s = t->skel;

	bpf_program__set_autoload(t->session, false);
	bpf_program__set_autoload(s->progs.kx_entry, false);
	bpf_program__set_autoload(s->progs.kx_return, false);
	bpf_program__set_autoload(s->progs.kx_exit, false);
}

/* Loads only what the mechanism uses: the others' kfuncs may not exist here. */
static void choose_programs(struct kx_tracer *t, const struct kx_tracer_options *o)
{
	struct record_bpf *s = t->skel;
	bool session = t->mechanism == KX_MECHANISM_SESSION;
	bool others = !o->probes_only && !o->sources_only;
	unsigned multi = kx_mechanism_attach_type(session ? KX_MECHANISM_MULTI : t->mechanism);

	kx_sources_choose(t, o);
	bpf_program__set_autoload(s->progs.kx_dlopen, others);
	bpf_program__set_autoload(s->progs.kx_stop_at_entry, others);
	bpf_program__set_autoload(s->progs.kx_flush_all_pending, others && o->min_duration_ns);
	t->session = kx_tracer_is_plain(o) ? s->progs.kx_session_plain : s->progs.kx_session;
	bpf_program__set_autoload(s->progs.kx_session, false);
	bpf_program__set_autoload(s->progs.kx_session_plain, false);
	bpf_program__set_autoload(session ? t->session : s->progs.kx_return, true);
	bpf_program__set_autoload(session ? s->progs.kx_return : t->session, false);
	bpf_program__set_autoload(s->progs.kx_find_current, session);
	bpf_program__set_autoload(s->progs.kx_find_leases, session && others && !o->no_functions);
	bpf_program__set_expected_attach_type(t->session,
					      (enum bpf_attach_type)KX_BPF_TRACE_UPROBE_SESSION);
	bpf_program__set_expected_attach_type(s->progs.kx_entry, multi);
	bpf_program__set_expected_attach_type(s->progs.kx_return, multi);
	bpf_program__set_expected_attach_type(s->progs.kx_exit, multi);
	bpf_program__set_autoload(s->progs.kx_marker, o->markers);
	if (o->no_functions || o->sources_only)
		leave_out_probes(t);
	bpf_program__set_expected_attach_type(s->progs.kx_marker, multi);
	bpf_program__set_expected_attach_type(s->progs.kx_dlopen, multi);
	bpf_program__set_expected_attach_type(s->progs.kx_stop_at_entry, multi);
	choose_kernel_programs(t);
}

static int explain_load(int code, struct kx_err *err)
{
	char why[KX_LIMIT_TEXT];
	/* libbpf reports both limits as other errors */
	int limit = kx_limits_try(LOAD_FILES, LOAD_BYTES, why);

	if (limit)
		return kx_err_set(err, limit, "the recorder's BPF programs cannot be loaded: %s", why);
	/* -EACCES is the verifier's word for a program that it does not like */
	if (code == -EPERM)
		return kx_err_set(err, code,
				  "this user may not load BPF programs; run kxray as root, or with %s",
				  kx_needed_capabilities());
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return kx_err_set(err, -ENOENT,
				  "this kernel has no type information (/sys/kernel/btf/vmlinux): "
				  "kxray needs a kernel built with CONFIG_DEBUG_INFO_BTF");
	return kx_err_set(
		err, code,
		"the kernel refuses the recorder's BPF programs (%s); 'kxray doctor' shows "
		"what it offers",
		strerror(-code));
}

/* In what the BPF programs measure time in. */
static uint64_t min_ticks(const struct kx_clock *clock, uint64_t ns)
{
	if (clock->kind == KX_CLOCK_KTIME)
		return ns;
	return (uint64_t)((double)ns * 1e-9 * (double)clock->tsc_hz + 0.5);
}

static void set_filters(struct record_bpf__rodata *rodata, const struct kx_filters *f)
{
	rodata->kx_filters = f->which;
	rodata->kx_filter_uid = f->uid;
	rodata->kx_filter_cgroup = f->cgroup;
	memcpy((void *)rodata->kx_filter_cpus, f->cpus, sizeof(f->cpus));
	memcpy((void *)rodata->kx_comm_step, f->comm.step, sizeof(f->comm.step));
	rodata->kx_comm_loop = f->comm.loop;
	rodata->kx_comm_accept = f->comm.accept;
}

/* What a recording cannot need is not allocated: the kernel takes milliseconds for it, and as long to free it, in its own threads on any CPU. */
static void size_maps(struct record_bpf *s, const struct kx_tracer_options *o)
{
	if (!o->flight)
		bpf_map__set_max_entries(s->maps.kx_timed_calls, 1);
	if (!o->follow && !o->all && o->npids < bpf_map__max_entries(s->maps.kx_targets))
		bpf_map__set_max_entries(s->maps.kx_targets, (uint32_t)o->npids);
	if (!o->probes_only)
		return;
	bpf_map__set_max_entries(s->maps.kx_moving_calls, 1);
	bpf_map__set_max_entries(s->maps.kx_thread_losses, 64);
}

/*
 * libbpf copies the kernel's types, some megabytes, twice for each object. As the C library has it, each copy is mapped anew, and its pages are
 * made one fault after the other, which in a virtual machine takes longer than all else of the load.
 */
static int load_object(struct record_bpf *s)
{
	void *room;
	int code;

	mallopt(M_MMAP_THRESHOLD, LOAD_BYTES);
	mallopt(M_TRIM_THRESHOLD, LOAD_BYTES);
	room = malloc(TYPES_BYTES);
	kx_large_fill(room, TYPES_BYTES);
	free(room);
	code = record_bpf__load(s);
	/* as the C library sets them itself when large blocks are freed */
	mallopt(M_MMAP_THRESHOLD, TYPES_BYTES / 4);
	mallopt(M_TRIM_THRESHOLD, TYPES_BYTES / 2);
	malloc_trim(0);
	return code;
}

int kx_tracer_load(struct kx_tracer *t, const struct kx_tracer_options *o, struct kx_err *err)
{
	uint32_t nslots =
		kx_ring_slots_for(o->count_functions || o->top_functions ? 1 : o->ring_bytes, t->cpus.n);
	int code;

	choose_programs(t, o);
	t->skel->rodata->kx_clock_kind = t->clock->kind;
	t->skel->rodata->kx_ring_slots = nslots;
	t->skel->rodata->kx_wake_slots = nslots / 8;
	t->skel->rodata->kx_callers = o->callers;
	t->skel->rodata->kx_flight = o->flight;
	t->skel->rodata->kx_syscall_results = o->syscall_results;
	t->skel->rodata->kx_results = o->results;
	t->skel->rodata->kx_scope = o->all			  ? KX_SCOPE_ALL
				    : o->npids == 1 && !o->follow ? KX_SCOPE_ONE
								  : KX_SCOPE_SET;
	t->skel->rodata->kx_own_probes = o->own_probes;
	t->skel->rodata->kx_dynamic_targets = o->all || o->follow;
	t->skel->rodata->kx_counting = o->count_functions || o->top_functions;
	t->skel->rodata->kx_max_depth = o->max_depth;
	t->skel->rodata->kx_min_ticks = min_ticks(t->clock, o->min_duration_ns);
	t->skel->rodata->kx_framed = o->max_depth || o->min_duration_ns ? KX_FRAMED : 0;
	t->skel->rodata->kx_leaves_out = o->budget_functions > 0;
	if (o->min_duration_ns)
		t->skel->rodata->kx_payload_words = o->nargs + o->callers;
	t->skel->rodata->kx_only_tgid = o->npids == 1 ? (uint32_t)o->pids[0] : 0;
	t->skel->rodata->kx_own_tgid = (uint32_t)getpid();
	t->skel->rodata->kx_keeper_tgid = (uint32_t)kx_keeper_pid();

	size_maps(t->skel, o);
	if (o->filters)
		set_filters(t->skel->rodata, o->filters);

	t->template_fd = kx_ring_template(nslots);
	if (t->template_fd < 0)
		return explain_load(t->template_fd, err);
	code = bpf_map__set_inner_map_fd(t->skel->maps.kx_rings, t->template_fd);
	if (!code)
		code = bpf_map__set_max_entries(t->skel->maps.kx_calls, o->count_functions + 1);
	if (!code)
		code = kx_tracer_budget_size(t, o->budget_functions);
	if (!code)
		code = kx_tracer_top_size(t, o->top_functions);
	if (!code)
		code = kx_tracer_values_size(t, o->value_functions, o->markers);
	if (!code)
		code = kx_tracer_conditions_size(t, &o->conditions, o->nargs + o->callers);
	if (!code)
		code = load_object(t->skel);
	return code ? explain_load(code, err) : 0;
}
