// SPDX-License-Identifier: BSD-2-Clause
#include "binary/usdt_notes.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OWNER "stapsdt"
#define TYPE  3
#define ADDRESSES (3 * sizeof(uint64_t))

static size_t aligned(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

/* The terminated string at *@at of [*@at, @end); NULL if it does not end. */
static const char *take_string(const char **at, const char *end)
{
	const char *s = *at, *zero = memchr(s, 0, (size_t)(end - s));

	*at = zero ? zero + 1 : end;
	return zero ? s : NULL;
}

static int read_description(const char *d, size_t size, struct kx_usdt_note *out)
{
	const char *at = d + ADDRESSES, *end = d + size;

	if (size < ADDRESSES)
		return -EBADMSG;
	memcpy(&out->location, d, 8);
	memcpy(&out->base, d + 8, 8);
	memcpy(&out->semaphore, d + 16, 8);
	out->provider = take_string(&at, end);
	out->name = take_string(&at, end);
	out->arguments = take_string(&at, end);
	return out->arguments && *out->provider && *out->name ? 1 : -EBADMSG;
}

int kx_usdt_note_next(const void *section, size_t size, size_t *at, struct kx_usdt_note *out)
{
	const char *data = section;

	while (*at < size) {
		Elf64_Nhdr head;
		size_t left = size - *at - sizeof(head), name, description;

		if (size - *at < sizeof(head))
			return -EBADMSG;
		memcpy(&head, data + *at, sizeof(head));
		*at += sizeof(head);
		if (head.n_namesz > left || head.n_descsz > left)
			return -EBADMSG;
		name = *at;
		description = name + aligned(head.n_namesz);
		if (description > size || head.n_descsz > size - description)
			return -EBADMSG;
		*at = description + aligned(head.n_descsz);
		if (*at > size)
			*at = size; /* the last one need not be padded */
		if (head.n_type == TYPE && head.n_namesz == sizeof(OWNER) && !memcmp(data + name, OWNER, sizeof(OWNER)))
			return read_description(data + description, head.n_descsz, out);
	}
	return 0;
}

/* By the names of their 64, 32, 16 and 8 bits. */
static const struct {
	const char *names[4];
	enum kx_fetch_from from;
} registers[] = {
	{ { "rax", "eax", "ax", "al" }, KX_FROM_AX },	    { { "rbx", "ebx", "bx", "bl" }, KX_FROM_BX },
	{ { "rcx", "ecx", "cx", "cl" }, KX_FROM_CX },	    { { "rdx", "edx", "dx", "dl" }, KX_FROM_DX },
	{ { "rsi", "esi", "si", "sil" }, KX_FROM_SI },	    { { "rdi", "edi", "di", "dil" }, KX_FROM_DI },
	{ { "rbp", "ebp", "bp", "bpl" }, KX_FROM_BP },	    { { "rsp", "esp", "sp", "spl" }, KX_FROM_SP },
	{ { "r8", "r8d", "r8w", "r8b" }, KX_FROM_R8 },	    { { "r9", "r9d", "r9w", "r9b" }, KX_FROM_R9 },
	{ { "r10", "r10d", "r10w", "r10b" }, KX_FROM_R10 }, { { "r11", "r11d", "r11w", "r11b" }, KX_FROM_R11 },
	{ { "r12", "r12d", "r12w", "r12b" }, KX_FROM_R12 }, { { "r13", "r13d", "r13w", "r13b" }, KX_FROM_R13 },
	{ { "r14", "r14d", "r14w", "r14b" }, KX_FROM_R14 }, { { "r15", "r15d", "r15w", "r15b" }, KX_FROM_R15 },
};

/* The register at @at, which is behind the '%'; sets *@end behind it. False: it is another. */
static bool parse_register(const char *at, const char **end, struct kx_usdt_argument *a)
{
	size_t length = 0;

	while (isalnum((unsigned char)at[length]))
		length++;
	*end = at + length;
	for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++)
		for (size_t k = 0; k < 4; k++)
			if (strlen(registers[i].names[k]) == length && !strncmp(at, registers[i].names[k], length)) {
				a->fetch.from = (uint8_t)registers[i].from;
				return true;
			}
	if (!strncmp(at, "xmm", 3) || !strncmp(at, "ymm", 3))
		a->unknown = "floating-point registers cannot be read";
	else if (length == 2 && at[1] == 'h')
		a->unknown = "the second byte of a register cannot be read";
	else
		a->unknown = "its register is not one that can be read";
	return false;
}

static bool is_symbol(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/*
 * Numbers, and one symbol at most, that are added up, to the '(' or @end. Returns where it ends, NULL if this is none.
 */
static const char *parse_sum(const char *at, const char *end, int64_t *number, struct kx_usdt_argument *a)
{
	*number = 0;
	while (at < end && *at != '(') {
		bool minus = *at == '-';
		char *after;

		at += *at == '-' || *at == '+';
		if (at < end && isdigit((unsigned char)*at)) {
			uint64_t n;

			errno = 0;
			n = strtoull(at, &after, 0);
			if (errno || after > end)
				return NULL;
			*number = (int64_t)((uint64_t)*number + (minus ? -n : n));
			at = after;
		} else if (at < end && is_symbol(*at) && !minus && !a->symbol) {
			a->symbol = at;
			while (at < end && is_symbol(*at))
				at++;
			a->symbol_length = (size_t)(at - a->symbol);
		} else {
			return NULL;
		}
	}
	return at;
}

static void set_offset(struct kx_usdt_argument *a, int64_t n)
{
	a->fetch.offset[0] = (int32_t)n;
	if (n != (int32_t)n)
		a->unknown = "its place is too far away";
}

static const char unreadable[] = "its place is in a form that is not understood";

/* "$12", "$-1", "$counters" */
static void parse_constant(const char *at, const char *end, struct kx_usdt_argument *a)
{
	int64_t n;

	if (at == end || parse_sum(at, end, &n, a) != end) {
		a->unknown = unreadable;
		return;
	}
	a->fetch.from = a->symbol ? KX_FROM_IP : KX_FROM_CONSTANT;
	/* the same bits, as they are cut to its size */
	if (!a->symbol && a->size < 8)
		n = (int32_t)n;
	set_offset(a, n);
	if (a->unknown)
		a->unknown = "it is a constant of more than 32 bits";
}

/* "-16(%rbp)", "8+counters(%rip)", "counters" */
static void parse_memory(const char *at, const char *end, struct kx_usdt_argument *a)
{
	int64_t n;
	const char *open = parse_sum(at, end, &n, a), *close = NULL;

	a->fetch.hops = 1;
	if (!open || at == end) {
		a->unknown = *at == '%' ? "it is in memory of the thread" : unreadable;
		return;
	}
	set_offset(a, n);
	if (open == end) {
		a->fetch.from = KX_FROM_IP;
		if (!a->symbol)
			a->unknown = unreadable;
		return;
	}
	if (open[1] != '%') {
		a->unknown = unreadable;
	} else if (!strncmp(open, "(%rip)", 6)) {
		a->fetch.from = KX_FROM_IP;
		close = open + 5;
		if (!a->symbol)
			a->unknown = unreadable;
	} else if (parse_register(open + 2, &close, a)) {
		if (a->symbol)
			a->unknown = "its place depends on a symbol and a register";
	}
	if (!a->unknown && *close == ',')
		a->unknown = "its place depends on two registers";
	else if (!a->unknown && (*close != ')' || close + 1 != end))
		a->unknown = unreadable;
}

/* The text of one argument, which has no blanks. */
static void parse_argument(const char *at, const char *end, struct kx_usdt_argument *a)
{
	const char *sign = memchr(at, '@', (size_t)(end - at)), *after;
	char *number_end;
	long size = 8;

	*a = (struct kx_usdt_argument){ .size = 8 };
	if (sign && (isdigit((unsigned char)*at) || *at == '-')) {
		size = strtol(at, &number_end, 10);
		a->is_float = *number_end == 'f';
		number_end += a->is_float;
		at = sign + 1;
		if (number_end != sign || size < -8)
			size = 0;
	}
	a->is_signed = size < 0;
	size = size < 0 ? -size : size;
	if (size != 1 && size != 2 && size != 4 && size != 8) {
		a->unknown = unreadable;
		return;
	}
	a->size = (uint8_t)size;
	if (at < end && *at == '$') {
		parse_constant(at + 1, end, a);
	} else if (at < end && *at == '%' && !memchr(at, ':', (size_t)(end - at))) {
		if (parse_register(at + 1, &after, a) && after != end)
			a->unknown = unreadable;
	} else {
		parse_memory(at, end, a);
	}
	if (a->is_float && !a->unknown && !a->fetch.hops)
		a->unknown = "floating-point registers cannot be read";
	a->fetch.size = a->size;
}

size_t kx_usdt_arguments_parse(const char *text, struct kx_usdt_argument out[KX_USDT_MAX_ARGUMENTS])
{
	size_t n = 0;

	while (n < KX_USDT_MAX_ARGUMENTS) {
		const char *end;

		text += strspn(text, " \t");
		if (!*text)
			break;
		end = text + strcspn(text, " \t");
		parse_argument(text, end, &out[n++]);
		text = end;
	}
	return n;
}

const char *kx_usdt_argument_type(const struct kx_usdt_argument *a)
{
	static const char *const names[][3] = {
		{ "u8", "i8", "f8" }, { "u16", "i16", "f16" }, { "u32", "i32", "f32" }, { "u64", "i64", "f64" }
	};
	unsigned index = a->size == 1 ? 0 : a->size == 2 ? 1 : a->size == 4 ? 2 : 3;

	return names[index][a->is_float ? 2 : a->is_signed];
}
