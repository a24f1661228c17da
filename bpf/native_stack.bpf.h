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

#include <bpf/bpf_helpers.h>

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

/* What is known of the stack of @task, or 0. */
static __always_inline struct kx_native_stack *kx_known_stack(struct task_struct *task)
{
	struct kx_native_stack *known = bpf_task_storage_get(&kx_native_stacks, task, 0, 0);

	return known && known->mm == (__u64)task->mm ? known : 0;
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
	if (task->vfork_done)
		return KX_STACK_NATIVE;
	in.end = is_thread ? task->thread.fsbase : task->mm->start_stack;
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
		known->mm = (__u64)task->mm;
		known->from = in.from;
		known->size = in.end - in.from;
		known->is_thread = is_thread;
	}
	return KX_STACK_NATIVE;
}

/* Whether @sp is on the native stack of the current thread. */
static __always_inline enum kx_stack_verdict kx_look_at_stack(__u64 sp)
{
	struct kx_native_stack *known = kx_known_stack(bpf_get_current_task_btf());

	return known && sp - known->from < known->size ? KX_STACK_NATIVE : look_at_stack(sp);
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
	its->mm = (__u64)child->mm;
	its->is_thread = 1;
}

#endif
