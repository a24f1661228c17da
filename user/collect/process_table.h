// SPDX-License-Identifier: BSD-2-Clause
/*
 * The processes of a recording: who they are and were. A process is kept while it lives; when it
 * has ended, only if something of it is in the trace, and of these the newest
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
	pid_t ns_pid; /* in its own pid namespace; 0: the same, or not known */
	pid_t parent; /* 0: not known */
	char name[KX_COMM_SIZE + 1]; /* "": not known */
	char before[KX_COMM_SIZE + 1]; /* the name until ticks @renamed */
	uint64_t renamed;
	char *command;  /* its arguments, each with its NUL; NULL: not known */
	size_t command_size;
	json_t *mappings; /* where its code lies: see session_info.h; NULL: not known */
	uint64_t started, ended; /* ticks; 0: before the recording, or not yet */
	bool given;  /* traced from the start: stands in the session in any case */
	bool told;   /* something of it is in the trace */
	/* of process_table.c */
	struct kx_process *next_in_bucket, *next, **link;
};

struct kx_process_table;

/* NULL if memory ran out. */
struct kx_process_table *kx_process_table_new(void);
void kx_process_table_free(struct kx_process_table *t);

/*
 * Process @pid, looked up in /proc if it is not known yet: traced from the start. Errors: -ENOMEM; none
 * if it is gone.
 */
int kx_process_table_add(struct kx_process_table *t, pid_t pid);

/*
 * The same that also comes from events: @pid was made by @parent (0: not known) at @tsc; @ns_pid as
 * in struct kx_process, @name at most KX_COMM_SIZE bytes. One that had this pid before has ended.
 * Errors: -ENOMEM.
 */
int kx_process_table_born(struct kx_process_table *t, pid_t pid, pid_t parent, pid_t ns_pid,
			  const char *name, uint64_t tsc);
/* It runs another program, or goes by another name, from @tsc on. Errors: -ENOMEM. */
int kx_process_table_renamed(struct kx_process_table *t, pid_t pid, const char *name, uint64_t tsc);
/* What it is called, if that is not known: as its first thread is. */
void kx_process_table_name(struct kx_process_table *t, pid_t pid, const char *name);
/* Where the code of @pid lies now (NULL is nothing); takes @mappings over. A child has its parent's. */
void kx_process_table_map(struct kx_process_table *t, pid_t pid, json_t *mappings);
/*
 * For a flight recorder: who has ended is kept whether it was told of or not, and what is said of it
 * once more, in a dump, is known.
 */
void kx_process_table_keep_ended(struct kx_process_table *t);
/* It has ended at @tsc. */
void kx_process_table_ended(struct kx_process_table *t, pid_t pid, uint64_t tsc);

/*
 * Something of process @pid goes into the trace: who it is, from /proc where nothing is known. Valid
 * until the table is changed. NULL if memory ran out.
 */
const struct kx_process *kx_process_table_tell(struct kx_process_table *t, pid_t pid);

/* The process if it is known, or NULL. */
const struct kx_process *kx_process_table_find(const struct kx_process_table *t, pid_t pid);

/* Its name at @tsc, as far as its last change goes back; "" if not known. */
const char *kx_process_name_at(const struct kx_process *p, uint64_t tsc);

/* One that was traced from the start, the first of them; 0 if none was. */
pid_t kx_process_table_first(const struct kx_process_table *t);

/* Processes in memory; and ended ones that were told of and have been forgotten. */
size_t kx_process_table_size(const struct kx_process_table *t);
uint64_t kx_process_table_forgotten(const struct kx_process_table *t);

/*
 * [{"pid", "ns_pid", "name", "command":[...], "parent", "started", "ended", "mappings"}, ...] of those that were
 * given or told of, in the order in which they became known; times are seconds since @start_tsc. What
 * is not known is left out. NULL if memory ran out.
 */
json_t *kx_process_table_json(const struct kx_process_table *t, uint64_t start_tsc, uint64_t tsc_hz);

#endif
