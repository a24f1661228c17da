// SPDX-License-Identifier: BSD-2-Clause
/* What a recording wants of the processes that join it. */
#include "record/recording_internal.h"

#include "record/changed_code.h"
#include "record/recording_in_process.h"
#include "record/recording_in_process_follow.h"

bool kx_recording_wants_mappings(const struct recording *r)
{
	return r->o->callers || r->o->sample_hz;
}

bool kx_recording_wants_own_probes(const struct kx_recording_options *o)
{
	if (o->follow_exact)
		return false;
	return o->all ? o->filters.which & KX_FILTER_PROCESSES : o->follow || o->npids > 1;
}

void kx_recording_check_probes(struct recording *r, const struct kx_select_process *procs, size_t nprocs)
{
	r->result->unprobed += kx_probe_sets_check(&r->probes, procs, nprocs);
	if (r->result->unprobed && r->info)
		json_object_set_new(r->info, "unprobed",
				    json_integer((json_int_t)r->result->unprobed));
}

/* Whether no process is changed but those that are asked for: the default where the kernel can do it. */
static bool has_own_probes(struct recording *r)
{
	if (!kx_recording_wants_own_probes(r->o))
		return false;
	if (kx_probes_filter_process(r->tracer))
		return true;
	kx_notice(&r->notices, "this kernel cannot limit probes to single processes (Linux 6.10 can): other "
			       "processes that use the same files run into them and become slower");
	return false;
}

int kx_recording_leave_out_changed(struct recording *r, struct kx_err *err)
{
	const struct kx_module_filter apart = { .matches = kx_follow_is_shared, .ctx = r->follow };

	return kx_leave_out_all_changed(&r->sel, r->targets.procs, r->targets.nprocs, &apart,
					&r->notices, err);
}

/* What a process lacks is named when it joins. */
static void check_joined(void *ctx, const struct kx_select_process *proc)
{
	const struct recording *r = ctx;

	kx_recording_check_probes(ctx, proc, 1);
	if (r->in_process && proc->pid == r->targets.pids[0])
		kx_in_process_look_for_copies(r->in_process, proc->mods);
}

int kx_recording_follow(struct recording *r,
			int (*attach)(void *ctx, size_t first, size_t *n, struct kx_err *err),
			struct kx_err *err)
{
	const struct kx_follow_context context = {
		.tracer = r->tracer,
		.sel = &r->sel,
		.probes = &r->probes.user,
		.mappings = kx_recording_wants_mappings(r) ? &r->processes : NULL,
		.notices = &r->notices,
		.all = r->o->all,
		.own_probes = has_own_probes(r),
		.faults_unwind = kx_recording_faults_unwind(r),
		.times_calls = kx_recording_times_calls(r),
		.own_code = r->o->in_process ? &kx_recording_own_code : NULL,
		.filters = &r->o->filters,
		.exits = r->o->select.exits,
		.pids = r->targets.pids,
		.npids = r->targets.npids,
		.attach = attach,
		.check = check_joined,
		.ctx = r,
	};

	return kx_follow_start(&context, &r->follow, err);
}
