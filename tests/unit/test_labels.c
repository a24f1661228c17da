// SPDX-License-Identifier: BSD-2-Clause
/* --label's syntax, and all labels of a session. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "trace/labels.h"

#define X15  "xxxxxxxxxxxxxxx"
#define X63  X15 X15 X15 X15 "xxx"
#define X255 X63 X63 X63 X63 "xxx"

static void test_syntax(void **state)
{
	static const char *const good[] = {
		"env=production",
		"_a=b",
		"app.kubernetes.io-name=x",
		"A1=a=b=c",
		"k= a, \"b\" \\ ",
		"k2=\xc3\xa4",
		X63 "=1",
		"long=" X255,
	};
	static const struct {
		const char *text, *what;
	} bad[] = {
		{ "", "takes KEY=VALUE" },
		{ "env", "takes KEY=VALUE" },
		{ "=x", "takes KEY=VALUE" },
		{ "env=", "has no value" },
		{ "1a=x", "other characters" },
		{ "-a=x", "other characters" },
		{ "a b=x", "other characters" },
		{ "\xc3\xa4=x", "other characters" },
		{ "a/b=x", "other characters" },
		{ X63 "y=1", "63 are allowed" },
		{ "k=" X255 "y", "255 are allowed" },
		{ "u=a\nb", "control character" },
		{ "u=\x7f", "control character" },
		{ "u=\xff", "is not UTF-8" },
		{ "host=x", "cannot set 'host'" },
		{ "pod=x", "cannot set 'pod'" },
	};
	json_t *labels = json_object();
	struct kx_err err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (kx_label_add(labels, good[i], &err))
			fail_msg("%s: %s", good[i], err.text);
	assert_string_equal(json_string_value(json_object_get(labels, "A1")), "a=b=c");
	assert_int_equal(json_object_size(labels), sizeof(good) / sizeof(good[0]));
	assert_int_equal(kx_label_add(labels, "env=production", &err), -EINVAL);
	assert_non_null(strstr(err.text, "twice"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(kx_label_add(labels, bad[i].text, &err), -EINVAL);
		if (!strstr(err.text, bad[i].what))
			fail_msg("%s: %s", bad[i].text, err.text);
	}
	assert_int_equal(json_object_size(labels), sizeof(good) / sizeof(good[0]));
	for (int i = sizeof(good) / sizeof(good[0]); i < KX_MAX_LABELS + 1; i++) {
		char text[32];

		snprintf(text, sizeof(text), "n%d=%d", i, i);
		assert_int_equal(kx_label_add(labels, text, &err), i < KX_MAX_LABELS ? 0 : -EINVAL);
	}
	assert_non_null(strstr(err.text, "one too many"));
	json_decref(labels);
}

static void check(const char *session, const char *want)
{
	json_t *s = session ? json_loads(session, 0, NULL) : NULL, *labels = kx_session_labels(s);
	char *text = json_dumps(labels, JSON_COMPACT);

	assert_string_equal(text, want);
	free(text);
	json_decref(labels);
	json_decref(s);
}

static void test_session(void **state)
{
	(void)state;
	check(NULL, "{}");
	check("[1]", "{}");
	check("{\"host\":{\"name\":\"web1\",\"boot_id\":\"b\",\"machine_id\":\"m\"},\"labels\":{"
	      "\"env\":\"x\"},"
	      "\"processes\":[{\"pid\":1,\"unit\":\"a.service\",\"container\":\"c\"},{\"pid\":2,"
	      "\"unit\":\"a.service\"}]}",
	      "{\"host\":\"web1\",\"boot_id\":\"b\",\"machine_id\":\"m\",\"unit\":\"a.service\","
	      "\"env\":\"x\"}");
	check("{\"processes\":[{\"pid\":1,\"pod\":\"p\"},{\"pid\":2,\"pod\":\"q\"}]}", "{}");
	/* a map that somebody else has written: of other types, and a label that is none */
	check("{\"host\":3,\"labels\":{\"host\":\"a\",\"n\":3},\"processes\":{}}",
	      "{\"host\":\"a\"}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_syntax),
		cmocka_unit_test(test_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
