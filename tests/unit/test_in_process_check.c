// SPDX-License-Identifier: BSD-2-Clause
// run: parallel, 12 s, without root
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "attach/in_process_check.h"
#include "attach/recorder_code.h"
#include "attach/risky_calls.h"
#include "tracer/process_state.h"
#include "in_process_check_rig.h"
#include "target.h"

/* What a library of this source is refused for, "" if for nothing. */
static const char *refusal(const char *source, bool of_module, bool *cancels)
{
	static struct kx_err err;
	struct kx_elf *elf;
	char text[2048];
	int code;

	snprintf(text, sizeof(text),
		 "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <pthread.h>\n#include <stdio.h>\n#include "
		 "<sys/mman.h>\n#include <sys/prctl.h>\n"
		 "#include <sys/syscall.h>\n#include <unistd.h>\n%s\n",
		 source);
	write_file("risky.c", text);
	sh("gcc -O2 -shared -fPIC -o risky.so risky.c");
	if (kx_elf_open(in_dir("risky.so"), &elf, &err))
		fail_msg("%s", err.text);
	*cancels = false;
	err.text[0] = 0;
	code = of_module ? kx_risky_calls_of_module(elf, &err) : kx_risky_calls_of_process(elf, "risky.so", cancels, &err);
	assert_int_equal(code, err.text[0] ? -EOPNOTSUPP : 0);
	kx_elf_close(elf);
	return err.text;
}

static const char *of_process(const char *source)
{
	bool cancels;
	const char *text = refusal(source, false, &cancels);

	assert_false(cancels);
	return text;
}

static const char *of_module(const char *source)
{
	bool cancels;

	return refusal(source, true, &cancels);
}

#define UNKNOWN "risky.so calls prctl with an argument that is not known, so it may forbid the time stamp counter"
#define TSC	"risky.so calls prctl(PR_SET_TSC), which may forbid the time stamp counter"
#define RAW(before)                                                                     \
	"long f(long n) { long r; asm volatile(\"syscall\" : \"=a\"(r) : \"a\"(" before \
	") : \"rcx\", \"r11\", \"memory\"); return r; }"

static void test_clock(void **state)
{
	(void)state;
	assert_string_equal(of_process("int f(void) { return prctl(PR_SET_NAME, \"x\", 0, 0, 0); }"), "");
	assert_string_equal(of_process("int f(void) { return prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0); }"), TSC);
	assert_string_equal(of_process("int f(void) { return prctl(PR_SET_SECCOMP, 1, 0, 0, 0); }"),
			    "risky.so calls prctl(PR_SET_SECCOMP)");
	assert_string_equal(of_process("int f(int n) { return prctl(n, 1, 0, 0, 0); }"), UNKNOWN);
	assert_string_equal(of_process("int (*f)(int, ...) = prctl;"), UNKNOWN);
	assert_string_equal(of_process("long f(void) { return syscall(SYS_gettid); }"), "");
	assert_string_equal(of_process("long f(void) { return syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV); }"), TSC);
	assert_string_equal(of_process("long f(void) { return syscall(SYS_prctl, PR_SET_NAME, \"x\"); }"), "");
	assert_string_equal(of_process("long f(void) { return syscall(SYS_seccomp, 0, 0, 0); }"), "risky.so calls seccomp");
	assert_string_equal(of_process("long f(long n) { return syscall(n, 0, 0, 0); }"),
			    "risky.so makes a system call that is not known, so it may forbid the time stamp counter");
	assert_string_equal(of_process(RAW("39L")), "");
	assert_string_equal(of_process(RAW("(long)SYS_prctl")), UNKNOWN);
	assert_string_equal(of_process(RAW("n")),
			    "risky.so makes a system call that is not known, so it may forbid the time stamp counter");
}

/* What a call by `int $0x80` or by the x32 ABI is, and calls that only harm code of others. */
static void test_other_calls(void **state)
{
	static const char base[] = "risky.so %s, so it may use the thread pointer for something else";
	char text[160];

	(void)state;
	assert_string_equal(of_process("int f(void) { int r; __asm__ volatile(\"int $0x80\" : \"=a\"(r) : \"a\"(172), \"b\"(26), \"c\"(2)); return r; }"),
			    "risky.so makes a system call that is not known, so it may forbid the time stamp counter");
	assert_string_equal(of_process("long f(void) { return syscall(0x40000000 | SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV); }"), TSC);
	assert_string_equal(of_process("int f(char *p) { return prctl(59, 1, 0, 0, p); }"),
			    "risky.so calls prctl(PR_SET_SYSCALL_USER_DISPATCH), which may forbid libc's system calls");
	snprintf(text, sizeof(text), base, "calls arch_prctl(ARCH_SET_FS)");
	assert_string_equal(of_process("int arch_prctl(int, long); int f(void) { return arch_prctl(0x1002, 5); }"), text);
	assert_string_equal(of_process("long f(void) { return syscall(SYS_arch_prctl, 0x1002, 5); }"), text);
	assert_string_equal(of_process("long f(long *p) { return syscall(SYS_arch_prctl, 0x1003, p); }"), "");
	snprintf(text, sizeof(text), base, "has the instruction wrfsbase");
	assert_string_equal(of_process("void f(long n) { __asm__ volatile(\"wrfsbase %0\" :: \"r\"(n)); }"), text);
	assert_string_equal(of_process("void f(int n) { __asm__ volatile(\"wrfsbase %0\" :: \"r\"(n)); }"), text);
	assert_string_equal(of_process("void f(long n) { __asm__ volatile(\"wrgsbase %0\" :: \"r\"(n)); }"), "");
}

/* Threads with a thread pointer of their own, which may be none: refused where the recorder cannot tell. */
static void test_other_threads(void **state)
{
	const char *refused = kx_recorder_tcb_by_here() == KX_RECORDER_TCB_BY_FSBASE ?
				      "" :
				      "risky.so may start threads that the C library does not know of (clone with CLONE_SETTLS), which cannot "
				      "be told on this machine (it has no rdfsbase)";

	(void)state;
	assert_string_equal(of_process("#include <sched.h>\nint f(int (*t)(void *), char *s) { return clone(t, s, CLONE_VM | CLONE_SETTLS, 0, 0, s, 0); }"),
			    refused);
	assert_string_equal(of_process("#include <sched.h>\nint f(int (*t)(void *), char *s, int n) { return clone(t, s, n, 0, 0, s, 0); }"), refused);
	assert_string_equal(of_process("#include <sched.h>\nlong f(void) { return syscall(SYS_clone, CLONE_VM | CLONE_SETTLS, 0, 0, 0, 0); }"), refused);
	assert_string_equal(of_process("long f(long *p) { return syscall(SYS_clone3, p, 88); }"), refused);
	assert_string_equal(of_process("#include <sched.h>\n#include <signal.h>\nint f(int (*t)(void *), char *s) { return clone(t, s, CLONE_VM | SIGCHLD, 0); }\n"
				       "long g(void) { return syscall(SYS_clone, 17, 0, 0, 0, 0); }\n"
				       "int h(pthread_t *t, void *(*f)(void *)) { return pthread_create(t, 0, f, 0) + fork() + vfork(); }"),
			    "");
}

static void test_looked_up(void **state)
{
	(void)state;
	assert_string_equal(of_process("void *f(void) { return dlsym(RTLD_NEXT, \"prctl\"); }"),
			    "risky.so looks up prctl at run time, so it may forbid the time stamp counter");
	assert_string_equal(of_module("void *f(void) { return dlsym(RTLD_NEXT, \"mprotect\"); }"),
			    "it looks up mprotect at run time, so it may change its own code");
	assert_string_equal(of_module("void *f(void) { return dlsym(RTLD_NEXT, \"my mprotect\"); }"), "");
	assert_string_equal(of_process("void *f(void) { return dlsym(RTLD_NEXT, \"read\"); }"), "");
	/* a message */
	assert_string_equal(of_process("void f(void) { perror(\"prctl\"); }"), "");
}

static void test_cancels(void **state)
{
	bool cancels;

	(void)state;
	refusal("int f(void) { return pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0); }", false, &cancels);
	assert_true(cancels);
	refusal("int f(int n) { return pthread_setcanceltype(n, 0); }", false, &cancels);
	assert_true(cancels);
	refusal("int f(void) { return pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, 0); }", false, &cancels);
	assert_false(cancels);
}

#define EXECUTABLE "it may make memory executable, so it may change its own code"

static void test_executable(void **state)
{
	(void)state;
	assert_string_equal(of_module("int f(void *p) { return mprotect(p, 4096, PROT_NONE); }"), "");
	assert_string_equal(of_module("int f(void *p, int n) { if (n) n = mprotect(p, 4096, PROT_READ); return n + "
				      "mprotect(p, 8192, PROT_READ | PROT_WRITE); }"),
			    "");
	assert_string_equal(of_module("int f(void *p) { return mprotect(p, 4096, PROT_READ | PROT_EXEC); }"), EXECUTABLE);
	assert_string_equal(of_module("int f(void *p, int n) { return mprotect(p, 4096, n); }"), EXECUTABLE);
	assert_string_equal(of_module("int f(void *p) { return pkey_mprotect(p, 4096, PROT_READ, 1); }"), "");
	assert_string_equal(of_module("int f(void *p) { return pkey_mprotect(p, 4096, PROT_EXEC, 1); }"), EXECUTABLE);
	assert_string_equal(of_module("long f(void *p) { return syscall(SYS_mprotect, p, 4096, PROT_READ | PROT_WRITE); }"),
			    "");
	assert_string_equal(of_module("long f(void *p) { return syscall(SYS_mprotect, p, 4096, PROT_EXEC); }"), EXECUTABLE);
	assert_string_equal(of_module("long f(void) { return syscall(SYS_gettid); }"), "");
	assert_string_equal(of_module(RAW("10L")), EXECUTABLE);
}

/* What the library or program @name among the modules of a started process is refused for. */
static const char *module_verdict(pid_t pid, const char *name)
{
	static struct kx_err err;
	struct kx_modules mods;
	bool found = false;
	int code = 0;

	if (kx_modules_of_process(pid, &mods, &err))
		fail_msg("%s", err.text);
	err.text[0] = 0;
	for (size_t i = 0; i < mods.count; i++)
		if (!strcmp(mods.items[i].name, name)) {
			found = true;
			code = kx_in_process_check_module(pid, &mods.items[i], &err);
		}
	assert_true(found);
	assert_int_equal(code, err.text[0] ? -EOPNOTSUPP : 0);
	kx_modules_free(&mods);
	return err.text;
}

static void test_module(void **state)
{
	pid_t pid;

	(void)state;
	write_file("part.c", "int part(int n) { return n + 1; }\n");
	sh("gcc -shared -fPIC -o libpart.so part.c && echo '.section xray_instr_map,\"a\"; .quad 0; .text; .globl sled; "
	   "sled: ret' >sleds.s && gcc -shared -nostdlib -o libsleds.so sleds.s");
	build("part(1)", "-L. -lpart -Wl,--no-as-needed -lsleds " HERE);
	pid = start();
	assert_string_equal(module_verdict(pid, "program"), "");
	assert_string_equal(module_verdict(pid, "libpart.so"), "");
	assert_string_equal(module_verdict(pid, "libc.so.6"), "");
	assert_string_equal(module_verdict(pid, "libsleds.so"), "it has XRay sleds, which it may patch itself");
	target_stop(pid);
}

#define PAGE_OF_PART "char *page = (char *)((unsigned long)part & ~4095ul);"

static void test_mappings(void **state)
{
	static const char *const bodies[][2] = {
		{ PAGE_OF_PART "mprotect(page, 4096, 7)",
		  "its code is writable: it may change itself, or another recording has its jumps there" },
		{ PAGE_OF_PART
		  "mmap(page, 4096, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, open(\"libpart.so\", 0), 4096)",
		  "its code is a shared mapping of the file" },
		{ PAGE_OF_PART "char copy[4096]; memcpy(copy, page, 4096); mmap(page, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS "
			       "| MAP_FIXED, -1, 0);"
			       "memcpy(page, copy, 4096)",
		  "its code is not where the file was mapped" },
		{ "part(1); dlmopen(LM_ID_NEWLM, \"./libpart.so\", RTLD_NOW)",
		  "its code is mapped at several places, of which jumps would be at one" },
	};

	(void)state;
	write_file("part.c", "int part(int n) { return n + 1; } int rest(int n) { __asm__(\".p2align 14\"); return n; }\n");
	sh("gcc -O1 -shared -fPIC -o libpart.so part.c");
	assert_int_equal(chdir(dir), 0);
	for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
		pid_t pid;

		build(bodies[i][0], "-L. -lpart -Wl,-z,now -D_GNU_SOURCE -include fcntl.h -include dlfcn.h " HERE);
		pid = start();
		assert_string_equal(module_verdict(pid, "libpart.so"), bodies[i][1]);
		target_stop(pid);
	}
	assert_int_equal(chdir("/"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clock),
		cmocka_unit_test(test_other_calls),
		cmocka_unit_test(test_other_threads),
		cmocka_unit_test(test_looked_up),
		cmocka_unit_test(test_cancels),
		cmocka_unit_test(test_executable),
		cmocka_unit_test(test_module),
		cmocka_unit_test(test_mappings),
	};

	return cmocka_run_group_tests(tests, target_setup, target_teardown);
}
