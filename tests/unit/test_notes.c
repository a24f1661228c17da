// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/notes.h"

#define TSC 5000

static struct kx_fdr_record record_of(const char *text)
{
	return (struct kx_fdr_record){ .kind = KX_RECORD_CUSTOM, .tsc = TSC,
				       .size = (uint32_t)strlen(text),
				       .data = (const uint8_t *)text };
}

/* Writes @note, expects @text, and reads that into @back. */
static void check(const struct kx_note *note, const char *text, struct kx_note *back)
{
	char buf[KX_NOTE_MAX + 1], *copy = kx_note_text(note);
	struct kx_fdr_record rec = record_of(text);
	int size = (int)strlen(text);

	assert_int_equal(kx_note_format(note, buf, sizeof(buf)), size);
	assert_string_equal(buf, text);
	assert_string_equal(copy, text);
	free(copy);
	/* exactly enough room, and one byte less */
	assert_int_equal(kx_note_format(note, buf, (size_t)size + 1), size);
	assert_string_equal(buf, text);
	for (size_t room = 0; room <= (size_t)size; room++)
		assert_int_equal(kx_note_format(note, buf, room), -EMSGSIZE);
	assert_true(kx_note_read(&rec, back));
	assert_int_equal(back->kind, note->kind);
}

static void every_kind_is_read_as_written(void **state)
{
	struct kx_note back;

	(void)state;
	check(&(struct kx_note){ .kind = KX_NOTE_CONTINUED, .continued.calls = 3 },
	      "kxray:continued {\"calls\":3}", &back);
	assert_int_equal(back.continued.calls, 3);
	check(&(struct kx_note){ .kind = KX_NOTE_THREAD, .thread = { 1, 2, "w\303\244", "p \"q\"", 0, 0 } },
	      "kxray:thread {\"tid\":2,\"pid\":1,\"name\":\"w\\u00E4\",\"process\":\"p \\\"q\\\"\"}", &back);
	assert_int_equal(back.thread.pid, 1);
	assert_int_equal(back.thread.tid, 2);
	assert_string_equal(back.thread.name, "w\303\244");
	assert_string_equal(back.thread.process, "p \"q\"");
	assert_int_equal(back.thread.ns_pid, 0);
	kx_note_release(&back);
	check(&(struct kx_note){ .kind = KX_NOTE_THREAD, .thread = { -1, 2, NULL, NULL, 3, 4 } },
	      "kxray:thread {\"tid\":2,\"pid\":-1,\"name\":\"\",\"process\":\"\",\"ns_pid\":3,"
	      "\"ns_tid\":4}", &back);
	assert_int_equal(back.thread.ns_pid, 3);
	assert_int_equal(back.thread.ns_tid, 4);
	kx_note_release(&back);
	check(&(struct kx_note){ .kind = KX_NOTE_SESSION, .session = { "{\"a\":[1]}?", 9 } },
	      "kxray:session {\"a\":[1]}", &back);
	assert_int_equal(json_array_size(json_object_get(back.json, "a")), 1);
	kx_note_release(&back);
	check(&(struct kx_note){ .kind = KX_NOTE_LOSS, .loss = { 3, 2, 1062, 1ull << 62 } },
	      "kxray:loss {\"entries\":3,\"exits\":2,\"from\":1062,\"to\":4611686018427387904}", &back);
	assert_int_equal(back.loss.entries, 3);
	assert_int_equal(back.loss.exits, 2);
	assert_int_equal(back.loss.from, 1062);
	assert_int_equal(back.loss.to, 1ull << 62);
	assert_null(back.json);
	check(&(struct kx_note){ .kind = KX_NOTE_REPAIRED, .repaired.exits = 7 },
	      "kxray:repaired {\"exits\":7}", &back);
	assert_int_equal(back.repaired.exits, 7);
	check(&(struct kx_note){ .kind = KX_NOTE_RESULT, .result.value = INT64_MIN },
	      "kxray:result {\"value\":-9223372036854775808}", &back);
	assert_int_equal(back.result.value, INT64_MIN);
	check(&(struct kx_note){ .kind = KX_NOTE_SAMPLE, .sample.ip = 0xffffffff81000abc },
	      "kxray:sample {\"ip\":\"0xffffffff81000abc\"}", &back);
	assert_int_equal(back.sample.ip, 0xffffffff81000abc);
	check(&(struct kx_note){ .kind = KX_NOTE_SCHED, .sched = { .from = 4000, .wake = 4600,
		.to = TSC, .state = 'S', .has_waker = true, .waker = 9, .open = true } },
	      "kxray:sched {\"off\":1000,\"state\":\"S\",\"wait\":400,\"by\":9,\"open\":true}", &back);
	assert_int_equal(back.sched.from, 4000);
	assert_int_equal(back.sched.wake, 4600);
}

/* Names are cut so that the note fits the smallest buffer of a trace. */
static void long_names_are_cut(void **state)
{
	char name[100], text[1024];
	struct kx_note note = { .kind = KX_NOTE_THREAD, .thread = { .name = name, .process = name } };

	(void)state;
	memset(name, 1, sizeof(name) - 1); /* six characters each in JSON */
	name[sizeof(name) - 1] = 0;
	assert_int_equal(kx_note_format(&note, text, sizeof(text)),
			 strlen("kxray:thread {\"tid\":0,\"pid\":0,\"name\":\"\",\"process\":\"\"}") +
				 2 * 6 * 64);
}

static void check_kind(const char *text, enum kx_note_kind kind, const char *body)
{
	struct kx_fdr_record rec = record_of(text);
	const uint8_t *at;
	uint32_t size;

	assert_int_equal(kx_note_find(&rec, &at, &size), kind);
	if (!body) {
		assert_null(at);
		assert_int_equal(size, 0);
		return;
	}
	assert_int_equal(size, strlen(body));
	assert_memory_equal(at, body, size);
}

static void kinds_are_distinguished(void **state)
{
	struct kx_fdr_record typed = record_of("kxray:loss {}");
	const uint8_t *at;
	uint32_t size;

	(void)state;
	check_kind("kxray:loss {}", KX_NOTE_LOSS, "{}");
	check_kind("kxray:loss {} ", KX_NOTE_LOSS, "{} ");
	check_kind("kxray:lossy {}", KX_NOTE_UNKNOWN, "{}");
	check_kind("kxray:los {}", KX_NOTE_UNKNOWN, "{}");
	check_kind("kxray:loss ", KX_NOTE_UNKNOWN, NULL);
	check_kind("kxray:loss", KX_NOTE_UNKNOWN, NULL);
	check_kind("kxray: {}", KX_NOTE_UNKNOWN, "{}");
	check_kind("kxray:", KX_NOTE_NONE, NULL);
	check_kind("xray:loss {}", KX_NOTE_NONE, NULL);
	check_kind("", KX_NOTE_NONE, NULL);
	typed.kind = KX_RECORD_TYPED;
	assert_int_equal(kx_note_find(&typed, &at, &size), KX_NOTE_NONE);
}

/* True if the note's JSON can be parsed; releases *@out. */
static bool reads(const char *text, struct kx_note *out)
{
	struct kx_fdr_record rec = record_of(text);
	bool good = kx_note_read(&rec, out);

	kx_note_release(out);
	return good;
}

static void damaged_notes_are_rejected(void **state)
{
	static const char *const bad[] = {
		"kxray:loss {\"entries\":", "kxray:thread {", "kxray:session x", "kxray:result {}",
		"kxray:result {\"value\":\"1\"}", "kxray:sample {\"ip\":12}", "kxray:sample {}",
		"kxray:sched {}", "kxray:repaired ?", "kxray:other {}", "hello",
	};
	struct kx_note note;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (reads(bad[i], &note))
			fail_msg("%s is understood", bad[i]);
	assert_true(reads("kxray:loss {\"entries\":-1,\"exits\":2}   ", &note));
	assert_int_equal(note.loss.entries, 0);
	assert_int_equal(note.loss.exits, 2);
	assert_int_equal(note.loss.to, 0);
	assert_true(reads("kxray:repaired []", &note));
	assert_int_equal(note.repaired.exits, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_is_read_as_written),
		cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test(kinds_are_distinguished),
		cmocka_unit_test(damaged_notes_are_rejected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
