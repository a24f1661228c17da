// SPDX-License-Identifier: BSD-2-Clause
/*
 * The flight recorder of a recording: nothing is written until a trigger asks for it. Then a forked
 * child writes what the store holds, from its copy of our memory, while we go on recording.
 */
#ifndef KX_FLIGHT_H
#define KX_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "record/trigger.h"

#define KX_FLIGHT_DUMPS 10	 /* default of dumps */
#define KX_FLIGHT_INTERVAL 1.0 /* default of interval */

struct kx_flight_options {
	uint64_t bytes; /* kept of each CPU; 0: by memory */
	double keep;	/* seconds; older records are left out of a dump; 0: none are */
	unsigned dumps; /* the newest so many are kept, older ones of this session are removed */
	double interval; /* seconds from one dump for a function to the next at the earliest */
	const struct kx_trigger *triggers;
	size_t ntriggers;
};

struct kx_flight_result {
	unsigned dumps;	 /* written whole, the removed ones included */
	unsigned failed;
	unsigned kept;	 /* still there */
	uint64_t merged; /* triggers that got no dump of their own */
	uint64_t bytes;	 /* of all dumps */
	uint64_t memory; /* bytes that the store takes */
	char last[256];	 /* path of the newest; "" if there is none */
};

struct recording;
struct kx_flight;

/*
 * Takes the memory. The recording's tracer and collector must exist; records go into the store from
 * now on. Errors: -ENOMEM; open(2)'s if the first dump could not be written; -EINVAL.
 */
int kx_flight_new(struct recording *r, struct kx_flight **out, struct kx_err *err);
/* Waits for a dump that is being written. */
void kx_flight_free(struct kx_flight *f);

/*
 * The functions from index @first on of the recording's selection have come: those that triggers
 * name become triggers when they are attached. Errors: -ENOENT if a trigger names none, unless more
 * functions may come; -EOPNOTSUPP if it waits for the end of calls whose end is not seen; -E2BIG.
 */
int kx_flight_add_functions(struct kx_flight *f, size_t first, struct kx_err *err);

/* From here on calls can be triggers: the gate is open. */
void kx_flight_begin(struct kx_flight *f);
/* Somebody wants a dump (SIGUSR1). */
void kx_flight_request_dump(struct kx_flight *f);
/* Process @pid, one that was named, has ended. Nothing if its end was heard of otherwise. */
void kx_flight_target_ended(struct kx_flight *f, pid_t pid);

/*
 * After each pass of the collector: hears of triggers, writes what is due, says what was written.
 */
void kx_flight_poll(struct kx_flight *f);
/* Whether a trigger waits until everything before it is out of the rings. */
bool kx_flight_dump_pending(const struct kx_flight *f);

/*
 * After the collector has finished: a last dump, for what is waiting; else if @asked (somebody ended
 * the recording), or a process has ended since the last one. Waits until it is written.
 * Errors: that of the newest dump that failed.
 */
int kx_flight_end(struct kx_flight *f, bool asked, struct kx_err *err);

void kx_flight_get_result(const struct kx_flight *f, struct kx_flight_result *out);

#endif
