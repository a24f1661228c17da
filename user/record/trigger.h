// SPDX-License-Identifier: BSD-2-Clause
/* What makes a flight recorder write: --trigger 'FUNCTION>10ms', 'FUNCTION@entry', 'FUNCTION if CONDITION', 'FUNCTION>10ms if CONDITION'. */
#ifndef KX_TRIGGER_H
#define KX_TRIGGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "select/condition.h"

struct kx_trigger {
	char *text;    /* as given */
	char *pattern; /* FUNCTION, as for -f */
	bool on_entry; /* each call, at its entry; else calls that lasted longer than: */
	uint64_t over_ns; /* 0: whatever they lasted, with a condition */
	bool conditional; /* only calls that meet this: */
	struct kx_condition condition;
};

/*
 * Parses @text; blanks around its parts are welcome. FUNCTION is a pattern of functions in
 * programs and libraries. Errors: -EINVAL, with what is wrong with it; -ENOMEM.
 */
int kx_trigger_parse(const char *text, struct kx_trigger *out, struct kx_err *err);
void kx_trigger_free(struct kx_trigger *t);

/* "12.3 ms": three digits of a duration; returns @text. */
char *kx_trigger_duration(uint64_t ns, char *text, unsigned size);

#endif
