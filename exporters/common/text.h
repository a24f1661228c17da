// SPDX-License-Identifier: BSD-2-Clause
/* What more than one format says in words: payloads of events, and when the trace began. */
#ifndef KX_EXPORT_TEXT_H
#define KX_EXPORT_TEXT_H

#include "exporters/exporter.h"

#define KX_EVENT_TEXT 1024 /* bytes of an event's text that are kept, its final NUL included */

/*
 * A custom (@type 0) or typed event as text: printable ASCII and UTF-8 as they are, all else as
 * \xNN, "type N: " before a typed one. Cut with "..." where it is too long.
 */
void kx_event_text(char text[KX_EVENT_TEXT], uint16_t type, const uint8_t *data, uint32_t size);

/* UTC time of the trace's first record, which is @first_tsc; false if nothing tells it. */
bool kx_trace_started(const struct kx_export *x, uint64_t first_tsc, int64_t *sec,
		      uint32_t *nsec);

#endif
