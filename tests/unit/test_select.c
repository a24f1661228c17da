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
#include "target.h"

/* Small functions, one with a loop, one of over 200 instructions, and a shared library. */
static const char source[] =
	"#include <stdio.h>\n#include <unistd.h>\n"
	"int lib_one(int);\n"
	"volatile int v;\n"
	"__attribute__((noinline)) int tiny(int a) { return a + v; }\n"
	"__attribute__((noinline)) int tiny_two(int a) { return a - v; }\n"
	"__attribute__((noinline)) int looping(int n) { int s = 0;\n"
	"	for (int i = 0; i < n; i++) s += v; return s; }\n"
	"#define T v++; v--; v++; v--; v++; v--; v++; v--;\n"
	"__attribute__((noinline)) void huge(void) { T T T T T T T T T T T T T T T T }\n"
	"static int impl(int a) { return a; }\n"
	"static int (*resolve(void))(int) { return impl; }\n"
	"int late(int) __attribute__((ifunc(\"resolve\")));\n"
	"int main(void) { puts(\"ready\"); fflush(stdout); huge();\n"
	"	for (;;) { tiny(1); tiny_two(1); looping(2); lib_one(late(1)); pause(); } }\n";

static int build(void **state)
{
	if (target_setup(state))
		return -1;
	write_file("s.c", source);
	write_file("l.c", "int lib_one(int a) { return a; }\nint lib_two(int a) { return a; }\n");
	sh("gcc -O1 -shared -fPIC l.c -o libsome.so.1 && gcc -O1 s.c ./libsome.so.1 -o server");
	return 0;
}

static struct kx_modules modules_of(const char *name)
{
	struct kx_modules mods;
	struct kx_err err = { 0 };

	if (kx_modules_of_file(in_dir(name), &mods, &err))
		fail_msg("%s", err.text);
	return mods;
}

/* @patterns: "+PATTERN" includes, "-PATTERN" excludes, NULL ends. */
static int try_select(const struct kx_select_process *procs, size_t n, size_t max,
		      struct kx_selection *sel, struct kx_err *err, const char *const *patterns)
{
	const char *include[8], *exclude[8];
	struct kx_select_options o = { .include = include, .exclude = exclude,
				       .exits = KX_EXITS_NONE, .max_functions = max };

	for (; *patterns; patterns++) {
		if (**patterns == '+')
			include[o.ninclude++] = *patterns + 1;
		else
			exclude[o.nexclude++] = *patterns + 1;
	}
	return kx_select_functions(procs, n, &o, sel, err);
}

#define PATTERNS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define NO_PATTERNS ((const char *const[]){ NULL })

static struct kx_selection select_file(const struct kx_modules *mods, const char *const *patterns)
{
	struct kx_select_process proc = { 0, mods };
	struct kx_selection sel;
	struct kx_err err = { 0 };

	if (try_select(&proc, 1, 0, &sel, &err, patterns))
		fail_msg("%s", err.text);
	return sel;
}

static void select_fails(const struct kx_select_process *procs, size_t n, size_t max, int code,
			 const char *part, const char *const *patterns)
{
	struct kx_selection sel;
	struct kx_err err = { 0 };

	assert_int_equal(try_select(procs, n, max, &sel, &err, patterns), code);
	assert_int_equal(err.code, code);
	if (!strstr(err.text, part))
		fail_msg("'%s' lacks '%s'", err.text, part);
	assert_null(sel.functions);
}

static const struct kx_function *find(const struct kx_selection *sel, const char *name)
{
	size_t i;

	for (i = 0; i < sel->nfunctions; i++)
		if (!strcmp(sel->functions[i].sym->name, name))
			return &sel->functions[i];
	return NULL;
}

static void check_ids(const struct kx_selection *sel)
{
	size_t i, traced = 0;

	for (i = 0; i < sel->nfunctions; i++) {
		assert_int_equal(sel->functions[i].id, i + 1);
		traced += sel->functions[i].traced;
	}
	assert_int_equal(sel->ntraced, traced);
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

/* Modules mapped later: a program and the library that it shares with the first one. */
static void test_growing(void **state)
{
	const char *include[] = { "tiny*", "libsome*:lib_*", "nothing.so:f", NULL };
	char path[600], text[640], *place;
	struct kx_select_options o = { .include = include, .ninclude = 3, .exits = KX_EXITS_AUTO,
				       .dynamic_targets = true };
	struct kx_modules server = modules_of("server"), some = modules_of("libsome.so.1"), later;
	const struct kx_unwind_risk good = { .returns_harmless = true }, bad = { .is_go = false };
	struct kx_select_process proc = { 0, &server };
	struct kx_selection sel;
	struct kx_err err = { 0 };

	(void)state;
	some.items[0].is_main = false;
	assert_int_equal(kx_select_functions(&proc, 1, &o, &sel, &err), 0);
	assert_int_equal(sel.ntraced, 2);
	assert_int_equal(sel.nmodules, 1);
	/* a module that is not mapped yet gives a note, a missing function an error */
	assert_int_equal(sel.nnotes, 2);
	assert_non_null(strstr(sel.notes[1], "no module matches 'nothing.so'"));

	/* the same file again: nothing new */
	assert_int_equal(kx_select_grow(&sel, &proc, &good, &err), 0);
	assert_int_equal(sel.nfunctions, 2);
	/* a library of a process that ends before the file is opened, and whose path names another */
	proc.mods = &some;
	place = some.items[0].open_path;
	some.items[0].open_path = (char *)(uintptr_t)"/proc/0/map_files/nowhere";
	sh("mv libsome.so.1 away && cp away libsome.so.1");
	assert_int_equal(kx_select_grow(&sel, &proc, &good, &err), 0);
	assert_int_equal(sel.ntraced, 2);
	/* the failure is not cached: once the path leads to the file again, it is opened */
	sh("mv away libsome.so.1");
	assert_int_equal(kx_select_grow(&sel, &proc, &good, &err), 0);
	some.items[0].open_path = place;
	assert_int_equal(sel.ntraced, 4);
	assert_int_equal(sel.nmodules, 2);
	check_ids(&sel);
	assert_string_equal(sel.modules[sel.functions[3].module].module->name, "libsome.so.1");
	/* mapped by a process that throws: it decides when it is attached, for itself */
	assert_int_equal(kx_select_grow(&sel, &proc, &bad, &err), 0);
	assert_true(sel.modules[1].harmless);

	/* another file of the same name */
	sh("mkdir -p other && cp server other/server");
	later = modules_of("other/server");
	proc.mods = &later;
	assert_int_equal(kx_select_grow(&sel, &proc, &bad, &err), 0);
	assert_int_equal(sel.ntraced, 6);
	assert_int_equal(sel.nmodules, 3);
	assert_true(sel.modules[2].harmless);
	kx_selection_free(&sel);

	/* decided once, it is a harmful one: for all that map it later */
	o.exits_decided = true;
	proc.mods = &server;
	assert_int_equal(kx_select_functions(&proc, 1, &o, &sel, &err), 0);
	proc.mods = &later;
	assert_int_equal(kx_select_grow(&sel, &proc, &bad, &err), 0);
	assert_int_equal(sel.nmodules, 2);
	assert_true(sel.modules[0].harmless);
	assert_false(sel.modules[1].harmless);
	kx_selection_free(&sel);
	o.exits_decided = false;

	/* the limit applies to the sum; a module that exceeds it changes nothing */
	o.max_functions = 3;
	proc.mods = &server;
	assert_int_equal(kx_select_functions(&proc, 1, &o, &sel, &err), 0);
	proc.mods = &later;
	assert_int_equal(kx_select_grow(&sel, &proc, &good, &err), -E2BIG);
	assert_int_equal(sel.ntraced, 2);
	kx_selection_free(&sel);

	/* a file given by its path is selected before a process maps it */
	snprintf(path, sizeof(path), "%s", in_dir("libsome.so.1"));
	snprintf(text, sizeof(text), "%s:lib_*", path);
	include[0] = text;
	o.ninclude = 1;
	o.max_functions = 0;
	proc.mods = &server;
	assert_int_equal(kx_select_functions(&proc, 1, &o, &sel, &err), 0);
	assert_int_equal(sel.ntraced, 2);
	assert_string_equal(sel.modules[0].module->path, path);
	kx_selection_free(&sel);

	/* with match_later no pattern needs to match now */
	include[0] = "no_such_function";
	assert_int_equal(kx_select_functions(&proc, 1, &o, &sel, &err), -ENOENT);
	o.match_later = true;
	assert_int_equal(kx_select_functions(&proc, 1, &o, &sel, &err), 0);
	assert_int_equal(sel.ntraced, 0);
	kx_selection_free(&sel);
	kx_modules_free(&later);
	kx_modules_free(&some);
	kx_modules_free(&server);
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

static void test_xray_ids(void **state)
{
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
		const char *names[] = { "one", "two", "three" };

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
		assert_string_equal(sel.functions[i].sym->name, ((const char *[]){ "one", "two", "three" })[i]);
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
		cmocka_unit_test(test_patterns),  cmocka_unit_test(test_by_size),
		cmocka_unit_test(test_by_size_limit),
		cmocka_unit_test(test_ifunc),	  cmocka_unit_test(test_no_match),
		cmocka_unit_test(test_ended_process_is_no_risk),
		cmocka_unit_test(test_growing), cmocka_unit_test(test_processes),
		cmocka_unit_test(test_threads), cmocka_unit_test(test_xray_ids),
		cmocka_unit_test(test_system_calls), cmocka_unit_test(test_command),	  cmocka_unit_test(test_command_errors),
	};

	return cmocka_run_group_tests(tests, build, target_teardown);
}
