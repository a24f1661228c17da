// SPDX-License-Identifier: BSD-2-Clause
/*
 * Processes that join while recording (--follow, -a). Each process that forks, runs another program
 * or loads a library is scanned, and the functions there that the patterns match are traced from
 * then on.
 */
#ifndef KX_FOLLOW_H
#define KX_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "attach/dlopen_watch.h"
#include "attach/probes.h"
#include "base/err.h"
#include "binary/file_cache.h"
#include "collect/process_table.h"
#include "record/followed.h"
#include "record/notice.h"
#include "select/select.h"
#include "tracer/tracer.h"

/* Code that the recording itself has put into a process (--in-process), and that children inherit. */
struct kx_follow_own_code {
	/* Whether it is in the process: the probes withhold what it records from that (struct kx_probes_options), and from no other. */
	bool (*is_in)(void *ctx, pid_t pid);
	/* A process was forked, before it is scanned. */
	void (*forked)(void *ctx, const struct kx_process_event *event);
};

/* What it uses of its recording; all borrowed. */
struct kx_follow_context {
	struct kx_tracer *tracer;
	struct kx_selection *sel;
	struct kx_probes *const *probes; /* none before the first functions are attached */
	/* NULL: the trace has no run-time addresses, so where code is mapped is not recorded
	 */
	struct kx_process_table *const *mappings;
	const struct kx_notices *notices;
	bool all;	     /* -a: a process without a state is traced, too */
	/*
	 * Each process gets probes of its own in modules that others map as well, so that no process is changed
	 * that nobody asked for; else all probes are for every process.
	 */
	bool own_probes;
	bool faults_unwind; /* see kx_unwind_risk_faults */
	const struct kx_follow_own_code *own_code; /* NULL: there is none; needs own_probes */
	const struct kx_filters *filters; /* with -a and own_probes: processes that pass get probes */
	enum kx_exits exits; /* as the user wants them */
	bool times_calls;    /* exits are recorded, or timed by kxray top: not counted calls */
	const pid_t *pids;   /* traced from the start */
	size_t npids;
	/*
	 * Functions from index @first on have joined the selection: attaches them. *@n: how many of
	 * them are traced. Errors: those of kx_probes_attach_new; -ENOMEM ends the recording.
	 */
	int (*attach)(void *ctx, size_t first, size_t *n, struct kx_err *err);
	/* The process has got its probes, or other modules than before. */
	void (*check)(void *ctx, const struct kx_select_process *proc);
	void *ctx;
};

struct kx_follow;

/*
 * Subscribes to process events; the rest of the context is used from kx_follow_begin on.
 * Errors: those of kx_tracer_follow, -ENOMEM.
 */
int kx_follow_start(const struct kx_follow_context *context, struct kx_follow **out,
		    struct kx_err *err);
/* Before the probes are freed: hands over its links to them. */
void kx_follow_detach(struct kx_follow *f);
void kx_follow_free(struct kx_follow *f);

/*
 * Whether processes that are not traced have @m mapped, so that each traced one needs probes of its own. @follow: a
 * struct kx_follow.
 */
bool kx_follow_is_shared(void *follow, const struct kx_module *m);

/* See struct kx_follow_context, own_probes. */
bool kx_follow_has_own_probes(const struct kx_follow *f);

/*
 * Once the first functions are attached: watches the dynamic linkers of the processes @procs, and
 * enables return probes in those where they are harmless. Errors: -ENOMEM.
 */
int kx_follow_begin(struct kx_follow *f, const struct kx_select_process *procs, size_t nprocs,
		    struct kx_err *err);

/*
 * Scans processes that have changed, for about 20 ms at most, so that the rings can be drained in
 * between. Errors: -ENOMEM; -EOPNOTSUPP if one has come under a translator where probes for every process may kill it; what fails for one process or module is a notice.
 */
int kx_follow_poll(struct kx_follow *f, struct kx_err *err);

/* Files that many processes have mapped, read once; borrowed, may be NULL. */
struct kx_file_cache *kx_follow_files(const struct kx_follow *f);

/* Has the process scanned again by the next kx_follow_poll. */
void kx_follow_rescan(struct kx_follow *f, pid_t pid);

/* Process @pid has ended, perhaps before the events that announce it were recorded. */
void kx_follow_ended(struct kx_follow *f, pid_t pid);

/* Whether kx_follow_poll is to be called soon, since a process is about to end. */
bool kx_follow_any_ending(const struct kx_follow *f);

/* Whether no traced process is left (never with -a). */
bool kx_follow_all_ended(const struct kx_follow *f);

/* The processes, and those that wait to be scanned; borrowed. */
const struct kx_followed_table *kx_follow_table(const struct kx_follow *f);

void kx_follow_get_result(const struct kx_follow *f, struct kx_follow_result *out);

#endif
