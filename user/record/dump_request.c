// SPDX-License-Identifier: BSD-2-Clause
#include "record/dump_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int kx_dump_request_init(struct kx_dump_request *q, const pid_t *targets, size_t ntargets)
{
	memset(q, 0, sizeof(*q));
	q->targets = targets;
	q->target_ended = calloc(ntargets + 1, sizeof(*q->target_ended));
	if (!q->target_ended)
		return -ENOMEM;
	q->ntargets = ntargets;
	return 0;
}

void kx_dump_request_free(struct kx_dump_request *q)
{
	free(q->target_ended);
	q->target_ended = NULL;
	q->ntargets = 0;
}

void kx_dump_request_add(struct kx_dump_request *q, const struct kx_reason *why, double now)
{
	if (q->due)
		q->merged++;
	q->caught = (q->due && q->caught) ||
		    (why->kind != KX_REASON_SIGNAL && why->kind != KX_REASON_END);
	if (!q->due || why->kind > q->why.kind)
		q->why = *why;
	if (!q->due)
		q->since = now;
	if (!q->due || why->tsc > q->newest)
		q->newest = why->tsc;
	q->process_ending = q->why.kind == KX_REASON_EXIT || q->why.kind == KX_REASON_CRASH;
	q->due = true;
}

/* The index of a target that has not ended yet, or -1. */
static long target_index(const struct kx_dump_request *q, uint32_t pid)
{
	for (size_t i = 0; i < q->ntargets; i++)
		if ((uint32_t)q->targets[i] == pid && !q->target_ended[i])
			return (long)i;
	return -1;
}

static bool already_ended(struct kx_dump_request *q, const struct kx_trigger_event *ev)
{
	for (unsigned i = 0; i < q->nended && i < KX_MAX_ENDED; i++)
		if (q->ended[i].tgid == ev->tgid && q->ended[i].start == ev->value)
			return true;
	q->ended[q->nended % KX_MAX_ENDED].tgid = ev->tgid;
	q->ended[q->nended++ % KX_MAX_ENDED].start = ev->value;
	return false;
}

void kx_dump_request_process_ended(struct kx_dump_request *q, struct kx_reason *why, double now)
{
	bool crash = kx_reason_is_crash(why->event.status);
	long target;

	if (already_ended(q, &why->event))
		return;
	target = target_index(q, why->event.tgid);
	q->uncovered_end = true;
	if (target >= 0)
		q->target_ended[target] = true;
	why->kind = crash ? KX_REASON_CRASH : KX_REASON_EXIT;
	why->status_known = true;
	/* normal exits of untargeted processes (--follow, -a) start no dump */
	if (crash || target >= 0)
		kx_dump_request_add(q, why, now);
}

void kx_dump_request_target_ended(struct kx_dump_request *q, pid_t pid, uint64_t tsc, double now)
{
	struct kx_reason why = { .kind = KX_REASON_EXIT,
				 .tsc = tsc,
				 .event = { .tgid = (uint32_t)pid } };
	long target = target_index(q, (uint32_t)pid);

	if (target < 0)
		return;
	q->target_ended[target] = true;
	q->uncovered_end = true;
	kx_dump_request_add(q, &why, now);
}

void kx_dump_request_clear(struct kx_dump_request *q)
{
	q->due = false;
	q->uncovered_end = false;
}
