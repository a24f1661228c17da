// SPDX-License-Identifier: BSD-2-Clause
#include "attach/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "binary/elf_image.h"
#include "binary/modules.h"

struct kx_launch {
	const char *name; /* argv[0] of the command; borrowed */
	pid_t pid;
	int go_fd;    /* one byte lets the child exec */
	int error_fd; /* the child's errno if exec fails; end of file if it worked */
	struct kx_links stop; /* the probe at the entry point, until the child goes on from there */
	bool ended;
	int status;
};

static bool is_elf(const char *path)
{
	char magic[4] = "";
	FILE *f = fopen(path, "re");

	if (f && fread(magic, 1, sizeof(magic), f) != sizeof(magic))
		magic[0] = 0;
	if (f)
		fclose(f);
	return memcmp(magic, "\177ELF", sizeof(magic)) == 0;
}

/* execvp runs files of unknown format with a shell, which must not get a foreign ELF binary. */
static int run_command(char *const argv[])
{
	if (strchr(argv[0], '/') && is_elf(argv[0]))
		execv(argv[0], argv);
	else
		execvp(argv[0], argv);
	return errno;
}

static void run_child(char *const argv[], const sigset_t *mask, int go_fd, int error_fd)
{
	char go;
	int code;

	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	/* if kxray dies while the command is stopped, it must not stay so */
	prctl(PR_SET_PDEATHSIG, SIGCONT);
	if (read(go_fd, &go, 1) != 1)
		_exit(127); /* kxray gave up */
	code = run_command(argv);
	if (write(error_fd, &code, sizeof(code)) < 0)
		_exit(126);
	_exit(127);
}

int kx_launch_fork(char *const argv[], const sigset_t *mask, struct kx_launch **out,
		   struct kx_err *err)
{
	int go[2] = { -1, -1 }, error[2] = { -1, -1 };
	struct kx_launch *l = calloc(1, sizeof(*l));

	if (!l)
		return kx_err_set(err, -ENOMEM, "no memory");
	if (pipe2(go, O_CLOEXEC) || pipe2(error, O_CLOEXEC))
		goto fail;
	fflush(NULL);
	l->pid = fork();
	if (l->pid < 0)
		goto fail;
	if (!l->pid) {
		close(go[1]);
		close(error[0]);
		run_child(argv, mask, go[0], error[1]);
	}
	close(go[0]);
	close(error[1]);
	l->name = argv[0];
	l->go_fd = go[1];
	l->error_fd = error[0];
	*out = l;
	return 0;
fail:
	kx_err_set(err, -errno, "'%s' cannot be started: %s", argv[0], strerror(errno));
	for (int i = 0; i < 2; i++) {
		if (go[i] >= 0)
			close(go[i]);
		if (error[i] >= 0)
			close(error[i]);
	}
	free(l);
	return err ? err->code : -EIO;
}

pid_t kx_launch_pid(const struct kx_launch *l)
{
	return l->pid;
}

static int wait_for_stop(struct kx_launch *l, struct kx_err *err)
{
	int status;

	while (waitpid(l->pid, &status, WUNTRACED) < 0)
		if (errno != EINTR)
			return kx_err_set(err, -errno, "waiting for '%s' failed: %s", l->name,
					  strerror(errno));
	if (WIFSTOPPED(status))
		return 0;
	l->ended = true;
	l->status = status;
	return kx_err_set(err, -ECHILD, "'%s' ended before it reached its entry point", l->name);
}

/*
 * File offset of the entry point of the program that the stopped child is about to run. Returns the
 * file, open for reading, or an error.
 */
static int open_program(struct kx_launch *l, uint64_t *entry, struct kx_err *err)
{
	struct kx_modules mods;
	struct kx_elf *elf;
	int code = kx_modules_of_process(l->pid, &mods, err), fd;

	if (code)
		return code;
	fd = kx_module_open(&mods.items[0], err);
	code = fd < 0 ? fd : kx_elf_open_fd(fd, mods.items[0].path, &elf, err);
	if (!code) {
		if (kx_elf_offset(elf, kx_elf_entry(elf), entry))
			code = kx_err_set(err, -ENOEXEC, "'%s' has no entry point", l->name);
		kx_elf_close(elf);
	}
	kx_modules_free(&mods);
	if (code && fd >= 0)
		close(fd);
	return code ? code : fd;
}

static void ignore_refusal(void *ctx, const struct kx_probe *probe, int code)
{
	(void)probe;
	*(int *)ctx = code;
}

/* What execve(2)'s errors leave open. */
static const char *why_not(const char *name, int exec_errno)
{
	struct stat st;

	if (stat(name, &st))
		return !strchr(name, '/') && exec_errno == ENOENT ? "; there is no program of this name on PATH" : "";
	if (S_ISDIR(st.st_mode))
		return "; it is a folder";
	if (exec_errno == EACCES && !(st.st_mode & 0111))
		return "; it is not executable (chmod +x)";
	if (exec_errno == ENOENT && strchr(name, '/'))
		return "; the file exists, but not the interpreter or dynamic linker that it names";
	if (exec_errno == ENOENT)
		return "; there is no program of this name on PATH, but a file here: write ./ before it";
	return exec_errno == ENOEXEC ? "; it is neither a program nor a script that begins with #!" : "";
}

static int go_on(const struct kx_launch *l, struct kx_err *err)
{
	if (kill(l->pid, SIGCONT))
		return kx_err_set(err, -errno, "'%s' cannot be continued: %s", l->name,
				  strerror(errno));
	return 0;
}

int kx_launch_to_entry(struct kx_launch *l, struct kx_tracer *tracer, struct kx_err *err)
{
	struct kx_probe probe = { 0 };
	char path[32];
	int code, refused = 0, exec_errno, fd = -1;

	code = kx_sources_attach(tracer, KX_SOURCE_LAUNCH, err);
	if (code)
		return code;
	if (write(l->go_fd, "", 1) != 1)
		return kx_err_set(err, -errno, "'%s' cannot be started: %s", l->name,
				  strerror(errno));
	if (read(l->error_fd, &exec_errno, sizeof(exec_errno)) == sizeof(exec_errno)) {
		kx_launch_wait(l, false, &code);
		return kx_err_set(err, -exec_errno, "'%s' cannot be run: %s%s", l->name,
				  strerror(exec_errno), why_not(l->name, exec_errno));
	}
	code = wait_for_stop(l, err);
	if (!code)
		fd = open_program(l, &probe.offset, err);
	if (!code && fd < 0)
		code = fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (!code)
		code = kx_uprobe_link(kx_tracer_prog_mechanism(tracer, KX_PROG_STOP),
				      kx_tracer_prog_fd(tracer, KX_PROG_STOP), path, l->pid, false,
				      &probe, 1, &l->stop, ignore_refusal, &refused, err);
	if (fd >= 0)
		close(fd);
	kx_sources_detach(tracer, KX_SOURCE_LAUNCH);
	/* Without a probe there the command is traced from its first instruction on, but libraries
	 * that the dynamic linker has yet to map are not. */
	if (!code && !refused) {
		code = go_on(l, err);
		if (!code)
			code = wait_for_stop(l, err);
	}
	return code;
}

int kx_launch_continue(struct kx_launch *l, struct kx_err *err)
{
	int code = go_on(l, err);

	/* not before: a child that is forked while the keeper closes it would close it in its place */
	kx_links_close_soon(&l->stop);
	return code;
}

bool kx_launch_ended(struct kx_launch *l, int *status)
{
	if (!l->ended && waitpid(l->pid, &l->status, WNOHANG) == l->pid)
		l->ended = true;
	*status = l->status;
	return l->ended;
}

void kx_launch_wait(struct kx_launch *l, bool kill_first, int *status)
{
	if (!l->ended && kill_first)
		kill(l->pid, SIGKILL);
	while (!l->ended) {
		if (waitpid(l->pid, &l->status, 0) == l->pid)
			l->ended = true;
		else if (errno != EINTR)
			break;
	}
	*status = l->status;
}

void kx_launch_free(struct kx_launch *l)
{
	if (!l)
		return;
	close(l->go_fd);
	close(l->error_fd);
	kx_links_close_soon(&l->stop);
	free(l);
}
