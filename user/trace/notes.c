// SPDX-License-Identifier: BSD-2-Clause
#include "trace/notes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"

#define MAX_NAME \
	64 /* bytes; up to six times as long in JSON, and two still fit the smallest buffer */
#define MAX_SCHED_NOTE 160
#define MAX_KEY	       16 /* bytes of a key in it, with what is around it */

struct note_kind {
	struct kx_note_layout layout;
	/*
	 * NULL: by the fields. format returns the length of the JSON even if it does not fit;
	 * -ENOMEM.
	 */
	int (*format)(const struct kx_note *note, char *body, size_t size);
	bool (*parse)(struct kx_note *note, const uint8_t *body, uint32_t size, uint64_t tsc);
};

/* Thread */

static int format_thread(const struct kx_note *note, char *body, size_t size)
{
	const struct kx_fdr_identity *id = &note->thread;
	json_t *json = json_pack("{s:i, s:i, s:o, s:o}", "tid", (int)id->tid, "pid", (int)id->pid,
				 "name", kx_json_text(id->name, MAX_NAME), "process",
				 kx_json_text(id->process, MAX_NAME));
	size_t n;

	if (json && id->ns_pid)
		json_object_set_new(json, "ns_pid", json_integer(id->ns_pid));
	if (json && id->ns_tid)
		json_object_set_new(json, "ns_tid", json_integer(id->ns_tid));
	n = json ? json_dumpb(json, body, size, JSON_COMPACT | JSON_ENSURE_ASCII) : 0;
	json_decref(json);
	if (!n)
		return -ENOMEM;
	if (n < size)
		body[n] = 0;
	return (int)n;
}

uint64_t kx_note_number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static bool parse_json(struct kx_note *note, const uint8_t *body, uint32_t size)
{
	/* Version 1 pads payloads with blanks. */
	note->json = json_loadb((const char *)body, size, JSON_DISABLE_EOF_CHECK, NULL);
	return note->json;
}

static bool parse_thread(struct kx_note *note, const uint8_t *body, uint32_t size, uint64_t tsc)
{
	(void)tsc;
	if (!parse_json(note, body, size))
		return false;
	note->thread = (struct kx_fdr_identity){
		.pid = (int32_t)json_integer_value(json_object_get(note->json, "pid")),
		.tid = (int32_t)json_integer_value(json_object_get(note->json, "tid")),
		.ns_pid = (int32_t)json_integer_value(json_object_get(note->json, "ns_pid")),
		.ns_tid = (int32_t)json_integer_value(json_object_get(note->json, "ns_tid")),
		.name = json_string_value(json_object_get(note->json, "name")),
		.process = json_string_value(json_object_get(note->json, "process")),
	};
	return true;
}

/* Session */

static int format_session(const struct kx_note *note, char *body, size_t size)
{
	return snprintf(body, size, "%.*s", (int)note->session.size, note->session.body);
}

static bool parse_session(struct kx_note *note, const uint8_t *body, uint32_t size, uint64_t tsc)
{
	(void)tsc;
	return parse_json(note, body, size);
}

/* Values: binary */

static int format_values(const struct kx_note *note, char *body, size_t size)
{
	if (note->payload.size < size)
		memcpy(body, note->payload.data, note->payload.size);
	return (int)note->payload.size;
}

/* Version 1 pads payloads with blanks, fewer than a word. */
static bool parse_values(struct kx_note *note, const uint8_t *body, uint32_t size, uint64_t tsc)
{
	(void)tsc;
	note->payload.data = body;
	note->payload.size = size & ~7u;
	return size >= 8;
}

/* Times off the CPU: frequent, so they are parsed without the JSON library. */

static int format_sched(const struct kx_note *note, char *body, size_t size)
{
	const struct kx_sched_interval *i = &note->sched;
	char wait[32] = "", by[32] = "", on[16] = "";

	if (!kx_sched_could_run(i->state) && i->wake < i->to)
		snprintf(wait, sizeof(wait), ",\"wait\":%" PRIu64, i->to - i->wake);
	if (i->has_waker)
		snprintf(by, sizeof(by), ",\"by\":%" PRIu32, i->waker);
	if (i->has_waker && i->has_waker_cpu)
		snprintf(on, sizeof(on), ",\"on\":%u", i->waker_cpu);
	return snprintf(body, size, "{\"off\":%" PRIu64 ",\"state\":\"%c\"%s%s%s%s}",
			i->to - i->from, i->state, wait, by, on, i->open ? ",\"open\":true" : "");
}

/*
 * The text after @key, in a flat JSON object without blanks, as format_sched writes it: there the key stands at @likely (NULL:
 * not known), or is missing. MAX_KEY zero bytes follow the text.
 */
static inline const char *find_value(const char *text, const char *likely, const char *key)
{
	size_t size = strlen(key);
	const char *at = likely && !memcmp(likely, key, size) ? likely : strstr(text, key);

	return at ? at + size : NULL;
}

/* What follows a number, but for the comma. */
static const char *after_number(const char *at)
{
	while (at && *at >= '0' && *at <= '9')
		at++;
	return at && *at == ',' ? at + 1 : at;
}

static bool read_number(const char *at, uint64_t max, uint64_t *out)
{
	uint64_t value = 0;

	if (!at || *at < '0' || *at > '9')
		return false;
	for (; *at >= '0' && *at <= '9'; at++) {
		if (value > (UINT64_MAX - 9) / 10)
			return false;
		value = value * 10 + (uint64_t)(*at - '0');
	}
	*out = value;
	return value <= max;
}

/* Impossible times are clamped. The other members follow the state. */
static bool parse_sched(struct kx_note *note, const uint8_t *body, uint32_t size, uint64_t tsc)
{
	struct kx_sched_interval *i = &note->sched;
	char text[MAX_SCHED_NOTE + MAX_KEY];
	uint64_t off, wait, waker, cpu;
	const char *state, *at, *next;
	bool could_run;

	if (size >= MAX_SCHED_NOTE)
		return false;
	memcpy(text, body, size);
	memset(text + size, 0, MAX_KEY);
	at = find_value(text, text + 1, "\"off\":");
	state = find_value(text, after_number(at), "\"state\":\"");
	if (!state || !*state || !read_number(at, UINT64_MAX, &off))
		return false;
	i->to = tsc;
	i->from = off < tsc ? tsc - off : 0;
	i->state = *state > ' ' && *state < 0x7f && *state != '"' ? *state : '?';
	could_run = kx_sched_could_run(i->state);
	i->wake = could_run ? i->from : i->to;
	/* S","wait":1,"by":2,"on":3,"open":true} */
	next = state[1] == '"' && state[2] == ',' ? state + 3 : state + 1;
	at = could_run ? NULL : find_value(state, next, "\"wait\":");
	if (read_number(at, i->to - i->from, &wait))
		i->wake = i->to - wait;
	next = at ? after_number(at) : next;
	at = find_value(state, next, "\"by\":");
	i->has_waker = read_number(at, UINT32_MAX, &waker);
	i->waker = i->has_waker ? (uint32_t)waker : 0;
	next = at ? after_number(at) : next;
	at = i->has_waker && strcmp(next, "}") ? find_value(state, next, "\"on\":") : NULL;
	i->has_waker_cpu = read_number(at, UINT16_MAX, &cpu);
	i->waker_cpu = i->has_waker_cpu ? (uint16_t)cpu : 0;
	i->open = strcmp(at ? after_number(at) : next, "}") && find_value(state, NULL, "\"open\":true");
	return true;
}

/* The table */

static const struct note_kind kinds[KX_NOTE_KINDS] = {
	[KX_NOTE_THREAD] = { .layout.name = "thread",
			     .format = format_thread,
			     .parse = parse_thread },
	[KX_NOTE_SESSION] = { .layout.name = "session",
			      .format = format_session,
			      .parse = parse_session },
	[KX_NOTE_LOSS] = { .layout = { "loss",
				       { { "entries", KX_NOTE_COUNT },
					 { "exits", KX_NOTE_COUNT },
					 { "from", KX_NOTE_COUNT },
					 { "to", KX_NOTE_COUNT } } } },
	[KX_NOTE_REPAIRED] = { .layout = { "repaired", { { "exits", KX_NOTE_COUNT } } } },
	[KX_NOTE_RESULT] = { .layout = { "result", { { "value", KX_NOTE_NUMBER } } } },
	[KX_NOTE_SAMPLE] = { .layout = { "sample", { { "ip", KX_NOTE_ADDRESS } } } },
	[KX_NOTE_CONTINUED] = { .layout = { "continued", { { "calls", KX_NOTE_COUNT } } } },
	[KX_NOTE_CALL_VALUES] = { .layout.name = "values", .format = format_values, .parse = parse_values },
	[KX_NOTE_SCHED] = { .layout.name = "sched", .format = format_sched, .parse = parse_sched },
};

static const struct kx_note_layout *layout_of(const struct kx_note *note)
{
	return note->kind == KX_NOTE_INSTANT ? note->layout : &kinds[note->kind].layout;
}

static int format_fields(const struct kx_note *note, char *body, size_t size)
{
	const struct kx_note_layout *l = layout_of(note);
	int n = 0;

	for (int i = 0; i < KX_NOTE_VALUES && l->fields[i].key; i++) {
		const char *format = l->fields[i].type == KX_NOTE_ADDRESS ? "%c\"%s\":\"0x%" PRIx64
									    "\""
									  : "%c\"%s\":%" PRId64;
		size_t room = (size_t)n < size ? size - (size_t)n : 0;

		n += snprintf(room ? body + n : NULL, room, format, i ? ',' : '{', l->fields[i].key,
			      note->values[i]);
	}
	if ((size_t)n + 1 < size)
		memcpy(body + n, "}", 2);
	return n + 1;
}

static bool parse_fields(struct kx_note *note, const uint8_t *body, uint32_t size)
{
	const struct kx_note_layout *l = layout_of(note);
	bool good = parse_json(note, body, size);

	for (int i = 0; good && i < KX_NOTE_VALUES && l->fields[i].key; i++) {
		const json_t *value = json_object_get(note->json, l->fields[i].key);

		switch (l->fields[i].type) {
		case KX_NOTE_COUNT:
			note->values[i] = kx_note_number(note->json, l->fields[i].key);
			break;
		case KX_NOTE_NUMBER:
			good = json_is_integer(value);
			note->values[i] = (uint64_t)json_integer_value(value);
			break;
		case KX_NOTE_ADDRESS:
			good = json_is_string(value);
			if (good)
				note->values[i] = strtoull(json_string_value(value), NULL, 16);
			break;
		}
	}
	json_decref(note->json);
	note->json = NULL;
	return good;
}

int kx_note_format(const struct kx_note *note, char *text, size_t size)
{
	int (*format)(const struct kx_note *note, char *body, size_t size) = NULL;
	int head = snprintf(text, size, KX_NOTE_PREFIX "%s ", layout_of(note)->name), n;

	if ((size_t)head >= size)
		return -EMSGSIZE;
	if (note->kind != KX_NOTE_INSTANT)
		format = kinds[note->kind].format;
	n = (format ? format : format_fields)(note, text + head, size - (size_t)head);
	if (n < 0)
		return n;
	return (size_t)(head + n) < size ? head + n : -EMSGSIZE;
}

char *kx_note_text(const struct kx_note *note)
{
	char text[KX_NOTE_MAX + 1];

	return kx_note_format(note, text, sizeof(text)) < 0 ? NULL : strdup(text);
}

/* Whether the @n bytes at @text are @name. */
static inline bool is_name(const char *name, const uint8_t *text, size_t n)
{
	size_t i = 0;

	while (i < n && name[i] && (uint8_t)name[i] == text[i])
		i++;
	return i == n && !name[i];
}

enum kx_note_kind kx_note_find(const struct kx_fdr_record *rec, const uint8_t **body,
			       uint32_t *size)
{
	const size_t prefix = strlen(KX_NOTE_PREFIX);
	const uint8_t *name = rec->data + prefix, *blank;
	size_t left = rec->size - prefix;

	*body = NULL;
	*size = 0;
	if (rec->kind != KX_RECORD_CUSTOM || rec->size <= prefix ||
	    memcmp(rec->data, KX_NOTE_PREFIX, prefix))
		return KX_NOTE_NONE;
	blank = memchr(name, ' ', left);
	if (!blank || blank == name + left - 1)
		return KX_NOTE_UNKNOWN;
	*body = blank + 1;
	*size = (uint32_t)(left - (size_t)(*body - name));
	for (int i = KX_NOTE_THREAD; i < KX_NOTE_KINDS; i++)
		if (is_name(kinds[i].layout.name, name, (size_t)(blank - name)))
			return (enum kx_note_kind)i;
	return KX_NOTE_UNKNOWN;
}

bool kx_note_parse(enum kx_note_kind kind, const uint8_t *body, uint32_t size, uint64_t tsc,
		   struct kx_note *out)
{
	memset(out, 0, sizeof(*out));
	out->kind = kind;
	if (kind < KX_NOTE_THREAD || kind >= KX_NOTE_KINDS)
		return false;
	if (kinds[kind].parse)
		return kinds[kind].parse(out, body, size, tsc);
	return parse_fields(out, body, size);
}

bool kx_note_read(const struct kx_fdr_record *rec, struct kx_note *out)
{
	const uint8_t *body;
	uint32_t size;
	enum kx_note_kind kind = kx_note_find(rec, &body, &size);

	return kx_note_parse(kind, body, size, rec->tsc, out);
}

void kx_note_release(struct kx_note *note)
{
	json_decref(note->json);
	note->json = NULL;
}
