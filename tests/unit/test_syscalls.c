// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/pattern.h"
#include "select/syscall_names.h"
#include "bpf/wire.h"

static struct kx_symbols syms;

static int read_symbols(void **state)
{
	struct kx_err err;

	(void)state;
	return kx_syscall_symbols(&syms, &err);
}

static int free_symbols(void **state)
{
	(void)state;
	kx_symbols_free(&syms);
	return 0;
}

static const struct kx_symbol *by_name(const char *name)
{
	for (size_t i = 0; i < syms.count; i++)
		if (!strcmp(syms.items[i].name, name))
			return &syms.items[i];
	return NULL;
}

static void is(const char *name, unsigned number)
{
	const struct kx_symbol *sym = by_name(name);

	if (!sym)
		fail_msg("%s is not there", name);
	assert_int_equal(kx_syscall_number(sym), number);
}

/* The C library's headers have the numbers from the kernel's own. */
#define IS(name) is(#name, SYS_##name)

static void test_numbers(void **state)
{
	(void)state;
	is("read", 0);
	is("write", 1);
	is("openat", 257);
	IS(read);
	IS(write);
	IS(openat);
	IS(close);
	IS(mmap);
	IS(rt_sigreturn);
	IS(pread64);
	IS(clone);
	IS(fork);
	IS(vfork);
	IS(execve);
	IS(execveat);
	IS(exit);
	IS(exit_group);
	IS(wait4);
	IS(newfstatat);
	IS(getppid);
	IS(gettid);
	IS(futex);
	IS(restart_syscall);
	IS(epoll_wait);
	IS(clone3);
	IS(close_range);
	IS(openat2);
	IS(io_uring_enter);
	IS(bpf);
	IS(rseq);
	/* newer than this machine's headers, perhaps */
	is("futex_waitv", 449);
	is("cachestat", 451);
	is("mseal", 462);
}

/* Sorted, one name and one address for each number, found again by its address. */
static void test_order(void **state)
{
	(void)state;
	assert_true(syms.count > 330 && syms.count < KX_MAX_SYSCALLS);
	for (size_t i = 0; i < syms.count; i++) {
		const struct kx_symbol *s = &syms.items[i];

		assert_true(s->addr && s->size);
		assert_ptr_equal(s->name, s->pretty);
		assert_ptr_equal(by_name(s->name), s);
		assert_ptr_equal(kx_symbols_find(&syms, s->addr), s);
		assert_true(!i || kx_syscall_number(s) > kx_syscall_number(s - 1));
		assert_true(!i || s->addr >= s[-1].addr + s[-1].size);
	}
}

/* System calls of newer kernels have names, too; unused numbers have none. */
static void test_unknown(void **state)
{
	(void)state;
	is("syscall_511", 511);
	assert_int_equal(kx_syscall_number(&syms.items[syms.count - 1]), KX_MAX_SYSCALLS - 1);
	assert_null(by_name("syscall_400"));
	/* the kernel's own probes use these */
	assert_null(by_name("uretprobe"));
	assert_null(by_name("uprobe"));
	assert_null(by_name("syscall_335"));
	assert_null(by_name("syscall_336"));
}

static void test_patterns(void **state)
{
	static const char *const none[] = { "main", "libc.so*:read", "kernel:*", ":bad", "x:" };
	static const char *const one[] = { "main", "syscall:read" };

	(void)state;
	assert_false(kx_patterns_in_space(none, 5, KX_PATTERN_SYSCALL));
	assert_false(kx_patterns_in_space(NULL, 0, KX_PATTERN_SYSCALL));
	assert_true(kx_patterns_in_space(one, 2, KX_PATTERN_SYSCALL));
	assert_false(kx_patterns_in_space(one, 1, KX_PATTERN_SYSCALL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_patterns),
	};

	return cmocka_run_group_tests(tests, read_symbols, free_symbols);
}
