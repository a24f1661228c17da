// SPDX-License-Identifier: BSD-2-Clause
#include "record/dump_hook.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "base/output.h"
#include "base/stop_request.h"
#include "record/dump_hook_words.h"

#define NOT_RUN 127 /* status of a child whose exec failed, as of shells */

struct kx_dump_hook {
	char **words;
	int *not_run; /* shared with the child: why it could not run the command, an errno; 0: it
			 runs */
	double seconds;
	const struct kx_notices *notices;
	char *queue[KX_DUMP_HOOK_QUEUE]; /* oldest first */
	unsigned queued;
	char *path;  /* of the dump whose run is under way */
	pid_t child; /* leader of its process group; 0: none runs */
	double begun;
	bool killed;
	struct kx_dump_hook_counts counts;
};

static int try_program(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) ? -errno : 0;
}

/* 0 if execvp would find @name, else its error. A name that has a dump's path in it is not known
 * yet. */
static int find_program(const char *name)
{
	const char *path = getenv("PATH");
	char file[PATH_MAX];
	int code = -ENOENT, one;

	if (strstr(name, "{}"))
		return 0;
	if (strchr(name, '/'))
		return try_program(name);
	for (path = path ? path : "/bin:/usr/bin"; code; path++) {
		int n = (int)strcspn(path, ":");

		if (snprintf(file, sizeof(file), "%.*s/%s", n, n ? path : ".", name) <
		    (int)sizeof(file)) {
			one = try_program(file);
			code = one == -ENOENT || one == -ENOTDIR ? code : one;
		}
		path += n;
		if (!*path)
			break;
	}
	return code;
}

/* A command that is not there is found before anything is recorded, not at the first dump. */
static int prepare(struct kx_dump_hook *h, struct kx_err *err)
{
	int code = find_program(h->words[0]);

	if (code)
		return kx_err_set(err, code,
				  "--on-dump: '%s' cannot be run: %s; install it, or give its path",
				  h->words[0], strerror(-code));
	h->not_run = mmap(NULL, sizeof(*h->not_run), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (h->not_run != MAP_FAILED)
		return 0;
	h->not_run = NULL;
	return kx_err_set(err, -ENOMEM, "out of memory");
}

int kx_dump_hook_new(const char *command, double seconds, const struct kx_notices *notices,
		     struct kx_dump_hook **out, struct kx_err *err)
{
	struct kx_dump_hook *h = calloc(1, sizeof(*h));
	int code;

	if (!h)
		return kx_err_set(err, -ENOMEM, "out of memory");
	h->seconds = seconds;
	h->notices = notices;
	code = kx_hook_words(command, &h->words, err);
	if (!code)
		code = prepare(h, err);
	if (code) {
		kx_dump_hook_free(h);
		return code;
	}
	*out = h;
	return 0;
}

/* In the child: the user that called sudo, if root runs under sudo. */
static bool become_owner(void)
{
	uid_t uid;
	gid_t gid;

	if (!kx_output_sudo_user(&uid, &gid))
		return true;
	return !setgroups(1, &gid) && !setresgid(gid, gid, gid) && !setresuid(uid, uid, uid);
}

static _Noreturn void run_child(char *const *argv, pid_t parent, int *not_run)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	setpgid(0, 0);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 ||
	    !become_owner()) {
		*not_run = errno;
		_exit(NOT_RUN);
	}
	/* a copied descriptor would keep BPF programs and probes alive after kxray's end */
	close_range(STDERR_FILENO + 1, ~0u, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	/* after the change of user, which clears it; kxray may have been killed before this line */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(NOT_RUN);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvp(argv[0], argv);
	*not_run = errno;
	_exit(NOT_RUN);
}

static void failed(struct kx_dump_hook *h, const char *what, int number)
{
	h->counts.failed++;
	kx_notice(h->notices, "--on-dump: '%s' for %s %s %d; recording continues", h->words[0],
		  h->path, what, number);
}

static void could_not_run(struct kx_dump_hook *h, int error)
{
	h->counts.failed++;
	kx_notice(h->notices, "--on-dump: '%s' for %s could not be run: %s; recording continues",
		  h->words[0], h->path, strerror(error));
}

static void forget_run(struct kx_dump_hook *h)
{
	h->child = 0;
	free(h->path);
	h->path = NULL;
}

static void start_next(struct kx_dump_hook *h)
{
	pid_t parent = getpid();
	char **argv;
	int error;

	h->path = h->queue[0];
	memmove(h->queue, h->queue + 1, --h->queued * sizeof(h->queue[0]));
	/* --dumps may have removed it while it waited */
	if (access(h->path, F_OK)) {
		h->counts.skipped++;
		forget_run(h);
		return;
	}
	argv = kx_hook_words_with(h->words, h->path);
	*h->not_run = 0;
	h->child = argv ? fork() : -1;
	if (h->child == 0)
		run_child(argv, parent, h->not_run);
	error = argv ? errno : ENOMEM;
	kx_hook_words_free(argv);
	if (h->child < 0) {
		could_not_run(h, error);
		forget_run(h);
		return;
	}
	setpgid(h->child, h->child); /* whoever of both comes first */
	h->begun = kx_monotonic_seconds();
	h->killed = false;
}

static void kill_run(struct kx_dump_hook *h)
{
	h->killed = true;
	kill(-h->child, SIGKILL);
}

/* Whether the run has ended; then it is counted, and what it left in its group is killed. */
static bool reap(struct kx_dump_hook *h)
{
	siginfo_t info = { 0 };
	int status = 0;

	if (waitid(P_PID, (id_t)h->child, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
		return false;
	/* the leader is not reaped yet, so the group's number cannot be another's */
	kill(-h->child, SIGKILL);
	waitpid(h->child, &status, 0);
	if (h->killed) {
		h->counts.killed++;
		kx_notice(h->notices,
			  "--on-dump: '%s' for %s was killed after %.0f s; recording continues",
			  h->words[0], h->path, kx_monotonic_seconds() - h->begun);
	} else if (WIFSIGNALED(status)) {
		failed(h, "was killed by signal", WTERMSIG(status));
	} else if (WEXITSTATUS(status) == NOT_RUN && *h->not_run) {
		could_not_run(h, *h->not_run);
	} else if (WEXITSTATUS(status)) {
		failed(h, "ended with status", WEXITSTATUS(status));
	} else {
		h->counts.ran++;
	}
	forget_run(h);
	return true;
}

void kx_dump_hook_add(struct kx_dump_hook *h, const char *path)
{
	char *copy = h->queued < KX_DUMP_HOOK_QUEUE ? strdup(path) : NULL;

	if (copy) {
		h->queue[h->queued++] = copy;
		return;
	}
	h->counts.skipped++;
	kx_notice(h->notices, "--on-dump: '%s' is not run for %s: %u dumps are waiting for it",
		  h->words[0], path, h->queued);
}

void kx_dump_hook_poll(struct kx_dump_hook *h)
{
	if (h->child && !reap(h) && !h->killed && kx_monotonic_seconds() - h->begun >= h->seconds)
		kill_run(h);
	if (!h->child && h->queued)
		start_next(h);
}

bool kx_dump_hook_busy(const struct kx_dump_hook *h)
{
	return h->child || h->queued;
}

void kx_dump_hook_finish(struct kx_dump_hook *h)
{
	const struct timespec pause = { .tv_nsec = 20000000 };
	sigset_t stop, waited;

	kx_stop_signals(&stop);
	waited = stop;
	sigaddset(&waited, SIGCHLD);
	for (kx_dump_hook_poll(h); kx_dump_hook_busy(h); kx_dump_hook_poll(h)) {
		int got = sigtimedwait(&waited, NULL, &pause);

		if (got <= 0 || got == SIGCHLD)
			continue;
		while (h->queued) {
			free(h->queue[--h->queued]);
			h->counts.skipped++;
		}
		if (h->child)
			kill_run(h);
	}
}

void kx_dump_hook_get_counts(const struct kx_dump_hook *h, struct kx_dump_hook_counts *out)
{
	*out = h->counts;
}

void kx_dump_hook_free(struct kx_dump_hook *h)
{
	if (!h)
		return;
	if (h->child) {
		kill_run(h);
		waitpid(h->child, NULL, 0);
		forget_run(h);
	}
	while (h->queued)
		free(h->queue[--h->queued]);
	kx_hook_words_free(h->words);
	if (h->not_run)
		munmap(h->not_run, sizeof(*h->not_run));
	free(h);
}
