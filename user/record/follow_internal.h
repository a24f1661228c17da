// SPDX-License-Identifier: BSD-2-Clause
/* Shared by follow.c, which hears of processes, and below it follow_scan.c, which looks at one, and the other follow_*.c; private to them. */
#ifndef KX_FOLLOW_INTERNAL_H
#define KX_FOLLOW_INTERNAL_H

#include "record/bystanders.h"
#include "record/endings.h"
#include "record/follow.h"
#include "record/followed.h"

struct kx_follow {
	struct kx_follow_context c;
	struct kx_followed_table table;
	size_t alive;
	struct kx_endings endings;
	struct kx_linkers linkers;
	struct kx_linkers_watched watched; /* for all processes */
	struct kx_bystanders bystanders;
	struct kx_file_cache *files;
	struct kx_follow_result result;
	uint64_t events_lost;
	double filtered; /* when all processes were last compared with the filters */
	double ended; /* when a process was last seen to end */
	pid_t translated; /* it has come under a translator, and probes for every process may kill it; 0: none has */
	const char *translator;
	bool translator_reported;
	bool full_reported, foreign_reported, failed;
};

/* Has the process looked at soon. */
void kx_follow_make_dirty(struct kx_follow *f, pid_t pid);
/* Whether the process is one that was asked for. */
bool kx_follow_is_traced(struct kx_follow *f, pid_t pid);
/*
 * Looks at a process: it gets probes for what it has mapped. One that has ended is no error. Errors: -ENOMEM, and those of
 * struct kx_follow_context's attach.
 */
int kx_follow_scan(struct kx_follow *f, struct kx_followed *p, struct kx_err *err);
/* follow_detach.c */
/* The links that a process has of its own are closed, together with others. */
void kx_follow_give_up_probes(struct kx_follow *f, struct kx_followed *p);

/* follow_translator.c */
/* Whether the process runs under a translator, by its modules or, with @mods NULL, by its executable file: then it loses its probes. */
bool kx_follow_leaves_out(struct kx_follow *f, pid_t pid, const struct kx_modules *mods);
/* Errors: -EOPNOTSUPP, if probes for every process may kill one that does. */
int kx_follow_check_translator(const struct kx_follow *f, struct kx_err *err);

/* Says once that function @func, by its number in the selection and from 1, ran on a stack that is not its thread's. */
void kx_follow_notice_switch(struct kx_follow *f, struct kx_followed *p, uint32_t func);

#endif
