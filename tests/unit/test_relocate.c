// SPDX-License-Identifier: BSD-2-Clause
/*
 * Moved instructions, by their bytes and by running them: a piece of code and its moved copy get the same random registers,
 * flags and memory, and must leave the same.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "plan/relocate.h"
#include "target.h"

/* Each piece of code ends with a jump to `done`. */
static const char source[] =
	".macro piece name\n .globl \\name\n .hidden \\name\n .type \\name,@function\n\\name:\n.endm\n"
	".macro end name\n jmp done\n .size \\name,.-\\name\n.endm\n"
	".text\n"
	"piece registers\n mov %rax,%rbx\n add %rcx,%rdx\n xor %esi,%edi\n lea 5(%rax,%rcx,4),%r8\n imul %r9,%r10\n bswap %r11\nend registers\n"
	"piece flags\n add %rax,%rcx\n adc %rdx,%rsi\n sbb %rdi,%r8\n setc %r9b\n cmovs %r10,%r11\n rcl $3,%rax\nend flags\n"
	"piece stack\n push %rax\n push %rbx\n pop %rcx\n pop %rdx\n sub $64,%rsp\n mov %rdi,8(%rsp)\n mov 8(%rsp),%r9\n add $64,%rsp\nend stack\n"
	"piece red_zone\n mov %rax,-8(%rsp)\n mov %rbx,-128(%rsp)\n mov -128(%rsp),%rcx\nend red_zone\n"
	"piece relative\n mov word(%rip),%rax\n lea word+8(%rip),%rbx\n add %rcx,word+16(%rip)\n cmpl $0x1234,word+24(%rip)\n"
	" movb $7,word+32(%rip)\n imul $3,word+40(%rip),%edx\nend relative\n"
	"piece vectors\n movdqu word(%rip),%xmm0\n paddq word(%rip),%xmm0\n movdqu %xmm0,word+48(%rip)\n movq %xmm0,%r8\n"
	" pextrq $1,%xmm0,%r9\nend vectors\n"
	"piece branch_short\n test $1,%al\n jne 1f\n add $5,%rbx\n1: test $2,%cl\n je 2f\n sub $7,%rdx\n2: nop\nend branch_short\n"
	"piece branch_near\n cmp %rax,%rbx\n .byte 0x0f,0x8c\n .long 1f-(.+4)\n inc %rcx\n1: jmp 2f\n inc %rdx\n2: nop\nend branch_near\n"
	"piece loops_back\n and $15,%eax\n1: dec %eax\n lea 1(%rbx),%rbx\n jns 1b\nend loops_back\n"
	"piece jump_memory\n jmp *pointer(%rip)\n inc %rax\nend jump_memory\n"
	"piece strings\n cld\n lea word(%rip),%rsi\n lea word+64(%rip),%rdi\n mov $4,%ecx\n rep movsq\n pushf\n pop %rax\n and $0x8d5,%eax\nend strings\n"
	" .globl done\n .hidden done\ndone: ret\n"
	/* not moved */
	" .globl refused\n .hidden refused\n .type refused,@function\nrefused:\n call done\n call *pointer(%rip)\n call *%rax\n"
	"1: loop 1b\n jrcxz 1b\n jecxz 1b\n loopne 1b\n xbegin 1b\n .byte 0x66,0xe9,0,0,0,0\n .byte 0x67,0x48,0x8b,5,0,0,0,0\n"
	" .size refused,.-refused\n"
	".data\n .globl word\n .hidden word\n .balign 16\nword: .skip 256\n .hidden pointer\npointer: .quad done\n"
	".section .note.GNU-stack,\"\",@progbits\n";

struct module {
	struct kx_elf *elf;
	struct kx_symbols syms;
	struct kx_code *code;
	uint8_t *image;	   /* mapped as the dynamic linker would: addresses of the ELF file are @bias lower */
	uint64_t bias, size;
	uint8_t *copies;   /* near it, for moved code */
	uint64_t word;
};

#define IMAGE (16u << 20)
#define COPIES (4u << 20)

static struct module lib;

static const struct kx_symbol *symbol(const char *name)
{
	for (size_t i = 0; i < lib.syms.count; i++)
		if (!strcmp(lib.syms.items[i].name, name))
			return &lib.syms.items[i];
	fail_msg("no symbol %s", name);
	return NULL;
}

/* Loads the segments, writable, and applies the only kind of relocation that there is. */
static void load(void)
{
	const Elf64_Phdr *ph = elf64_getphdr(kx_elf_handle(lib.elf));
	size_t n, size;
	const uint8_t *file = kx_elf_bytes(lib.elf, &size);
	Elf_Scn *scn = NULL;
	Elf_Data *data;

	lib.image = mmap(NULL, IMAGE + COPIES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(lib.image, MAP_FAILED);
	lib.bias = (uint64_t)lib.image;
	lib.copies = lib.image + IMAGE;
	assert_int_equal(elf_getphdrnum(kx_elf_handle(lib.elf), &n), 0);
	for (size_t i = 0; i < n; i++)
		if (ph[i].p_type == PT_LOAD)
			memcpy(lib.image + ph[i].p_vaddr, file + ph[i].p_offset, ph[i].p_filesz);
	while ((data = kx_elf_next_of_type(lib.elf, SHT_RELA, &scn))) {
		const Elf64_Rela *rela = data->d_buf;

		for (size_t i = 0; i < data->d_size / sizeof(*rela); i++) {
			const uint64_t value = lib.bias + (uint64_t)rela[i].r_addend;

			assert_int_equal(ELF64_R_TYPE(rela[i].r_info), R_X86_64_RELATIVE);
			memcpy(lib.image + rela[i].r_offset, &value, sizeof(value));
		}
	}
}

static int build(void **state)
{
	struct kx_err err = { 0 };
	const char *word;

	if (target_setup(state))
		return -1;
	write_file("f.s", source);
	sh("gcc -c f.s -o f.o && ld -shared -Bsymbolic f.o -o f.so");
	if (kx_elf_open(in_dir("f.so"), &lib.elf, &err) || kx_symbols_read(lib.elf, NULL, &lib.syms, &err) ||
	    kx_code_new(lib.elf, &lib.syms, 1, NULL, &lib.code, &err))
		fail_msg("%s", err.text);
	load();
	word = line_of("nm f.so | sed -n 's/^\\([0-9a-f]*\\) . word$/\\1/p'");
	lib.word = strtoull(word, NULL, 16);
	assert_true(lib.word > 0);
	return 0;
}

static int cleanup(void **state)
{
	munmap(lib.image, IMAGE + COPIES);
	kx_code_free(lib.code);
	kx_symbols_free(&lib.syms);
	kx_elf_close(lib.elf);
	return target_teardown(state);
}

struct registers {
	uint64_t general[14]; /* rax rbx rcx rdx rsi rdi r8 ... r15 */
	uint64_t flags;
	uint64_t xmm0[2];
	uint64_t memory[32];
	uint64_t red_zone[16];
};

/* Runs @code, which ends with `ret`, with @r's registers, and puts the result there; but for r15 and rsp. */
void run_code(struct registers *r, const void *code);
__asm__(".text\n.globl run_code\nrun_code:\n"
	" push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
	" mov %rdi,%r15\n mov %rsi,%rbp\n"
	" pushq 112(%r15)\n popf\n"
	" movdqu 120(%r15),%xmm0\n"
	" mov 0(%r15),%rax\n mov 8(%r15),%rbx\n mov 16(%r15),%rcx\n mov 24(%r15),%rdx\n mov 32(%r15),%rsi\n mov 40(%r15),%rdi\n"
	" mov 48(%r15),%r8\n mov 56(%r15),%r9\n mov 64(%r15),%r10\n mov 72(%r15),%r11\n mov 80(%r15),%r12\n mov 88(%r15),%r13\n mov 96(%r15),%r14\n"
	" call *%rbp\n"
	" mov %rax,0(%r15)\n mov %rbx,8(%r15)\n mov %rcx,16(%r15)\n mov %rdx,24(%r15)\n mov %rsi,32(%r15)\n mov %rdi,40(%r15)\n"
	" mov %r8,48(%r15)\n mov %r9,56(%r15)\n mov %r10,64(%r15)\n mov %r11,72(%r15)\n mov %r12,80(%r15)\n mov %r13,88(%r15)\n mov %r14,96(%r15)\n"
	" movdqu %xmm0,120(%r15)\n"
	" lea -136(%rsp),%rsi\n lea 392(%r15),%rdi\n mov $16,%ecx\n rep movsq\n"
	" pushf\n popq 112(%r15)\n cld\n"
	" pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n");

static uint64_t state_of_random = 1;

static uint64_t random64(void)
{
	state_of_random ^= state_of_random << 13;
	state_of_random ^= state_of_random >> 7;
	state_of_random ^= state_of_random << 17;
	return state_of_random;
}

#define ARITHMETIC_FLAGS 0x8d5u

static void run(const struct registers *in, const void *code, struct registers *out)
{
	*out = *in;
	memcpy(lib.image + lib.word, in->memory, sizeof(in->memory));
	run_code(out, code);
	memcpy(out->memory, lib.image + lib.word, sizeof(out->memory));
	out->flags &= ARITHMETIC_FLAGS;
}

/* Moves the instructions of @s one behind the other to @to, as a window does; jumps inside lead to the old ones. Returns how many. */
static unsigned move(const struct kx_symbol *s, uint8_t *to)
{
	struct kx_insn insn;
	unsigned n = 0;

	for (uint64_t at = s->addr; at < s->addr + s->size; at += insn.z.length, n++) {
		unsigned length;

		assert_true(kx_code_decode(lib.code, at, &insn));
		length = kx_relocate(&insn, lib.bias, (uint64_t)to, to);
		if (!length)
			fail_msg("%s: +%d cannot be moved", s->name, (int)(at - s->addr));
		to += length;
	}
	return n;
}

static void runs_the_same(void **state)
{
	static const char *const pieces[] = { "registers", "flags", "stack", "red_zone", "relative", "vectors", "branch_short",
					      "branch_near", "loops_back", "jump_memory", "strings" };
	unsigned differ = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		const struct kx_symbol *s = symbol(pieces[i]);
		uint8_t *copy = lib.copies + 4096 * i + (i * 7) % 16;

		assert_true(move(s, copy) >= 3);
		for (int k = 0; k < 2000; k++) {
			struct registers in, old, moved;

			for (size_t w = 0; w < sizeof(in) / 8; w++)
				((uint64_t *)&in)[w] = k % 3 ? random64() : random64() % 3 - 1;
			in.flags = (in.flags & ARITHMETIC_FLAGS) | 2;
			run(&in, lib.image + s->addr, &old);
			run(&in, copy, &moved);
			if (memcmp(&old, &moved, offsetof(struct registers, red_zone)) ||
			    (!strcmp(s->name, "red_zone") && memcmp(old.red_zone, moved.red_zone, sizeof(old.red_zone))))
				fail_msg("%s: another result in round %d", s->name, k);
			differ += memcmp(&in, &old, offsetof(struct registers, red_zone)) != 0;
		}
	}
	/* the pieces do something */
	assert_true(differ > 18000);
}

/* The instruction @hex at address @addr, moved to @at. */
static const char *moved_to(const char *hex, uint64_t addr, uint64_t bias, uint64_t at)
{
	static char out[2 * KX_RELOCATED_MOST + 1];
	uint8_t bytes[16] = { 0 }, to[KX_RELOCATED_MOST];
	ZydisDecoder decoder;
	struct kx_insn insn = { .addr = addr, .bytes = bytes };
	unsigned n;

	for (size_t i = 0; hex[2 * i]; i++)
		bytes[i] = (uint8_t)strtoul((char[]){ hex[2 * i], hex[2 * i + 1], 0 }, NULL, 16);
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	assert_true(ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, &insn.context, bytes, sizeof(bytes), &insn.z)));
	assert_int_equal(insn.z.length, strlen(hex) / 2);
	n = kx_relocate(&insn, bias, at, to);
	for (unsigned i = 0; i < n; i++)
		sprintf(out + 2 * i, "%02x", to[i]);
	out[2 * n] = 0;
	return out;
}

/* Displacements follow from the addresses. */
static void bytes(void **state)
{
	(void)state;
	/* mov %rsp,%rbp; push $5; endbr64 */
	assert_string_equal(moved_to("4889e5", 0x1000, 0, 0x9000), "4889e5");
	assert_string_equal(moved_to("6a05", 0x1000, 0, 0x9000), "6a05");
	/* jmp +0x10 (to 0x1012): 0x1012 - 0x9005 */
	assert_string_equal(moved_to("eb10", 0x1000, 0, 0x9000), "e90d80ffff");
	assert_string_equal(moved_to("e900100000", 0x1000, 0, 0x9000), "e90090ffff");
	/* je and jg: 0x1012 + 0x100000 - 0x9006 */
	assert_string_equal(moved_to("7410", 0x1000, 0x100000, 0x9000), "0f840c800f00");
	assert_string_equal(moved_to("0f8f0c000000", 0x1000, 0x100000, 0x9000), "0f8f0c800f00");
	/* with a hint */
	assert_string_equal(moved_to("2e740f", 0x1000, 0x100000, 0x9000), "0f840c800f00");
	/* mov 0x10(%rip),%rax: 0x10 + 0x1000 - 0x9000 */
	assert_string_equal(moved_to("488b0510000000", 0x1000, 0, 0x9000), "488b051080ffff");
	/* cmpl $0x12345678,0x10(%rip), movdqa %xmm8,0x10(%rip), jmp *0x10(%rip) */
	assert_string_equal(moved_to("813d1000000078563412", 0x1000, 0, 0x9000), "813d1080ffff78563412");
	assert_string_equal(moved_to("66440f7f0510000000", 0x1000, 0, 0x9000), "66440f7f051080ffff");
	assert_string_equal(moved_to("ff2510000000", 0x1000, 0, 0x9000), "ff251080ffff");
	/* vaddps 0x10(%rip),%ymm1,%ymm2 */
	assert_string_equal(moved_to("c5f4581510000000", 0x1000, 0, 0x9000), "c5f458151080ffff");
}

static void too_far(void **state)
{
	(void)state;
	/* 2 GiB and a byte, and exactly as far as it goes */
	assert_string_equal(moved_to("e900000000", 0x1000, 0x100000000, 0x1000), "");
	assert_string_equal(moved_to("e900000000", 0x1000, 0x80000000, 0x1000), "");
	assert_string_equal(moved_to("e900000000", 0x1000, 0x7fffffff, 0x1000), "e9ffffff7f");
	assert_string_equal(moved_to("7400", 0x1000, 0x100000000, 0x1000), "");
	assert_string_equal(moved_to("488b0500000000", 0x1000, 0x7fffffff, 0x1000), "488b05ffffff7f");
	assert_string_equal(moved_to("488b0500000000", 0x1000, 0x80000000, 0x1000), "");
	assert_string_equal(moved_to("488b0500000000", 0x80001000, 0, 0x1000), "");
	assert_string_equal(moved_to("488b0500000000", 0x80001000, 0, 0x1001), "488b05ffffff7f");
}

static void not_moved(void **state)
{
	const struct kx_symbol *s = symbol("refused");
	uint8_t to[KX_RELOCATED_MOST];
	struct kx_insn insn;
	unsigned n = 0;

	(void)state;
	for (uint64_t at = s->addr; at < s->addr + s->size; at += insn.z.length, n++) {
		assert_true(kx_code_decode(lib.code, at, &insn));
		if (kx_relocate(&insn, 0, at + 4096, to))
			fail_msg("refused+%d was moved", (int)(at - s->addr));
	}
	assert_int_equal(n, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_the_same),
		cmocka_unit_test(bytes),
		cmocka_unit_test(too_far),
		cmocka_unit_test(not_moved),
	};

	return cmocka_run_group_tests(tests, build, cleanup);
}
