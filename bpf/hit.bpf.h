/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * What a session's program has to know of its hit: thread, cookie, entry or return. The helpers that answer this cost as
 * much as the rest of the program together (see README.md), because each is a call into the kernel and back. Where the
 * kernel's types allow, the answers are loaded from where the helpers have them, too: each CPU's run queue has a
 * pointer to its current task, the task one to what its BPF program runs for.
 */
#ifndef KX_HIT_BPF_H
#define KX_HIT_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "ring.bpf.h"
#include "wire.h"

extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym __weak;
extern _Bool bpf_session_is_return(void) __ksym __weak;

struct kx_hit {
	struct task_struct *task; /* 0: the helpers had to be asked */
	__u64 id;		  /* as of bpf_get_current_pid_tgid */
	__u64 cookie;
	int is_return;
};

static __always_inline void ask_helpers(struct pt_regs *ctx, struct kx_hit *hit)
{
	hit->task = 0;
	hit->id = bpf_get_current_pid_tgid();
	hit->cookie = bpf_get_attach_cookie(ctx);
	/*
	 * On return the instruction pointer is the return address: only one that has the probe's place in
	 * its page could be the entry as well.
	 */
	hit->is_return = (ctx->ip & 0xfff) != KX_COOKIE_PLACE(hit->cookie) || bpf_session_is_return();
}

/* For programs of sessions only: others run for something else. */
static __always_inline void kx_look_at_hit(struct pt_regs *ctx, const struct kx_own_ring *ring,
					   struct kx_hit *hit)
{
	struct bpf_uprobe_multi_run_ctx *run = 0;
	struct list_head *at;

	if (!bpf_core_field_exists(run->session_ctx.is_return) ||
	    !bpf_core_field_exists(run->uprobe->cookie) ||
	    !bpf_core_field_exists(hit->task->bpf_ctx) || !ring->line || !ring->line->current_at) {
		ask_helpers(ctx, hit);
		return;
	}
	/* list_head: any type that begins with a pointer */
	at = bpf_rdonly_cast((void *)ring->line->current_at, bpf_core_type_id_kernel(struct list_head));
	hit->task = bpf_rdonly_cast(at->next, bpf_core_type_id_kernel(struct task_struct));
	hit->id = (__u64)hit->task->tgid << 32 | (__u32)hit->task->pid;
	run = bpf_rdonly_cast(hit->task->bpf_ctx,
			      bpf_core_type_id_kernel(struct bpf_uprobe_multi_run_ctx));
	hit->cookie = run->uprobe->cookie;
	hit->is_return = run->session_ctx.is_return;
}

/*
 * Run by user space for each CPU ctx[0] that has a ring: finds the run queue, which knows the task that the CPU runs.
 * A task group has a queue on every CPU, and each of them knows the CPU's.
 */
SEC("raw_tp")
int kx_find_current(__u64 *ctx)
{
	__u32 cpu = ctx[0], zero = 0;
	void *ring = bpf_map_lookup_elem(&kx_rings, &cpu);
	struct kx_ring_header *line = ring ? bpf_map_lookup_elem(ring, &zero) : 0;
	struct task_struct *task = bpf_get_current_task_btf();
	struct cfs_rq **queues, *queue = 0;
	struct rq *rq = 0;

	if (!line || !bpf_core_field_exists(queue->rq) || !bpf_core_field_exists(queue->tg->cfs_rq) ||
	    !bpf_core_field_exists(rq->curr) || !bpf_core_field_exists(rq->cpu))
		return 0;
	queues = BPF_CORE_READ(task, se.cfs_rq, tg, cfs_rq);
	bpf_core_read(&queue, sizeof(queue), &queues[cpu]);
	rq = BPF_CORE_READ(queue, rq);
	if (rq && (__u32)BPF_CORE_READ(rq, cpu) == cpu)
		line->current_at = (__u64)rq + bpf_core_field_offset(rq->curr);
	return 0;
}

#endif
