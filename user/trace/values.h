// SPDX-License-Identifier: BSD-2-Clause
/*
 * The values of calls in a trace. The map's session says what they are:
 *
 *     "values": {"FUNC": [{"label":"buf","at":"entry","kind":"string","place":1},
 *                         {"label":"n","at":"entry","kind":"unsigned","size":4,"place":0}, ...]}
 *
 * FUNC is the function's id. The list is in the order of the payload (struct kx_fetch in ../bpf/wire.h), "place" is that in which
 * the values were asked for. "size" in bytes, of numbers; "type" is the source's name of it, "names" of an enum are
 * {"NAME": NUMBER}. A value that could not be recorded in this function has "unknown", why, and no place in the payload.
 * "hidden": true: it only gives the length of another one. The trace has the payload in notes kxray:values.
 */
#ifndef KX_TRACE_VALUES_H
#define KX_TRACE_VALUES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text_out.h"
#include "binary/values.h"

/* Adds function @id to the session's "values". @places: of each value. Errors: -ENOMEM. */
int kx_values_describe(json_t *values, uint32_t id, const struct kx_value *v, const size_t *places, size_t n);

/* What a value is; strings are borrowed from the session. */
struct kx_described_value {
	const char *label;
	const char *unknown; /* why it is; or NULL */
	const json_t *names; /* of an enum; or NULL */
	enum kx_value_kind kind;
	uint8_t size;
	bool exit;
	bool hidden;
	uint8_t index; /* in the payload of its event */
	uint8_t place;
};

struct kx_value_map {
	struct kx_function_values {
		uint32_t id;
		uint8_t n;
		struct kx_described_value items[KX_MAX_VALUES];
	} *functions; /* by id */
	size_t n;
};

/* Reads the session, which may be NULL and must outlive it. Damaged descriptions are left out. Errors: -ENOMEM. */
int kx_value_map_read(struct kx_value_map *map, const json_t *session);
void kx_value_map_free(struct kx_value_map *map);
const struct kx_function_values *kx_value_map_find(const struct kx_value_map *map, uint32_t id);

/* A payload; size 0: there is none. Borrowed, not aligned. */
struct kx_value_payload {
	const uint8_t *data;
	uint32_t size; /* bytes */
};

/* The same, kept. */
struct kx_value_copy {
	uint32_t size;
	uint8_t data[KX_WIRE_MAX_WORDS * 8];
};

/* What is longer than @to has room for is cut. */
void kx_value_payload_copy(const struct kx_value_payload *p, struct kx_value_copy *to);

enum kx_value_state {
	KX_VALUE_KNOWN,
	KX_VALUE_UNREAD,  /* its memory could not be read, or the call has no such event */
	KX_VALUE_UNKNOWN, /* in this function: see described->unknown */
};

struct kx_shown_value {
	const struct kx_described_value *described;
	enum kx_value_state state;
	uint64_t number;     /* extended to 64 bits */
	const uint8_t *text; /* of a string; borrowed from the payload */
	uint32_t size;	     /* its bytes */
	bool cut;	     /* it had more */
};

/*
 * The values of a call, in the order in which they were asked for, without hidden ones; returns how many. What a damaged payload
 * does not have is unread. @at_exit: also those of the exit, which the call has reached.
 */
size_t kx_values_read(const struct kx_function_values *f, const struct kx_value_payload *entry,
		      const struct kx_value_payload *exit, bool at_exit, struct kx_shown_value out[KX_MAX_VALUES]);

/* Whether calls of function @f, which may be NULL, have values to show at their entry, or at their exit. */
bool kx_values_are_shown(const struct kx_function_values *f, bool exit);

/* The one of a call that has ended which is called @label; false: the function has none. */
bool kx_value_of_call(const struct kx_function_values *f, const struct kx_value_payload *entry,
		      const struct kx_value_payload *exit, const char *label, struct kx_shown_value *out);

/*
 * As text: -5, 0x7f, true, 'a', RED, "text", "cut…", ? if unread or unknown. Bytes that are not printable, quotes and backslashes are
 * escaped as in C.
 */
void kx_value_put_text(struct kx_text_out *o, const struct kx_shown_value *v);

/*
 * As JSON: numbers (as strings beyond 53 bits, hexadecimal ones and pointers always), true, false, strings; null if unread or
 * unknown. Strings are as kx_value_format has them.
 */
void kx_value_put_json(struct kx_text_out *o, const struct kx_shown_value *v);

/*
 * A value as UTF-8 of less than @size bytes, without quotes: in strings NUL and bytes that are no UTF-8 are \xNN; one that was cut ends in
 * U+2026.
 */
#define KX_VALUE_TEXT (KX_STRING_LONGEST * 4 + 16)
void kx_value_format(const struct kx_shown_value *v, char *text, size_t size);

/* label = value, ... */
void kx_values_put_text(struct kx_text_out *o, const struct kx_shown_value *v, size_t n);

/* {"label": value, ...} */
void kx_values_put_json(struct kx_text_out *o, const struct kx_shown_value *v, size_t n);

#endif
