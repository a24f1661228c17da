// SPDX-License-Identifier: BSD-2-Clause
/* Notes of USDT markers: those that sys/sdt.h writes, and damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>

#include "binary/usdt_markers.h"
#include "binary/usdt_notes.h"
#include "target.h"

struct section {
	uint8_t data[4096];
	size_t size;
};

static void append(struct section *s, const void *data, size_t size)
{
	memcpy(s->data + s->size, data, size);
	s->size += size;
	while (s->size % 4)
		s->data[s->size++] = 0;
}

static void add_note(struct section *s, const char *owner, uint32_t type, const void *description, size_t size)
{
	Elf64_Nhdr head = { .n_namesz = (uint32_t)strlen(owner) + 1, .n_descsz = (uint32_t)size, .n_type = type };

	append(s, &head, sizeof(head));
	append(s, owner, head.n_namesz);
	append(s, description, size);
}

/* @text: provider, name and arguments, separated by '|'. */
static void add_marker(struct section *s, uint64_t location, const char *text)
{
	uint64_t addresses[3] = { location, 0x2000, 0x3000 };
	char description[512];
	size_t size = sizeof(addresses) + strlen(text) + 1;

	memcpy(description, addresses, sizeof(addresses));
	memcpy(description + sizeof(addresses), text, strlen(text) + 1);
	for (size_t i = sizeof(addresses); i < size; i++)
		if (description[i] == '|')
			description[i] = 0;
	add_note(s, "stapsdt", 3, description, size);
}

static int next(const struct section *s, size_t *at, struct kx_usdt_note *out)
{
	/* exactly as large as it is, for AddressSanitizer */
	static uint8_t *copy;

	free(copy);
	copy = malloc(s->size + !s->size);
	memcpy(copy, s->data, s->size);
	return kx_usdt_note_next(copy, s->size, at, out);
}

static void test_notes(void **state)
{
	struct section s = { 0 };
	struct kx_usdt_note n;
	size_t at = 0;

	(void)state;
	assert_int_equal(next(&s, &at, &n), 0);
	add_marker(&s, 0x1234, "redis|call|8@%rdi -4@$1");
	add_note(&s, "GNU", 3, "12345678123456781234567", 24);
	add_note(&s, "stapsdt", 4, "12345678123456781234567", 24);
	add_marker(&s, 0x1238, "redis|end|");
	assert_int_equal(next(&s, &at, &n), 1);
	assert_int_equal(n.location, 0x1234);
	assert_int_equal(n.base, 0x2000);
	assert_int_equal(n.semaphore, 0x3000);
	assert_string_equal(n.provider, "redis");
	assert_string_equal(n.name, "call");
	assert_string_equal(n.arguments, "8@%rdi -4@$1");
	assert_int_equal(next(&s, &at, &n), 1);
	assert_string_equal(n.name, "end");
	assert_string_equal(n.arguments, "");
	assert_int_equal(next(&s, &at, &n), 0);
}

/* Cut at any byte there is an error, or what was whole before. */
static void test_cut(void **state)
{
	struct section whole = { 0 };
	size_t first;

	(void)state;
	add_marker(&whole, 0x1234, "redis|call|8@%rdi");
	first = whole.size;
	add_marker(&whole, 0x1238, "redis|end|");
	for (size_t size = 0; size < whole.size; size++) {
		struct section s = whole;
		struct kx_usdt_note n;
		size_t at = 0;
		int found = 0, r;

		s.size = size;
		while ((r = next(&s, &at, &n)) > 0)
			found++;
		/* the padding of the last one may lack: two bytes of the first, one of the second */
		assert_int_equal(found, size + 1 >= whole.size ? 2 : size + 2 >= first ? 1 : 0);
		assert_int_equal(r, !size || (size + 2 >= first && size <= first) || size + 1 == whole.size ? 0 : -EBADMSG);
	}
}

static void damaged(const char *text, size_t description)
{
	struct section s = { 0 };
	struct kx_usdt_note n;
	size_t at = 0;
	char bytes[128] = { 0 };

	memcpy(bytes + 24, text, strlen(text) + 1);
	for (size_t i = 24; i < sizeof(bytes); i++)
		if (bytes[i] == '|')
			bytes[i] = 0;
	add_note(&s, "stapsdt", 3, bytes, description);
	assert_int_equal(next(&s, &at, &n), -EBADMSG);
	/* what follows is not taken for a note */
	while (next(&s, &at, &n) > 0)
		fail();
}

static void test_hostile(void **state)
{
	struct section s = { 0 };
	struct kx_usdt_note n;
	size_t at = 0;
	Elf64_Nhdr head = { .n_namesz = 8, .n_descsz = UINT32_MAX, .n_type = 3 };

	(void)state;
	damaged("", 0);
	damaged("", 23);
	damaged("", 24);
	damaged("p|n", 24 + 3);	   /* a string that does not end */
	damaged("p|n", 24 + 4);	   /* no arguments */
	damaged("|n|8@%rdi", 34);  /* no provider */
	damaged("p||8@%rdi", 34);  /* no name */
	append(&s, &head, sizeof(head));
	append(&s, "stapsdt", 8);
	assert_int_equal(next(&s, &at, &n), -EBADMSG);
	head.n_namesz = UINT32_MAX;
	head.n_descsz = 0;
	memcpy(s.data, &head, sizeof(head));
	at = 0;
	assert_int_equal(next(&s, &at, &n), -EBADMSG);
	head.n_namesz = UINT32_MAX - 2; /* aligned, it would be 0 */
	memcpy(s.data, &head, sizeof(head));
	at = 0;
	assert_int_equal(next(&s, &at, &n), -EBADMSG);
}

static struct kx_usdt_argument parse_one(const char *text)
{
	struct kx_usdt_argument a[KX_USDT_MAX_ARGUMENTS];

	assert_int_equal(kx_usdt_arguments_parse(text, a), 1);
	return a[0];
}

static void is(const char *text, const char *type, unsigned from, unsigned hops, int offset, const char *symbol)
{
	const struct kx_usdt_argument a = parse_one(text);

	if (a.unknown)
		fail_msg("%s: %s", text, a.unknown);
	assert_string_equal(kx_usdt_argument_type(&a), type);
	assert_int_equal(a.fetch.from, from);
	assert_int_equal(a.fetch.hops, hops);
	assert_int_equal(a.fetch.offset[0], offset);
	assert_int_equal(a.fetch.size, a.size);
	assert_int_equal(a.symbol_length, symbol ? strlen(symbol) : 0);
	if (symbol)
		assert_memory_equal(a.symbol, symbol, a.symbol_length);
}

static void is_unknown(const char *text, const char *why)
{
	const struct kx_usdt_argument a = parse_one(text);

	if (!a.unknown || !strstr(a.unknown, why))
		fail_msg("%s: %s", text, a.unknown ? a.unknown : "known");
}

static void test_arguments(void **state)
{
	(void)state;
	is("8@%rdi", "u64", KX_FROM_DI, 0, 0, NULL);
	is("-4@%esi", "i32", KX_FROM_SI, 0, 0, NULL);
	is("1@%sil", "u8", KX_FROM_SI, 0, 0, NULL);
	is("-2@%r15w", "i16", KX_FROM_R15, 0, 0, NULL);
	is("1@%r8b", "u8", KX_FROM_R8, 0, 0, NULL);
	is("4@%r9d", "u32", KX_FROM_R9, 0, 0, NULL);
	is("8@%rsp", "u64", KX_FROM_SP, 0, 0, NULL);
	is("%rax", "u64", KX_FROM_AX, 0, 0, NULL);
	is("-4@$12", "i32", KX_FROM_CONSTANT, 0, 12, NULL);
	is("-4@$-2147483648", "i32", KX_FROM_CONSTANT, 0, INT32_MIN, NULL);
	is("4@$4294967295", "u32", KX_FROM_CONSTANT, 0, -1, NULL);
	is("1@$-56", "u8", KX_FROM_CONSTANT, 0, -56, NULL);
	is("8@$0x10", "u64", KX_FROM_CONSTANT, 0, 16, NULL);
	is("4@-20(%rbp)", "u32", KX_FROM_BP, 1, -20, NULL);
	is("4@(%r12)", "u32", KX_FROM_R12, 1, 0, NULL);
	is("-4@112(%rsp)", "i32", KX_FROM_SP, 1, 112, NULL);
	is("-4@40+CheckpointStats(%rip)", "i32", KX_FROM_IP, 1, 40, "CheckpointStats");
	is("-4@CheckpointStats+40(%rip)", "i32", KX_FROM_IP, 1, 40, "CheckpointStats");
	is("8@NBuffers-8(%rip)", "u64", KX_FROM_IP, 1, -8, "NBuffers");
	is("8@buffer.0", "u64", KX_FROM_IP, 1, 0, "buffer.0");
	is("8@$table", "u64", KX_FROM_IP, 0, 0, "table");
	is("8f@-8(%rbp)", "f64", KX_FROM_BP, 1, -8, NULL);
	is_unknown("8f@%xmm0", "floating-point");
	is_unknown("8f@%rax", "floating-point");
	is_unknown("1@%ah", "second byte");
	is_unknown("8@%st", "register");
	is_unknown("8@%", "register");
	is_unknown("8@(%rax,%rbx,8)", "two registers");
	is_unknown("8@(%rax,%rbx)", "two registers");
	is_unknown("8@table(%rax)", "symbol and a register");
	is_unknown("8@%fs:-8", "of the thread");
	is_unknown("8@$9223372036854775807", "32 bits");
	is_unknown("8@4294967296(%rax)", "too far");
	is_unknown("8@99999999999999999999(%rax)", "not understood");
	is_unknown("8@-8(%rip)", "not understood");
	is_unknown("3@%eax", "not understood");
	is_unknown("0@%eax", "not understood");
	is_unknown("16@%xmm0", "not understood");
	is_unknown("8@", "not understood");
	is_unknown("8@$", "not understood");
	is_unknown("8@$1+", "not understood");
	is_unknown("8@a+b(%rip)", "not understood");
	is_unknown("8@(%rax", "not understood");
	is_unknown("8@(%rax)x", "not understood");
	is_unknown("8@(rax)", "not understood");
	is_unknown("8@%raxx", "register");
	is_unknown("8@%rax)", "not understood");
	is_unknown("@", "not understood");
	is_unknown("-9223372036854775808@%rax", "not understood");
	is_unknown("\xff\xfe", "not understood");
}

static void test_many_arguments(void **state)
{
	struct kx_usdt_argument a[KX_USDT_MAX_ARGUMENTS];

	(void)state;
	assert_int_equal(kx_usdt_arguments_parse("", a), 0);
	assert_int_equal(kx_usdt_arguments_parse("  ", a), 0);
	assert_int_equal(kx_usdt_arguments_parse(" 8@%rdi   -4@$1\t2@(%rax) ", a), 3);
	assert_int_equal(a[2].fetch.hops, 1);
	assert_int_equal(kx_usdt_arguments_parse("1@$1 1@$2 1@$3 1@$4 1@$5 1@$6 1@$7 1@$8 1@$9 1@$10 1@$11 1@$12 1@$13", a), 12);
	assert_int_equal(a[11].fetch.offset[0], 12);
}

#define NOTE(place, base, semaphore, name, arguments)                                                             \
	" .pushsection .note.stapsdt,\"\",\"note\"\n .balign 4\n .4byte 8, 2f-1f, 3\n .asciz \"stapsdt\"\n"                   \
	"1: .8byte " place ", " base ", " semaphore "\n .asciz \"p\"\n .asciz \"" name "\"\n .asciz \"" arguments "\"\n" \
	"2: .balign 4\n .popsection\n"

/* At 0x401000, the first place; the notes of "moved" are those of a file whose code was linked 0x1000 lower. */
static const char source[] =
	" .globl _start\n_start: nop\n ret\nb: nop\n .8byte 0\n" NOTE("b", "base", "0", "two", "8@%rax")
	NOTE("_start", "base", "guard", "two", "-4@4+number(%rip) 8@nothing(%rip) 8@$number")
	NOTE("_start", "base", "guard", "two", "the same place again") NOTE("b - 0x1000", "base - 0x1000", "guard - 0x1000", "moved", "")
	NOTE("number", "base", "0", "in_data", "") NOTE("0", "base", "0", "nowhere", "")
	" .section .stapsdt.base,\"a\"\nbase: .space 1\n .data\n .globl number\nnumber: .8byte 1\nguard: .2byte 0\n";

static const char script[] =
	"SECTIONS { . = 0x401000; .text : { *(.text) } . = 0x402000; .stapsdt.base : { *(.stapsdt.base) } "
	". = 0x403000; .data : { *(.data) } }\n";

static int build(void **state)
{
	if (target_setup(state))
		return -1;
	write_file("a.s", source);
	write_file("a.ld", script);
	sh("as a.s -o a.o && ld --build-id=none -T a.ld a.o -o a 2>/dev/null && strip -o stripped a");
	sh("objcopy --dump-section .note.stapsdt=notes a && head -c 100 notes >cut && objcopy --update-section .note.stapsdt=cut a damaged");
	sh("objcopy --remove-section .note.stapsdt a none");
	return 0;
}

static void read_markers(const char *name, struct kx_elf **elf, struct kx_usdt_markers *m)
{
	struct kx_err err = { 0 };

	if (kx_elf_open(in_dir(name), elf, &err) || kx_usdt_markers_read(*elf, m, &err))
		fail_msg("%s", err.text);
}

static void test_markers(void **state)
{
	struct kx_usdt_argument a[KX_USDT_MAX_ARGUMENTS];
	const struct kx_usdt_marker *two, *moved;
	struct kx_usdt_markers m;
	struct kx_elf *elf;
	uint64_t vaddr;

	(void)state;
	read_markers("a", &elf, &m);
	assert_int_equal(m.count, 2);
	assert_null(kx_usdt_markers_find(&m, "usdt:p:in_data"));
	two = kx_usdt_markers_find(&m, "usdt:p:two");
	moved = kx_usdt_markers_find(&m, "usdt:p:moved");
	assert_non_null(two);
	assert_non_null(moved);
	assert_int_equal(two->nplaces, 2);
	assert_int_equal(two->places[0].addr, 0x401000);
	assert_int_equal(two->places[1].addr, 0x401002);
	assert_int_equal(two->places[1].semaphore, 0);
	assert_int_equal(kx_elf_vaddr(elf, two->places[0].semaphore, &vaddr), 0);
	assert_int_equal(vaddr, 0x403008);
	assert_int_equal(moved->places[0].addr, 0x401002);
	assert_int_equal(moved->places[0].semaphore, two->places[0].semaphore);
	assert_int_equal(kx_usdt_place_arguments(elf, &two->places[0], a), 3);
	assert_null(a[0].unknown);
	assert_int_equal(a[0].fetch.offset[0], 0x403000 + 4 - 0x401000);
	assert_string_equal(a[1].unknown, "it is a variable whose symbol was stripped");
	assert_null(a[2].unknown);
	assert_int_equal(a[2].fetch.hops, 0);
	assert_int_equal(a[2].fetch.offset[0], 0x403000 - 0x401000);
	kx_usdt_markers_free(&m);
	kx_elf_close(elf);
}

static void test_other_files(void **state)
{
	struct kx_usdt_argument a[KX_USDT_MAX_ARGUMENTS];
	struct kx_usdt_markers m;
	struct kx_err err = { 0 };
	struct kx_elf *elf;

	(void)state;
	read_markers("stripped", &elf, &m);
	assert_int_equal(m.count, 2);
	assert_int_equal(kx_usdt_place_arguments(elf, &kx_usdt_markers_find(&m, "usdt:p:two")->places[0], a), 3);
	assert_string_equal(a[0].unknown, "it is a variable whose symbol was stripped");
	kx_usdt_markers_free(&m);
	kx_elf_close(elf);
	read_markers("none", &elf, &m);
	assert_int_equal(m.count, 0);
	kx_usdt_markers_free(&m);
	kx_elf_close(elf);
	assert_int_equal(kx_elf_open(in_dir("damaged"), &elf, &err), 0);
	assert_int_equal(kx_usdt_markers_read(elf, &m, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "notes of"));
	assert_int_equal(m.count, 0);
	kx_elf_close(elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_notes),	       cmocka_unit_test(test_cut),     cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_arguments), cmocka_unit_test(test_many_arguments), cmocka_unit_test(test_markers),
		cmocka_unit_test(test_other_files),
	};

	return cmocka_run_group_tests(tests, build, target_teardown);
}
