// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/patch_family.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/each_number.h"
#include "base/monotonic.h"
#include "tracer/patch_area.h"
#include "tracer/patch_find.h"
#include "tracer/remote_stop.h"

#define RETRY_US 2000

struct pids {
	pid_t *items;
	size_t n, room;
};

/* What is mapped at exactly these bounds; -1 with errno. */
static int stat_mapping(pid_t pid, uint64_t at, uint64_t size, struct stat *st)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64,
		 (int)kx_remote_view(pid), at, at + size);
	return stat(path, st);
}

int kx_patch_family_make(pid_t pid, uint64_t at, uint64_t size, struct kx_patch_family *out)
{
	struct stat st;

	if (stat_mapping(pid, at, size, &st))
		return -errno;
	*out = (struct kx_patch_family){ at, size, st.st_dev, st.st_ino };
	return 0;
}

int kx_patch_family_find(pid_t pid, struct kx_patch_family *out)
{
	struct kx_patch_finds finds = { 0 };
	char path[32];
	int mem, code;

	*out = (struct kx_patch_family){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)kx_remote_view(pid));
	mem = open(path, O_RDONLY | O_CLOEXEC);
	if (mem < 0)
		return errno == ENOENT ? -ESRCH : errno == EACCES ? -EPERM : -errno;
	code = kx_patch_find(kx_remote_view(pid), mem, &finds);
	for (size_t i = 0; !code && i < finds.n && !out->inode; i++) {
		const struct kx_patch_found *found = &finds.items[i];

		if (found->has_rings && found->has_head && found->head_is_shared)
			kx_patch_family_make(pid, found->table->rings, found->table->rings_size,
					     out);
	}
	kx_patch_finds_free(&finds);
	close(mem);
	return code ? code : out->inode ? 0 : -ENOENT;
}

bool kx_patch_family_has(const struct kx_patch_family *f, pid_t pid, bool *sure)
{
	struct stat st;

	*sure = true;
	if (!f->inode)
		return false;
	if (!stat_mapping(pid, f->at, f->size, &st))
		return st.st_dev == f->device && st.st_ino == f->inode;
	*sure = errno == ENOENT || errno == ESRCH;
	return false;
}

static int add(struct pids *p, pid_t pid)
{
	if (KX_ARRAY_RESERVE(p->items, p->room, p->n))
		return -ENOMEM;
	p->items[p->n++] = pid;
	return 0;
}

static bool has(const struct pids *p, pid_t pid)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->items[i] == pid)
			return true;
	return false;
}

struct members {
	const struct kx_patch_family *family;
	const struct pids *except;
	struct pids pids;
};

static int add_member(void *ctx, pid_t pid)
{
	struct members *m = ctx;
	bool sure;

	return !has(m->except, pid) && kx_patch_family_has(m->family, pid, &sure) ? add(&m->pids, pid) : 0;
}

static void note(struct kx_patch_family_removal *out, pid_t pid, const char *why)
{
	out->pid = pid;
	snprintf(out->why, sizeof(out->why), "%.255s", why);
}

/* One process. *@waits: it is to be tried again. */
static int remove_from(pid_t pid, struct pids *inert, struct kx_patch_family_removal *out,
		       bool *waits)
{
	struct kx_patch_removal removal;
	struct kx_err why = { 0 };
	int code = kx_patch_remove(pid, &removal, &why);

	*waits = code == -EBUSY || removal.frozen;
	if (*waits)
		note(out, pid, code ? why.text : removal.why);
	if (removal.stopped_ms > out->stopped_ms)
		out->stopped_ms = removal.stopped_ms;
	out->restored += removal.restored;
	if (*waits || code == -ESRCH || (!code && !removal.areas))
		return 0;
	out->processes += !code;
	out->foreign += removal.foreign;
	if (!code && !removal.stays)
		return 0;
	out->stays++;
	if (!out->pid)
		note(out, pid, code ? why.text : removal.why);
	return add(inert, pid);
}

/* One look at all of them. A process that was forked before its parent's jumps were out is in /proc
 * by then. */
static int look(const struct kx_patch_family *f, struct pids *inert,
		struct kx_patch_family_removal *out, size_t *found)
{
	struct members members = { .family = f, .except = inert };
	int code = kx_each_number("/proc", add_member, &members);

	out->waiting = 0;
	*found = members.pids.n;
	for (size_t i = 0; i < members.pids.n && !code; i++) {
		bool waits;

		code = remove_from(members.pids.items[i], inert, out, &waits);
		out->waiting += waits;
	}
	free(members.pids.items);
	return code;
}

int kx_patch_family_remove(const struct kx_patch_family *f, unsigned wait_ms,
			   struct kx_patch_family_removal *out, struct kx_err *err)
{
	const double until = kx_monotonic_seconds() + wait_ms / 1e3;
	struct pids inert = { 0 };
	size_t found;
	int code;

	*out = (struct kx_patch_family_removal){ 0 };
	while (!(code = look(f, &inert, out, &found)) && found) {
		if (out->waiting == found && kx_monotonic_seconds() > until)
			break;
		if (out->waiting == found)
			kx_remote_pause(RETRY_US);
	}
	if (!out->waiting && !out->stays)
		out->pid = 0;
	free(inert.items);
	return code ? kx_err_set(err, code,
				 "the processes that share memory with kxray cannot be found: %s",
				 strerror(-code))
		    : 0;
}
