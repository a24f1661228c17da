// SPDX-License-Identifier: BSD-2-Clause
/*
 * The keeper: a small process that creates and closes all uprobe links of this one.
 *
 * The kernel can neither attach nor detach uprobes in a task that was killed: it gives up and leaves
 * its breakpoints in the target's code ("failed to unregister, leaking uprobe"). So kxray never does
 * either itself. The keeper shares its descriptor table, so that a link has the same number in both
 * and is not closed by kxray's death; it has a session and a name of its own and blocks all signals.
 * When kxray ends, however it does, the keeper closes the descriptors that are left and ends.
 *
 *     keeper.c          this process: requests and their answers
 *     keeper_process.c  the keeper itself
 *
 * Cost: a fork before the recording's memory is allocated (about 0.5 MB), four descriptors, and two
 * context switches for each request. Without a keeper (it could not be started, or was killed),
 * links are created and closed by this process, as if it could not be killed.
 */
#ifndef KX_KEEPER_H
#define KX_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "tracer/patch_family.h"
#include "tracer/uprobe_syscalls.h"

/* The name in ps(1). `pkill kxray` must not match it. */
#define KX_KEEPER_NAME "kx-keeper"

/*
 * Starts the keeper, if there is none. The process must have no other threads yet.
 * Errors: clone(2)'s, socketpair(2)'s.
 */
int kx_keeper_start(struct kx_err *err);

/*
 * Ends the keeper and waits for its end; what is open stays open. If links wait for the end of a
 * debugger, the keeper stays until these are closed; the same for processes whose patches it guards, and if it is left.
 */
void kx_keeper_stop(void);

/* The keeper's process; 0: there is none. */
pid_t kx_keeper_pid(void);

/*
 * Whether it is closing links for which this process no longer waits, since there is a request to end (base/stop_request.h)
 * and a second has passed: the kernel takes milliseconds for a single probe, on a busy machine a quarter of
 * a second. Then it closes the rest after this process's end, and nothing more can be asked of it.
 */
bool kx_keeper_is_left(void);
/*
 * From now on it is left, without a request to end, when it has not closed everything in so many seconds: return probes of any tool can make the
 * kernel wait for as long as their program likes (return_leases.h).
 */
void kx_keeper_wait_at_most(double seconds);

#define KX_KEEPER_NICE (-10) /* nice(2) */
/* On a busy machine it gets a CPU sooner from now on, if that is permitted. */
void kx_keeper_hurry(void);

/* kx_uprobe_create and kx_fds_close, by the keeper. */
int kx_keeper_create(const struct kx_uprobe_request *r);
void kx_keeper_close(const int *fds, size_t n);

/*
 * The same, but returns at once: the kernel waits for all programs that run at probes, tens of ms. Returns a number, from 1
 * on; 0: there is no keeper, and they are closed.
 */
int kx_keeper_close_soon(const int *fds, size_t n);
/* What has a smaller number is closed. */
int kx_keeper_closing(void);

/*
 * The same as kx_keeper_close, but the links to a process that has a debugger (debugger.h) stay until it has none.
 * Returns how many; all that are left, see above. Without a keeper, closes all.
 */
size_t kx_keeper_release(const int *fds, size_t n);

/* If this process dies, the keeper removes the temporary file for the output @path (base/output.h). */
void kx_keeper_guard_output(const char *path);

/*
 * When this process ends, however it does, the keeper takes all jumps out of process @pid (kx_patch_remove), as soon as it has no debugger.
 * To be called before they are put in. Errors: -ENODEV (there is no keeper), -ESRCH, -ENOMEM.
 */
int kx_keeper_guard_patches(pid_t pid);
/* And out of all processes that share them with process @pid, which is guarded, whether that lives then or not. Errors: as above. */
int kx_keeper_guard_family(pid_t pid, const struct kx_patch_family *family);
/* They are out, or the process has ended. */
void kx_keeper_release_patches(pid_t pid);

/* kx_self_code_hide, in the keeper too. */
void kx_keeper_hide_code(void);

#endif
