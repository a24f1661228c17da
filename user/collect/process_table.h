// SPDX-License-Identifier: BSD-2-Clause
/*
 * The processes of a recording: name, parent, arguments, control group, mappings, start and end. A running process
 * is always kept; an ended one only if the trace refers to it, and of these the newest
 * KX_MAX_ENDED_PROCESSES, so that memory does not grow with time.
 */
#ifndef KX_PROCESS_TABLE_H
#define KX_PROCESS_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "collect/proc_thread.h"

#define KX_MAX_ENDED_PROCESSES 65536u

struct kx_process {
	pid_t pid;
	pid_t ns_pid;		       /* in its own pid namespace; 0: the same, or unknown */
	pid_t parent;		       /* 0: unknown */
	char name[KX_COMM_SIZE + 1];   /* "": unknown */
	char before[KX_COMM_SIZE + 1]; /* the name until @renamed */
	uint64_t renamed;	       /* TSC; 0: never */
	char *command;		       /* its arguments, each with its NUL; NULL: unknown */
	size_t command_size;
	json_t *group;		       /* its control group, see kx_process_table_json; NULL: unknown */
	json_t *mappings;	 /* addresses of its code: see session_info.h; NULL: unknown */
	uint64_t started, ended; /* TSC; 0: before the recording, or not yet */
	bool initial;		 /* traced from the start: always in the session */
	bool in_trace;		 /* the trace refers to it */
	/* private to process_table.c */
	struct kx_process *next_in_bucket, *next, **link;
};

struct kx_process_table;

/* NULL if memory ran out. */
struct kx_process_table *kx_process_table_new(void);
void kx_process_table_free(struct kx_process_table *t);

/*
 * Process @pid is traced from the start; read from /proc if it is not in the table. Errors:
 * -ENOMEM; no error if it does not exist any more.
 */
int kx_process_table_add(struct kx_process_table *t, pid_t pid);

/*
 * @pid was forked by @parent (0: unknown) at @tsc; @ns_pid as in struct kx_process, @name at most
 * KX_COMM_SIZE bytes. An earlier process with this pid has ended. Errors: -ENOMEM.
 */
int kx_process_table_born(struct kx_process_table *t, pid_t pid, pid_t parent, pid_t ns_pid,
			  const char *name, uint64_t tsc);
/* It executes another program, or has another name, from @tsc on. Errors: -ENOMEM. */
int kx_process_table_renamed(struct kx_process_table *t, pid_t pid, const char *name, uint64_t tsc);
/* Sets the name if it is unknown, to that of its main thread. */
void kx_process_table_name(struct kx_process_table *t, pid_t pid, const char *name);
/* The present mappings of @pid (NULL is ignored); takes ownership. A child inherits them. */
void kx_process_table_map(struct kx_process_table *t, pid_t pid, json_t *mappings);
/*
 * For a flight recorder: ended processes are kept whether the trace refers to them or not, and
 * records that a dump replays are not applied a second time.
 */
void kx_process_table_keep_ended(struct kx_process_table *t);
/* It has ended at @tsc. */
void kx_process_table_ended(struct kx_process_table *t, pid_t pid, uint64_t tsc);

/*
 * The trace refers to process @pid from now on; read from /proc if it is not in the table. The
 * result is valid until the table is changed; NULL if memory ran out.
 */
const struct kx_process *kx_process_table_use(struct kx_process_table *t, pid_t pid);

/* The process if it is in the table, or NULL. */
const struct kx_process *kx_process_table_find(const struct kx_process_table *t, pid_t pid);

/* Its name at @tsc (only the last change is kept); "" if unknown. */
const char *kx_process_name_at(const struct kx_process *p, uint64_t tsc);

/* The first process that was traced from the start; 0 if none was. */
pid_t kx_process_table_first(const struct kx_process_table *t);

/* Processes in memory; and those ended, referenced by the trace, evicted. */
size_t kx_process_table_size(const struct kx_process_table *t);
uint64_t kx_process_table_forgotten(const struct kx_process_table *t);

/*
 * [{"pid", "ns_pid", "name", "command":[...], "parent", "started", "ended", "cgroup", "unit", "container",
 * "container_runtime", "pod", "mappings"}, ...] of the processes that are initial or in the trace, ended ones first; times
 * are seconds since @start_tsc, from "cgroup" to "pod" it is base/cgroup_path.h's. Unknown members are left out. NULL if
 * memory ran out.
 */
json_t *kx_process_table_json(const struct kx_process_table *t, uint64_t start_tsc, uint64_t tsc_hz);

#endif
