// SPDX-License-Identifier: BSD-2-Clause
/* kxray-formats(5) has each kind of note that is written, with its fields. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "collect/event.h"
#include "trace/notes.h"

#define PAGE "user/man/kxray-formats.5.in"

static char *page;

static int read_page(void **state)
{
	FILE *f = fopen(PAGE, "r");
	size_t size = 0;

	(void)state;
	if (!f || getdelim(&page, &size, '\0', f) <= 0)
		return -1;
	return fclose(f);
}

static int free_page(void **state)
{
	(void)state;
	free(page);
	return 0;
}

/* The part of @text under this heading, in allocated memory; NULL: there is none. */
static char *section_of(const char *text, const char *heading)
{
	char line[96], *part, *end;

	snprintf(line, sizeof(line), "\n.SS %s\n", heading);
	text = strstr(text, line);
	if (!text)
		return NULL;
	part = strdup(text + strlen(line) - 1);
	assert_non_null(part);
	end = strstr(part, "\n.S");
	if (end)
		*end = 0;
	return part;
}

/* How many fields of the note @text, "kxray:KIND {JSON}", are not in @from; the kind counts as one.
 */
static size_t missing_in(const char *from, const char *text)
{
	size_t kind = strcspn(text, " "), missing = 0;
	char heading[64], line[96], *section;
	const char *key;
	json_t *json, *value;

	snprintf(heading, sizeof(heading), "%.*s", (int)kind, text);
	section = section_of(from, heading);
	json = json_loads(text + kind, 0, NULL);
	assert_non_null(json);
	json_object_foreach (json, key, value) {
		snprintf(line, sizeof(line), "\n.BR %s \" (", key);
		if (section && !strstr(section, line)) {
			print_message("# %s: %s is not in the page\n", heading, key);
			missing++;
		}
	}
	json_decref(json);
	free(section);
	if (!section)
		print_message("# %s is not in the page\n", heading);
	return section ? missing : 1;
}

/* A note of this kind with all fields that it can have. */
static void write_note(enum kx_note_kind kind, char text[KX_NOTE_MAX])
{
	struct kx_note note = { .kind = kind };

	if (kind == KX_NOTE_THREAD)
		note.thread = (struct kx_fdr_identity){
			.pid = 1, .tid = 2, .name = "n", .process = "p", .ns_pid = 3, .ns_tid = 4
		};
	else if (kind == KX_NOTE_SESSION)
		note.session.body = "{}", note.session.size = 2;
	else if (kind == KX_NOTE_SCHED)
		note.sched = (struct kx_sched_interval){ .from = 1,
							 .wake = 2,
							 .to = 3,
							 .state = 'S',
							 .has_waker = true,
							 .waker = 4,
							 .has_waker_cpu = true,
							 .waker_cpu = 5,
							 .open = true };
	else if (kind == KX_NOTE_CALL_VALUES)
		note.payload.data = "";
	assert_true(kx_note_format(&note, text, KX_NOTE_MAX) > 0);
	/* its payload is words, which have no names */
	if (kind == KX_NOTE_CALL_VALUES)
		strcat(text, "{}");
}

static void kinds_of_notes(void **state)
{
	char text[KX_NOTE_MAX];

	(void)state;
	for (int kind = KX_NOTE_THREAD; kind < KX_NOTE_KINDS; kind++) {
		write_note((enum kx_note_kind)kind, text);
		assert_int_equal(missing_in(page, text), 0);
	}
}

/* Notes of sources of events, which no reader interprets. */
static void instants(void **state)
{
	const uint64_t payload[KX_MAX_ARGS] = { 0 };
	const struct kx_event event = { 0 };
	char text[KX_NOTE_MAX];
	size_t n = 0;

	(void)state;
	for (int kind = 0; kind < KX_EVENT_KINDS; kind++) {
		struct kx_note note = { 0 };

		if (!kx_event_types[kind].note)
			continue;
		kx_event_types[kind].note(&note, &event, payload, 0);
		assert_true(kx_note_format(&note, text, sizeof(text)) > 0);
		assert_int_equal(missing_in(page, text), 0);
		n++;
	}
	assert_true(n >= 3);
}

static void what_is_missing_is_found(void **state)
{
	(void)state;
	assert_int_equal(missing_in(page, "kxray:nosuch {\"a\":1}"), 1);
	assert_int_equal(missing_in(page, "kxray:loss {\"entries\":1,\"a\":1,\"ip\":2}"), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_of_notes),
		cmocka_unit_test(instants),
		cmocka_unit_test(what_is_missing_is_found),
	};

	return cmocka_run_group_tests(tests, read_page, free_page);
}
