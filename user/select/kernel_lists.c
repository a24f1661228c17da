// SPDX-License-Identifier: BSD-2-Clause
#include "select/kernel_lists.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/bisect.h"
#include "binary/symbol_sources.h"

/* Of <linux/mount.h>, which conflicts with <sys/mount.h> in some C libraries. */
#define FSOPEN_CLOEXEC 1
#define FSCONFIG_CMD_CREATE 6
#define FSMOUNT_CLOEXEC 1
#define MOUNT_ATTR_RDONLY 1

static FILE *open_at(int dir, const char *path)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	FILE *f;

	if (fd < 0)
		return NULL;
	f = fdopen(fd, "r");
	if (!f)
		close(fd);
	return f;
}

/* A mount without a mount point. Returns a descriptor of its root. */
static int mount_detached(const char *fs)
{
	int context = (int)syscall(SYS_fsopen, fs, FSOPEN_CLOEXEC), root;

	if (context < 0)
		return -1;
	root = (int)syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	if (!root)
		root = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY);
	close(context);
	return root;
}

FILE *kx_kernel_lists_open(const char *fs, const char *path)
{
	char usual[256];
	FILE *f;
	int root;

	snprintf(usual, sizeof(usual), "/sys/kernel/%s/%s",
		 strcmp(fs, "tracefs") ? "debug" : "tracing", path);
	f = open_at(AT_FDCWD, usual);
	if (f)
		return f;
	root = mount_detached(fs);
	if (root < 0)
		return NULL;
	f = open_at(root, path);
	close(root);
	return f;
}

static int compare_ranges(const void *pa, const void *pb)
{
	const struct kx_kernel_range *a = pa, *b = pb;

	return a->from < b->from ? -1 : a->from > b->from;
}

/* Lines "NAME" or "NAME [MODULE]". The list is empty in a kernel without the function tracer. */
static int read_traceable(FILE *f, struct kx_kernel_lists *lists)
{
	size_t size = 0;
	char *line = NULL;
	int code = 0;
	ssize_t n;

	while (!code && (n = getline(&line, &size, f)) > 0) {
		const char *end = memchr(line, ' ', (size_t)n);
		const char *name;

		if (!end)
			end = line + n - (line[n - 1] == '\n');
		name = kx_arena_copy(&lists->names, line, (size_t)(end - line));
		code = name ? kx_string_set_add(&lists->traceable, name) : -ENOMEM;
	}
	free(line);
	return code;
}

/* Lines "0xffffffff81001000-0xffffffff81001020\tNAME". */
static int read_forbidden(FILE *f, struct kx_kernel_lists *lists)
{
	size_t room = 0;
	char line[512];

	while (fgets(line, sizeof(line), f)) {
		struct kx_kernel_range r;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &r.from, &r.to) != 2 || r.from >= r.to)
			continue;
		if (KX_ARRAY_RESERVE(lists->forbidden, room, lists->nforbidden))
			return -ENOMEM;
		lists->forbidden[lists->nforbidden++] = r;
	}
	if (lists->nforbidden)
		qsort(lists->forbidden, lists->nforbidden, sizeof(*lists->forbidden), compare_ranges);
	return 0;
}

int kx_kernel_lists_read(struct kx_kernel_lists *lists, FILE *traceable, FILE *forbidden)
{
	int code = traceable ? read_traceable(traceable, lists) : 0;

	return !code && forbidden ? read_forbidden(forbidden, lists) : code;
}

void kx_kernel_lists_free(struct kx_kernel_lists *lists)
{
	kx_string_set_free(&lists->traceable);
	kx_arena_free(lists->names);
	free(lists->forbidden);
}

static bool is_forbidden(const struct kx_kernel_lists *lists, uint64_t addr)
{
	const size_t end = KX_COUNT_LEADING(lists->nforbidden, i, lists->forbidden[i].from <= addr);

	return end && addr < lists->forbidden[end - 1].to;
}

/* An empty list does not exclude kprobes. */
static bool is_traceable(const struct kx_kernel_lists *lists, const struct kx_symbol *sym)
{
	if (!lists->traceable.count || kx_string_set_times(&lists->traceable, sym->name))
		return true;
	for (const char **alias = sym->aliases; alias && *alias; alias++)
		if (kx_string_set_times(&lists->traceable, *alias))
			return true;
	return false;
}

const char *kx_kernel_lists_refuse(const struct kx_kernel_lists *lists, const struct kx_symbol *sym)
{
	if (is_forbidden(lists, sym->addr))
		return "the kernel's own list forbids probes on it";
	if (!is_traceable(lists, sym))
		return "the kernel keeps its function tracer out of it (notrace)";
	return NULL;
}
