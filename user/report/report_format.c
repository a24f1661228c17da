// SPDX-License-Identifier: BSD-2-Clause
#include "report/report_format.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/display.h"
#include "trace/symbolizer.h"

#define COPY 16 /* bytes; at least the width of a column of times */

static inline __attribute__((always_inline)) size_t format_time(char text[32], uint64_t ticks, uint64_t hz)
{
	static const struct {
		uint64_t below; /* ns */
		uint32_t step;	/* ns of the last digit */
		uint32_t decimals;
		char unit[4];
	} forms[] = {
		{ 1000, 1, 0, " ns" },
		{ 10000, 1, 3, " us" },
		{ 100000, 10, 2, " us" },
		{ 1000000, 100, 1, " us" },
		{ 10000000, 1000, 3, " ms" },
		{ 100000000, 10000, 2, " ms" },
		{ 1000000000, 100000, 1, " ms" },
		{ 10000000000, 1000000, 3, " s" },
		{ 100000000000, 10000000, 2, " s" },
		{ 1000000000000, 100000000, 1, " s" },
		{ UINT64_MAX, 1000000000, 0, " s" },
	};
	uint64_t value = kx_trace_ns(ticks, hz);
	unsigned form = 0, decimals;
	char digits[24];
	size_t n, at = 0;

	if (!hz)
		return (size_t)sprintf(text, "%" PRIu64, value);
	while (form < sizeof(forms) / sizeof(forms[0]) - 1 && value >= forms[form].below)
		form++;
	decimals = forms[form].decimals;
	if (forms[form].step > 1)
		value = value / forms[form].step +
			(value % forms[form].step >= forms[form].step / 2);
	if (decimals && value < 10000) {
		/* four digits, as nearly all have: sooner done than in a loop */
		unsigned v = (unsigned)value, point = 4 - decimals;
		const char four[8] = { (char)('0' + v / 1000), (char)('0' + v / 100 % 10), (char)('0' + v / 10 % 10),
				       (char)('0' + v % 10) };

		memcpy(text, four, 4);
		memcpy(text + point + 1, four + point, 4); /* what it copies too many is overwritten */
		text[point] = '.';
		at = 5;
		value = n = 0;
	} else {
		for (n = 0; value || n <= decimals; value /= 10)
			digits[n++] = (char)('0' + value % 10);
	}
	while (n) {
		text[at++] = digits[--n];
		if (n == decimals && n)
			text[at++] = '.';
	}
	memcpy(text + at, forms[form].unit, sizeof(forms[form].unit));
	return at + (form > 6 ? 2 : 3);
}

size_t kx_format_time(char text[32], uint64_t ticks, uint64_t hz)
{
	return format_time(text, ticks, hz);
}

/* printf computes with all digits of the binary number, which takes long, and matters only between two neighbours. */
size_t kx_format_tenths(char text[32], double value)
{
	double tenths = fabs(value) * 10, part = tenths - floor(tenths);
	uint64_t number;
	size_t at = 0;

	/* below 1e9 the product is exact to 1e-7 */
	if (!(tenths < 1e9) || fabs(part - 0.5) < 1e-6)
		return (size_t)snprintf(text, 32, "%.1f", value);
	number = (uint64_t)(tenths + 0.5);
	if (signbit(value))
		text[at++] = '-';
	at += kx_decimal(text + at, number / 10);
	text[at++] = '.';
	text[at++] = (char)('0' + number % 10);
	return at;
}

size_t kx_format_whole(char text[32], double value)
{
	if (value >= 1 && value < 1e15 && value == floor(value))
		return kx_decimal(text, (uint64_t)value);
	return (size_t)snprintf(text, 32, "%.0f", value);
}

void kx_put_time(struct kx_text_out *o, uint64_t ticks, uint64_t hz)
{
	const size_t width = KX_TIME_WIDTH(1);
	char text[33];
	size_t n = format_time(text, ticks, hz);

	if (hz && text[n - 2] == ' ') /* "s" stands below the first letter of "ms" */
		text[n++] = ' ';
	/* The most frequent text of a report: copies of fixed size, of which the rest is overwritten. */
	if (hz && n <= width && kx_text_has_room(o, 2 * COPY)) {
		char *to = o->buf + o->used;

		memset(to, ' ', COPY);
		memcpy(to + width - n, text, COPY);
		o->used += width;
		return;
	}
	kx_text_field(o, KX_TIME_WIDTH(hz), text, n);
}

void kx_put_number(struct kx_text_out *o, int width, uint64_t value)
{
	char digits[KX_DECIMAL_SIZE];

	kx_text_field(o, width, digits, kx_decimal(digits, value));
}

void kx_put_time_text(struct kx_text_out *o, const char *text, uint64_t hz)
{
	kx_text_field(o, KX_TIME_WIDTH(hz), text, strlen(text));
}

/* Whether all bytes are printable ASCII: eight at a time, each of which has its own highest bit set if it is not. */
static bool is_plain(const char *text, size_t size)
{
	uint64_t odd = 0, word, low;
	size_t i = 0;

	for (; i + sizeof(word) <= size; i += sizeof(word)) {
		memcpy(&word, text + i, sizeof(word));
		low = word & 0x7f7f7f7f7f7f7f7fu;
		/* from 0x80 on; below 0x20, where 0x60 more is below 0x80; 0x7f, where one more is not */
		odd |= word | ~(low + 0x6060606060606060u) | (low + 0x0101010101010101u);
	}
	if (odd & 0x8080808080808080u)
		return false;
	for (; i < size; i++)
		if (text[i] < ' ' || text[i] >= 0x7f)
			return false;
	return true;
}

void kx_put_text(struct kx_text_out *o, const char *text)
{
	size_t size = strlen(text);

	if (is_plain(text, size))
		kx_text_bytes(o, text, size);
	else
		kx_text_escaped(o, text, size);
}

void kx_put_fitted(struct kx_text_out *o, const char *text, size_t columns)
{
	char *shown;

	if (!columns) {
		kx_put_text(o, text);
		return;
	}
	shown = kx_display_text(text, columns);
	if (shown)
		kx_text_str(o, shown);
	else
		o->error = o->error ? o->error : -ENOMEM;
	free(shown);
}

void kx_put_fitted_printable(struct kx_text_out *o, const char *text, size_t size, size_t columns)
{
	size_t fits = columns ? kx_display_fit(text, size, columns) : size;

	if (fits < size)
		fits = kx_display_fit(text, size, columns - 1);
	kx_text_bytes(o, text, fits);
	kx_text_str(o, fits < size ? "\xe2\x80\xa6" : "");
}

void kx_put_wrapped(struct kx_text_out *o, const struct kx_screen *screen, const char *text)
{
	size_t used = 0;

	while (*text) {
		size_t word = strcspn(text, " ");

		if (used && screen->columns && used + 1 + word > screen->columns) {
			kx_text_char(o, '\n');
			used = 0;
		} else if (used) {
			kx_text_char(o, ' ');
			used++;
		}
		kx_text_bytes(o, text, word);
		used += word;
		text += word + (text[word] == ' ');
	}
	kx_text_char(o, '\n');
}

void kx_put_styled(struct kx_text_out *o, const struct kx_screen *screen, enum kx_style style,
		   const char *text)
{
	kx_text_str(o, kx_screen_style(screen, style));
	kx_text_str(o, text);
	kx_text_str(o, kx_screen_style(screen, KX_STYLE_PLAIN));
}

static void put_fitted_function(struct kx_text_out *o, const struct kx_screen *screen, const char *name,
				const char *module, size_t columns)
{
	size_t module_at;
	char *shown = kx_display_function(name, module, columns, &module_at);

	if (!shown) {
		o->error = o->error ? o->error : -ENOMEM;
		return;
	}
	kx_text_bytes(o, shown, module_at);
	if (shown[module_at])
		kx_put_styled(o, screen, KX_STYLE_DIM, shown + module_at);
	free(shown);
}

void kx_put_function(struct kx_text_out *o, const struct kx_screen *screen, const char *name, const char *module,
		     size_t columns)
{
	if (columns) {
		put_fitted_function(o, screen, name, module, columns);
		return;
	}
	kx_put_text(o, name);
	if (!*module)
		return;
	if (screen->color)
		kx_text_str(o, kx_screen_style(screen, KX_STYLE_DIM));
	kx_text_bytes(o, " [", 2);
	kx_put_text(o, module);
	kx_text_char(o, ']');
	if (screen->color)
		kx_text_str(o, kx_screen_style(screen, KX_STYLE_PLAIN));
}
