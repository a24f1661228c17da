// SPDX-License-Identifier: BSD-2-Clause
/* Why a dump is written, for people and for the trace's session. */
#ifndef KX_DUMP_CAUSE_H
#define KX_DUMP_CAUSE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "select/select.h"
#include "bpf/wire.h"

enum kx_reason_kind {
	KX_REASON_ENTRY, /* in order of importance: merging keeps the later one of this list */
	KX_REASON_CONDITION, /* a call met that of a trigger */
	KX_REASON_SLOW,
	KX_REASON_SIGNAL, /* kxray got SIGUSR1 */
	KX_REASON_END,	  /* of the recording */
	KX_REASON_EXIT,	  /* of a process */
	KX_REASON_CRASH,
};

struct kx_reason {
	enum kx_reason_kind kind;
	uint64_t tsc;
	struct kx_trigger_event event; /* ENTRY, CONDITION, SLOW, EXIT, CRASH */
	uint64_t limit_ns;	       /* SLOW */
	bool status_known;	       /* EXIT, CRASH */
};

/* Whether a process that ended with @status (as wait(2) gives it) has crashed. */
bool kx_reason_is_crash(uint32_t status);

/* "slow: f took 12.3 ms > 10 ms in thread 123 (worker)"; returns @text. */
char *kx_reason_text(const struct kx_reason *why, const struct kx_selection *sel, char *text,
		     unsigned size);

/* {"kind", "text", "tsc", ...}; NULL if memory ran out. */
json_t *kx_reason_json(const struct kx_reason *why, const struct kx_selection *sel);

#endif
