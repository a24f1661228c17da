// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/remote_stop.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/each_number.h"
#include "base/proc_stat.h"
#include "tracer/debugger.h"

/* Of task_struct.flags, as /proc/PID/stat shows them: include/linux/sched.h. */
#define PF_IO_WORKER   0x10u
#define PF_USER_WORKER 0x4000u
#define PF_KTHREAD     0x200000u

#define PAUSE_US       50
#define NS_PER_S       1000000000L

#ifndef FUTEX_LOCK_PI2 /* Linux 5.14 */
#define FUTEX_LOCK_PI2 13
#endif

/* Of a thread that traces: the word of a lock, in memory that may be shared, since its owner is in another process; NULL: there is none. */
static _Thread_local uint32_t *lock_word;

static void *run_thread(void *arg)
{
	struct kx_tracer_thread *t = arg;

	__atomic_store_n(&t->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	lock_word = mmap(NULL, sizeof(*lock_word), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (lock_word == MAP_FAILED)
		lock_word = NULL;
	t->result = t->run(t->arg);
	if (lock_word)
		munmap(lock_word, sizeof(*lock_word));
	return NULL;
}

int kx_tracer_thread_start(struct kx_tracer_thread *t, int (*run)(void *arg), void *arg)
{
	sigset_t all, old;
	int code;

	*t = (struct kx_tracer_thread){ .run = run, .arg = arg };
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	code = pthread_create(&t->thread, NULL, run_thread, t);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -code;
}

int kx_tracer_thread_join(struct kx_tracer_thread *t)
{
	pthread_join(t->thread, NULL);
	/* the kernel lets traced threads go a moment later than join returns */
	while (!syscall(SYS_tgkill, getpid(), t->tid, 0))
		kx_remote_pause(PAUSE_US);
	return t->result;
}

void kx_remote_pause(unsigned us)
{
	const struct timespec t = { .tv_nsec = us * 1000L };

	nanosleep(&t, NULL);
}

/*
 * Whether a thread may run with a real-time priority without harm: the kernel counts a borrowed one, too, against RLIMIT_RTTIME, and
 * ends the process by SIGXCPU or SIGKILL. What cannot be read is taken for a limit.
 */
static bool may_borrow_priority(pid_t tid)
{
	struct rlimit limit;

	return !prlimit(tid, RLIMIT_RTTIME, NULL, &limit) && limit.rlim_cur == RLIM_INFINITY && limit.rlim_max == RLIM_INFINITY;
}

/*
 * By a lock that inherits priorities: its word is ours alone and names the other thread as its owner, which knows nothing of it (futex(2)). One that ends
 * leaves the lock to us. That thread must be about to stop: it has our priority, so we need not get its CPU back from it.
 */
void kx_remote_pause_for(pid_t tid, unsigned us)
{
	struct timespec until;

	if (!lock_word || !may_borrow_priority(tid)) {
		kx_remote_pause(us);
		return;
	}
	*lock_word = (uint32_t)tid;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += us * 1000L;
	if (until.tv_nsec >= NS_PER_S) {
		until.tv_nsec -= NS_PER_S;
		until.tv_sec++;
	}
	if (!syscall(SYS_futex, lock_word, FUTEX_LOCK_PI2, 0, &until, NULL, 0))
		syscall(SYS_futex, lock_word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
	else if (errno != ETIMEDOUT)
		kx_remote_pause(us); /* before Linux 5.14, or the thread is ending */
}

#define STATE_FIELD 3 /* in /proc/PID/task/TID/stat; the flags are field 9 */

/* The state and the flags of a thread; false: it is no more. */
static bool read_stat(pid_t pid, pid_t tid, char *state, unsigned *flags)
{
	char path[48], buffer[KX_PROC_STAT_SIZE];
	const char *p;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	p = kx_proc_stat(path, STATE_FIELD, buffer);
	return p && sscanf(p, "%c %*d %*d %*d %*d %*d %u", state, flags) == 2;
}

bool kx_remote_has_ended(pid_t pid, pid_t tid)
{
	unsigned flags;
	char state;

	return !read_stat(pid, tid, &state, &flags) || state == 'Z' || state == 'X';
}

bool kx_remote_is_stuck(pid_t pid, pid_t tid)
{
	unsigned flags;
	char state;

	return read_stat(pid, tid, &state, &flags) && state == 'D';
}

bool kx_remote_is_worker(pid_t pid, pid_t tid)
{
	unsigned flags;
	char state;

	return read_stat(pid, tid, &state, &flags) &&
	       flags & (PF_IO_WORKER | PF_USER_WORKER | PF_KTHREAD);
}

static int is_alive(void *ctx, pid_t tid)
{
	return kx_remote_has_ended(*(const pid_t *)ctx, tid) ? 0 : tid;
}

pid_t kx_remote_view(pid_t pid)
{
	pid_t found;

	if (!kx_remote_has_ended(pid, pid))
		return pid;
	found = kx_each_thread(pid, is_alive, &pid);
	return found > 0 ? found : pid;
}

int kx_remote_unlisted(pid_t pid, int code, struct kx_err *err)
{
	if (code == -ENOENT)
		return kx_err_set(err, -ESRCH, "process %d has ended", (int)pid);
	return kx_err_set(err, code, "the threads of process %d cannot be listed: %s", (int)pid, strerror(-code));
}

int kx_remote_seize(pid_t pid, pid_t tid, long options, struct kx_err *err)
{
	char name[32];
	pid_t tracer;

	if (!ptrace(PTRACE_SEIZE, tid, NULL, options))
		return 0;
	if (errno == ESRCH || kx_remote_has_ended(pid, tid))
		return -ESRCH;
	tracer = kx_tracer_of(tid, name, sizeof(name));
	if (tracer)
		return kx_err_set(err, -EPERM, "process %d is traced by %s (process %d)", (int)pid,
				  name, (int)tracer);
	return kx_err_set(err, -EPERM,
			  "process %d may not be stopped (ptrace: Operation not permitted): another user or a "
			  "security policy protects it; run as root, or with the capability CAP_SYS_PTRACE",
			  (int)pid);
}

int kx_remote_has_stopped(pid_t tid)
{
	int status;
	pid_t got = waitpid(tid, &status, __WALL | WNOHANG);

	if (!got || (got < 0 && errno == EINTR))
		return 0;
	if (got < 0 || !WIFSTOPPED(status))
		return -ESRCH;
	if (status >> 16 == PTRACE_EVENT_STOP)
		return 1;
	/* this stop may have taken the place of the one that was asked for */
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	ptrace(PTRACE_CONT, tid, NULL, status >> 16 ? 0L : (long)WSTOPSIG(status));
	return 0;
}
