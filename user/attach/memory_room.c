// SPDX-License-Identifier: BSD-2-Clause
#include "attach/memory_room.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cgroup_folder.h"
#include "base/kernel_files.h"

#define PAGE 4096u
/* Page tables and the page in which instructions are stepped. */
#define MORE(bytes) ((bytes) / 64 + (256 << 10))

struct hierarchy {
	const char *controller; /* NULL: version 2 */
	const char *limit, *used;
	const char *reclaimable[3]; /* keys of memory.stat */
};

static const struct hierarchy hierarchies[] = {
	{ NULL, "memory.max", "memory.current", { "active_file", "inactive_file", "slab_reclaimable" } },
	{ "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", { "total_active_file", "total_inactive_file", NULL } },
};

/* Functions are in order of address within a module, and so are the pages, but for .cold parts: those count once more at most. */
uint64_t kx_changed_pages(const struct kx_selection *sel)
{
	uint64_t last = UINT64_MAX, pages = 0;

	for (size_t i = 0; i < sel->nfunctions; i++) {
		const struct kx_function *f = &sel->functions[i];

		if (!kx_select_is_probed_by(sel, f, KX_PROBE_UPROBE))
			continue;
		for (size_t k = 0; k <= f->plan.nexits; k++) {
			const uint64_t page = (k ? f->plan.exits[k - 1].addr : f->plan.entry.addr) / PAGE;

			pages += page != last;
			last = page;
		}
	}
	return pages * PAGE;
}

static bool read_value(const char *folder, const char *name, uint64_t *out)
{
	char path[KX_CGROUP_FOLDER_SIZE + 32];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return !kx_read_number(path, out);
}

static uint64_t reclaimable(const struct hierarchy *h, const char *folder)
{
	char path[KX_CGROUP_FOLDER_SIZE + 32], line[128], key[64];
	uint64_t sum = 0, value;
	FILE *f;

	snprintf(path, sizeof(path), "%s/memory.stat", folder);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		for (size_t i = 0; i < 3 && h->reclaimable[i]; i++)
			if (sscanf(line, "%63s %" SCNu64, key, &value) == 2 && !strcmp(key, h->reclaimable[i]))
				sum += value;
	if (f)
		fclose(f);
	return sum;
}

/* Whether it has a limit; *@room: bytes that are left. */
static bool has_limit(const struct hierarchy *h, const char *folder, uint64_t *limit, uint64_t *room)
{
	uint64_t used, taken;

	if (!read_value(folder, h->limit, limit) || !read_value(folder, h->used, &used))
		return false;
	taken = reclaimable(h, folder);
	taken = used > taken ? used - taken : 0;
	*room = *limit > taken ? *limit - taken : 0;
	return true;
}

int kx_memory_room_check_by(pid_t pid, const char *groups, const char *mountinfo, uint64_t bytes, struct kx_err *err)
{
	char folder[KX_CGROUP_FOLDER_SIZE];
	uint64_t limit, room;
	size_t mount;

	for (size_t i = 0; bytes && i < sizeof(hierarchies) / sizeof(hierarchies[0]); i++) {
		if (!kx_cgroup_folder(groups, mountinfo, hierarchies[i].controller, folder, &mount))
			continue;
		do {
			if (has_limit(&hierarchies[i], folder, &limit, &room) && room < bytes + MORE(bytes))
				return kx_err_set(err, -ENOMEM,
						  "process %d may be killed by the kernel for want of memory: the probes take about %" PRIu64
						  " KiB, and its control group (%s) has %" PRIu64 " of %" PRIu64
						  " KiB left; choose fewer functions (-f), or raise %s there",
						  (int)pid, (bytes + MORE(bytes)) >> 10, folder, room >> 10, limit >> 10, hierarchies[i].limit);
		} while (kx_cgroup_up(folder, mount));
	}
	return 0;
}

int kx_memory_room_check(pid_t pid, uint64_t bytes, struct kx_err *err)
{
	char groups[32];

	if (kx_meminfo_bytes("SwapFree"))
		return 0;
	snprintf(groups, sizeof(groups), "/proc/%d/cgroup", (int)pid);
	return kx_memory_room_check_by(pid, groups, "/proc/self/mountinfo", bytes, err);
}

#define GROUPS_SIZE 4096

static void read_groups(pid_t pid, char text[GROUPS_SIZE])
{
	char path[32];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	f = fopen(path, "re");
	if (f) {
		n = fread(text, 1, GROUPS_SIZE - 1, f);
		fclose(f);
	}
	text[n] = 0;
}

static size_t count_beside(const struct kx_select_process *procs, size_t n, pid_t pid)
{
	char groups[GROUPS_SIZE], others[GROUPS_SIZE];
	size_t count = 0;

	read_groups(pid, groups);
	for (size_t i = 0; i < n; i++) {
		read_groups(procs[i].pid, others);
		count += procs[i].pid && !strcmp(groups, others);
	}
	return count ? count : 1;
}

int kx_memory_room_check_all(const struct kx_select_process *procs, size_t n, uint64_t bytes, struct kx_err *err)
{
	int code = 0;

	for (size_t i = 0; i < n && !code; i++)
		/* most have room for all, whose groups need not be compared then */
		if (procs[i].pid && kx_memory_room_check(procs[i].pid, n * bytes, NULL))
			code = kx_memory_room_check(procs[i].pid, count_beside(procs, n, procs[i].pid) * bytes, err);
	return code;
}
