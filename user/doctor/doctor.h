// SPDX-License-Identifier: BSD-2-Clause
/*
 * The doctor: what this kernel and this user's privileges allow, and what a recorded call costs here.
 * Everything is tried; nothing is concluded from version numbers. Takes about a second.
 */
#ifndef KX_DOCTOR_H
#define KX_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracer/uprobe_link.h"
#include "tracer/clock.h"
#include "base/err.h"
#include "binary/mapped_files.h"
#include "tracer/tracer.h"

enum kx_check_id {
	KX_CHECK_BTF,
	KX_CHECK_ARRAY_MMAP,
	KX_CHECK_SESSION, /* in the order of enum kx_mechanism */
	KX_CHECK_MULTI,
	KX_CHECK_SINGLE,
	KX_CHECK_PROCESS_FILTER,
	KX_CHECK_NOP5,
	KX_CHECK_SCHEDULER,
	KX_CHECK_RECORDER, /* the real recorder: programs, rings, clock, scheduler events */
	KX_CHECK_CLOCK_KFUNC, /* in the order of enum kx_wire_clock */
	KX_CHECK_CLOCK_KTIME,
	KX_CHECK_KERNEL_SYMBOLS,
	KX_CHECK_KPROBE_SESSION, /* in the order of enum kx_kernel_mechanism */
	KX_CHECK_KPROBE_MULTI,
	KX_CHECK_FENTRY,
	KX_CHECK_KPROBE,
	KX_CHECK_COUNT,
};

struct kx_check {
	const char *key;   /* stable name, for --json */
	const char *about; /* what it is, for the report */
	int err;           /* 0: works here; else a negative errno */
	char why[320];     /* "" if it works, else a clause without full stop */
};

/* Capabilities of <linux/capability.h> that recording uses. */
struct kx_doctor_cap {
	const char *name;
	const char *purpose;
	int number;
	bool required; /* nothing can be recorded without it */
	bool held;     /* effective, itself */
	bool covered;  /* not held, but CAP_SYS_ADMIN does as well */
};

#define KX_DOCTOR_CAPS 6

/* A kernel setting that restricts what users may do. */
struct kx_doctor_setting {
	const char *key;
	const char *path;
	char value[64]; /* "" if this kernel doesn't have it, or it can't be read */
};

#define KX_DOCTOR_SETTINGS 5

struct kx_doctor_user {
	unsigned uid; /* effective */
	struct kx_doctor_cap caps[KX_DOCTOR_CAPS];
	struct kx_doctor_setting settings[KX_DOCTOR_SETTINGS];
	bool in_user_namespace; /* capabilities held there don't count for BPF */
	bool seccomp;           /* a filter may forbid system calls */
};

/* Fills @u from /proc. Errors: -errno of /proc/self/status. */
int kx_doctor_get_user(struct kx_doctor_user *u, struct kx_err *err);

/* Programs and libraries that several processes have mapped: a probe for every process is hit by them all. */
struct kx_doctor_files {
	struct kx_mapped_files files; /* by their processes, the most first */
	size_t shared;	   /* the first ones: files of more than one process */
	size_t unreadable; /* that this user may not look at */
};

/* Reads /proc/PID/maps of every process. @f is to be freed in any case. Errors: -ENOMEM, opendir(3)'s. */
int kx_doctor_get_files(struct kx_doctor_files *f, struct kx_err *err);

/* One kind of function start, and what recording its calls costs. */
struct kx_doctor_cost {
	const char *key;        /* stable name, for --json */
	const char *about;      /* the first instructions */
	unsigned probe_offset;  /* of the probed instruction, from the function's start */
	double plain_ns;        /* a call without probes */
	double entry_ns;        /* a call whose entry is recorded */
	double entry_return_ns; /* a call whose entry and return are recorded */
	double cold_ns;         /* more than that, in a program that used the first-level caches since the last call */
};

#define KX_DOCTOR_COSTS 5

/*
 * Measures by recording calls of small functions of kxray itself into @tracer's rings (their
 * content is thrown away), on one CPU, best of several short runs. @tracer must trace this process
 * and have room for 8192 records in each ring; its gate is left closed. Restores the affinity.
 * @entries_only: neither returns, cold calls nor starts with endbr64 are measured. Errors: -EIO (calls are not recorded), and those of
 * kx_uprobe_link.
 */
int kx_doctor_costs(struct kx_tracer *tracer, bool entries_only, struct kx_doctor_cost costs[KX_DOCTOR_COSTS],
		    struct kx_err *err);

struct kx_doctor {
	char kernel[200]; /* "Linux 6.18.1 x86_64" */
	struct kx_check checks[KX_CHECK_COUNT];
	struct kx_doctor_user user;
	struct kx_doctor_files files;
	bool own_probes; /* the probes of a recording can be limited to single processes */
	unsigned emulated; /* see kx_probe_emulated */
	int mechanism;    /* enum kx_mechanism that recording would use, or -1 */
	enum kx_kernel_mechanism kernel_mechanism; /* the same for kernel functions */
	struct kx_clock *clock; /* the one that recording would use; NULL if there is none */
	unsigned online;  /* CPUs */
	uint64_t ring_bytes;    /* of one CPU's ring by default */
	struct kx_doctor_cost costs[KX_DOCTOR_COSTS];
	bool measured;    /* costs holds */
	double in_process_ns; /* of an entry or an exit that is recorded in process; 0: not measured */
	char cost_why[1024]; /* if not: why */
	bool can_record;
	char verdict[640]; /* one sentence */
	struct kx_tracer *tracer; /* owns clock; NULL: clock is the doctor's */
};

/* Tries everything; takes about a second. Errors: -ENOMEM, or /proc is unreadable. */
int kx_doctor_examine(struct kx_doctor *d, struct kx_err *err);
void kx_doctor_free(struct kx_doctor *d);

/* Single trials; each returns 0 or a negative errno. See doctor_try.c. */
int kx_try_btf(void);
int kx_try_array_mmap(void);
int kx_try_scheduler_events(void);

#endif
