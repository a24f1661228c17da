// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "trace/values.h"

static char label_a[] = "n", label_b[] = "text", label_c[] = "ret", label_d[] = "gone", why[] = "optimised out";

static json_t *session(void)
{
	const struct kx_value v[] = {
		{ .label = label_a, .type = { KX_VALUE_UNSIGNED, 8, NULL, NULL, 0 }, .fetch = { .size = 8 } },
		{ .label = label_b, .type = { KX_VALUE_STRING, 0, NULL, NULL, 0 }, .fetch = { .most = 64 } },
		{ .label = label_c, .type = { KX_VALUE_SIGNED, 4, NULL, NULL, 0 }, .fetch = { .size = 4, .flags = KX_FETCH_EXIT } },
		{ .label = label_d, .type = { KX_VALUE_HEX, 4, NULL, NULL, 0 }, .unknown = why },
	};
	const size_t places[] = { 1, 0, 3, 2 };
	json_t *s = json_object(), *values = json_object();

	assert_int_equal(kx_values_describe(values, 7, v, places, 4), 0);
	json_object_set_new(s, "values", values);
	return s;
}

/* What is shown of function 7, as JSON. */
static void shows(const uint64_t *entry, size_t n, const uint64_t *exit, size_t m, const char *want)
{
	const struct kx_value_payload a = { (const uint8_t *)entry, (uint32_t)(n * 8) }, b = { (const uint8_t *)exit, (uint32_t)(m * 8) };
	struct kx_shown_value v[KX_MAX_VALUES];
	const struct kx_function_values *f;
	static struct kx_text_out out;
	struct kx_value_map map;
	json_t *s = session();

	assert_int_equal(kx_value_map_read(&map, s), 0);
	assert_null(kx_value_map_find(&map, 6));
	f = kx_value_map_find(&map, 7);
	assert_non_null(f);
	kx_text_init(&out, -1);
	kx_values_put_json(&out, v, kx_values_read(f, &a, &b, m > 0, v));
	out.buf[out.used] = 0;
	assert_string_equal(out.buf, want);
	kx_value_map_free(&map);
	json_decref(s);
}

static uint64_t word(const char *eight)
{
	uint64_t w = 0;

	memcpy(&w, eight, strlen(eight));
	return w;
}

static void test_shown(void **state)
{
	const uint64_t entry[] = { 0, 5, 9, word("a\"\n<\xc3\xa4\x01z"), word("!") };
	const uint64_t big[] = { 0, UINT64_MAX, 0 }, failed[] = { 2, 1, 0 }, cut[] = { 1ull << 33, 1, 3, word("a\xe2\x82") };
	const uint64_t bytes[] = { 0, 1, 2, word("\xff" "b") }, minus[] = { 0, (uint64_t)-2 };

	(void)state;
	shows(entry, 5, minus, 2, "{\"text\":\"a\\\"\\n<\xc3\xa4\\u0001z!\",\"n\":5,\"gone\":null,\"ret\":-2}");
	shows(entry, 5, NULL, 0, "{\"text\":\"a\\\"\\n<\xc3\xa4\\u0001z!\",\"n\":5,\"gone\":null}");
	shows(big, 3, NULL, 0, "{\"text\":\"\",\"n\":\"18446744073709551615\",\"gone\":null}");
	shows(failed, 3, NULL, 0, "{\"text\":null,\"n\":1,\"gone\":null}");
	shows(cut, 4, NULL, 0, "{\"text\":\"a\xe2\x80\xa6\",\"n\":1,\"gone\":null}");
	shows(bytes, 4, NULL, 0, "{\"text\":\"\\\\xffb\",\"n\":1,\"gone\":null}");
}

/* A payload that ends too early, or has impossible lengths. */
static void test_damaged(void **state)
{
	const uint64_t lengths[] = { 177, 1 << 20, UINT64_MAX, UINT64_MAX - 6 };
	uint64_t entry[] = { 0, 5, 9, 0 };

	(void)state;
	shows(entry, 0, NULL, 0, "{\"text\":null,\"n\":null,\"gone\":null}");
	shows(entry, 1, NULL, 0, "{\"text\":null,\"n\":null,\"gone\":null}");
	shows(entry, 2, NULL, 0, "{\"text\":null,\"n\":5,\"gone\":null}");
	shows(entry, 4, NULL, 0, "{\"text\":null,\"n\":5,\"gone\":null}");
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		entry[2] = lengths[i];
		shows(entry, 4, NULL, 0, "{\"text\":null,\"n\":5,\"gone\":null}");
	}
}

static void test_damaged_session(void **state)
{
	static const char *const texts[] = { "{}", "{\"values\":3}", "{\"values\":{\"x\":[]}}", "{\"values\":{\"0\":[{}]}}",
					     "{\"values\":{\"7\":[{\"label\":\"a\",\"at\":\"entry\",\"kind\":\"odd\",\"size\":4,\"place\":0}]}}",
					     "{\"values\":{\"7\":[{\"label\":\"a\",\"at\":\"entry\",\"kind\":\"hex\",\"size\":3,\"place\":0}]}}",
					     "{\"values\":{\"7\":[{\"label\":\"a\",\"at\":\"entry\",\"kind\":\"hex\",\"size\":4,\"place\":8}]}}",
					     "{\"values\":{\"7\":[1,2,3,4,5,6,7,8,9]}}" };
	struct kx_value_map map;

	(void)state;
	assert_int_equal(kx_value_map_read(&map, NULL), 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		json_t *s = json_loads(texts[i], 0, NULL);

		assert_non_null(s);
		assert_int_equal(kx_value_map_read(&map, s), 0);
		assert_int_equal(map.n, 0);
		kx_value_map_free(&map);
		json_decref(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shown),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_damaged_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
