// SPDX-License-Identifier: BSD-2-Clause
#include "record/dump_process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/output.h"

struct kx_dump_process {
	struct kx_dump_outcome *outcome; /* shared with the child */
	pid_t child;			 /* 0: none */
	char *path;
};

int kx_dump_process_new(struct kx_dump_process **out, struct kx_err *err)
{
	struct kx_dump_process *p = calloc(1, sizeof(*p));

	if (!p)
		return kx_err_set(err, -ENOMEM, "no memory");
	p->outcome = mmap(NULL, sizeof(*p->outcome), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p->outcome == MAP_FAILED) {
		free(p);
		return kx_err_set(err, -ENOMEM, "no memory");
	}
	*out = p;
	return 0;
}

void kx_dump_process_free(struct kx_dump_process *p)
{
	const struct kx_dump_outcome *outcome;

	if (!p)
		return;
	kx_dump_process_reap(p, true, &outcome);
	munmap(p->outcome, sizeof(*p->outcome));
	free(p->path);
	free(p);
}

int kx_dump_process_start(struct kx_dump_process *p, const char *path,
			  int (*write)(void *ctx, const char *path, struct kx_dump_outcome *out),
			  void *ctx)
{
	free(p->path);
	p->path = strdup(path);
	if (!p->path)
		return -ENOMEM;
	*p->outcome = (struct kx_dump_outcome){ .code = -EINPROGRESS };
	p->child = fork();
	if (p->child == 0) {
		/* a copied descriptor would keep BPF programs and probes alive after kxray's end */
		close_range(STDERR_FILENO + 1, ~0u, 0);
		p->outcome->code = write(ctx, path, p->outcome);
		_exit(0);
	}
	if (p->child > 0)
		return 0;
	p->child = 0;
	return -errno;
}

bool kx_dump_process_runs(const struct kx_dump_process *p)
{
	return p->child;
}

/* Those of a child that was killed. */
static void remove_temporary_files(const struct kx_dump_process *p)
{
	char *map = kx_output_map_path(p->path);

	kx_output_remove_temporary(p->path, p->child);
	if (map)
		kx_output_remove_temporary(map, p->child);
	free(map);
}

bool kx_dump_process_reap(struct kx_dump_process *p, bool wait, const struct kx_dump_outcome **out)
{
	int status;
	pid_t pid;

	if (!p->child)
		return false;
	do
		pid = waitpid(p->child, &status, wait ? 0 : WNOHANG);
	while (pid < 0 && errno == EINTR);
	if (pid != p->child)
		return false;
	if (!WIFEXITED(status) || p->outcome->code == -EINPROGRESS) {
		remove_temporary_files(p);
		p->outcome->code = kx_err_set(&p->outcome->err, -EIO, "its process was killed");
	}
	p->child = 0;
	*out = p->outcome;
	return true;
}
