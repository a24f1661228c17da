/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * The kernel types that bpf/ uses, and no others. CO-RE fits the fields of
 * task_struct to the running kernel, so their order and offsets here mean
 * nothing; scripts/check-vmlinux.sh compares names and types with a kernel's BTF.
 *
 * The guard's name matters: by it bpf_tracing.h knows that registers have the
 * kernel's names (di, not rdi).
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

#include <linux/bpf.h>
#include <linux/types.h>

typedef int pid_t;
typedef __u64 u64;

typedef struct {
	int counter;
} __attribute__((preserve_access_index)) atomic_t;

struct signal_struct {
	atomic_t live; /* threads of the process that have not begun to end */
	int group_exit_code;
} __attribute__((preserve_access_index));

struct upid {
	int nr;
} __attribute__((preserve_access_index));

struct pid {
	unsigned int level;
	struct upid numbers[1]; /* level + 1 of them, from the first pid namespace to its own */
} __attribute__((preserve_access_index));

struct thread_info {
	unsigned long syscall_work; /* since 5.11; bits of enum syscall_work_bit */
	unsigned int status; /* bit 1: inside a 32-bit system call */
} __attribute__((preserve_access_index));

typedef struct {
	unsigned int val;
} kuid_t;

struct cred {
	kuid_t uid; /* the real one */
} __attribute__((preserve_access_index));

struct kernfs_node {
	u64 id; /* of a control group's folder: its inode number */
} __attribute__((preserve_access_index));

struct cgroup {
	int level; /* how deep: 0 is the root */
	struct kernfs_node *kn;
	struct cgroup *ancestors[1]; /* level + 1 of them, the root first, itself last */
} __attribute__((preserve_access_index));

struct css_set {
	struct cgroup *dfl_cgrp; /* in the hierarchy of version 2 */
} __attribute__((preserve_access_index));

struct rq {
	struct task_struct *curr; /* runs now */
	int cpu;
} __attribute__((preserve_access_index));

struct task_group {
	struct cfs_rq **cfs_rq; /* by CPU */
} __attribute__((preserve_access_index));

/* rq and tg with CONFIG_FAIR_GROUP_SCHED. */
struct cfs_rq {
	struct rq *rq;
	struct task_group *tg;
} __attribute__((preserve_access_index));

struct sched_entity {
	struct cfs_rq *cfs_rq;
	__u64 sum_exec_runtime;      /* ns on CPUs */
	__u64 prev_sum_exec_runtime; /* the same when it was last put on one */
} __attribute__((preserve_access_index));

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
} __attribute__((preserve_access_index));

struct mm_struct {
	unsigned long start_stack; /* the stack pointer of the main thread when the program started */
} __attribute__((preserve_access_index));

struct thread_struct {
	unsigned long fsbase;
} __attribute__((preserve_access_index));

/* Since 6.13 */
enum hprobe_state {
	HPROBE_LEASED,
};

struct hprobe {
	enum hprobe_state state;
} __attribute__((preserve_access_index));

/* A call whose return address is replaced. */
struct return_instance {
	struct hprobe hprobe;
	struct return_instance *next; /* the call around it */
} __attribute__((preserve_access_index));

struct uprobe_task {
	struct return_instance *return_instances;
} __attribute__((preserve_access_index));

struct bpf_run_ctx;

struct task_struct {
	struct thread_info thread_info;
	pid_t pid;  /* what user space calls the thread id */
	pid_t tgid; /* what user space calls the process id */
	void *stack; /* lower end of its stack in the kernel */
	char comm[16];
	struct signal_struct *signal;
	struct mm_struct *mm;
	struct completion *vfork_done; /* set until a child of vfork execs or ends */
	int *set_child_tid; /* where its id is written before it runs; NULL: nowhere */
	struct thread_struct thread;
	int exit_code;
	u64 start_time;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	const struct cred *cred;
	struct css_set *cgroups;
	unsigned int flags;
	unsigned int __state;  /* since 5.14; see struct task_struct___old */
	int prio;              /* below 100: real-time */
	struct sched_entity se;
	unsigned long nvcsw;   /* switches away from it that it asked for */
	unsigned long nivcsw;  /* and those that it did not */
	struct uprobe_task *utask; /* NULL: it has hit no uprobe */
	struct bpf_run_ctx *bpf_ctx; /* what its BPF program runs for, in a larger structure */
} __attribute__((preserve_access_index));

struct task_struct___old {
	long state;
} __attribute__((preserve_access_index));

/* Where kernels 6.2 to 6.14 keep the count of each CPU. */
struct pcpu_hot___kx {
	int preempt_count;
} __attribute__((preserve_access_index));

struct list_head {
	struct list_head *next;
} __attribute__((preserve_access_index));

/* What programs of uprobe.multi and uprobe.session run for; session_ctx since 6.13. */
struct bpf_uprobe {
	u64 cookie;
} __attribute__((preserve_access_index));

/* A type of the kernel that begins with a number of 8 bytes. */
struct timespec64 {
	long long tv_sec;
} __attribute__((preserve_access_index));

struct bpf_session_run_ctx {
	_Bool is_return;
	void *data;
} __attribute__((preserve_access_index));

struct bpf_uprobe_multi_run_ctx {
	struct bpf_session_run_ctx session_ctx;
	struct bpf_uprobe *uprobe;
} __attribute__((preserve_access_index));

struct bpf_iter_meta {
	struct seq_file *seq; /* what user space reads */
} __attribute__((preserve_access_index));

/* What an iterator over all tasks gets; no task at the end. */
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __attribute__((preserve_access_index));

/*
 * Registers at a probe. Their order is x86-64's user-space ABI (struct
 * user_regs_struct), so it needs no relocation, but it must stand whole.
 */
struct pt_regs {
	unsigned long r15;
	unsigned long r14;
	unsigned long r13;
	unsigned long r12;
	unsigned long bp;
	unsigned long bx;
	unsigned long r11;
	unsigned long r10;
	unsigned long r9;
	unsigned long r8;
	unsigned long ax;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long cs;
	unsigned long flags;
	unsigned long sp;
	unsigned long ss;
};

#endif
