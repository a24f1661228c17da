// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "target.h"
#include "binary/unwind_risk.h"

/* Built once: plain C, C with cleanup handlers, C++ without and with a handler, a fake Go. */
static int build(void **state)
{
	if (target_setup(state))
		return -1;
	write_file("plain.c", "int f(int x) { return x + 1; }\n");
	write_file("cleanup.c", "void g(int *);\nvoid f(void);\n"
				"void f(void) { int x __attribute__((cleanup(g))) = 0; g(&x); }\n");
	write_file("throw.cc", "int f(int x) { if (x) throw 1; return 0; }\n");
	write_file("catch.cc", "int g(int);\nint f(int x) { try { return g(x); } catch (int e) { return e; } }\n");
	write_file("dispatch.c", "#include <sys/prctl.h>\nchar c;\nint f(void) { return prctl(59, 1L, 0L, 0L, &c); }\n");
	write_file("dispatch-syscall.c", "#include <sys/syscall.h>\n#include <unistd.h>\nchar c;\n"
					 "long f(void) { return syscall(SYS_prctl, 59L, 1L, 0L, 0L, &c); }\n");
	write_file("named.c", "#include <stdio.h>\n#include <sys/prctl.h>\n"
			      "int f(void) { putchar(59); return prctl(15, \"n\", 0L, 0L, 0L); }\n");
	write_file("go.c", "__attribute__((section(\".go.buildinfo\"))) int info = 1;\n");
	sh("gcc -O2 -shared -fPIC plain.c -o plain.so && gcc -O2 -shared -fPIC go.c -o go.so && "
	   "gcc -O2 -fexceptions -shared -fPIC cleanup.c -o cleanup.so && "
	   "g++ -O2 -shared -fPIC throw.cc -o throw.so && g++ -O2 -shared -fPIC catch.cc -o catch.so");
	sh("gcc -O2 -shared -fPIC dispatch.c -o dispatch.so && gcc -O2 -shared -fPIC -fno-plt dispatch.c -o dispatch-slot.so && "
	   "gcc -O0 -shared -fPIC dispatch.c -o dispatch-O0.so && gcc -O2 -shared -fPIC dispatch-syscall.c -o dispatch-syscall.so && "
	   "gcc -O2 -shared -fPIC named.c -o named.so");
	/* check the build */
	assert_string_equal(line_of("readelf -SW plain.so throw.so | grep -c gcc_except_table"), "0");
	assert_string_equal(line_of("readelf -SW cleanup.so | grep -c gcc_except_table"), "1");
	assert_string_equal(line_of("readelf -SW catch.so | grep -c gcc_except_table"), "1");
	return 0;
}

/* One module of the file @file, shown under @name. */
struct as {
	const char *name, *file;
};

static struct kx_unwind_risk risk_of(const struct as *modules, size_t n)
{
	struct kx_module items[8] = { 0 };
	struct kx_modules mods = { .items = items, .count = n };
	struct kx_unwind_risk risk;
	char paths[8][512];

	for (size_t i = 0; i < n; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%s", in_dir(modules[i].file));
		items[i] = (struct kx_module){ .name = (char *)modules[i].name,
					       .path = paths[i],
					       .open_path = paths[i] };
	}
	kx_unwind_risk_of(&mods, &risk);
	return risk;
}

#define RISK(...)                                                                                  \
	risk_of((const struct as[]){ __VA_ARGS__ },                                                \
		sizeof((const struct as[]){ __VA_ARGS__ }) / sizeof(struct as))

static void harmless(struct kx_unwind_risk risk)
{
	if (!risk.returns_harmless)
		fail_msg("%s", risk.reason);
	assert_false(risk.is_go);
}

static void risky(struct kx_unwind_risk risk, const char *reason)
{
	assert_string_equal(risk.reason, reason);
	assert_false(risk.returns_harmless);
}

static void test_dispatched_calls(void **state)
{
	static const char *const files[] = { "dispatch.so", "dispatch-slot.so", "dispatch-O0.so", "dispatch-syscall.so" };

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct kx_unwind_risk risk = RISK({ "prog", "catch.so" }, { "emu.so", files[i] });

		risky(risk, "emu.so handles its own system calls (PR_SET_SYSCALL_USER_DISPATCH)");
		assert_true(risk.dispatches && kx_unwind_risk_covers_leaves(&risk));
	}
	harmless(RISK({ "prog", "named.so" }));
}

static void test_tables(void **state)
{
	(void)state;
	harmless(RISK({ "prog", "plain.so" }));
	harmless(RISK({ "prog", "plain.so" }, { "libc.so.6", "cleanup.so" },
		      { "ld-linux-x86-64.so.2", "cleanup.so" }, { "libgcc_s.so.1", "cleanup.so" },
		      { "libpthread.so.0", "cleanup.so" }, { "libm-2.31.so", "cleanup.so" }));
	harmless(RISK({ "prog", "plain.so" }, { "ld-musl-x86_64.so.1", "cleanup.so" }));
	risky(RISK({ "prog", "cleanup.so" }), "prog has exception tables");
	risky(RISK({ "prog", "plain.so" }, { "libc.so.6", "cleanup.so" },
		   { "libmagick.so.6", "cleanup.so" }, { "libx.so", "catch.so" }),
	      "libmagick.so.6 has exception tables");
	/* names that only begin like the exempt ones */
	risky(RISK({ "libcrypto.so.3", "cleanup.so" }), "libcrypto.so.3 has exception tables");
	risky(RISK({ "libcurl.so.4", "cleanup.so" }), "libcurl.so.4 has exception tables");
	risky(RISK({ "libdlfcn.so", "cleanup.so" }), "libdlfcn.so has exception tables");
	risky(RISK({ "ld-gold", "cleanup.so" }), "ld-gold has exception tables");
}

/* A C program with an allocator written in C++, as redis-server on Debian. */
static void test_runtimes(void **state)
{
	(void)state;
	harmless(RISK({ "redis-server", "plain.so" }, { "libjemalloc.so.2", "catch.so" },
		      { "libstdc++.so.6", "catch.so" }, { "libc.so.6", "cleanup.so" }));
	risky(RISK({ "prog", "throw.so" }, { "libstdc++.so.6", "catch.so" }),
	      "prog uses libstdc++.so.6, so it may throw exceptions");
	risky(RISK({ "prog", "plain.so" }, { "libstdc++.so.6", "catch.so" },
		   { "libx.so", "catch.so" }),
	      "libx.so has exception tables");
}

static void test_unreadable(void **state)
{
	(void)state;
	risky(RISK({ "prog", "plain.so" }, { "gone.so", "not-there" }),
	      "gone.so cannot be read, so it may have exception tables");
	risky(RISK({ "prog", "plain.c" }), "prog cannot be read, so it may have exception tables");
	/* a file without section headers may hide exception tables */
	sh("cp plain.so bare.so && printf '\\0\\0\\0\\0\\0\\0\\0\\0' | "
	   "dd of=bare.so bs=1 seek=40 conv=notrunc status=none && printf '\\0\\0\\0\\0' | "
	   "dd of=bare.so bs=1 seek=60 conv=notrunc status=none");
	risky(RISK({ "prog", "bare.so" }),
	      "prog has no section table that would show exception tables");
}

/* A file that cannot be opened is a risk; only results about a file's content are cached. */
static void test_open_failure_is_no_verdict(void **state)
{
	struct kx_file_cache *cache = kx_file_cache_new();
	struct kx_module m = { .name = (char *)"prog", .device = 1, .changed = 1 };
	struct kx_modules mods = { .items = &m, .count = 1 };
	struct kx_unwind_risk risk;
	char path[512];

	(void)state;
	assert_non_null(cache);
	snprintf(path, sizeof(path), "%s", in_dir("plain.so"));
	m.open_path = (char *)"/proc/0/map_files/nowhere";
	kx_unwind_risk_look(&mods, cache, &risk);
	risky(risk, "prog cannot be read, so it may have exception tables");
	assert_true(risk.unknown);
	m.open_path = path;
	kx_unwind_risk_look(&mods, cache, &risk);
	harmless(risk);
	assert_false(risk.unknown);
	/* now the result is cached, and the file is not opened again */
	m.open_path = (char *)"/proc/0/map_files/nowhere";
	kx_unwind_risk_look(&mods, cache, &risk);
	harmless(risk);
	kx_file_cache_free(cache);
}

/* What is known of one module counts, whether another could be opened or not. */
static void test_unknown(void **state)
{
	struct kx_unwind_risk risk;

	(void)state;
	risk = RISK({ "prog", "not-there" }, { "libx.so", "plain.so" });
	assert_true(risk.unknown);
	risk = RISK({ "prog", "not-there" }, { "libx.so", "catch.so" }, { "liby.so", "not-there" });
	risky(risk, "libx.so has exception tables");
	assert_false(risk.unknown);
	risk = RISK({ "prog", "catch.so" }, { "libx.so", "not-there" });
	risky(risk, "prog has exception tables");
	assert_false(risk.unknown);
	/* not an ELF file: known */
	assert_false(RISK({ "prog", "plain.c" }).unknown);
}

static void test_go(void **state)
{
	struct kx_unwind_risk risk;

	(void)state;
	risk = RISK({ "prog", "catch.so" }, { "app", "go.so" });
	assert_true(risk.is_go);
	risky(risk, "app is written in Go, which moves its stacks");
}

static void test_linker(void **state)
{
	(void)state;
	assert_int_equal(RISK({ "prog", "plain.so" }).linker, -1);
	assert_int_equal(RISK({ "prog", "plain.so" }, { "libc.so.6", "plain.so" },
			      { "ld-linux-x86-64.so.2", "plain.so" })
				 .linker,
			 2);
	assert_int_equal(RISK({ "prog", "plain.so" }, { "ld-musl-x86_64.so.1", "plain.so" }).linker,
			 1);
}

/* Files that switch stacks; libcrypto does only for asynchronous jobs. */
static void test_switches(void **state)
{
	struct kx_unwind_risk risk;

	(void)state;
	write_file("coro.c", "void swapcontext(void);\nvoid f(void) { swapcontext(); }\n");
	write_file("switch.s", ".globl f\nf: mov %rsp, (%rdi)\nmov %rsi, %rsp\nret\n");
	sh("gcc -shared -fPIC -o coro.so coro.c && gcc -shared -nostdlib -o switch.so switch.s");
	risk = RISK({ "prog", "catch.so" }, { "libcoro.so", "coro.so" });
	assert_true(risk.switches_stacks);
	risky(risk, "libcoro.so uses swapcontext, so it switches stacks");
	risk = RISK({ "prog", "switch.so" });
	assert_true(risk.switches_stacks);
	assert_non_null(strstr(risk.reason, "prog has code that switches stacks"));
	/* Go is shown before all others */
	risky(RISK({ "prog", "coro.so" }, { "app", "go.so" }),
	      "app is written in Go, which moves its stacks");
	harmless(RISK({ "libc.so.6", "coro.so" }, { "libunwind.so.8", "switch.so" },
		      { "libffi.so.8", "switch.so" }));
	risk = RISK({ "prog", "plain.so" }, { "libcrypto.so.3", "coro.so" });
	harmless(risk);
	assert_string_equal(risk.may_switch, "libcrypto.so.3");
	kx_unwind_risk_unguarded(&risk);
	assert_true(risk.switches_stacks);
	assert_false(risk.returns_harmless);
	/* what can generate code can generate a switch of stacks */
	sh("printf 'int mprotect(void *, unsigned long, int); int f(void) { return mprotect(0, 0, 4); }' "
	   ">jit.c && gcc -shared -fPIC -o jit.so jit.c");
	risk = RISK({ "prog", "plain.so" }, { "libjemalloc.so.2", "jit.so" }, { "libjit.so.1", "jit.so" });
	harmless(risk);
	assert_string_equal(risk.may_switch, "libjit.so.1");
	kx_unwind_risk_unguarded(&risk);
	assert_true(risk.switches_stacks);
	risk = RISK({ "prog", "plain.so" });
	kx_unwind_risk_unguarded(&risk);
	harmless(risk);
}

/* Whoever may cancel threads at any instruction, but in processes where nothing is lost by that, and the C library itself. */
static void test_cancels(void **state)
{
	struct kx_unwind_risk risk;

	(void)state;
	sh("printf 'int pthread_setcanceltype(int, int *); int f(void) { return pthread_setcanceltype(1, 0); }' "
	   ">cancels.c && gcc -shared -fPIC -o cancels.so cancels.c");
	risk = RISK({ "prog", "catch.so" }, { "libx.so", "cancels.so" });
	assert_true(risk.leaves_unwind && kx_unwind_risk_covers_leaves(&risk));
	risky(risk, "prog has exception tables");
	risk = RISK({ "prog", "catch.so" });
	assert_false(risk.leaves_unwind);
	kx_unwind_risk_faults(&risk);
	assert_true(risk.leaves_unwind);
	risk = RISK({ "prog", "plain.so" }, { "libx.so", "cancels.so" });
	kx_unwind_risk_faults(&risk);
	assert_false(risk.leaves_unwind || kx_unwind_risk_covers_leaves(&risk));
	harmless(risk);
	assert_false(RISK({ "prog", "catch.so" }, { "libc.so.6", "cancels.so" }).leaves_unwind);
	assert_false(RISK({ "prog", "catch.so" }, { "libx.so", "plain.so" }).leaves_unwind);
}

/* Languages whose faults become exceptions, by the personality routine that their exception tables name: imported, or linked in. */
static void test_faults_that_throw(void **state)
{
	(void)state;
	sh("printf '.globl f\n.type f, @function\nf: .cfi_startproc\n.cfi_personality 0x9b, DW.ref.p\nret\n.cfi_endproc\n"
	   ".section .gcc_except_table,\"a\"\n.byte 0\n.data\n.hidden DW.ref.p\nDW.ref.p: .quad __gnat_personality_v0\n"
	   ".section .note.GNU-stack,\"\"\n' >ada.s && gcc -shared -o ada.so ada.s");
	sh("printf 'int __gnat_personality_v0(void) { return 1; }' >gnat.c && gcc -c -fvisibility=hidden gnat.c && "
	   "gcc -shared -o ada-static.so ada.s gnat.o");
	assert_true(RISK({ "prog", "ada.so" }).leaves_unwind);
	assert_true(RISK({ "prog", "ada-static.so" }).leaves_unwind);
	assert_true(RISK({ "prog", "plain.so" }, { "libada.so", "ada.so" }).leaves_unwind);
	assert_false(RISK({ "prog", "catch.so" }).leaves_unwind);
}

/* Modules that can load others later: those that import dlopen, except the C library itself. */
static void test_loader(void **state)
{
	(void)state;
	sh("printf 'void *dlopen(const char *, int); void *f(void) { return dlopen(\"x\", 1); }' "
	   ">loads.c && gcc -shared -fPIC -o loads.so loads.c");
	assert_string_equal(RISK({ "prog", "plain.so" }).loader, "");
	assert_string_equal(RISK({ "prog", "plain.so" }, { "libplug.so.1", "loads.so" }).loader,
			    "libplug.so.1");
	assert_string_equal(RISK({ "prog", "plain.so" }, { "libc.so.6", "loads.so" }).loader, "");
	harmless(RISK({ "prog", "loads.so" }));
}

/*
 * Programs of this machine: sh is plain C, a static C program carries libc's tables. sh opens a fifo, which
 * blocks; "echo; exec sleep" could be seen while it executes the next program.
 */
static void test_processes(void **state)
{
	char script[128], *const argv[] = { (char *)"sh", (char *)"-c", script, NULL };
	struct kx_unwind_risk risk;
	struct kx_modules mods;
	struct kx_err err;
	pid_t pid;

	(void)state;
	sh("mkfifo fifo");
	snprintf(script, sizeof(script), "echo; read x <%s", in_dir("fifo"));
	pid = target_start(argv);
	if (kx_modules_of_process(pid, &mods, &err))
		fail_msg("%s", err.text);
	kx_unwind_risk_of(&mods, &risk);
	harmless(risk);
	assert_true(risk.linker > 0);
	assert_true(strstr(mods.items[risk.linker].name, "ld-") != NULL);
	kx_modules_free(&mods);
	target_stop(pid);

	write_file("main.c", "int main(void) { return 0; }\n");
	sh("gcc -static main.c -o static");
	if (kx_modules_of_file(in_dir("static"), &mods, &err))
		fail_msg("%s", err.text);
	kx_unwind_risk_of(&mods, &risk);
	risky(risk, "static has exception tables");
	assert_int_equal(risk.linker, -1);
	kx_modules_free(&mods);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dispatched_calls), cmocka_unit_test(test_tables), cmocka_unit_test(test_runtimes),
		cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_open_failure_is_no_verdict), cmocka_unit_test(test_unknown), cmocka_unit_test(test_go),
		cmocka_unit_test(test_linker), cmocka_unit_test(test_switches),
		cmocka_unit_test(test_cancels),
		cmocka_unit_test(test_faults_that_throw), cmocka_unit_test(test_loader), cmocka_unit_test(test_processes),
	};

	return cmocka_run_group_tests(tests, build, target_teardown);
}
