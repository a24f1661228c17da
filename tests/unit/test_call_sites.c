// SPDX-License-Identifier: BSD-2-Clause
// run: parallel, 8 s, without root
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "target.h"
#include "plan/call_sites.h"

static const char *const names[] = { "prctl", "syscall" };

/* What all calls of one name pass as one argument. */
struct answer {
	size_t sites, unknown; /* unknown: those of which the argument is not known */
	uint64_t values;       /* bit v: a call may pass v */
};

static struct answer ask_file(const char *file, unsigned name, unsigned arg)
{
	const struct kx_call_site *sites;
	struct answer a = { 0 };
	struct kx_call_sites *s;
	struct kx_elf *elf;
	struct kx_err err;
	size_t n;

	if (kx_elf_open(in_dir(file), &elf, &err) || kx_call_sites_find(elf, names, 2, true, &s, &err))
		fail_msg("%s", err.text);
	sites = kx_call_sites_get(s, &n);
	for (size_t i = 0; i < n; i++) {
		uint64_t values[KX_MAX_CONSTANTS];
		const size_t known = kx_call_sites_argument(s, &sites[i], arg, values);

		if (sites[i].name != name)
			continue;
		a.sites++;
		a.unknown += !known;
		for (size_t k = 0; k < known; k++)
			a.values |= 1ULL << (values[k] < 63 ? values[k] : 63);
	}
	kx_call_sites_free(s);
	kx_elf_close(elf);
	return a;
}

/* Assembles code for a library, behind a function f that begins there. */
static struct answer ask(const char *body, unsigned name, unsigned arg)
{
	char source[4096];

	snprintf(source, sizeof(source),
		 ".text\n.globl before\nbefore: .cfi_startproc\ncall before\nret\n.cfi_endproc\n.p2align 4\n.globl f\nf: "
		 ".cfi_startproc\n%s\n",
		 body);
	write_file("snippet.s", source);
	sh("gcc -shared -nostdlib -o snippet.so snippet.s");
	return ask_file("snippet.so", name, arg);
}

#define END "\n.cfi_endproc\n"

#define assert_known(a, expected)                          \
	do {                                               \
		const struct answer got_ = (a);            \
		assert_int_equal(got_.sites, 1);           \
		assert_int_equal(got_.unknown, 0);         \
		assert_int_equal(got_.values, (expected)); \
	} while (0)
#define assert_unknown(a)                          \
	do {                                       \
		const struct answer got_ = (a);    \
		assert_int_equal(got_.sites, 1);   \
		assert_int_equal(got_.unknown, 1); \
	} while (0)
#define ONE(v) (1ULL << (v))

static void test_straight_code(void **state)
{
	(void)state;
	assert_known(ask("mov $3, %edi\nxor %esi, %esi\ncall prctl@plt\nret" END, 0, 0), ONE(3));
	assert_known(ask("mov $3, %edi\nxor %esi, %esi\njmp prctl@plt" END, 0, 1), ONE(0));
	assert_known(ask("mov $3, %rdi\nmov %rdi, %rax\nmov (%rsp), %rdi\nmov %eax, %edi\ncall prctl@plt\nret" END, 0, 0),
		     ONE(3));
	assert_known(ask("push $7\npop %rdi\nnopl (%rax)\ncall *prctl@GOTPCREL(%rip)\nret" END, 0, 0), ONE(7));
	assert_known(ask("mov $4, %ebx\ncall before\nmov %ebx, %edi\njmp *prctl@GOTPCREL(%rip)" END, 0, 0), ONE(4));
	assert_known(ask("mov $5, %edi\ntest %eax, %eax\nje prctl@plt\nret" END, 0, 0), ONE(5));
	/* what it was before, or only a part of it, or the result of something else */
	assert_unknown(ask("call prctl@plt\nret" END, 0, 0));
	assert_unknown(ask("mov $3, %edi\nmov %eax, %edi\ncall prctl@plt\nret" END, 0, 0));
	assert_unknown(ask("mov $3, %edi\nmov $4, %dil\ncall prctl@plt\nret" END, 0, 0));
	assert_unknown(ask("mov $3, %edi\nadd $4, %edi\ncall prctl@plt\nret" END, 0, 0));
	assert_unknown(ask("mov $3, %edi\ncmove %eax, %edi\ncall prctl@plt\nret" END, 0, 0));
	assert_unknown(ask("mov $3, %edi\nmov 8(%rsp), %rdi\ncall prctl@plt\nret" END, 0, 0));
	assert_unknown(ask("mov $3, %edi\nlea 8(%rdi), %edi\ncall prctl@plt\nret" END, 0, 0));
	assert_unknown(ask("mov $3, %edi\nxchg %rax, %rdi\ncall prctl@plt\nret" END, 0, 0));
	assert_unknown(ask("mov $3, %edi\ncall before\ncall prctl@plt\nret" END, 0, 0));
	assert_unknown(ask("mov $3, %edi\nxor %esi, %edi\ncall prctl@plt\nret" END, 0, 0));
	assert_unknown(ask("pop %rdi\ncall prctl@plt\nret" END, 0, 0));
}

static void test_branches(void **state)
{
	(void)state;
	assert_known(ask("mov $3, %edi\ntest %eax, %eax\nje 1f\nmov $4, %edi\n1: call prctl@plt\nret" END, 0, 0),
		     ONE(3) | ONE(4));
	assert_known(ask("mov $3, %edi\njmp 1f\nret\nnop\n1: call prctl@plt\nret" END, 0, 0), ONE(3));
	assert_known(ask("mov $3, %edi\n1: test %eax, %eax\nje 1b\ncall prctl@plt\nret" END, 0, 0), ONE(3));
	/* one way sets it in another manner, or not at all */
	assert_unknown(ask("test %eax, %eax\nje 1f\nmov $4, %edi\n1: call prctl@plt\nret" END, 0, 0));
	assert_unknown(ask("mov $3, %edi\n1: call prctl@plt\nje 1b\nret" END, 0, 0));
	assert_unknown(ask("mov $3, %ecx\n1: mov %ecx, %edi\nloop 1b\nmov %ecx, %edi\ncall prctl@plt\nret" END, 0, 0));
	/* from where nothing is known to come */
	assert_unknown(ask("ret\ncall prctl@plt\nret" END, 0, 0));
	assert_unknown(ask("mov $3, %edi\njmp 1f\nret\nmov %eax, %ecx\n1: call prctl@plt\nret" END, 0, 0));
}

/* Between the constant and the call something else enters: each beside the same with an entry before the constant. */
static void test_entered_from_elsewhere(void **state)
{
	static const char *const others[] = {
		/* the table of a switch, of this function or of a part of it that lies elsewhere */
		"mov $9, %%edi\nlea 3f(%%rip), %%rdx\nmovslq (%%rdx,%%rax,4), %%rax\nadd %%rdx, %%rax\njmp *%%rax\n"
		"1: mov $3, %%edi\n2: call prctl@plt\nret" END ".section .rodata\n.p2align 2\n3: .long 1b-3b, %s-3b\n.text",
		"nop\n1: mov $3, %%edi\n2: call prctl@plt\nret" END
		"cold: .cfi_startproc\nlea 3f(%%rip), %%rdx\njmp *%%rax\n"
		".byte 0xe9\n.long 1b-.-4" END ".section .rodata\n.p2align 2\n3: .long 1b-3b, %s-3b\n.text",
		/* a computed goto, through a relocation */
		"jmp *%%rax\n1: mov $3, %%edi\n2: call prctl@plt\nret" END
		".section .data.rel.ro,\"aw\"\n.quad 1b, %s\n.text",
		/* another function */
		"1: mov $3, %%edi\n2: call prctl@plt\nret" END "cold: .cfi_startproc\n.byte 0xe9\n.long %s-.-4" END,
		"1: mov $3, %%edi\n2: call prctl@plt\nret" END
		"cold: .cfi_startproc\n.byte 0x0f, 0x84\n.long %s-.-4\nret" END,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		char body[1024];

		snprintf(body, sizeof(body), others[i], "1b");
		assert_known(ask(body, 0, 0), ONE(3));
		snprintf(body, sizeof(body), others[i], "2b");
		assert_unknown(ask(body, 0, 0));
	}
}

static void test_other_uses(void **state)
{
	const struct answer none = ask("ret" END, 0, 0);

	(void)state;
	assert_int_equal(none.sites, 0);
	/* its address is taken, stored, compared; only the last is harmless */
	assert_unknown(ask("mov prctl@GOTPCREL(%rip), %rax\nret" END, 0, 0));
	assert_unknown(ask("push prctl@GOTPCREL(%rip)\nret" END, 0, 0));
	assert_unknown(ask("lea prctl@plt(%rip), %rax\nret" END, 0, 0));
	assert_unknown(ask("ret" END ".data\n.quad prctl\n.text", 0, 0));
	/* in a register for several calls, or for more than calls */
	assert_known(ask("push %rbx\nmov prctl@GOTPCREL(%rip), %rbx\nmov $3, %edi\n1: call *%rbx\npop %rbx\nret" END, 0, 0),
		     ONE(3));
	assert_unknown(ask("mov prctl@GOTPCREL(%rip), %rbx\nmov %ebp, %edi\ncall *%rbx\nret" END, 0, 0));
	assert_int_equal(
		ask("mov prctl@GOTPCREL(%rip), %rbx\nmov $3, %edi\ncall *%rbx\nmov %rbx, 8(%rsp)\nret" END, 0, 0).unknown,
		1);
	assert_int_equal(
		ask("mov prctl@GOTPCREL(%rip), %rbx\nmov $3, %edi\ncall *%rbx\nlea (%rbx), %rax\nret" END, 0, 0).unknown,
		1);
	assert_int_equal(
		ask("mov prctl@GOTPCREL(%rip), %rbx\nmov $3, %edi\ncall *%rbx\nmov %ecx, %ebx\nmov %rbx, %rax\nret" END, 0,
		    0)
			.unknown,
		0);
	assert_int_equal(ask("mov prctl@GOTPCREL(%rip), %rbx\nmov $3, %edi\njmp 1f\n2: mov %rbx, %rax\nret\n1: call "
			     "*%rbx\njmp 2b" END,
			     0, 0)
				 .unknown,
			 1);
	assert_int_equal(ask("mov prctl@GOTPCREL(%rip), %rbx\nmov $3, %edi\ncall *%rbx\njmp *%rcx" END, 0, 0).unknown, 1);
	assert_known(ask("cmpq $0, prctl@GOTPCREL(%rip)\nmov $3, %edi\ncall prctl@plt\nret" END, 0, 0), ONE(3));
	/* a call in code of which it is not known where it begins */
	assert_unknown(ask("ret" END "1: mov $3, %edi\ncall prctl@plt\nret\n", 0, 0));
	assert_int_equal(ask("mov $3, %edi\ncall prctl@plt\nret" END
			     ".byte 0xe9\n.reloc ., R_X86_64_PLT32, prctl-4\n.long 0\n",
			     0, 0)
				 .unknown,
			 1);
	assert_int_equal(ask("mov $3, %edi\ncall prctl@plt\nret" END
			     ".byte 0x0f, 0x85\n.reloc ., R_X86_64_PLT32, prctl-4\n.long 0\n",
			     0, 0)
				 .unknown,
			 1);
	assert_int_equal(ask("mov $3, %edi\ncall prctl@plt\nret" END "mov prctl@GOTPCREL(%rip), %r8\n", 0, 0).unknown, 1);
	/* numbers that happen to be such a displacement */
	assert_known(ask("mov $3, %edi\ncall prctl@plt\nret" END
			 ".byte 0x66, 0x66\n.reloc ., R_X86_64_PLT32, prctl-4\n.long 0\n",
			 0, 0),
		     ONE(3));
	/* imported, used in no way that is known */
	assert_unknown(ask("movabs $prctl@GOT, %rax\nret" END, 0, 0));
}

static void test_system_calls(void **state)
{
	const unsigned kernel = KX_SYSTEM_CALL;

	(void)state;
	assert_known(ask("mov $60, %eax\nsyscall\nret" END, kernel, KX_CALL_NUMBER), ONE(60));
	assert_known(ask("mov $3, %edi\nmov $60, %eax\nsyscall\nret" END, kernel, 0), ONE(3));
	assert_known(ask("mov $3, %r10\nmov $60, %eax\nsyscall\nret" END, kernel, 3), ONE(3));
	assert_known(ask("mov $60, %eax\nint $0x80\nret" END, kernel, KX_CALL_NUMBER), ONE(60));
	assert_unknown(ask("mov %edi, %eax\nsyscall\nret" END, kernel, KX_CALL_NUMBER));
	assert_int_equal(ask("mov $60, %ebx\nmov %ebx, %eax\nsyscall\nsyscall\nret" END, kernel, KX_CALL_NUMBER).unknown,
			 1);
	assert_int_equal(
		ask("mov $60, %ebx\nmov %ebx, %eax\nsyscall\nmov %ebx, %eax\nsyscall\nret" END, kernel, KX_CALL_NUMBER)
			.unknown,
		0);
	/* where no function is known: code, and data that only reads like it */
	assert_unknown(ask("ret" END "mov $60, %eax\nsyscall\nret\n", kernel, KX_CALL_NUMBER));
	assert_int_equal(ask("ret" END ".byte 0x0f, 0x05, 0x48, 0x89, 0xc3, 0xf4\n", kernel, 0).sites, 0);
	assert_int_equal(ask("ret" END ".byte 0x0f, 0x05, 0xe9\n.long 0x1000000\n", kernel, 0).sites, 0);
	/* in the middle of an instruction */
	assert_int_equal(ask("mov $0x050f, %eax\nmov $0x80cd, %eax\nret" END, kernel, 0).sites, 0);
}

static const char calls[] =
	"#define _GNU_SOURCE\n#include <sys/prctl.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n"
	"extern volatile int sink; volatile int sink;\n"
	"int plain(void) { sink = prctl(3, 1, 0, 0, 0); return sink + 1; }\n"
	"int tail(void) { return prctl(4, 1, 0, 0, 0); }\n"
	"int twice(int n) { for (int i = 0; i < n; i++) sink += prctl(15, \"x\", 0, 0, 0); return n; }\n"
	"long sys(void) { return syscall(39) + 1; }\n"
	"int chosen(int n) { switch (n) { case 0: sink = 4; break; case 1: sink = 3; break; case 2: sink = 7; break;\n"
	"	case 5: sink = 9; break; case 6: sink++; break; case 7: sink--; break; default: sink = 1; }\n"
	"	return prctl(16, &sink, 0, 0, 0) ? sink : 2; }\n"
	"int main(void) { return plain() + tail() + twice(2) + (int)sys() + chosen(3); }\n";

/* Both compilers, with and without optimization, and all ways to call what is imported. */
static void test_compilers(void **state)
{
	static const char *const ways[] = {
		"-shared -fPIC",    "-shared -fPIC -fno-plt",	 "-pie -fPIE",
		"-no-pie -fno-pie", "-no-pie -fno-pie -fno-plt", "-shared -fPIC -fcf-protection -Wl,-z,ibtplt -Wl,-z,lazy"
	};

	(void)state;
	write_file("calls.c", calls);
	for (unsigned i = 0; i < 2 * 3 * sizeof(ways) / sizeof(*ways); i++) {
		const char *cc = i % 2 ? "clang" : "gcc", *level = i / 2 % 3 == 0 ? "-O0" : i / 2 % 3 == 1 ? "-O2" : "-Os";
		struct answer a;

		sh("%s %s -fno-inline %s -o calls.so calls.c", cc, level, ways[i / 6]);
		a = ask_file("calls.so", 0, 0);
		if (a.values != (ONE(3) | ONE(4) | ONE(15) | ONE(16)) || a.unknown)
			fail_msg("%s %s %s: values %#llx, %zu of %zu unknown", cc, level, ways[i / 6],
				 (unsigned long long)a.values, a.unknown, a.sites);
		/* as many as objdump shows; clang loads the address into a register before a loop */
		assert_int_equal(
			a.sites,
			atoi(line_of("objdump -d -j .text calls.so | grep -cE '(call|jmp) .*(<prctl@|\\*%%r[bd1])'")) -
				atoi(line_of("objdump -d -j .text calls.so | grep -cE 'jmp .*\\*%%r[bd1]'")));
		a = ask_file("calls.so", 1, 0);
		assert_int_equal(a.values, ONE(39));
		assert_int_equal(a.unknown, 0);
	}
}

/* What computes the option, or takes the function's address. */
static void test_compilers_unknown(void **state)
{
	static const char *const bodies[] = {
		"int f(int n) { return prctl(n, 1, 0, 0, 0); }",
		"int f(int n) { int r = prctl(n + 3, 1, 0, 0, 0); return r + 1; }",
		"int (*f(void))(int, ...) { return prctl; }",
		"int (*f)(int, ...) = prctl;",
		"static int g(int (*p)(int, ...), int n) { return p(n); } int f(int n) { return g(prctl, n); }",
	};

	(void)state;
	for (unsigned i = 0; i < 4 * sizeof(bodies) / sizeof(*bodies); i++) {
		char source[512];

		snprintf(source, sizeof(source), "#include <sys/prctl.h>\n%s\nint main(void) { return 0; }\n",
			 bodies[i / 4]);
		write_file("unknown.c", source);
		sh("%s %s -fPIC -shared -o unknown.so unknown.c", i % 2 ? "clang" : "gcc", i / 2 % 2 ? "-O2" : "-O0");
		assert_int_not_equal(ask_file("unknown.so", 0, 0).unknown, 0);
		sh("%s %s -no-pie -fno-pie -o unknown.so unknown.c", i % 2 ? "clang" : "gcc", i / 2 % 2 ? "-O2" : "-O0");
		assert_int_not_equal(ask_file("unknown.so", 0, 0).unknown, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_straight_code),	       cmocka_unit_test(test_branches),
		cmocka_unit_test(test_entered_from_elsewhere), cmocka_unit_test(test_other_uses),
		cmocka_unit_test(test_system_calls),	       cmocka_unit_test(test_compilers),
		cmocka_unit_test(test_compilers_unknown),
	};

	return cmocka_run_group_tests(tests, target_setup, target_teardown);
}
