// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>

#include "cmd/cmd.h"
#include "select/select.h"
#include "select_rig.h"
#include "target.h"

static struct kx_selection select_file(const struct kx_modules *mods, const char *const *patterns)
{
	struct kx_select_process proc = { 0, mods };
	struct kx_selection sel;
	struct kx_err err = { 0 };

	if (try_select(&proc, 1, 0, &sel, &err, patterns))
		fail_msg("%s", err.text);
	return sel;
}

static const struct kx_function *find(const struct kx_selection *sel, const char *name)
{
	size_t i;

	for (i = 0; i < sel->nfunctions; i++)
		if (!strcmp(sel->functions[i].sym->name, name))
			return &sel->functions[i];
	return NULL;
}

static void test_patterns(void **state)
{
	struct kx_modules mods = modules_of("server");
	struct kx_selection sel = select_file(&mods, PATTERNS("+tiny*", "+looping", "+tiny"));
	size_t i;

	(void)state;
	check_ids(&sel);
	assert_int_equal(sel.ntraced, 3);
	assert_int_equal(sel.nmodules, 1);
	assert_false(sel.by_size);
	assert_int_equal(sel.nleft_out, 0);
	assert_int_equal(sel.nnotes, 0);
	assert_string_equal(sel.modules[0].module->path, mods.items[0].path);
	assert_non_null(find(&sel, "tiny"));
	assert_non_null(find(&sel, "tiny_two"));
	assert_true(find(&sel, "looping")->plan.has_loop);
	assert_false(find(&sel, "tiny")->plan.has_loop);
	for (i = 1; i < 3; i++)
		assert_true(sel.functions[i - 1].sym->addr < sel.functions[i].sym->addr);
	kx_selection_free(&sel);

	sel = select_file(&mods, PATTERNS("+tiny*", "-tiny"));
	assert_int_equal(sel.ntraced, 1);
	assert_non_null(find(&sel, "tiny_two"));
	assert_int_equal(sel.nnotes, 0);
	kx_selection_free(&sel);

	/* a message reports an exclude pattern without effect */
	sel = select_file(&mods, PATTERNS("+tiny*", "-mispelt"));
	assert_int_equal(sel.ntraced, 2);
	assert_int_equal(sel.nnotes, 1);
	assert_non_null(strstr(sel.notes[0], "mispelt"));
	kx_selection_free(&sel);
	kx_modules_free(&mods);
}

static void test_by_size(void **state)
{
	struct kx_modules mods = modules_of("server");
	struct kx_selection sel = select_file(&mods, NO_PATTERNS);

	(void)state;
	assert_true(sel.by_size);
	check_ids(&sel);
	assert_non_null(find(&sel, "looping"));
	assert_non_null(find(&sel, "huge"));
	assert_true(find(&sel, "huge")->plan.instructions >= 200);
	assert_non_null(find(&sel, "main")); /* for (;;) */
	assert_null(find(&sel, "tiny"));
	assert_null(find(&sel, "impl"));
	assert_null(find(&sel, "late"));
	assert_int_equal(sel.nleft_out, 0);
	kx_selection_free(&sel);

	sel = select_file(&mods, PATTERNS("-huge"));
	assert_null(find(&sel, "huge"));
	assert_non_null(find(&sel, "looping"));
	kx_selection_free(&sel);
	kx_modules_free(&mods);

	mods = modules_of("libsome.so.1");
	select_fails(&(struct kx_select_process){ 0, &mods }, 1, 0, -ENOENT, "-f '*'",
		     PATTERNS("-_*", "-*_tm_clones", "-frame_dummy"));
	kx_modules_free(&mods);
}

static bool is_another(void *ctx, const struct kx_module *module, const struct kx_symbol *sym, const struct kx_plan *plan)
{
	(void)module;
	(void)plan;
	return strcmp(sym->name, ctx) != 0;
}

/* More than the limit: those with the fewest single-stepped probes are taken, the largest first, and it is said. */
static void test_by_size_limit(void **state)
{
	struct kx_modules mods = modules_of("server");
	struct kx_select_process proc = { 0, &mods };
	struct kx_selection all = select_file(&mods, NO_PATTERNS), sel;
	const char *everything = "*";
	struct kx_select_options o = { .exits = KX_EXITS_NONE, .max_functions = 2, .wanted = is_another };
	struct kx_err err = { 0 };

	(void)state;
	assert_true(all.ntraced > 2);
	assert_int_equal(all.nnotes, 0);
	for (size_t max = 1; max < all.ntraced; max++) {
		assert_int_equal(try_select(&proc, 1, max, &sel, &err, NO_PATTERNS), 0);
		check_ids(&sel);
		assert_int_equal(sel.ntraced, max);
		assert_int_equal(sel.nfunctions, max);
		assert_non_null(strstr(sel.notes[0], "more than the limit of"));
		/* no function that is missing is better than one that is there */
		for (size_t i = 0; i < all.nfunctions; i++) {
			const struct kx_plan *out = &all.functions[i].plan;

			if (find(&sel, all.functions[i].sym->name))
				continue;
			for (size_t k = 0; k < sel.nfunctions; k++) {
				const struct kx_plan *in = &sel.functions[k].plan;
				bool stepped_in = in->entry.cost == KX_COST_STEPPED;
				bool stepped_out = out->entry.cost == KX_COST_STEPPED;

				assert_true(stepped_in <= stepped_out);
				if (stepped_in == stepped_out)
					assert_true(in->instructions >= out->instructions);
			}
		}
		kx_selection_free(&sel);
	}

	kx_selection_free(&all);

	/* what is not wanted makes no room for others */
	assert_int_equal(try_select(&proc, 1, 2, &sel, &err, NO_PATTERNS), 0);
	o.wanted_ctx = (void *)(uintptr_t)sel.functions[0].sym->name;
	assert_int_equal(kx_select_functions(&proc, 1, &o, &all, &err), 0);
	check_ids(&all);
	assert_int_equal(all.ntraced, 1);
	assert_string_equal(all.functions[0].sym->name, sel.functions[1].sym->name);
	kx_selection_free(&all);
	kx_selection_free(&sel);

	/* by the caller's wish also where patterns name them; else it is an error */
	o.wanted = NULL;
	o.include = &everything;
	o.ninclude = 1;
	assert_int_equal(kx_select_functions(&proc, 1, &o, &sel, &err), -E2BIG);
	o.best = true;
	assert_int_equal(kx_select_functions(&proc, 1, &o, &sel, &err), 0);
	check_ids(&sel);
	assert_int_equal(sel.ntraced, 2);
	kx_selection_free(&sel);
	kx_modules_free(&mods);
}

static void test_ifunc(void **state)
{
	struct kx_modules mods = modules_of("server");
	struct kx_select_process proc = { 0, &mods };
	struct kx_selection sel = select_file(&mods, PATTERNS("+late", "+tiny"));

	(void)state;
	assert_int_equal(sel.ntraced, 1);
	assert_int_equal(sel.nleft_out, 1);
	assert_string_equal(sel.left_out[0].sym->name, "late");
	assert_non_null(strstr(sel.left_out[0].reason, "resolve"));
	kx_selection_free(&sel);
	select_fails(&proc, 1, 0, -EOPNOTSUPP, "late in server cannot be traced", PATTERNS("+late"));
	kx_modules_free(&mods);
}

/* System calls are not in a binary: they need no process, and follow a process's functions. */
static void test_system_calls(void **state)
{
	struct kx_modules mods = modules_of("server");
	struct kx_selection sel = select_file(&mods, PATTERNS("+syscall:pread*", "+tiny"));
	const struct kx_function *f = find(&sel, "pread64");
	struct kx_err err = { 0 };

	(void)state;
	check_ids(&sel);
	assert_non_null(f);
	assert_non_null(find(&sel, "tiny"));
	assert_int_equal(sel.ntraced, 1 + 3); /* preadv, preadv2 */
	assert_int_equal(sel.modules[f->module].provider->space, KX_PATTERN_SYSCALL);
	assert_string_equal(sel.modules[f->module].module->name, "syscall");
	assert_int_equal(f->plan.entry.cost, KX_COST_KERNEL);
	assert_true(f->traced && f->plan.args == 6);
	assert_true(kx_select_has_others(&sel, KX_PROBE_UPROBE));
	kx_selection_free(&sel);
	kx_modules_free(&mods);
	if (try_select(NULL, 0, 0, &sel, &err, PATTERNS("+syscall:*", "-syscall:syscall_*")))
		fail_msg("%s", err.text);
	assert_int_equal(sel.nmodules, 1);
	assert_null(find(&sel, "syscall_511"));
	assert_non_null(find(&sel, "openat"));
	kx_selection_free(&sel);
}

static void test_no_match(void **state)
{
	struct kx_modules mods = modules_of("server"), bare;
	struct kx_select_process proc = { 0, &mods };

	(void)state;
	select_fails(&proc, 1, 0, -ENOENT,
		     "no function of 'server' matches 'tinny'; did you mean tiny", PATTERNS("+tinny"));
	select_fails(&proc, 1, 0, -ENOENT, "none comes close", PATTERNS("+xxxxxxxxxx"));
	select_fails(&proc, 1, 0, -ENOENT, "there is only server", PATTERNS("+libc.so*:malloc"));
	/* one bad pattern of several is enough */
	select_fails(&proc, 1, 0, -ENOENT, "did you mean looping",
		     PATTERNS("+tiny", "+lopping"));
	select_fails(&proc, 1, 0, -ENOENT, "-x leaves out all 2", PATTERNS("+tiny*", "-*"));
	select_fails(&proc, 1, 0, -EINVAL, "names no module", PATTERNS("+:f"));
	select_fails(&proc, 1, 0, -ENOENT, "did you mean openat in syscall", PATTERNS("+syscall:opnat"));
	select_fails(&proc, 1, 0, -ENOENT, "`kxray functions -f 'syscall:*'`", PATTERNS("+syscall:xxxxxxx"));
	select_fails(&proc, 1, 1, -E2BIG, "2 functions match, more than the limit of 1",
		     PATTERNS("+tiny*"));
	select_fails(&proc, 1, 1, -E2BIG, "--max-functions 2", PATTERNS("+tiny*"));
	kx_modules_free(&mods);

	sh("strip -o bare server");
	bare = modules_of("bare");
	proc.mods = &bare;
	select_fails(&proc, 1, 0, -ENOENT, "/bare' is stripped: it has no function symbols",
		     PATTERNS("+tiny"));
	select_fails(&proc, 1, 0, -ENOENT, "-f 'tiny': '", PATTERNS("+tiny"));
	select_fails(&proc, 1, 0, -ENOENT, "is stripped", NO_PATTERNS);
	kx_modules_free(&bare);

	/* the section headers are at the end of the file: without them there are no symbols */
	sh("head -c -1000 server > cut");
	bare = modules_of("cut");
	proc.mods = &bare;
	select_fails(&proc, 1, 0, -ENOENT,
		     "/cut' is truncated: its headers describe 1000 bytes more than it has",
		     PATTERNS("+tiny"));
	select_fails(&proc, 1, 0, -ENOENT, "is truncated", NO_PATTERNS);
	kx_modules_free(&bare);
}

static void test_xray_ids(void **state)
{
	static const char *const names[] = { "one", "two", "three" };
	struct kx_modules mods;
	struct kx_selection sel;
	size_t i;

	(void)state;
	if (system("clang --version >/dev/null 2>&1"))
		skip();
	write_file("x.c", "volatile int v;\n"
			  "#define X __attribute__((noinline, xray_always_instrument))\n"
			  "X int one(int a) { return a + v; }\n"
			  "__attribute__((noinline)) int plain(int a) { return a * v; }\n"
			  "X int two(int a) { return a - v; }\n"
			  "X int three(int a) { return a ^ v; }\n"
			  "int main(void) { return one(1) + two(2) + three(3) + plain(4); }\n");
	sh("clang -O1 -fxray-instrument -fxray-instruction-threshold=100000 x.c -o xray");
	mods = modules_of("xray");
	sel = select_file(&mods, PATTERNS("+two", "+plain"));
	check_ids(&sel);
	assert_int_equal(sel.ntraced, 2);
	assert_int_equal(sel.nfunctions, 4);
	/* functions that only keep their ids have no probes of any kind */
	assert_false(kx_select_has_others(&sel, KX_PROBE_UPROBE));
	for (i = 0; i < 3; i++) {
		assert_string_equal(sel.functions[i].sym->name, names[i]);
		assert_int_equal(sel.functions[i].traced, i == 1);
		assert_string_equal(line_of("/usr/lib/llvm-14/bin/llvm-xray extract -symbolize xray |"
					    " sed -n 's/.*id: %zu,.*function-name: \\([a-z]*\\).*/\\1/p'",
					    i + 1), names[i]);
	}
	assert_string_equal(sel.functions[3].sym->name, "plain");
	assert_true(sel.functions[1].plan.xray);
	assert_false(sel.functions[3].plan.xray);
	kx_selection_free(&sel);

	/* In a selection by size, functions instrumented by the compiler are included. */
	sel = select_file(&mods, NO_PATTERNS);
	assert_true(find(&sel, "one")->traced && find(&sel, "two")->traced &&
		    find(&sel, "three")->traced);
	assert_null(find(&sel, "plain"));
	kx_selection_free(&sel);
	assert_int_equal(try_select(&(struct kx_select_process){ 0, &mods }, 1, 1, &sel, &(struct kx_err){ 0 }, NO_PATTERNS), 0);
	check_ids(&sel);
	assert_int_equal(sel.ntraced, 1);
	for (i = 0; i < 3; i++)
		assert_string_equal(sel.functions[i].sym->name, names[i]);
	kx_selection_free(&sel);

	/* Functions without symbols keep their ids. */
	sh("objcopy --strip-symbol=two xray xray_unnamed");
	kx_modules_free(&mods);
	mods = modules_of("xray_unnamed");
	sel = select_file(&mods, PATTERNS("+three"));
	assert_int_equal(sel.nfunctions, 3);
	assert_string_equal(find(&sel, "three")->sym->name, "three");
	assert_int_equal(find(&sel, "three")->id, 3);
	assert_int_equal(strncmp(sel.functions[1].sym->name, "@(", 2), 0);
	kx_selection_free(&sel);
	kx_modules_free(&mods);
}

/* Runs the command with both outputs in files of the folder. */
static int run(const char *const *args)
{
	char *argv[16], copy[16][600];
	int argc = 0, saved[2] = { dup(1), dup(2) }, rc, fd, i;

	for (; args[argc]; argc++) {
		snprintf(copy[argc], sizeof(copy[argc]), "%s", args[argc]);
		argv[argc] = copy[argc];
	}
	argv[argc] = NULL;
	fflush(stdout);
	for (i = 0; i < 2; i++) {
		fd = open(in_dir(i ? "err" : "out"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
		assert_true(fd >= 0);
		dup2(fd, i + 1);
		close(fd);
	}
	rc = kx_cmd_functions(argc, argv);
	fflush(stdout);
	for (i = 0; i < 2; i++) {
		dup2(saved[i], i + 1);
		close(saved[i]);
	}
	return rc;
}

#define RUN(...) run((const char *const[]){ "functions", __VA_ARGS__, NULL })

static bool in_file(const char *name, const char *text)
{
	static char all[64 << 10];
	FILE *f = fopen(in_dir(name), "r");
	size_t n;

	assert_non_null(f);
	n = fread(all, 1, sizeof(all) - 1, f);
	fclose(f);
	all[n] = 0;
	return strstr(all, text) != NULL;
}

static void test_command(void **state)
{
	json_t *all, *f;
	const char *costs[] = { "nop5", "emulated", "stepped" };
	const char *cost;

	(void)state;
	assert_int_equal(RUN(in_dir("server"), "-f", "tiny", "-f", "late", "--json"), 0);
	all = json_load_file(in_dir("out"), 0, NULL);
	assert_true(json_is_array(all));
	assert_int_equal(json_array_size(all), 1);
	f = json_array_get(all, 0);
	assert_string_equal(json_string_value(json_object_get(f, "name")), "tiny");
	assert_string_equal(json_string_value(json_object_get(f, "module")), "server");
	assert_int_equal(json_integer_value(json_object_get(f, "address")),
			 strtoull(line_of("nm server | grep ' T tiny$'"), NULL, 16));
	assert_int_equal(json_integer_value(json_object_get(f, "size")),
			 strtoull(line_of("nm -S server | grep ' T tiny$' | cut -d' ' -f2"), NULL, 16));
	assert_true(json_is_integer(json_object_get(f, "probe_offset")));
	cost = json_string_value(json_object_get(f, "cost"));
	assert_true(!strcmp(cost, costs[0]) || !strcmp(cost, costs[1]) || !strcmp(cost, costs[2]));
	assert_string_equal(json_string_value(json_object_get(f, "exit")), "return");
	json_decref(all);
	assert_true(in_file("err", "1 left out"));
	assert_false(in_file("err", "left out: late"));

	/* --filter is the older name of --function */
	assert_int_equal(RUN(in_dir("server"), "--filter", "tiny", "--function=looping"), 0);
	assert_true(in_file("out", "tiny [server]"));
	assert_true(in_file("out", "looping [server]"));

	assert_int_equal(RUN(in_dir("server"), "-f", "tiny", "-f", "late", "--json", "--left-out",
			     "--exits=none"), 0);
	assert_true(in_file("err", "left out: late (server)"));
	assert_true(in_file("out", "\"exit\": \"none\""));

	assert_int_equal(RUN(in_dir("server")), 0);
	assert_true(in_file("out", "looping [server]"));
	assert_false(in_file("out", "tiny"));
	assert_true(in_file("err", "chosen by size"));
	assert_true(in_file("err", "% cheap)"));

	assert_int_equal(RUN("-f", "syscall:openat", "-f", "syscall:write"), 0);
	assert_true(in_file("out", "openat [syscall]"));
	assert_true(in_file("err", "2 functions: 2 in the kernel"));

	assert_int_equal(RUN("--help"), 0);
	assert_true(in_file("out", "Usage: kxray functions"));
}

static void test_command_errors(void **state)
{
	(void)state;
	assert_int_equal(RUN(in_dir("server"), "-f", "nope"), 1);
	assert_true(in_file("err", "kxray functions: no function of"));
	assert_int_equal(RUN("-p", "2147483647"), 1);
	assert_true(in_file("err", "there is no process 2147483647"));
	assert_int_equal(RUN("--frobnicate"), 2);
	assert_int_equal(RUN("-p"), 2);
	assert_int_equal(RUN("-p", "12x"), 2);
	assert_int_equal(RUN("-p", "1,"), 2);
	assert_int_equal(RUN("-p", "-1"), 2);
	assert_int_equal(RUN("-p", "1", in_dir("server")), 2);
	assert_int_equal(RUN(in_dir("server"), in_dir("server")), 2);
	assert_int_equal(RUN("--json"), 2);
	assert_int_equal(RUN("-f", "syscall:read", "-f", "main"), 2);
	assert_int_equal(RUN(in_dir("server"), "--exits=maybe"), 2);
	assert_int_equal(RUN(in_dir("server"), "--max-functions=0"), 2);
	assert_int_equal(RUN(in_dir("server"), "-f", "tiny*", "--max-functions=1"), 1);
	assert_true(in_file("err", "--max-functions 2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_by_size),
		cmocka_unit_test(test_by_size_limit),
		cmocka_unit_test(test_ifunc),
		cmocka_unit_test(test_no_match),
		cmocka_unit_test(test_xray_ids),
		cmocka_unit_test(test_system_calls),
		cmocka_unit_test(test_command),
		cmocka_unit_test(test_command_errors),
	};

	return cmocka_run_group_tests(tests, build, target_teardown);
}
