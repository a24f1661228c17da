// SPDX-License-Identifier: BSD-2-Clause
/* The processes of a recording that others join: by pid, and a queue of those to be scanned. */
#ifndef KX_FOLLOWED_H
#define KX_FOLLOWED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/process_probes.h"
#include "record/linkers.h"

struct kx_followed {
	struct kx_followed *next_in_bucket;
	struct kx_followed *next_dirty;
	pid_t pid;
	pid_t parent;	/* that it inherits probes from, or 0 */
	uint64_t since; /* it was forked or found then, CLOCK_MONOTONIC in ns; 0: before the start, or it has probes */
	struct kx_process_probes *probes;
	struct kx_linkers_watched watched; /* if it has probes of its own */
	uint64_t forked; /* since then it runs into probes that it has from its parent and that do not count its calls, CLOCK_MONOTONIC in ns; 0: not */
	bool has_children; /* that were traced */
	bool alive; /* a target or a child of one; with -a not known */
	bool dirty; /* to be scanned */
	bool switch_noticed; /* it was said that the process switches stacks */
};

struct kx_follow_result {
	size_t processes; /* that were traced; with -a not counted */
	/* own_probes: processes that joined and got some, and for how long they had run without them */
	size_t joined;
	uint64_t untraced_max_ns, untraced_ns;
	/* Children with the probes of their parents, before they had links: CPU time of those that got some; lives of those that ended before. */
	double uncounted_seconds, uncounted_lives;
	uint64_t loads; /* changes of a process's list of libraries, while it was traced */
};

/* The process has probes since now that it needed from p->since on. */
void kx_followed_has_probes(struct kx_followed *p, struct kx_follow_result *r);
/* It has ended, perhaps before that. */
void kx_followed_has_ended(struct kx_followed *p, struct kx_follow_result *r);

#define KX_FOLLOWED_BUCKETS 4096u /* a power of two */

/* Zeroed at first. */
struct kx_followed_table {
	struct kx_followed *buckets[KX_FOLLOWED_BUCKETS];
	struct kx_followed *first_dirty, *last_dirty;
};

/* NULL if it is not in the table. */
struct kx_followed *kx_followed_find(const struct kx_followed_table *t, pid_t pid);
/* Adds it if it is not; NULL without memory. */
struct kx_followed *kx_followed_get(struct kx_followed_table *t, pid_t pid);
/* Adds it to the queue, once; false without memory. */
bool kx_followed_make_dirty(struct kx_followed_table *t, pid_t pid);
/* The first of the queue, taken out of it; NULL if it is empty. */
struct kx_followed *kx_followed_take_dirty(struct kx_followed_table *t);
/* Removes a process that is neither alive nor to be scanned and has no probes. */
void kx_followed_drop(struct kx_followed_table *t, pid_t pid);
/* Calls @each for all; it may drop the one that it gets. */
void kx_followed_each(struct kx_followed_table *t,
		      void (*each)(void *ctx, struct kx_followed *p), void *ctx);
/* Removes all, and closes what they are watched by; their probes are not closed. */
void kx_followed_free(struct kx_followed_table *t);

#endif
