// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>

#include "plan/windows.h"
#include "assembled.h"

/* Functions with known bytes: the lengths of the instructions are in the comments, windows follow from them. */
static const char source[] =
	".macro fn name\n .globl \\name\n .hidden \\name\n .type \\name,@function\n\\name:\n .cfi_startproc\n.endm\n"
	".macro end name\n .cfi_endproc\n .size \\name,.-\\name\n.endm\n"
	/* nothing uses it */
	".macro gap\n .skip 16,0xcc\n.endm\n"
	".text\n"
	"fn helper\n ret\nend helper\ngap\n"
	"fn basic\n push %rbx\n mov %edi,%ebx\n xor %eax,%eax\n add %ebx,%eax\n call helper\n pop %rbx\n ret\nend basic\ngap\n" /* 1 2 2 2 5 1 1 */
	"fn at_once\n xor %eax,%eax\n ret\nend at_once\ngap\n" /* 2 1 */
	"fn at_once_tight\n xor %eax,%eax\n ret\nend at_once_tight\n"
	"fn behind_it\n ret\nend behind_it\ngap\n"
	"fn red_zone\n mov %edi,-4(%rsp)\n mov -4(%rsp),%eax\n add $1,%eax\n ret\nend red_zone\ngap\n" /* 4 4 3 1 */
	"fn frame\n push %rbp\n mov %rsp,%rbp\n push %r12\n sub $24,%rsp\n call helper\n pop %r12\n leave\n ret\nend frame\ngap\n" /* 1 3 2 4 5 2 1 1 */
	"fn deep\n push %r12\n push %rbx\n sub $0x48,%rsp\n call helper\n add $0x48,%rsp\n pop %rbx\n pop %r12\n ret\nend deep\ngap\n" /* 2 1 4 5 4 1 2 1 */
	"fn tail\n push %rbx\n mov %edi,%ebx\n xor %eax,%eax\n add %ebx,%eax\n pop %rbx\n .byte 0xe9\n .long helper-(.+4)\nend tail\ngap\n" /* 1 2 2 2 1 5 */
	"fn conditional\n mov %edi,%eax\n lea 1(%rax),%ecx\n test %edi,%edi\n .byte 0x0f,0x84\n .long helper-(.+4)\n" /* 2 3 2 6 */
	" add %ecx,%eax\n add %ecx,%eax\n ret\nend conditional\ngap\n"							      /* 2 2 1 */
	"fn flags\n xor %eax,%eax\n setc %al\n adc $1,%eax\n ret\nend flags\ngap\n"					      /* 2 3 3 1 */
	"fn marker\n push %rbx\n990: nop\n mov %edi,%ebx\n xor %eax,%eax\n add %ebx,%eax\n call helper\n pop %rbx\n ret\nend marker\ngap\n"
	" .pushsection .note.stapsdt,\"\",\"note\"\n .balign 4\n .4byte 992f-991f,994f-993f,3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"
	"993: .8byte 990b,0,0\n .asciz \"p\"\n .asciz \"n\"\n .asciz \"\"\n994: .balign 4\n .popsection\n"
	"fn may_fault\n push %rbx\n mov (%rdi),%eax\n mov 4(%rsp),%ecx\n add $1,%eax\n call helper\n mov (%rbx),%eax\n pop %rbx\n ret\nend may_fault\ngap\n" /* 1 2 4 3 5 2 1 1 */
	"fn divides\n push %rbx\n mov %edi,%eax\n div %esi\n add $1,%eax\n call helper\n pop %rbx\n ret\nend divides\ngap\n" /* 1 2 2 3 5 1 1 */
	"fn arguments\n mov %rsi,%rdi\n mov %rdx,%rsi\n xor %eax,%eax\n call helper\n ret\nend arguments\ngap\n" /* 3 3 2 5 1 */
	"fn no_exits\n mov %rdi,%rax\n mov %rsi,%rdi\n mov %rdx,%rsi\n syscall\n jmp *%rax\nend no_exits\ngap\n" /* 3 3 3 2 2 */
	/* refused */
	"fn lands_second\n xor %eax,%eax\n1: add %edi,%eax\n dec %edi\n jne 1b\n ret\nend lands_second\ngap\n"
	"fn lands_inside\n mov %edi,%eax\n add $1,%eax\n1: inc %eax\n dec %ecx\n jne 1b\n ret\nend lands_inside\ngap\n"
	"fn lands_from_gap\n mov %edi,%eax\n add $1,%eax\n.Lfrom_gap: inc %eax\n call helper\n ret\nend lands_from_gap\ngap\n"
	" jmp .Lfrom_gap\ngap\n"
	"fn lands_by_pointer\n mov %edi,%eax\n add $1,%eax\n.Lpointed: inc %eax\n call helper\n ret\nend lands_by_pointer\ngap\n"
	" .data\n .quad .Lpointed\n .text\n"
	"fn lands_by_lea\n mov %edi,%eax\n add $1,%eax\n.Ltaken: inc %eax\n call helper\n ret\nend lands_by_lea\ngap\n"
	"fn takes\n lea .Ltaken(%rip),%rax\n ret\nend takes\ngap\n"
	"fn lands_nowhere\n mov %edi,%eax\n add $1,%eax\n inc %eax\n call helper\n ret\nend lands_nowhere\ngap\n" /* 2 3 2 5 1 */
	"fn getter\n mov %edi,%eax\n lea 1(%rdi),%ecx\n mov %ecx,%edx\n mov %edx,%eax\n ret\nend getter\ngap\n" /* 2 3 2 2 1 */
	"fn calls_only\n push %rbx\n mov %edi,%ebx\n mov %esi,%ecx\n mov %ecx,%edi\n call helper\n pop %rbx\n ret\nend calls_only\ngap\n" /* 1 2 2 2 5 1 1 */
	"fn call_soon\n push %rbx\n call helper\n pop %rbx\n ret\nend call_soon\ngap\n"
	"fn system_soon\n mov $39,%eax\n syscall\n ret\nend system_soon\ngap\n"
	"fn jump_first\n jmp *helper@GOTPCREL(%rip)\nend jump_first\ngap\n"
	"fn frame_unknown\n and $-32,%rsp\n mov %edi,%eax\n add $1,%eax\n add $2,%eax\n ud2\nend frame_unknown\ngap\n"
	"fn loops\n mov %esi,%ecx\n jrcxz 1f\n nop\n nop\n nop\n1: ret\nend loops\ngap\n"
	"fn traps\n mov %esi,%ecx\n ud2\n nop\n nop\n nop\nend traps\ngap\n"
	"fn endbr\n mov %esi,%ecx\n endbr64\n nop\n ret\nend endbr\ngap\n"
	"fn exit_behind_call\n mov %edi,%eax\n add $1,%eax\n inc %eax\n call helper\n ret\nend exit_behind_call\n"
	"fn exit_landing\n mov %edi,%eax\n add $1,%eax\n jne 1f\n add $4,%eax\n1: ret\nend exit_landing\n"
	"fn two_exits\n xor %eax,%eax\n test %edi,%edi\n je .Lnear\n ret\nend two_exits\ngap\n" /* 2 2 2 1 */
	" .type near,@function\nnear:\n.Lnear: ret\n .size near,.-near\ngap\n"
	"fn outer\n mov %edi,%eax\n add $1,%eax\n add $2,%eax\n jmp .Linner\n"
	" .globl inner\n .hidden inner\n .type inner,@function\ninner:\n.Linner: mov $1,%eax\n add $5,%eax\n add $7,%eax\n ret\n"
	" .size inner,.-inner\nend outer\ngap\n"
	" .globl foreign\n .type foreign,@function\nforeign: mov %edi,%eax\n add $1,%eax\n add $2,%eax\n ret\n .size foreign,.-foreign\ngap\n"
	/* switches: the second entry of the table is the return instruction */
	"fn table\n mov %edi,%eax\n cmp $3,%edi\n ja 2f\n lea 9f(%rip),%rdx\n movslq (%rdx,%rax,4),%rax\n add %rdx,%rax\n jmp *%rax\n"
	"1: add $3,%eax\n2: add $4,%eax\n3: ret\nend table\n"
	" .section .rodata\n .balign 4\n9: .long 1b-9b,3b-9b,1b-9b,2b-9b\n .text\n"
	"fn table_apart\n mov %edi,%eax\n cmp $3,%edi\n ja 2f\n lea 9f(%rip),%rdx\n movslq (%rdx,%rax,4),%rax\n add %rdx,%rax\n jmp *%rax\n" /* 2 3 2 7 4 3 2 */
	"1: add $3,%eax\n2: add $4,%eax\n ret\nend table_apart\n"										    /* 3 3 1 */
	" .section .rodata\n .balign 4\n9: .long 1b-9b,2b-9b,1b-9b,2b-9b\n .text\n"
	"fn table_passed\n mov (%rdi),%rdx\n movslq (%rdx,%rsi,4),%rax\n add %rdx,%rax\n jmp *%rax\n ret\nend table_passed\ngap\n"
	/* landing pads */
	"fn no_pad\n sub $8,%rsp\n mov %edi,%eax\n add $1,%eax\n call helper\n add $8,%rsp\n ret\nend no_pad\n" /* 4 2 3 5 4 1 */
	"fn pad\n .cfi_personality 0x1b,helper\n .cfi_lsda 0x1b,.Ltable\n sub $8,%rsp\n mov %edi,%eax\n add $1,%eax\n"
	"7: call helper\n8: add $8,%rsp\n.Lpad: ret\nend pad\ngap\n"
	" .section .gcc_except_table,\"a\"\n.Ltable: .byte 0xff,0xff,1\n .uleb128 2f-1f\n1: .uleb128 7b-pad,8b-7b,.Lpad-pad\n .uleb128 0\n2:\n .text\n"
	/* parts without symbols: one goes back, one returns, one has no unwind table */
	"fn part_closed\n push %rbx\n mov %edi,%eax\n test %edi,%edi\n js .Lclosed\n call helper\n.Lback: pop %rbx\n ret\nend part_closed\ngap\n" /* 1 2 2 2 5 1 1 */
	"fn part_returns\n push %rbx\n mov %edi,%eax\n test %edi,%edi\n js .Lreturns\n pop %rbx\n ret\nend part_returns\ngap\n"
	"fn part_unknown\n push %rbx\n mov %edi,%eax\n test %edi,%edi\n js .Lunknown\n.Lback2: pop %rbx\n ret\nend part_unknown\ngap\n"
	".Lclosed: .cfi_startproc\n call helper\n jmp .Lback\n .cfi_endproc\ngap\n"
	".Lreturns: .cfi_startproc\n call helper\n pop %rbx\n ret\n .cfi_endproc\ngap\n"
	".Lunknown: call helper\n jmp .Lback2\ngap\n"
	" .globl chosen\n .type chosen,@gnu_indirect_function\nchosen: lea helper(%rip),%rax\n ret\n .size chosen,.-chosen\ngap\n"
	/* pages: the second instruction is the last byte of one */
	" .p2align 12\n .skip 4090,0x90\n"
	"fn page\n mov $1,%eax\n mov $2,%ecx\n mov $3,%edx\n ret\nend page\ngap\n"
	" .p2align 12\n .skip 4090,0x90\n"
	"fn page_refused\n mov $1,%eax\n mov $2,%ecx\n call helper\n ret\nend page_refused\ngap\n"
	".section .note.GNU-stack,\"\",@progbits\n";

/* At fixed addresses: one label is a number in an instruction, one a word of read-only data. */
static const char fixed_source[] =
	".macro fn name\n .globl \\name\n .type \\name,@function\n\\name:\n .cfi_startproc\n.endm\n.macro end name\n .cfi_endproc\n .size \\name,.-\\name\n.endm\n"
	".text\n"
	"fn _start\n mov $.Limmediate,%eax\n hlt\nend _start\n .skip 16,0xcc\n"
	"fn immediate\n mov %edi,%eax\n add $1,%eax\n.Limmediate: inc %eax\n call _start\n ret\nend immediate\n .skip 16,0xcc\n"
	"fn word\n mov %edi,%eax\n add $1,%eax\n.Lword: inc %eax\n call _start\n ret\nend word\n .skip 16,0xcc\n"
	"fn neither\n mov %edi,%eax\n add $1,%eax\n inc %eax\n call _start\n ret\nend neither\n .skip 16,0xcc\n"
	".section .rodata\n .balign 8\n .quad .Lword\n"
	".section .note.GNU-stack,\"\",@progbits\n";

struct binary {
	struct kx_elf *elf;
	struct kx_symbols syms;
	struct kx_window_planner *planner;
};

static struct binary lib;

static int try_open(struct binary *b, const char *path, struct kx_err *err)
{
	*b = (struct binary){ 0 };
	if (kx_elf_open(path, &b->elf, err) || kx_symbols_read(b->elf, NULL, &b->syms, err))
		fail_msg("%s", err->text);
	return kx_window_planner_new(b->elf, &b->syms, 1, &b->planner, err);
}

static void close_binary(struct binary *b)
{
	kx_window_planner_free(b->planner);
	kx_symbols_free(&b->syms);
	kx_elf_close(b->elf);
}

static int build(void **state)
{
	struct kx_err err = { 0 };

	if (target_setup(state))
		return -1;
	assemble(source);
	if (try_open(&lib, in_dir("f.so"), &err))
		fail_msg("%s", err.text);
	return 0;
}

static int cleanup(void **state)
{
	close_binary(&lib);
	return target_teardown(state);
}

/*
 * @want: "START:LENGTH" for each window, then what it has: "e" and the entry's frame, "x" and the exit's offset, "t" for a tail
 * jump, "f" for live flags, "s" and the other instructions' offsets from its start.
 */
static void windows_in(const struct binary *b, const char *name, const char *want)
{
	const struct kx_symbol *s = symbol_named(&b->syms, name);
	struct kx_windows ws;
	const enum kx_window_refusal why = kx_windows_plan(b->planner, s, &ws);
	char got[512] = "";
	size_t n = 0;

	if (why)
		fail_msg("%s: %s", name, kx_window_refusal_text(why));
	for (unsigned i = 0; i < ws.n; i++) {
		const struct kx_window *w = &ws.items[i];

		n += (size_t)snprintf(got + n, sizeof(got) - n, "%s%" PRIu64 ":%u", i ? ", " : "", w->start - s->addr, w->length);
		if (w->entry)
			n += (size_t)snprintf(got + n, sizeof(got) - n, " e%u", w->entry_frame);
		if (w->exit)
			n += (size_t)snprintf(got + n, sizeof(got) - n, " x%" PRIu64, w->exit - s->addr);
		n += (size_t)snprintf(got + n, sizeof(got) - n, "%s%s%s", w->tail ? " t" : "", w->flags_live ? " f" : "",
				      w->starts ? " s" : "");
		for (unsigned k = 0; k < 8; k++)
			if (w->starts >> k & 1)
				n += (size_t)snprintf(got + n, sizeof(got) - n, "%u", k);
		assert_int_equal(w->exit_frame, 0);
	}
	if (strcmp(got, want))
		fail_msg("%s: %s instead of %s", name, got, want);
}

static void windows_are(const char *name, const char *want)
{
	windows_in(&lib, name, want);
}

static void refused_in(const struct binary *b, const char *name, enum kx_window_refusal want)
{
	struct kx_windows ws;
	const enum kx_window_refusal why = kx_windows_plan(b->planner, symbol_named(&b->syms, name), &ws);

	if (why != want)
		fail_msg("%s: %s, instead of: %s", name, kx_window_refusal_text(why), kx_window_refusal_text(want));
	assert_int_equal(ws.n, 0);
}

static void refused(const char *name, enum kx_window_refusal want)
{
	refused_in(&lib, name, want);
}

static void entries_and_exits(void **state)
{
	(void)state;
	windows_are("basic", "1:6 e8 s24, 13:5 x13 s1234");
	windows_are("at_once", "2:5 e0 x2 f s1234");
	refused("at_once_tight", KX_WINDOW_TOO_SHORT);
	windows_are("red_zone", "4:7 e0 s4, 11:5 x11 s1234");
	windows_are("lands_nowhere", "2:5 e0 s3, 12:5 x12 s1234");
	windows_are("tail", "1:6 e8 s24, 8:5 x8 t");
	windows_are("conditional", "2:5 e0 s3, 7:6 x7 t, 17:5 x17 s1234");
}

/* At an entry: those that the code may read, or pass on by a call or return. */
static void kept_flags(void **state)
{
	(void)state;
	windows_are("flags", "2:6 e0 f s3, 8:5 x8 s1234");
	windows_are("getter", "2:5 e0 f s3, 9:5 x9 s1234");
	windows_are("calls_only", "1:6 e8 f s24, 13:5 x13 s1234");
	/* written before the call */
	windows_are("basic", "1:6 e8 s24, 13:5 x13 s1234");
}

/* An instruction that may fault is in a window, unless the process has handlers of faults. */
static void faults(void **state)
{
	struct binary b;

	(void)state;
	windows_are("may_fault", "1:6 e8 s2, 18:5 x18 s1234");
	windows_are("divides", "1:7 e8 s24, 14:5 x14 s1234");
	assert_int_equal(try_open(&b, in_dir("f.so"), NULL), 0);
	kx_window_planner_keep_faults(b.planner);
	windows_in(&b, "may_fault", "3:7 e8 s4, 18:5 x18 s1234");
	refused_in(&b, "divides", KX_WINDOW_FAULT);
	windows_in(&b, "basic", "1:6 e8 s24, 13:5 x13 s1234");
	close_binary(&b);
}

static void stack_pointers(void **state)
{
	(void)state;
	windows_are("frame", "1:5 e8 s3, 18:5 x18 s1234");
	windows_are("deep", "2:5 e8 s1, 19:5 x19 s1234");
	refused("frame_unknown", KX_WINDOW_FRAME);
}

static void refused_entries(void **state)
{
	(void)state;
	refused("lands_second", KX_WINDOW_LANDING);
	refused("lands_inside", KX_WINDOW_LANDING);
	refused("lands_from_gap", KX_WINDOW_LANDING);
	refused("lands_by_pointer", KX_WINDOW_LANDING);
	refused("lands_by_lea", KX_WINDOW_LANDING);
	refused("call_soon", KX_WINDOW_CALL);
	refused("system_soon", KX_WINDOW_CALL);
	refused("jump_first", KX_WINDOW_FIRST);
	refused("loops", KX_WINDOW_RELOCATE);
	refused("traps", KX_WINDOW_RELOCATE);
	refused("endbr", KX_WINDOW_LANDING);
	refused("chosen", KX_WINDOW_IFUNC);
	refused("foreign", KX_WINDOW_FOREIGN);
}

static void refused_exits(void **state)
{
	(void)state;
	refused("exit_behind_call", KX_WINDOW_EXIT_CALL);
	refused("exit_landing", KX_WINDOW_EXIT_LANDING);
	refused("two_exits", KX_WINDOW_EXIT_ENTRY);
	refused("outer", KX_WINDOW_EXIT_LANDING);
}

static void switches(void **state)
{
	(void)state;
	refused("table", KX_WINDOW_EXIT_LANDING);
	/* its last case alone ends with 4 bytes: the label before it lands on the window's first byte */
	refused("table_apart", KX_WINDOW_EXIT_LANDING);
	refused("table_passed", KX_WINDOW_TABLE);
}

static void landing_pads(void **state)
{
	(void)state;
	windows_are("no_pad", "4:5 e8 s2, 14:5 x18 s4");
	/* the padding behind the return instruction is enough */
	windows_are("pad", "4:5 e8 s2, 18:5 x18 s1234");
}

static void parts(void **state)
{
	(void)state;
	windows_are("part_closed", "1:6 e8 s24, 13:5 x13 s1234");
	refused("part_returns", KX_WINDOW_PARTS);
	refused("part_unknown", KX_WINDOW_PARTS);
}

static void pages(void **state)
{
	(void)state;
	windows_are("page", "10:5 e0 f, 15:5 x15 s1234");
	refused("page_refused", KX_WINDOW_PAGE);
}

static void markers(void **state)
{
	(void)state;
	/* as basic, behind the marker's nop */
	windows_are("marker", "2:6 e8 s24, 14:5 x14 s1234");
}

/* As the entry's window of the usual plan, for functions whose exits are refused as well; the arguments are still the caller's. */
static void entries_alone(void **state)
{
	static const struct {
		const char *name;
		enum kx_window_refusal why;
		unsigned start, length;
	} all[] = {
		{ "basic", KX_WINDOW_OK, 1, 6 },
		{ "no_exits", KX_WINDOW_OK, 3, 6 },
		{ "exit_landing", KX_WINDOW_OK, 2, 5 },
		{ "arguments", KX_WINDOW_ARGUMENTS, 0, 0 },
		{ "call_soon", KX_WINDOW_CALL, 0, 0 },
		{ "lands_inside", KX_WINDOW_LANDING, 0, 0 },
		{ "foreign", KX_WINDOW_FOREIGN, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const struct kx_symbol *sym = symbol_named(&lib.syms, all[i].name);
		struct kx_window w;

		assert_int_equal(kx_windows_plan_entry(lib.planner, sym, &w), all[i].why);
		if (all[i].why)
			continue;
		assert_int_equal(w.start - sym->addr, all[i].start);
		assert_int_equal(w.length, all[i].length);
		assert_true(w.entry);
		assert_int_equal(w.exit, 0);
	}
}

static void fixed_addresses(void **state)
{
	struct binary b;
	struct kx_windows ws;
	struct kx_err err = { 0 };

	(void)state;
	write_file("g.s", fixed_source);
	sh("gcc -c g.s -o g.o && ld -no-pie g.o -o g");
	if (try_open(&b, in_dir("g"), &err))
		fail_msg("%s", err.text);
	refused_in(&b, "immediate", KX_WINDOW_LANDING);
	refused_in(&b, "word", KX_WINDOW_LANDING);
	assert_int_equal(kx_windows_plan(b.planner, symbol_named(&b.syms, "neither"), &ws), KX_WINDOW_OK);
	close_binary(&b);
}

/* Binaries that change their own code, or in which the kernel or the runtime goes where it likes. */
static void refused_binaries(void **state)
{
	static const char *const all[][2] = {
		{ "__rseq_cs", "it has critical sections that the kernel restarts (rseq)" },
		{ "xray_instr_map", "it has XRay sleds, which it may patch itself" },
		{ ".go.buildinfo", "it is a Go program, which moves its stacks" },
		{ "__patchable_function_entries", "it patches the beginnings of its functions itself" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct kx_err err = { 0 };
		struct binary b;

		sh("echo 12345678 > data && objcopy --add-section %s=data f.so refused.so", all[i][0]);
		assert_int_equal(try_open(&b, in_dir("refused.so"), &err), -EOPNOTSUPP);
		assert_string_equal(err.text, all[i][1]);
		close_binary(&b);
	}
}

static const char restartable_source[] = "	.globl work\n	.type work, @function\n"
					 "work:	.cfi_startproc\n"
					 "	mov $0x53053053, %r10d\n"
					 "	mov (%rdi), %rax\n"
					 "2:	inc %rax\n"
					 "	mov %rax, (%rdi)\n"
					 "3:	ret\n"
					 "	.cfi_endproc\n	.size work, . - work\n";

/* Behind the code: an abort handler, and where it is named. */
static int open_restartable(const char *handler, struct kx_err *err)
{
	char text[1024];
	struct binary b;
	int ret;

	snprintf(text, sizeof(text), "%s%s", restartable_source, handler);
	write_file("r.s", text);
	sh("gcc -shared -nostdlib -o r.so r.s");
	ret = try_open(&b, in_dir("r.so"), err);
	close_binary(&b);
	return ret;
}

/* Sections that the kernel restarts, wherever they are described. */
static void restartable(void **state)
{
	static const char *const handlers[] = {
		/* described in data: any instruction may hold the signature */
		"	.byte 0x0f, 0x18, 0x05\n	.long 0x53053053\n4:	jmp 2b\n"
		"	.section .data.any, \"aw\"\n	.balign 32\n	.long 0, 0\n	.quad 2b, 3b - 2b, 4b\n",
		/* described at run time, by code that is not understood */
		"	.byte 0x0f, 0xb9, 0x3d\n	.long 0x53053053\n4:	jmp 2b\n",
		"	.byte 0x0f, 0x1f, 0x05\n	.long 0x53053053\n4:	jmp 2b\n",
	};
	struct kx_err err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
		assert_int_equal(open_restartable(handlers[i], &err), -EOPNOTSUPP);
		assert_string_equal(err.text, "it has critical sections that the kernel restarts (rseq)");
	}
	/* only the number, as in glibc, which registers it */
	assert_int_equal(open_restartable("", &err), 0);
}

/* Exception tables that cannot be read: landing pads would be missed. */
static void damaged_tables(void **state)
{
	struct kx_err err = { 0 };
	struct binary b;

	(void)state;
	sh("printf '\\377\\0\\0\\0\\0\\0\\0\\0' > data && objcopy --update-section .eh_frame=data f.so damaged.so 2>/dev/null");
	assert_int_equal(try_open(&b, in_dir("damaged.so"), &err), -ENOEXEC);
	assert_string_equal(err.text, "its exception tables cannot be read");
	close_binary(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_and_exits),
		cmocka_unit_test(kept_flags),
		cmocka_unit_test(faults),
		cmocka_unit_test(stack_pointers),
		cmocka_unit_test(refused_entries),
		cmocka_unit_test(refused_exits),
		cmocka_unit_test(switches),
		cmocka_unit_test(landing_pads),
		cmocka_unit_test(parts),
		cmocka_unit_test(pages),
		cmocka_unit_test(markers),
		cmocka_unit_test(entries_alone),
		cmocka_unit_test(fixed_addresses),
		cmocka_unit_test(refused_binaries),
		cmocka_unit_test(restartable),
		cmocka_unit_test(damaged_tables),
	};

	return cmocka_run_group_tests(tests, build, cleanup);
}
