// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/* For scripts/bench-hitpath.sh: one program for each part of what a function's probe program does. */
#include "ring.bpf.h"
#include "native_stack.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The value is computed, and not used. */
#define USE(value) asm volatile("" ::"r"(value))

__u64 taken = 0; /* of the program cas */

SEC("uprobe")
int empty(struct pt_regs *ctx)
{
	return 0;
}

SEC("uprobe")
int ids(struct pt_regs *ctx)
{
	USE(bpf_get_current_pid_tgid());
	return 0;
}

SEC("uprobe")
int task(struct pt_regs *ctx)
{
	USE(bpf_get_current_task_btf()->tgid);
	return 0;
}

SEC("uprobe")
int cookie(struct pt_regs *ctx)
{
	USE(bpf_get_attach_cookie(ctx));
	return 0;
}

SEC("uprobe")
int read_clock(struct pt_regs *ctx)
{
	USE(kx_read_clock());
	return 0;
}

SEC("uprobe")
int known_stack(struct pt_regs *ctx)
{
	USE(kx_known_stack(bpf_get_current_task_btf()));
	return 0;
}

SEC("uprobe")
int cas(struct pt_regs *ctx)
{
	__u64 now = *(volatile __u64 *)&taken;

	USE(__sync_val_compare_and_swap(&taken, now, now + 1));
	return 0;
}

/* Ring, thread, cookie and kind of hit, by loads. */
SEC("uprobe")
int look(struct pt_regs *ctx)
{
	struct kx_own_ring ring;
	struct kx_hit hit;

	kx_find_ring(&ring);
	kx_look_at_hit(ctx, &ring, &hit);
	USE(hit.id);
	USE(hit.cookie);
	USE(hit.is_return);
	return 0;
}

/* A whole record: ring, slot, clock, stores. */
SEC("uprobe")
int put(struct pt_regs *ctx)
{
	kx_put(KX_EVENT_ENTRY, 1, 1, ctx->sp, 0, 0);
	return 0;
}

/* The least that records a call: that record, of the thread and function that the hit is of. */
SEC("uprobe")
int put_hit(struct pt_regs *ctx)
{
	struct kx_own_ring ring;
	struct kx_hit hit;

	kx_find_ring(&ring);
	kx_look_at_hit(ctx, &ring, &hit);
	put_record(&ring, hit.is_return ? KX_EVENT_EXIT : KX_EVENT_ENTRY, hit.id, KX_COOKIE_FUNC(hit.cookie), ctx->sp, 0, 0, 0, 0);
	return 0;
}
