// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "binary/elf_image.h"
#include "binary/symbols.h"
#include "target.h"

/* Every kind of symbol that has a rule, at known addresses from 0x401000 on. */
static const char asm_source[] =
	"	.section .text,\"ax\"\n"
	/* 0x401000: aliases; a local name is last, then a leading underscore, then a weak one */
	"	.globl _global_name, zz_global, global_b, global_a\n"
	"	.weak weak\n"
	"	.type _global_name,@function\n .type zz_global,@function\n"
	"	.type global_b,@function\n .type global_a,@function\n"
	"	.type weak,@function\n .type loc,@function\n"
	"_global_name: zz_global: global_b: global_a: weak: loc:\n"
	"	.skip 16,0x90\n"
	"	.size global_b, 16\n"
	/* 0x401010: weak before local, and a plain label is no function */
	"	.weak weak_longer\n .type weak_longer,@function\n .type l2,@function\n"
	"weak_longer: l2: plain_label: .skip 16,0x90\n .size weak_longer, 16\n .size l2, 16\n"
	/* 0x401020: no size, up to the next symbol; then one up to the section's end */
	"	.globl nosize\n .type nosize,@function\n"
	"nosize: .skip 8,0x90\n"
	/* 0x401028: an ifunc */
	"	.globl chosen\n .type chosen,@gnu_indirect_function\n"
	"chosen: .skip 8,0x90\n .size chosen, 8\n"
	/* 0x401030: clones keep their names */
	"	.type clone.isra.0,@function\nclone.isra.0: .skip 8,0x90\n .size clone.isra.0, 8\n"
	/* 0x401038: a function with a .cold part, mangled */
	"	.globl _ZN2ns4withEi\n .type _ZN2ns4withEi,@function\n"
	"_ZN2ns4withEi: .skip 8,0x90\n .size _ZN2ns4withEi, 8\n"
	/* 0x401040 */
	"	.globl last\n .type last,@function\nlast: .skip 4,0x90\n"
	"	.section .text.unlikely,\"ax\"\n"
	"	.type _ZN2ns4withEi.cold,@function\n"
	"_ZN2ns4withEi.cold: .skip 6,0x90\n .size _ZN2ns4withEi.cold, 6\n"
	"	.type clone.isra.0.cold.7,@function\n"
	"clone.isra.0.cold.7: .skip 5,0x90\n .size clone.isra.0.cold.7, 5\n"
	"	.type orphan.cold,@function\norphan.cold: .skip 3,0x90\n .size orphan.cold, 3\n"
	/* a name that only resembles a .cold part */
	"	.globl f.colder\n .type f.colder,@function\nf.colder: .skip 3,0x90\n"
	"	.size f.colder, 3\n"
	"	.section .data,\"aw\"\n"
	"	.globl data_function\n .type data_function,@function\ndata_function: .quad 0\n"
	"	.size data_function, 8\n";

static const char script[] =
	"SECTIONS { . = 0x401000; .text : { *(.text) } . = 0x402000; .unlikely : {"
	" *(.text.unlikely) } . = 0x403000; .data : { *(.data) } .rela : { *(.rela*) } }\n";

static int build(void **state)
{
	if (target_setup(state))
		return -1;
	write_file("a.s", asm_source);
	write_file("a.ld", script);
	sh("as a.s -o a.o && ld --build-id=none -T a.ld a.o -o a 2>/dev/null");
	return 0;
}

struct binary {
	struct kx_elf *elf;
	struct kx_symbols syms;
};

static struct binary read_at(const char *path, const char *root)
{
	struct kx_err err = { 0 };
	struct binary b;

	if (kx_elf_open(path, &b.elf, &err) || kx_symbols_read(b.elf, root, &b.syms, &err))
		fail_msg("%s", err.text);
	return b;
}

static struct binary read_file(const char *name)
{
	return read_at(in_dir(name), NULL);
}

static void done(struct binary *b)
{
	kx_symbols_free(&b->syms);
	kx_elf_close(b->elf);
}

static const struct kx_symbol *at(const struct binary *b, uint64_t addr)
{
	const struct kx_symbol *s = kx_symbols_find(&b->syms, addr);

	if (!s || s->addr != addr)
		fail_msg("no function at %#lx", (unsigned long)addr);
	return s;
}

static const struct kx_symbol *named(const struct binary *b, const char *name)
{
	size_t i;

	for (i = 0; i < b->syms.count; i++)
		if (!strcmp(b->syms.items[i].name, name))
			return &b->syms.items[i];
	return NULL;
}

static void has_aliases(const struct kx_symbol *s, const char *const *names, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		assert_string_equal(s->aliases[i], names[i]);
	assert_null(s->aliases[n]);
}

static void test_merge(void **state)
{
	static const char *const first[] = { "global_b", "zz_global", "weak", "_global_name", "loc" };
	static const char *const second[] = { "l2" };
	struct binary b = read_file("a");
	const struct kx_symbol *s;
	size_t i;

	(void)state;
	assert_string_equal(b.syms.source, ".symtab");
	s = at(&b, 0x401000);
	assert_string_equal(s->name, "global_a");
	assert_ptr_equal(s->pretty, s->name);
	assert_int_equal(s->size, 16); /* from the one alias that has a size */
	has_aliases(s, first, 5);
	s = at(&b, 0x401010);
	assert_string_equal(s->name, "weak_longer");
	has_aliases(s, second, 1);
	s = at(&b, 0x401020);
	assert_string_equal(s->name, "nosize");
	assert_null(s->aliases);
	assert_int_equal(s->size, 8);
	assert_false(s->is_ifunc);
	s = at(&b, 0x401028);
	assert_string_equal(s->name, "chosen");
	assert_true(s->is_ifunc);
	assert_string_equal(at(&b, 0x401030)->name, "clone.isra.0");
	s = at(&b, 0x401040);
	assert_string_equal(s->name, "last");
	assert_int_equal(s->size, 4);
	assert_non_null(named(&b, "f.colder"));
	assert_null(named(&b, "data_function"));
	assert_null(named(&b, "plain_label"));
	/* those eight, and nothing else */
	assert_int_equal(b.syms.count, 8);
	for (i = 1; i < b.syms.count; i++)
		assert_true(b.syms.items[i - 1].addr < b.syms.items[i].addr);
	done(&b);
}

static void test_cold_parts(void **state)
{
	struct binary b = read_file("a");
	const struct kx_symbol *s = at(&b, 0x401038);

	(void)state;
	assert_string_equal(s->name, "_ZN2ns4withEi");
	assert_string_equal(s->pretty, "ns::with(int)");
	assert_int_equal(s->cold_addr, 0x402000);
	assert_int_equal(s->cold_size, 6);
	s = at(&b, 0x401030);
	assert_int_equal(s->cold_addr, 0x402006);
	assert_int_equal(s->cold_size, 5);
	assert_int_equal(at(&b, 0x401000)->cold_size, 0);
	assert_null(named(&b, "_ZN2ns4withEi.cold"));
	assert_null(named(&b, "orphan.cold"));
	done(&b);
}

static void test_find(void **state)
{
	struct binary b = read_file("a");

	(void)state;
	assert_null(kx_symbols_find(&b.syms, 0));
	assert_null(kx_symbols_find(&b.syms, 0x400fff));
	assert_string_equal(kx_symbols_find(&b.syms, 0x40100f)->name, "global_a");
	assert_string_equal(kx_symbols_find(&b.syms, 0x401043)->name, "last");
	assert_null(kx_symbols_find(&b.syms, 0x401044));
	/* inside a .cold part: its function; a part without a function: none */
	assert_string_equal(kx_symbols_find(&b.syms, 0x402005)->name, "_ZN2ns4withEi");
	assert_null(kx_symbols_find(&b.syms, 0x40200b));
	assert_null(kx_symbols_find(&b.syms, UINT64_MAX));
	done(&b);
}

/* Static functions of one name in two files, each with a .cold part, and a third without. */
static void test_same_name_in_files(void **state)
{
	struct binary b;
	size_t i, found = 0;

	(void)state;
	write_file("one.s", "	.file \"one.c\"\n	.text\n	.type same,@function\nsame: .skip 16,0x90\n"
			    "	.size same, 16\n	.section .text.unlikely,\"ax\"\n"
			    "	.type same.cold,@function\nsame.cold: .skip 3,0x90\n .size same.cold, 3\n");
	sh("sed s/one.c/two.c/ one.s | sed 's/skip 3/skip 4/;s/cold, 3/cold, 4/' > two.s && "
	   "sed '/unlikely/,$d' one.s | sed s/one.c/three.c/ > three.s && "
	   "for f in one two three; do as $f.s -o $f.o; done && "
	   "ld --build-id=none -T a.ld one.o three.o two.o -o files");
	b = read_file("files");
	assert_int_equal(b.syms.count, 3);
	for (i = 0; i < 3; i++) {
		const struct kx_symbol *s = &b.syms.items[i];

		assert_string_equal(s->name, "same");
		found += s->cold_size;
		if (s->addr == 0x401000)
			assert_int_equal(s->cold_size, 3);
		else if (s->addr == 0x401010)
			assert_int_equal(s->cold_size, 0);
		else
			assert_int_equal(s->cold_size, 4);
	}
	assert_int_equal(found, 7);
	done(&b);
}

/* A program with a static function; its symbols are in each of the possible places. */
static void build_program(void)
{
	static int built;

	if (built++)
		return;
	write_file("p.c", "#include <stdio.h>\n"
			  "static __attribute__((noinline)) int inner(int a) { return a * 3; }\n"
			  "__attribute__((visibility(\"default\"))) int outer(int a) { return inner(a) + 1; }\n"
			  "int main(int c, char **v) { (void)v; puts(\"x\"); return outer(c); }\n");
	sh("gcc -O1 -fno-inline -rdynamic -Wl,--build-id=sha1 p.c -o p");
	sh("objcopy --only-keep-debug p p.debug && strip p -o stripped");
}

static void test_symtab_and_plt(void **state)
{
	struct binary b;
	size_t i;

	(void)state;
	build_program();
	b = read_file("p");
	assert_string_equal(b.syms.source, ".symtab and .dynsym");
	assert_int_equal(named(&b, "inner")->addr,
			 strtoull(line_of("nm p | grep ' t inner$'"), NULL, 16));
	/* puts is imported: no function of this binary */
	for (i = 0; i < b.syms.count; i++)
		assert_null(strstr(b.syms.items[i].name, "puts"));
	done(&b);
}

static void test_stripped(void **state)
{
	struct binary b;

	(void)state;
	build_program();
	b = read_file("stripped");
	assert_string_equal(b.syms.source, ".dynsym");
	assert_non_null(named(&b, "outer"));
	assert_null(named(&b, "inner"));
	done(&b);

	sh("gcc -O1 p.c -s -o bare");
	b = read_file("bare");
	assert_int_equal(b.syms.count, 0);
	assert_null(kx_symbols_find(&b.syms, 0x1000));
	done(&b);
}

/* As the gdb manual makes it: functions that .dynsym lacks, xz-compressed. */
static void test_minidebuginfo(void **state)
{
	struct binary b;

	(void)state;
	build_program();
	sh("nm -D p --format=posix --defined-only | awk '{print $1}' | sort > dynsyms && "
	   "nm p --format=posix --defined-only | awk '$2==\"T\"||$2==\"t\"||$2==\"D\"{print $1}' |"
	   " sort > funcsyms && comm -13 dynsyms funcsyms > keep && "
	   "objcopy -S --remove-section .gdb_index --remove-section .comment"
	   " --keep-symbols=keep p.debug mini && rm -f mini.xz && xz mini && "
	   "objcopy --add-section .gnu_debugdata=mini.xz stripped mdi");
	b = read_file("mdi");
	assert_string_equal(b.syms.source, ".dynsym and .gnu_debugdata");
	assert_non_null(named(&b, "outer"));
	assert_non_null(named(&b, "inner"));
	assert_int_equal(named(&b, "inner")->addr,
			 strtoull(line_of("nm p | grep ' t inner$'"), NULL, 16));
	done(&b);

	/* If damaged, it is ignored. */
	sh("head -c 100 mini.xz > bad.xz && "
	   "objcopy --add-section .gnu_debugdata=bad.xz stripped mdibad");
	b = read_file("mdibad");
	assert_non_null(named(&b, "outer"));
	assert_null(named(&b, "inner"));
	assert_non_null(strstr(b.syms.source, "damaged"));
	done(&b);
}

static void finds_inner(const char *name, const char *root, const char *source)
{
	struct binary b = read_at(in_dir(name), root);

	assert_non_null(named(&b, "outer"));
	if (!named(&b, "inner"))
		fail_msg("%s: only %s", name, b.syms.source);
	assert_int_equal(named(&b, "inner")->addr,
			 strtoull(line_of("nm p | grep ' t inner$'"), NULL, 16));
	if (!strstr(b.syms.source, source))
		fail_msg("'%s' lacks '%s'", b.syms.source, source);
	done(&b);
}

static void test_debuglink(void **state)
{
	struct binary b;

	(void)state;
	build_program();
	/* in the same folder; in .debug; under /usr/lib/debug of another root */
	sh("mkdir -p same sub/.debug far && cp p.debug same/link.debug && "
	   "cd same && objcopy --remove-section .note.gnu.build-id"
	   " --add-gnu-debuglink=link.debug ../stripped linked && cd .. && "
	   "cp same/linked sub/ && cp same/linked far/ && cp p.debug sub/.debug/link.debug && "
	   "mkdir -p root/usr/lib/debug$PWD/far && cp p.debug root/usr/lib/debug$PWD/far/link.debug");
	finds_inner("same/linked", NULL, "same/link.debug");
	finds_inner("sub/linked", NULL, "sub/.debug/link.debug");
	finds_inner("far/linked", in_dir("root"), "root/usr/lib/debug/");
	b = read_file("far/linked");
	assert_null(named(&b, "inner"));
	done(&b);

	/* Another build of it: the checksum differs, so its addresses may be wrong. */
	sh("mkdir -p wrong && cp same/linked wrong/ && cp p.debug wrong/link.debug && "
	   "printf x >> wrong/link.debug");
	b = read_file("wrong/linked");
	assert_null(named(&b, "inner"));
	assert_non_null(named(&b, "outer"));
	assert_non_null(strstr(b.syms.source, "refused: its checksum"));
	done(&b);
}

static void test_build_id(void **state)
{
	struct binary b;

	(void)state;
	build_program();
	sh("id=$(readelf -n p | sed -n 's/.*Build ID: //p') && "
	   "d=root/usr/lib/debug/.build-id/$(echo $id | cut -c1-2) && mkdir -p $d && "
	   "cp p.debug $d/$(echo $id | cut -c3-).debug");
	finds_inner("stripped", in_dir("root"), "root/usr/lib/debug/.build-id/");
	/* A file of that name with another build id is ignored. */
	sh("gcc -O1 -DOTHER=1 -g -fno-inline p.c -Wl,--build-id=0x1234567890 -o other && "
	   "for f in root/usr/lib/debug/.build-id/*/*.debug; do cp other $f; done");
	b = read_at(in_dir("stripped"), in_dir("root"));
	assert_null(named(&b, "inner"));
	assert_non_null(strstr(b.syms.source, "refused: its build id"));
	done(&b);
}

/* Counts against readelf: addresses of defined functions outside of the PLT. */
static void test_real_files(void **state)
{
	static const char *const files[] = { "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
					     "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
					     "/usr/bin/python3.11", "/usr/bin/redis-server" };
	size_t i, tried = 0;

	(void)state;
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct binary b;

		if (access(files[i], R_OK))
			continue;
		b = read_at(files[i], NULL);
		if (!strcmp(b.syms.source, ".dynsym")) {
			assert_int_equal(b.syms.count,
					 atoi(line_of("readelf -W --dyn-syms %s | awk '($4==\"FUNC\" ||"
						      " $4==\"IFUNC\") && $7!=\"UND\" {print $2}' |"
						      " sort -u | wc -l", files[i])));
			tried++;
		}
		done(&b);
	}
	if (!tried)
		skip();
}

/* Random changes to the tables' bytes: no crash, sizes stay inside the code. */
static void test_damaged(void **state)
{
	struct kx_elf *whole, *bad;
	struct kx_symbols syms;
	const uint8_t *bytes;
	size_t size, i, k;
	uint8_t *copy;
	int opened = 0;

	(void)state;
	assert_int_equal(kx_elf_open(in_dir("a"), &whole, NULL), 0);
	bytes = kx_elf_bytes(whole, &size);
	copy = malloc(size);
	assert_non_null(copy);
	srand(2);
	for (i = 0; i < 5000; i++) {
		memcpy(copy, bytes, size);
		for (k = 0; k < 8; k++) {
			/* symbols and section headers lie at the end */
			size_t back = (size_t)rand() % 3000;

			copy[back < size ? size - 1 - back : 0] = (uint8_t)rand();
		}
		if (kx_elf_open_memory(copy, size, "changed", &bad, NULL))
			continue;
		opened++;
		assert_int_equal(kx_symbols_read(bad, NULL, &syms, NULL), 0);
		for (k = 0; k < syms.count; k++) {
			const struct kx_symbol *s = &syms.items[k];

			assert_true(s->size > 0);
			assert_non_null(kx_elf_code(bad, s->addr, s->size));
			assert_true(strlen(s->name) > 0 && strlen(s->pretty) > 0);
			assert_ptr_equal(kx_symbols_find(&syms, s->addr), s);
			if (s->cold_size)
				assert_non_null(kx_elf_code(bad, s->cold_addr, s->cold_size));
		}
		kx_symbols_free(&syms);
		kx_elf_close(bad);
	}
	free(copy);
	kx_elf_close(whole);
	assert_true(opened > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge),	      cmocka_unit_test(test_cold_parts),
		cmocka_unit_test(test_find),	      cmocka_unit_test(test_same_name_in_files),
		cmocka_unit_test(test_symtab_and_plt), cmocka_unit_test(test_stripped),
		cmocka_unit_test(test_minidebuginfo), cmocka_unit_test(test_debuglink),
		cmocka_unit_test(test_build_id),      cmocka_unit_test(test_real_files),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, build, target_teardown);
}
