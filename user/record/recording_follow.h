// SPDX-License-Identifier: BSD-2-Clause
/*
 * The processes of a recording where they come and go: what forks, runs another program or
 * loads a library is looked at, and what the patterns choose there is traced from then on.
 */
#ifndef KX_RECORDING_FOLLOW_H
#define KX_RECORDING_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "binary/file_cache.h"

struct recording;
struct kx_follow;

/*
 * Starts hearing of processes; the recording's tracer must exist, and its processes (r->procs) need
 * not be known yet. Errors: those of kx_tracer_follow, -ENOMEM.
 */
int kx_follow_start(struct recording *r, struct kx_follow **out, struct kx_err *err);
void kx_follow_free(struct kx_follow *f);

/*
 * All processes but kernel threads, kxray and what cannot be read; for -a. Fills r->procs and
 * r->mods. Errors: -ENOMEM.
 */
int kx_follow_list_all(struct recording *r, struct kx_err *err);

/*
 * Once the first functions are attached: processes in which return probes are harmless get them, and
 * their dynamic linkers are watched.
 */
int kx_follow_begin(struct kx_follow *f, struct kx_err *err);

/*
 * Looks at processes that have changed, for some milliseconds at most: the rings are to be drained
 * meanwhile. Errors: -ENOMEM; what fails for one process or module is a notice.
 */
int kx_follow_look(struct kx_follow *f, struct kx_err *err);

/* For looks at files that many processes have mapped; borrowed, may be NULL. */
struct kx_file_cache *kx_follow_files(const struct kx_follow *f);

/* Whether some process waits for a look. */
bool kx_follow_busy(const struct kx_follow *f);
/* Whether no traced process is left (never with -a). */
bool kx_follow_all_ended(const struct kx_follow *f);
/* Processes that were traced; those that could not be followed. */
size_t kx_follow_processes(const struct kx_follow *f);

#endif
