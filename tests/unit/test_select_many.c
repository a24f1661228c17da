// SPDX-License-Identifier: BSD-2-Clause
/* Functions of several processes and of modules that are mapped later. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "cmd/cmd.h"
#include "select/select.h"
#include "select_rig.h"
#include "target.h"

/* A process that ends while its files are opened says nothing of the files that others have too. */
static void test_ended_process_is_no_risk(void **state)
{
	const char *include[] = { "libsome*:lib_*", NULL };
	struct kx_select_options o = { .include = include, .ninclude = 1, .exits = KX_EXITS_AUTO,
				       .dynamic_targets = true };
	struct kx_modules alive = modules_of("server"), some = modules_of("libsome.so.1");
	struct kx_module both[2] = { alive.items[0], some.items[0] }, gone[2];
	struct kx_modules mods[2] = { { .items = gone, .count = 2 }, { .items = both, .count = 2 } };
	struct kx_select_process procs[2] = { { 0, &mods[0] }, { 0, &mods[1] } };
	struct kx_selection sel;
	struct kx_err err = { 0 };

	(void)state;
	both[1].is_main = false;
	memcpy(gone, both, sizeof(gone));
	gone[0].path = gone[0].open_path = (char *)(uintptr_t)"/proc/0/map_files/nowhere";
	gone[0].inode++;
	for (int i = 0; i < 4; i++) {
		o.exits_decided = i % 2;
		procs[i / 2].mods = &mods[0];
		procs[!(i / 2)].mods = &mods[1];
		assert_int_equal(kx_select_functions(procs, 2, &o, &sel, &err), 0);
		assert_true(sel.risk.returns_harmless);
		assert_true(sel.modules[0].harmless);
		kx_selection_free(&sel);
	}
	/* a named process is not left without an answer */
	o.dynamic_targets = false;
	assert_int_equal(kx_select_functions(procs, 2, &o, &sel, &err), 0);
	assert_false(sel.risk.returns_harmless || sel.modules[0].harmless);
	kx_selection_free(&sel);
	kx_modules_free(&alive);
	kx_modules_free(&some);
}

/* A program, a library that it shares with others, and another program of the same name. */
struct growing {
	struct kx_modules server, some, other;
	const char *include[4];
	struct kx_select_options o;
	struct kx_select_process proc;
	struct kx_selection sel;
};

static const struct kx_unwind_risk good = { .returns_harmless = true }, bad = { .is_go = false };

static void start_growing(struct growing *g)
{
	sh("mkdir -p other && cp server other/server");
	*g = (struct growing){ .server = modules_of("server"), .some = modules_of("libsome.so.1"),
			       .other = modules_of("other/server"),
			       .include = { "tiny*", "libsome*:lib_*", "nothing.so:f", NULL },
			       .o = { .ninclude = 3, .exits = KX_EXITS_AUTO, .dynamic_targets = true } };
	g->o.include = g->include;
	g->some.items[0].is_main = false;
}

static int select_first(struct growing *g)
{
	struct kx_err err = { 0 };

	g->proc.mods = &g->server;
	return kx_select_functions(&g->proc, 1, &g->o, &g->sel, &err);
}

static int grow(struct growing *g, const struct kx_modules *mods, const struct kx_unwind_risk *risk)
{
	struct kx_err err = { 0 };

	g->proc.mods = mods;
	return kx_select_grow(&g->sel, &g->proc, risk, &err);
}

static void end_growing(struct growing *g)
{
	kx_selection_free(&g->sel);
	kx_modules_free(&g->other);
	kx_modules_free(&g->some);
	kx_modules_free(&g->server);
}

/* Modules mapped later. */
static void test_growing(void **state)
{
	struct growing g;
	char *place;

	(void)state;
	start_growing(&g);
	assert_int_equal(select_first(&g), 0);
	assert_int_equal(g.sel.ntraced, 2);
	assert_int_equal(g.sel.nmodules, 1);
	/* a module that is not mapped yet gives a note, a missing function an error */
	assert_int_equal(g.sel.nnotes, 2);
	assert_non_null(strstr(g.sel.notes[1], "no module matches 'nothing.so'"));

	/* the same file again: nothing new */
	assert_int_equal(grow(&g, &g.server, &good), 0);
	assert_int_equal(g.sel.nfunctions, 2);
	/* a library of a process that ends before the file is opened, and whose path names another */
	place = g.some.items[0].open_path;
	g.some.items[0].open_path = (char *)(uintptr_t)"/proc/0/map_files/nowhere";
	sh("mv libsome.so.1 away && cp away libsome.so.1");
	assert_int_equal(grow(&g, &g.some, &good), 0);
	assert_int_equal(g.sel.ntraced, 2);
	/* the failure is not cached: once the path leads to the file again, it is opened */
	sh("mv away libsome.so.1");
	assert_int_equal(grow(&g, &g.some, &good), 0);
	g.some.items[0].open_path = place;
	assert_int_equal(g.sel.ntraced, 4);
	assert_int_equal(g.sel.nmodules, 2);
	check_ids(&g.sel);
	assert_string_equal(g.sel.modules[g.sel.functions[3].module].module->name, "libsome.so.1");
	/* mapped by a process that throws: it decides when it is attached, for itself */
	assert_int_equal(grow(&g, &g.some, &bad), 0);
	assert_true(g.sel.modules[1].harmless);

	/* another file of the same name */
	assert_int_equal(grow(&g, &g.other, &bad), 0);
	assert_int_equal(g.sel.ntraced, 6);
	assert_int_equal(g.sel.nmodules, 3);
	assert_true(g.sel.modules[2].harmless);
	end_growing(&g);
}

/* Decided once, it is a harmful one: for all that map it later. */
static void test_growing_decided(void **state)
{
	struct growing g;

	(void)state;
	start_growing(&g);
	g.o.exits_decided = true;
	assert_int_equal(select_first(&g), 0);
	assert_int_equal(grow(&g, &g.other, &bad), 0);
	assert_int_equal(g.sel.nmodules, 2);
	assert_true(g.sel.modules[0].harmless);
	assert_false(g.sel.modules[1].harmless);
	end_growing(&g);
}

/* The limit applies to the sum; a module that exceeds it changes nothing. */
static void test_growing_limit(void **state)
{
	struct growing g;

	(void)state;
	start_growing(&g);
	g.o.max_functions = 3;
	assert_int_equal(select_first(&g), 0);
	assert_int_equal(grow(&g, &g.other, &good), -E2BIG);
	assert_int_equal(g.sel.ntraced, 2);
	end_growing(&g);
}

/* A file given by its path is selected before a process maps it; with match_later no pattern needs to match now. */
static void test_not_mapped_yet(void **state)
{
	char path[600], text[640];
	struct growing g;

	(void)state;
	start_growing(&g);
	snprintf(path, sizeof(path), "%s", in_dir("libsome.so.1"));
	snprintf(text, sizeof(text), "%s:lib_*", path);
	g.include[0] = text;
	g.o.ninclude = 1;
	assert_int_equal(select_first(&g), 0);
	assert_int_equal(g.sel.ntraced, 2);
	assert_string_equal(g.sel.modules[0].module->path, path);
	kx_selection_free(&g.sel);

	g.include[0] = "no_such_function";
	assert_int_equal(select_first(&g), -ENOENT);
	g.o.match_later = true;
	assert_int_equal(select_first(&g), 0);
	assert_int_equal(g.sel.ntraced, 0);
	end_growing(&g);
}

/* Two processes of different programs that share a library and libc. */
static void test_processes(void **state)
{
	char first[512], second[512];
	char *argv[] = { first, NULL }, *argv2[] = { second, NULL };
	struct kx_select_process procs[2];
	struct kx_modules mods[2];
	struct kx_selection sel;
	struct kx_err err = { 0 };
	size_t i, k, n = 0;

	(void)state;
	sh("cp server client");
	snprintf(first, sizeof(first), "%s", in_dir("server"));
	snprintf(second, sizeof(second), "%s", in_dir("client"));
	assert_int_equal(chdir(dir), 0);
	procs[0].pid = target_start(argv);
	procs[1].pid = target_start(argv2);
	assert_int_equal(chdir("/"), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(kx_modules_of_process(procs[i].pid, &mods[i], &err), 0);
		procs[i].mods = &mods[i];
	}
	if (try_select(procs, 2, 0, &sel, &err,
		       PATTERNS("+tiny", "+libsome*:lib_*", "+libc.so*:malloc")))
		fail_msg("%s", err.text);
	check_ids(&sel);
	/* tiny of both programs; the libraries' functions once */
	assert_int_equal(sel.ntraced, 2 + 2 + 1);
	assert_int_equal(sel.nmodules, 4);
	for (i = 0; i < sel.nfunctions; i++) {
		n += !strcmp(sel.functions[i].sym->name, "tiny");
		for (k = 0; k < i; k++)
			if (sel.functions[k].module == sel.functions[i].module)
				assert_true(sel.functions[k].sym->addr < sel.functions[i].sym->addr);
			else
				assert_true(sel.functions[k].module < sel.functions[i].module);
	}
	assert_int_equal(n, 2);
	assert_string_equal(sel.modules[0].module->name, "server");
	assert_string_equal(sel.modules[3].module->name, "client");
	kx_selection_free(&sel);

	select_fails(procs, 2, 0, -ENOENT, "did you mean lib_one in libsome.so.1 (-f 'libsome.so*:lib_one')",
		     PATTERNS("+lib_one"));
	select_fails(procs, 2, 0, -ENOENT, "libsome.so.1, ", PATTERNS("+libnone*:x"));
	for (i = 0; i < 2; i++) {
		kx_modules_free(&mods[i]);
		target_stop(procs[i].pid);
	}
}

/* llvm-xray assigns ids in the order of the binary's own table; kxray must do the same. */
/* Plans of several files, made in threads, are those that are made of each file alone. */
static void test_threads(void **state)
{
	static const char *const paths[] = { "/lib/x86_64-linux-gnu/libc.so.6",
					     "/usr/lib/x86_64-linux-gnu/libstdc++.so.6" };
	struct kx_select_process procs[2];
	struct kx_selection both, alone;
	struct kx_modules mods[2];
	struct kx_err err = { 0 };
	size_t at = 0, left_out = 0;

	(void)state;
	for (int i = 0; i < 2; i++) {
		if (access(paths[i], R_OK))
			skip();
		assert_int_equal(kx_modules_of_file(paths[i], &mods[i], &err), 0);
		procs[i] = (struct kx_select_process){ .mods = &mods[i] };
	}
	assert_int_equal(try_select(procs, 2, 0, &both, &err, PATTERNS("+*")), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(try_select(&procs[i], 1, 0, &alone, &err, PATTERNS("+*")), 0);
		assert_true(alone.nfunctions > 2000);
		for (size_t k = 0; k < alone.nfunctions; k++, at++) {
			const struct kx_function *a = &alone.functions[k], *b = &both.functions[at];

			assert_int_equal(b->id, at + 1);
			assert_string_equal(a->sym->name, b->sym->name);
			assert_int_equal(a->plan.entry.addr, b->plan.entry.addr);
			assert_int_equal(a->plan.entry.cost, b->plan.entry.cost);
			assert_int_equal(a->plan.makes_calls, b->plan.makes_calls);
			assert_int_equal(a->plan.instructions, b->plan.instructions);
		}
		left_out += alone.nleft_out;
		kx_selection_free(&alone);
	}
	assert_int_equal(at, both.nfunctions);
	assert_int_equal(left_out, both.nleft_out);
	kx_selection_free(&both);
	for (int i = 0; i < 2; i++)
		kx_modules_free(&mods[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ended_process_is_no_risk),
		cmocka_unit_test(test_growing),
		cmocka_unit_test(test_growing_decided),
		cmocka_unit_test(test_growing_limit),
		cmocka_unit_test(test_not_mapped_yet),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, build, target_teardown);
}
