// SPDX-License-Identifier: BSD-2-Clause
/* The data in /proc of a process or thread that already runs when its first record arrives. */
#ifndef KX_PROC_THREAD_H
#define KX_PROC_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define KX_COMM_SIZE 16

struct kx_thread_identity {
	pid_t pid;		     /* of its process; 0: unknown */
	pid_t ns_tid;		     /* in its own pid namespace; 0: the same, or unknown */
	char name[KX_COMM_SIZE + 1]; /* "": unknown */
};

/* False if thread @tid does not exist (any more). */
bool kx_proc_thread(pid_t tid, struct kx_thread_identity *out);

/* The same of a process, with its parent; @ns_pid and @name as in kx_thread_identity. */
bool kx_proc_process(pid_t pid, pid_t *parent, pid_t *ns_pid, char name[KX_COMM_SIZE + 1]);

/*
 * The first @max - 1 bytes of the arguments of @pid to @text, each argument with its NUL. Returns
 * their size; 0: there are none (a kernel thread, or a process that is exiting). A title that the
 * process has written over its arguments is one argument, without the padding behind it.
 */
size_t kx_proc_command(pid_t pid, char *text, size_t max);

/* At most @max - 1 bytes of /proc/PID/cgroup to @text, with a NUL (base/cgroup_path.h); false if it cannot be read. */
bool kx_proc_cgroup(pid_t pid, char *text, size_t max);

#endif
