// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <sys/stat.h>

#include "binary/elf_image.h"
#include "target.h"

/*
 * Segments at unusual addresses: .text at file offset 0x1010, address 0x401010, so that page
 * rounding matters; the bytes are known.
 */
static const char asm_source[] =
	".globl _start\n.type _start,@function\n"
	".section .text,\"ax\"\n"
	"_start: .byte 0x55,0x48,0x89,0xe5\n ret\n"
	".size _start, .-_start\n"
	".section .other,\"ax\"\n .byte 1,2,3\n"
	".section .data,\"aw\"\n .quad 0x1122334455667788\n"
	".section .bss,\"aw\",@nobits\n .skip 64\n";

static int build(void **state)
{
	if (target_setup(state))
		return -1;
	write_file("a.s", asm_source);
	sh("as a.s -o a.o && ld --build-id=0xDEADbeef01 -z noseparate-code -Ttext=0x401010 a.o -o a");
	return 0;
}

static struct kx_elf *open_ok(const char *path)
{
	struct kx_err err = { 0 };
	struct kx_elf *elf = NULL;

	if (kx_elf_open(path, &elf, &err))
		fail_msg("%s", err.text);
	return elf;
}

static void open_fails(const char *path, int code, const char *part)
{
	struct kx_err err = { 0 };
	struct kx_elf *elf = NULL;

	assert_int_equal(kx_elf_open(path, &elf, &err), code);
	assert_int_equal(err.code, code);
	if (!strstr(err.text, part))
		fail_msg("'%s' lacks '%s'", err.text, part);
}

static bool is_named(void *ctx, const Elf64_Sym *sym, const char *name)
{
	const char **wanted = ctx;

	return !strcmp(name, wanted[0]) && (sym->st_shndx == SHN_UNDEF) == (wanted[1] != NULL);
}

static void test_find_symbol(void **state)
{
	const char *start[] = { "_start", NULL }, *needed[] = { "puts", "undefined" };
	struct kx_elf *elf = open_ok(in_dir("a"));

	(void)state;
	assert_string_equal(kx_elf_find_symbol(elf, SHT_SYMTAB, is_named, start), "_start");
	assert_null(kx_elf_find_symbol(elf, SHT_DYNSYM, is_named, start)); /* it has no such table */
	assert_null(kx_elf_find_symbol(elf, SHT_SYMTAB, is_named, needed));
	kx_elf_close(elf);
	write_file("puts.c", "int puts(const char *);\nint f(void) { return puts(\"\"); }\n");
	sh("gcc -shared -fPIC puts.c -o puts.so");
	elf = open_ok(in_dir("puts.so"));
	assert_string_equal(kx_elf_find_symbol(elf, SHT_DYNSYM, is_named, needed), "puts");
	needed[1] = NULL; /* nor does it define it */
	assert_null(kx_elf_find_symbol(elf, SHT_DYNSYM, is_named, needed));
	kx_elf_close(elf);
}

static void test_contents(void **state)
{
	struct kx_elf *elf = open_ok(in_dir("a"));
	struct kx_elf_section s;
	const uint8_t *code;
	uint64_t v;

	(void)state;
	assert_string_equal(kx_elf_path(elf), in_dir("a"));
	assert_string_equal(kx_elf_build_id(elf), "deadbeef01");
	assert_int_equal(kx_elf_entry(elf), 0x401010);
	assert_non_null(kx_elf_handle(elf));

	code = kx_elf_code(elf, 0x401010, 5);
	assert_non_null(code);
	assert_memory_equal(code, "\x55\x48\x89\xe5\xc3", 5);
	assert_null(kx_elf_code(elf, 0x401010, 1 << 20));
	assert_null(kx_elf_code(elf, 0x401010, UINT64_MAX));
	assert_null(kx_elf_code(elf, 0, 1));
	assert_null(kx_elf_code(elf, UINT64_MAX, 1));

	assert_true(kx_elf_get_section(elf, ".text", &s));
	assert_int_equal(s.addr, 0x401010);
	assert_int_equal(s.size, 5);
	assert_memory_equal(s.data, "\x55\x48\x89\xe5\xc3", 5);
	assert_int_equal(kx_elf_offset(elf, 0x401012, &v), 0);
	assert_int_equal(v, s.offset + 2);
	assert_int_equal(kx_elf_vaddr(elf, s.offset + 2, &v), 0);
	assert_int_equal(v, 0x401012);
	assert_int_equal(kx_elf_offset(elf, 0x10, &v), -ENOENT);
	assert_int_equal(kx_elf_vaddr(elf, 1ULL << 40, &v), -ENOENT);

	assert_true(kx_elf_get_section(elf, ".bss", &s));
	assert_int_equal(s.size, 64);
	assert_null(s.data);
	/* Data has addresses, but is not code. */
	assert_true(kx_elf_get_section(elf, ".data", &s));
	assert_int_equal(s.size, 8);
	assert_int_equal(kx_elf_vaddr(elf, s.offset, &v), 0);
	assert_int_equal(v, s.addr);
	assert_false(kx_elf_get_section(elf, ".nope", &s));
	assert_false(kx_elf_get_section(elf, "", &s));

	assert_true(kx_elf_exec_segment(elf, 0, &s));
	assert_true(s.addr <= 0x401010 && s.addr + s.size >= 0x401015);
	assert_false(kx_elf_exec_segment(elf, 1, &s));
	kx_elf_close(elf);
}

static void test_real_files(void **state)
{
	static const char *const files[] = { "/bin/sh", "/lib/x86_64-linux-gnu/libc.so.6" };
	struct kx_elf_section s;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		struct kx_elf *elf = open_ok(files[i]);

		assert_string_equal(kx_elf_build_id(elf),
				    line_of("readelf -n -W %s | sed -n 's/.*Build ID: //p'", files[i]));
		assert_true(kx_elf_get_section(elf, ".text", &s));
		assert_ptr_equal(kx_elf_code(elf, s.addr, s.size), s.data);
		kx_elf_close(elf);
	}
}

static void patch(const char *from, const char *to, long at, const void *bytes, size_t n)
{
	FILE *f;

	sh("cp %s %s", from, to);
	f = fopen(in_dir(to), "r+");
	assert_non_null(f);
	assert_int_equal(fseek(f, at, SEEK_SET), 0);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static void test_refused(void **state)
{
	uint16_t arm = EM_AARCH64;
	uint64_t far = 1ULL << 50;

	(void)state;
	open_fails(in_dir("nope"), -ENOENT, "No such file");
	open_fails(dir, -ENOEXEC, "folder");
	write_file("empty", "");
	open_fails(in_dir("empty"), -ENOEXEC, "empty");
	write_file("script", "#!/bin/sh\n");
	open_fails(in_dir("script"), -ENOEXEC, "script");
	write_file("text", "hello");
	open_fails(in_dir("text"), -ENOEXEC, "not an ELF");
	assert_int_equal(mkfifo(in_dir("fifo"), 0600), 0);
	open_fails(in_dir("fifo"), -ENOEXEC, "not a regular file");

	open_fails(in_dir("a.o"), -ENOTSUP, "object file");
	sh("as --32 -o a32.o /dev/null && ld -m elf_i386 -shared a32.o -o a32");
	open_fails(in_dir("a32"), -ENOTSUP, "32-bit");
	patch("a", "arm", offsetof(Elf64_Ehdr, e_machine), &arm, 2);
	open_fails(in_dir("arm"), -ENOTSUP, "another machine");
	patch("a", "big", EI_DATA, "\2", 1);
	open_fails(in_dir("big"), -ENOTSUP, "big-endian");
	patch("a", "class", EI_CLASS, "\7", 1);
	open_fails(in_dir("class"), -EBADMSG, "damaged");
	patch("a", "phoff", offsetof(Elf64_Ehdr, e_phoff), &far, 8);
	open_fails(in_dir("phoff"), -EBADMSG, "program headers");
	sh("head -c 40 a > short && head -c 10 a > shorter");
	open_fails(in_dir("short"), -EBADMSG, "ends inside the ELF header");
	open_fails(in_dir("shorter"), -EBADMSG, "ends inside the ELF header");
}

/* Like the kernel, kxray must not need section headers. */
static void test_no_sections(void **state)
{
	uint64_t far = 1ULL << 50;
	struct kx_elf_section s;
	struct kx_elf *elf;

	(void)state;
	patch("a", "shoff", offsetof(Elf64_Ehdr, e_shoff), &far, 8);
	elf = open_ok(in_dir("shoff"));
	assert_false(kx_elf_get_section(elf, ".text", &s));
	assert_non_null(kx_elf_code(elf, 0x401010, 5));
	assert_string_equal(kx_elf_build_id(elf), "deadbeef01");
	kx_elf_close(elf);
}

static void missing_is(const char *path, uint64_t bytes)
{
	struct kx_elf *elf = open_ok(path);

	assert_int_equal(kx_elf_missing(elf), bytes);
	kx_elf_close(elf);
}

/* For a truncated file the number of missing bytes is known; a file without section headers is complete. */
static void test_truncated(void **state)
{
	uint64_t none = 0;
	uint16_t no_sections = 0;
	struct kx_elf_section data;
	struct kx_elf *elf = open_ok(in_dir("a"));

	(void)state;
	assert_true(kx_elf_get_section(elf, ".data", &data));
	kx_elf_close(elf);
	missing_is(in_dir("a"), 0);
	sh("head -c -1 a > cut1 && head -c -100 a > cut100");
	missing_is(in_dir("cut1"), 1);
	missing_is(in_dir("cut100"), 100);
	patch("a", "half", offsetof(Elf64_Ehdr, e_shoff), &none, 8);
	patch("half", "bare", offsetof(Elf64_Ehdr, e_shnum), &no_sections, 2);
	missing_is(in_dir("bare"), 0);
	/* without section headers the segments give the size: the last one ends with .data */
	sh("head -c %d bare > bare_cut", (int)(data.offset + data.size - 3));
	missing_is(in_dir("bare_cut"), 3);
	missing_is("/bin/sh", 0);
	missing_is("/lib/x86_64-linux-gnu/libc.so.6", 0);
}

/* Uses all of an image; the sum keeps the reads from being optimized away. */
static uint64_t use_all(struct kx_elf *elf)
{
	struct kx_elf_section s;
	const char *name;
	uint64_t sum = 0, i, k;

	for (i = 0; kx_elf_section_at(elf, i, &name, &s); i++) {
		sum += strlen(name);
		for (k = 0; s.data && k < s.size; k++)
			sum += s.data[k];
	}
	for (i = 0; kx_elf_exec_segment(elf, i, &s); i++)
		for (k = 0; s.data && k < s.size; k++)
			sum += s.data[k];
	return sum + strlen(kx_elf_build_id(elf));
}

/* Every truncation, and 20,000 random changes of up to 8 bytes: an error or an image in bounds. */
static void test_damaged(void **state)
{
	struct kx_elf *elf = open_ok(in_dir("a")), *bad;
	const uint8_t *whole;
	uint64_t sum = 0;
	size_t size, i, k;
	uint8_t *copy;

	(void)state;
	whole = kx_elf_bytes(elf, &size);
	for (i = 0; i < size; i++) {
		/* exact allocation, so that valgrind and ASan find any access outside */
		copy = malloc(i ? i : 1);
		assert_non_null(copy);
		memcpy(copy, whole, i);
		if (!kx_elf_open_memory(copy, i, "cut", &bad, NULL)) {
			sum += use_all(bad);
			kx_elf_close(bad);
		}
		free(copy);
	}
	srand(1);
	copy = malloc(size);
	assert_non_null(copy);
	for (i = 0; i < 20000; i++) {
		memcpy(copy, whole, size);
		for (k = 0; k < 1 + i % 8; k++) {
			/* half of the changes are in the headers */
			size_t at = (size_t)rand() % (i & 1 ? 512 : size);

			copy[at % size] = (uint8_t)(rand() & 1 ? rand() : rand() & 1 ? 0xff : 0);
		}
		if (!kx_elf_open_memory(copy, size, "changed", &bad, NULL)) {
			sum += use_all(bad);
			kx_elf_close(bad);
		}
	}
	free(copy);
	kx_elf_close(elf);
	assert_true(sum > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find_symbol),
		cmocka_unit_test(test_contents),   cmocka_unit_test(test_real_files),
		cmocka_unit_test(test_refused),    cmocka_unit_test(test_no_sections),
		cmocka_unit_test(test_truncated), cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, build, target_teardown);
}
