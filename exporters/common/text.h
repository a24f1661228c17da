// SPDX-License-Identifier: BSD-2-Clause
/* What several formats write as text: payloads of events, and the time at which the trace began. */
#ifndef KX_EXPORT_TEXT_H
#define KX_EXPORT_TEXT_H

#include "exporters/exporter.h"

#define KX_EVENT_TEXT 1024 /* bytes of an event's text that are kept, its final NUL included */

/*
 * A custom (@type 0) or typed event as text: printable ASCII and valid UTF-8 unchanged, all other bytes as
 * \xNN, "type N: " before a typed one. Longer ones are cut and end with "...".
 */
void kx_event_text(char text[KX_EVENT_TEXT], uint16_t type, const uint8_t *data, uint32_t size);

/* UTC time of the trace's first record, whose time is @first_tsc; false if the trace does not have it. */
bool kx_trace_started(const struct kx_export *x, uint64_t first_tsc, int64_t *sec,
		      uint32_t *nsec);

/* kx_call_process_title, in a shared output after the host's name: "web1: server". */
#define KX_EXPORT_TITLE 512
void kx_export_process_title(const struct kx_export *x, const struct kx_call_thread *t, char title[KX_EXPORT_TITLE]);

#endif
