/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * The stack that the kernel or the thread library gave to a thread. The kernel keeps hijacked returns in
 * one list per thread, ordered by stack pointer: a hijack on a second stack (coroutine, signal stack)
 * drops those of the first, and the thread then returns to nowhere. So return addresses are replaced on
 * the native stack only, of functions without calls as well: a function that switches stacks makes none.
 *
 * The main thread's stack ends at mm->start_stack. Any other thread has its control block, which fs
 * points to, at the top of its stack, so both lie in one mapping. Part of each is certain; the rest
 * is found by the mapping at the stack pointer. A program that runs coroutines on memory inside of a
 * thread's own stack is not recognized.
 */
#ifndef KX_NATIVE_STACK_BPF_H
#define KX_NATIVE_STACK_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "hit.bpf.h"
#include "ring.bpf.h"

#define EBUSY 16

/* What exec maps for the stack at least, below mm->start_stack: the kernel's stack_expand. */
#define CERTAIN_MAIN_STACK (128 << 10)
/* The smallest stack of a thread (PTHREAD_STACK_MIN), below its control block. */
#define CERTAIN_THREAD_STACK (16 << 10)

/* What is known of a thread's native stack. */
struct kx_native_stack {
	__u64 mm; /* exec gives the thread another one, and then nothing of this holds */
	__u64 from, size;
	__u64 is_thread; /* the main thread of a child that another thread forked is on that one's stack */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct kx_native_stack);
} kx_native_stacks SEC(".maps");

enum kx_stack_verdict {
	KX_STACK_FOREIGN,
	KX_STACK_NATIVE,
	KX_STACK_UNKNOWN, /* the mappings are being changed */
};

/*
 * Not task->mm: for each load of a pointer through a trusted one, verifiers since 6.8 search all types of the kernel by
 * name: 33 of the 53 ms that loading kx_session took on 6.18.
 */
static __always_inline __u64 kx_mm_of(const struct task_struct *task)
{
	return (__u64)BPF_CORE_READ(task, mm);
}

/* What is known of the stack of @task, or 0. */
static __always_inline struct kx_native_stack *kx_known_stack(struct task_struct *task)
{
	struct kx_native_stack *known = bpf_task_storage_get(&kx_native_stacks, task, 0, 0);

	return known && known->mm == kx_mm_of(task) ? known : 0;
}

/* What the callback of bpf_find_vma works on. */
struct kx_stack_search {
	__u64 end;  /* of the native stack */
	__u64 from; /* its beginning; 0: not found */
};

static long compare_mapping(struct task_struct *task, struct vm_area_struct *vma,
			    struct kx_stack_search *in)
{
	/* where nothing follows the control block's first word, fs is the mapping's end */
	if (in->end > vma->vm_start && in->end <= vma->vm_end)
		in->from = vma->vm_start;
	return 0;
}

/* For a stack pointer outside of what is known. */
static __noinline enum kx_stack_verdict look_at_stack(__u64 sp)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct kx_native_stack *known = kx_known_stack(task);
	int is_thread = task->pid != task->tgid || (known && known->is_thread);
	__u64 certain = is_thread ? CERTAIN_THREAD_STACK : CERTAIN_MAIN_STACK;
	struct kx_stack_search in = {};

	/* A child of vfork or posix_spawn: it runs on one stack until it execs or ends. */
	if (BPF_CORE_READ(task, vfork_done))
		return KX_STACK_NATIVE;
	in.end = is_thread ? task->thread.fsbase : BPF_CORE_READ(task, mm, start_stack);
	if (sp >= in.end)
		return KX_STACK_FOREIGN;
	if (in.end - sp <= certain)
		in.from = in.end - certain;
	else if (bpf_find_vma(task, sp, compare_mapping, &in, 0) == -EBUSY)
		return KX_STACK_UNKNOWN;
	if (!in.from)
		return KX_STACK_FOREIGN;
	known = bpf_task_storage_get(&kx_native_stacks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (known) {
		known->mm = kx_mm_of(task);
		known->from = in.from;
		known->size = in.end - in.from;
		known->is_thread = is_thread;
	}
	return KX_STACK_NATIVE;
}

/*
 * The ring's first line has what is known of one thread's stack, for that is the thread which most often asks next.
 * Another thread may run on the CPU between any two instructions: the thread's id is taken away before anything else
 * is written, and only by one at a time. A tid may live again, but hardly with the same task and memory.
 */
static __always_inline int is_remembered(const struct kx_ring_header *line, const struct kx_hit *hit,
					 __u64 sp)
{
	__u32 tid = hit->id;
	int inside;

	if (*(volatile __u32 *)&line->stack_tid != tid ||
	    line->stack_task != (__u64)hit->task || line->stack_mm != (__u64)hit->task->mm)
		return 0;
	inside = sp - line->stack_from < line->stack_size;
	barrier();
	return inside && *(volatile __u32 *)&line->stack_tid == tid;
}

static __noinline int remember_stack(struct kx_ring_header *line)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct kx_native_stack *known = kx_known_stack(task);
	__u32 before = *(volatile __u32 *)&line->stack_tid;

	if (!known || !known->size || before == KX_STACK_BUSY ||
	    __sync_val_compare_and_swap(&line->stack_tid, before, KX_STACK_BUSY) != before)
		return 0;
	line->stack_task = (__u64)task;
	line->stack_mm = known->mm;
	line->stack_from = known->from;
	line->stack_size = known->size;
	barrier();
	*(volatile __u32 *)&line->stack_tid = task->pid;
	return 0;
}

/* Whether @sp is on the native stack of the current thread. */
static __always_inline enum kx_stack_verdict kx_look_at_stack(const struct kx_own_ring *ring,
							      const struct kx_hit *hit, __u64 sp)
{
	enum kx_stack_verdict verdict = KX_STACK_NATIVE;
	struct kx_native_stack *known;

	if (ring->line && hit->task && is_remembered(ring->line, hit, sp))
		return KX_STACK_NATIVE;
	known = kx_known_stack(bpf_get_current_task_btf());
	if (!known || sp - known->from >= known->size)
		verdict = look_at_stack(sp);
	if (ring->line && hit->task && verdict == KX_STACK_NATIVE)
		remember_stack(ring->line);
	return verdict;
}

/* A process forks: its child's only thread goes on with the same stack. */
static __always_inline void kx_inherit_stack(struct task_struct *parent, struct task_struct *child)
{
	struct kx_native_stack *known = kx_known_stack(parent), *its;

	if (parent->pid == parent->tgid && !(known && known->is_thread))
		return;
	its = bpf_task_storage_get(&kx_native_stacks, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!its)
		return;
	its->mm = kx_mm_of(child);
	its->is_thread = 1;
}

#endif
