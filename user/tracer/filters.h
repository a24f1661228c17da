// SPDX-License-Identifier: BSD-2-Clause
/*
 * Filters on what runs: which CPUs, users, control groups and names are recorded. A call must match
 * all given filters, in addition to -p, a command or -a.
 */
#ifndef KX_FILTERS_H
#define KX_FILTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tracer/comm_glob.h"
#include "base/err.h"
#include "bpf/wire.h"

struct kx_filters {
	uint32_t which;	 /* KX_FILTER_... */
	uint32_t uid;	 /* real user id */
	uint64_t cgroup; /* id in the cgroup v2 hierarchy ... */
	char cgroup_mount[256]; /* ... which is mounted there; "" if that is too long */
	uint64_t cpus[KX_FILTER_MAX_CPUS / 64];
	struct kx_comm_glob comm;
};

/* The filters that are about processes, and not about CPUs. */
#define KX_FILTER_PROCESSES (KX_FILTER_UID | KX_FILTER_CGROUP | KX_FILTER_COMM)

/*
 * Whether process @pid passes these filters, or one of its threads by its name, as /proc shows it. What the
 * kernel side decides for each call is exact; this is about which processes need probes.
 */
bool kx_filters_pass_process(const struct kx_filters *f, pid_t pid);

/*
 * Adds one filter, @kind of KX_FILTER_..., from what the user wrote:
 *     KX_FILTER_CPU      a list of CPUs, "0,2-3"; all must be online
 *     KX_FILTER_UID      a number or a name
 *     KX_FILTER_CGROUP   a folder of cgroup v2: its path, or one below the mount point
 *     KX_FILTER_COMM     a glob on names, see comm_glob.h
 * Errors: -EINVAL if it is wrongly written or given twice, others if there is no such thing here.
 */
int kx_filters_add(struct kx_filters *f, uint32_t kind, const char *text, struct kx_err *err);

/* The same with other files in place of /proc/self/mountinfo and the list of online CPUs. */
int kx_filters_add_cgroup(struct kx_filters *f, const char *path, const char *mountinfo,
			  struct kx_err *err);
int kx_filters_add_cpus(struct kx_filters *f, const char *list, const char *online,
			struct kx_err *err);

#endif
