// SPDX-License-Identifier: BSD-2-Clause
/* Calls functions of C with values of all types, and prints what it called them with: see ../targets/values.c. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __clang__
#define TRACED __attribute__((noinline, disable_tail_calls))
#else
#define TRACED __attribute__((noipa))
#endif
#define PACKED __attribute__((packed))
#define USE(x) ({ __asm__ volatile("" : : "r"(x) : "memory"); })

enum color { RED = 3, BLUE = -2, GREEN = 1000000 };
enum big { SMALL, HUGE_ONE = 0xfffffff0 };
typedef enum { ONE = 1, TWO } count_t;
typedef const char *text_t;

struct hdr {
	char pad;
	unsigned short len;
	int8_t delta;
};

struct request {
	char pad[3];
	struct hdr hdr;
	text_t path;
	struct request *next;
	union {
		int32_t code;
		float real;
	};
	char name[8];
	int items[5];
	enum color color;
	double ratio;
	float half;
	bool done;
	uint64_t id;
};

struct pair {
	long a, b;
};
struct packed {
	char c;
	int n;
} PACKED;
struct tight {
	int n;
	short s;
	char c;
} PACKED;
union either {
	int n;
	float f;
};
struct split {
	double d;
	long n;
};
struct big_one {
	long v[5];
	int last;
};
struct words {
	short a;
	char b;
};

static char did[1 << 16];
static size_t used;

__attribute__((format(printf, 3, 4))) static void add(const char *function, const char *result, const char *format, ...)
{
	/* a member of it: "take.a" */
	const char *member = strchr(function, '.');
	va_list args;

	used += (size_t)snprintf(did + used, sizeof(did) - used, "%s{\"function\": \"%.*s\", \"of\": \"ret%s\", \"result\": %s, \"args\": {",
				 used ? ", " : "", (int)strcspn(function, "."), function, member ? member : "", result);
	va_start(args, format);
	used += (size_t)vsnprintf(did + used, sizeof(did) - used, format, args);
	va_end(args);
	used += (size_t)snprintf(did + used, sizeof(did) - used, "}}");
}

/* A number with all its digits, as exports have it. */
static const char *number(long n)
{
	static char text[4][32];
	static unsigned next;

	next = (next + 1) % 4;
	snprintf(text[next], sizeof(text[next]), "%ld", n);
	return text[next];
}

TRACED enum color take_scalars(char c, bool b, int8_t tiny, unsigned short s, enum color color, enum big big)
{
	USE(c), USE(b), USE(tiny), USE(s), USE(big);
	return color;
}

TRACED uint64_t take_wide(unsigned u, long l, uint64_t w, count_t count, void *address, unsigned char byte)
{
	USE(u), USE(l), USE(count), USE(address), USE(byte);
	return w;
}

TRACED int take_members(const struct request *r, struct request *other)
{
	USE(r), USE(other);
	return r->hdr.delta;
}

TRACED const char *take_chain(struct request *r)
{
	USE(r);
	return r->path;
}

TRACED struct pair take_by_value(struct pair p, struct packed packed, struct tight tight, union either e, struct split s, int last)
{
	USE(p.a), USE(packed.n), USE(tight.s), USE(e.n), USE(s.n), USE(last);
	return p;
}

TRACED struct packed make_packed(long n)
{
	struct packed p = { 'k', (int)n };

	USE(n);
	return p;
}

TRACED short take_many(long a, long b, long c, long d, long e, long f, int g, struct big_one h, long double x, short i)
{
	USE(a), USE(b), USE(c), USE(d), USE(e), USE(f), USE(g), USE(h.last), USE(&x), USE(i);
	return i;
}

TRACED struct words take_words(struct words w, int n)
{
	USE(w.a), USE(n);
	return w;
}

/* Local: the compiler may change how it is called. */
__attribute__((noinline)) static int take_local(int unused, int n, struct request *r)
{
	USE(n), USE(r);
	return n + 1;
}

TRACED size_t take_buffer(const char *data, unsigned n, const unsigned char *raw)
{
	USE(data), USE(raw);
	return n;
}

static void call_scalars(char c, bool b, int8_t tiny, unsigned short s, enum color color, const char *name, enum big big)
{
	char quoted[32];

	take_scalars(c, b, tiny, s, color, big);
	snprintf(quoted, sizeof(quoted), *name == '"' ? "%s" : "\"%s\"", name);
	add("take_scalars", quoted, "\"c\": \"%c\", \"b\": %s, \"tiny\": %d, \"s\": %u, \"color\": %s, \"big\": \"%s\"", c,
	    b ? "true" : "false", tiny, s, quoted, big == HUGE_ONE ? "HUGE_ONE" : "SMALL");
}

static void call_members(void)
{
	struct request third = { .path = "/third", .color = GREEN, .id = UINT64_MAX };
	struct request second = { .next = &third, .path = "/second", .code = -7 };
	struct request r = { .hdr = { 1, 65535, -128 }, .path = "/first/\"x\"", .next = &second, .code = -1, .name = "bob",
			     .items = { 1, 2, 3, -4, 5 }, .color = BLUE, .ratio = 0.1, .half = 1.5f, .done = true, .id = 1 };

	third.next = &third;
	USE(third.path[0]);
	add("take_members", number(take_members(&r, &second)),
	    "\"r->hdr.len\": 65535, \"r->hdr.delta\": -128, \"r->name\": \"bob\", \"r->items[3]\": -4, "
	    "\"r->ratio\": \"0.10000000000000001\", \"r->half\": \"1.5\", \"other->code\": -7");
	take_chain(&r);
	add("take_chain", "\"/first/\\\"x\\\"\"",
	    "\"r->next->next->next->path\": \"/third\", \"r->next->next->color\": \"GREEN\", \"r->done\": true, "
	    "\"r->color\": \"BLUE\", \"r->next->next->id\": \"%" PRIu64 "\"", UINT64_MAX);
	/* a pointer to nowhere, and one in the kernel */
	r.next = (struct request *)16;
	take_chain(&r);
	add("take_chain", "\"/first/\\\"x\\\"\"",
	    "\"r->next->next->next->path\": null, \"r->next->next->color\": null, \"r->done\": true, "
	    "\"r->color\": \"BLUE\", \"r->next->next->id\": null");
	r.next = (struct request *)0xffffffff81000000;
	take_chain(&r);
	add("take_chain", "\"/first/\\\"x\\\"\"",
	    "\"r->next->next->next->path\": null, \"r->next->next->color\": null, \"r->done\": true, "
	    "\"r->color\": \"BLUE\", \"r->next->next->id\": null");
}

static void call_by_value(long n)
{
	struct pair p = { n, -n };
	struct packed packed = { 'x', (int)n };
	struct tight tight = { (int)n, (short)n, 'y' };
	union either e = { (int)n };
	struct split s = { 2.5, n + 1 };
	struct big_one big = { { n, n, n, n, n }, (int)n - 1 };
	struct words w = { (short)n, 'w' };

	take_by_value(p, packed, tight, e, s, (int)n + 2);
	add("take_by_value.b", number(-n),
	    "\"p.a\": %ld, \"packed.n\": %d, \"tight.n\": %d, \"e.n\": %d, \"s.n\": %ld, \"last\": %d", n, (int)n, (int)n, (int)n,
	    n + 1, (int)n + 2);
	make_packed(n);
	add("make_packed.n", number((int)n), "\"n\": %ld", n);
	take_many(1, 2, 3, 4, 5, n, (int)n, big, 3.5L, (short)(n + 1));
	add("take_many", number((short)(n + 1)), "\"f\": %ld, \"g\": %d, \"h.last\": %d, \"h.v[2]\": %ld, \"i\": %d", n, (int)n,
	    (int)n - 1, n, (short)(n + 1));
	take_words(w, (int)n);
	add("take_words.a", number((short)n), "\"w.a\": %d, \"n\": %d", (short)n, (int)n);
}

int main(void)
{
	static const long numbers[] = { 0, 1, -1, 32767, -32768, 2147483647, -2147483647 };
	struct request r = { .id = 5 };
	unsigned char raw[] = "raw";
	char data[] = "some data";

	call_scalars('a', true, -128, 65535, BLUE, "BLUE", HUGE_ONE);
	call_scalars('~', false, 127, 0, GREEN, "GREEN", SMALL);
	call_scalars(' ', true, 0, 1, (enum color)4, "\"4\"", SMALL);
	take_wide(UINT32_MAX, INT64_MIN, UINT64_MAX, TWO, &r, 255);
	add("take_wide", "\"18446744073709551615\"",
	    "\"u\": %u, \"l\": \"%" PRId64 "\", \"w\": \"%" PRIu64 "\", \"count\": \"TWO\", \"address\": \"0x%lx\", \"byte\": \"\\\\xff\"",
	    UINT32_MAX, INT64_MIN, UINT64_MAX, (unsigned long)&r);
	call_members();
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		call_by_value(numbers[i]);
	for (int i = 0; i < 3; i++)
		add("take_local", number(take_local(i, i * 3, &r)), "\"n\": %d, \"r->id\": 5", i * 3);
	take_buffer(data, 4, raw);
	add("take_buffer", "4", "\"data\": \"some\", \"n\": 4, \"raw\": \"raw\"");
	printf("{\"calls\": [%s]}\n", did);
	return 0;
}
