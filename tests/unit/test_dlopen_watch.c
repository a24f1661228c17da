// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "attach/dlopen_watch.h"
#include "select/select.h"
#include "target.h"

#ifndef __SANITIZE_ADDRESS__ /* which brings a calloc of its own */
static unsigned failing; /* counts down to the allocation that fails; 0: none does */

void *__libc_calloc(size_t n, size_t size);

void *calloc(size_t n, size_t size)
{
	return failing && !--failing ? NULL : __libc_calloc(n, size);
}
#endif

static const char prog_source[] =
	"__attribute__((noinline)) int leaf(int x) { return x * 3; }\n"
	"int lib_caller(int);\n"
	"__attribute__((noinline)) int caller(int x) { return leaf(x) + leaf(x + 1) + 1; }\n"
	"int main(int argc, char **argv) { (void)argv; return caller(argc) + lib_caller(argc); }\n";
static const char lib_source[] =
	"__attribute__((noinline)) int lib_leaf(int x) { return x + 7; }\n"
	"int lib_caller(int x) { return lib_leaf(x) * lib_leaf(x + 2) + 1; }\n";

static int build(void **state)
{
	if (target_setup(state))
		return -1;
	write_file("prog.c", prog_source);
	write_file("lib.c", lib_source);
	sh("gcc -O1 -fno-inline -fno-ipa-cp -fcf-protection=none -shared -fPIC lib.c -o libx.so && "
	   "gcc -O1 -fno-inline -fno-ipa-cp -fcf-protection=none prog.c ./libx.so -o prog");
	return 0;
}

static struct kx_modules prog, lib;

static void choose(const char *const *include, size_t n, enum kx_exits exits,
		   struct kx_selection *sel)
{
	const struct kx_select_options o = { .include = include, .ninclude = n, .exits = exits };
	struct kx_module items[2];
	const struct kx_modules mods = { .items = items, .count = 2 };
	const struct kx_select_process proc = { 0, &mods };
	struct kx_err err = { 0 };

	assert_int_equal(kx_modules_of_file(in_dir("prog"), &prog, &err), 0);
	assert_int_equal(kx_modules_of_file(in_dir("libx.so"), &lib, &err), 0);
	items[0] = prog.items[0];
	items[1] = lib.items[0];
	items[1].is_main = false;
	if (kx_select_functions(&proc, 1, &o, sel, &err))
		fail_msg("%s", err.text);
	assert_int_equal(sel->ntraced, n);
}

static void done(struct kx_selection *sel)
{
	kx_selection_free(sel);
	kx_modules_free(&prog);
	kx_modules_free(&lib);
}

static void needed_is(bool expected, const char *pattern, enum kx_exits exits)
{
	struct kx_selection sel;

	choose(&pattern, 1, exits, &sel);
	assert_int_equal(kx_dlopen_watch_needed(&sel), expected);
	done(&sel);
}

/* Only return probes of functions that make calls can become harmful later. */
static void test_needed(void **state)
{
	(void)state;
	needed_is(true, "caller", KX_EXITS_AUTO);
	needed_is(true, "libx.so:lib_caller", KX_EXITS_AUTO);
	needed_is(false, "leaf", KX_EXITS_AUTO);
	needed_is(false, "caller", KX_EXITS_INSTRUCTION);
	needed_is(false, "caller", KX_EXITS_NONE);
	/* a system call is planned with a return, but not by a return probe */
	needed_is(false, "syscall:openat", KX_EXITS_AUTO);
}

static const struct kx_plan *plan_of(const struct kx_selection *sel, struct kx_plan **plans,
				     const char *name)
{
	for (size_t i = 0; i < sel->nfunctions; i++)
		if (!strcmp(sel->functions[i].sym->name, name))
			return plans[i];
	fail_msg("%s is not selected", name);
	return NULL;
}

/* The functions that would lose their return probes, of one module or of all. */
static void test_plan_exits(void **state)
{
	static const char *const include[] = { "caller", "leaf", "libx.so:lib_caller",
					       "syscall:openat" };
	const struct kx_plan *plan;
	struct kx_selection sel;
	struct kx_plan **plans;
	uint32_t module = 0;

	(void)state;
	choose(include, 4, KX_EXITS_AUTO, &sel);
	plans = kx_dlopen_watch_plan_exits(&sel, KX_EVERY_MODULE, KX_DROP_CALLERS);
	assert_non_null(plans);
	plan = plan_of(&sel, plans, "caller");
	assert_non_null(plan);
	assert_int_equal(plan->exit_kind, KX_EXITS_INSTRUCTION);
	assert_int_equal(plan->nexits, 1);
	assert_non_null(plan_of(&sel, plans, "lib_caller"));
	assert_null(plan_of(&sel, plans, "leaf"));
	assert_null(plan_of(&sel, plans, "openat"));
	kx_dlopen_watch_free_plans(plans, sel.nfunctions);

	for (size_t i = 0; i < sel.nfunctions; i++)
		if (!strcmp(sel.functions[i].sym->name, "lib_caller"))
			module = sel.functions[i].module;
	plans = kx_dlopen_watch_plan_exits(&sel, module, KX_DROP_CALLERS);
	assert_non_null(plans);
	assert_null(plan_of(&sel, plans, "caller"));
	assert_non_null(plan_of(&sel, plans, "lib_caller"));
	kx_dlopen_watch_free_plans(plans, sel.nfunctions);
	done(&sel);
}

#ifndef __SANITIZE_ADDRESS__
/* A function whose exits could not be planned for want of memory must not look like one without exits. */
static void test_no_memory(void **state)
{
	static const char *const include[] = { "caller", "libx.so:lib_caller" };
	struct kx_selection sel;
	struct kx_plan **plans;
	unsigned n = 1;
	bool failed;

	(void)state;
	choose(include, 2, KX_EXITS_AUTO, &sel);
	do {
		failing = n;
		plans = kx_dlopen_watch_plan_exits(&sel, KX_EVERY_MODULE, KX_DROP_CALLERS);
		failed = !failing;
		failing = 0;
		assert_int_equal(plans == NULL, failed);
		n++;
	} while (failed);
	assert_in_range(n, 5, 100); /* the array and two plans failed, and once nothing */
	kx_dlopen_watch_free_plans(plans, sel.nfunctions);
	done(&sel);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_needed),
		cmocka_unit_test(test_plan_exits),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(test_no_memory),
#endif
	};

	return cmocka_run_group_tests(tests, build, target_teardown);
}
