// SPDX-License-Identifier: BSD-2-Clause
/* Notes of kxray's that stand for an event of their own (page faults), for formats that show
 * instants. */
#ifndef KX_EXPORT_INSTANT_H
#define KX_EXPORT_INSTANT_H

#include <jansson.h>

#include "exporters/exporter.h"

#define KX_INSTANT_VALUE 64 /* bytes of a value as text, its NUL included */

struct kx_instant {
	char name[32];	/* of its kind: "fault" */
	uint32_t func;	/* the innermost open call, or 0 */
	json_t *values; /* an object of numbers and strings */
};

/* Reads the note @rec of thread @t. False if it is damaged. To be freed if true. */
bool kx_instant_read(struct kx_instant *out, const struct kx_call_thread *t,
		     const struct kx_fdr_record *rec);
void kx_instant_free(struct kx_instant *i);

/* A value as text, cut; "" for anything but numbers and strings. Returns @text. */
const char *kx_instant_value(const json_t *value, char text[KX_INSTANT_VALUE]);

#endif
