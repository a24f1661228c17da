// SPDX-License-Identifier: BSD-2-Clause
/* The tracer's set of processes where it grows. */
#include <bpf/bpf.h>
#include <errno.h>

#include "tracer/tracer_internal.h"

void kx_tracer_on_process(struct kx_tracer *t, void (*each)(void *ctx, const struct kx_process_event *event), void *ctx)
{
	t->on_process = each;
	t->on_process_ctx = ctx;
}

int kx_tracer_follow(struct kx_tracer *t,
		     void (*each)(void *ctx, const struct kx_process_event *event), void *ctx,
		     struct kx_err *err)
{
	kx_tracer_on_process(t, each, ctx);
	return kx_sources_attach(t, KX_SOURCE_PROCESSES, err);
}

int kx_tracer_target(const struct kx_tracer *t, pid_t pid, struct kx_target *out)
{
	__u32 tgid = (__u32)pid;

	return bpf_map_lookup_elem(bpf_map__fd(t->skel->maps.kx_targets), &tgid, out);
}

int kx_tracer_add_target(struct kx_tracer *t, pid_t pid)
{
	const struct kx_target target = { .changes = 1 };
	__u32 tgid = (__u32)pid;
	int code = bpf_map_update_elem(bpf_map__fd(t->skel->maps.kx_targets), &tgid, &target,
				       BPF_NOEXIST);

	return code == -EEXIST ? 0 : code;
}

void kx_tracer_remove_target(struct kx_tracer *t, pid_t pid)
{
	__u32 tgid = (__u32)pid;

	bpf_map_delete_elem(bpf_map__fd(t->skel->maps.kx_targets), &tgid);
}

void kx_tracer_checked(struct kx_tracer *t, pid_t pid, uint32_t changes, bool loads)
{
	__u64 args[] = { (__u64)pid, changes, loads };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	bpf_prog_test_run_opts(bpf_program__fd(t->skel->progs.kx_mark_checked), &opts);
}

void kx_tracer_forbid_returns(struct kx_tracer *t)
{
	__atomic_store_n(&t->skel->bss->kx_switching, UINT32_MAX, __ATOMIC_RELEASE);
}

void kx_tracer_calls_move(struct kx_tracer *t)
{
	__atomic_store_n(&t->skel->bss->kx_calls_move, 1, __ATOMIC_RELEASE);
}

bool kx_tracer_has_moving_calls(const struct kx_tracer *t)
{
	return t->skel->bss->kx_calls_move;
}

bool kx_tracer_switches_stacks(const struct kx_tracer *t, pid_t *pid, uint32_t *func)
{
	*pid = (pid_t)__atomic_load_n(&t->skel->bss->kx_switching, __ATOMIC_ACQUIRE);
	*func = t->skel->bss->kx_switching_func;
	return *pid;
}

void kx_tracer_replace_session(struct kx_tracer *t, uint32_t group)
{
	__atomic_store_n(&t->skel->bss->kx_replaced[group % KX_MAX_GROUPS], 1, __ATOMIC_RELEASE);
}

uint64_t kx_tracer_unfollowed(const struct kx_tracer *t)
{
	return __atomic_load_n(&t->skel->bss->kx_unfollowed, __ATOMIC_RELAXED);
}

uint64_t kx_tracer_process_events_lost(const struct kx_tracer *t)
{
	return __atomic_load_n(&t->skel->bss->kx_process_events_lost, __ATOMIC_RELAXED);
}
