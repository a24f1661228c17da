// SPDX-License-Identifier: BSD-2-Clause
/* The command of --on-dump: its words; runs that are counted, killed, skipped. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/stop_request.h"
#include "record/dump_hook.h"
#include "record/dump_hook_words.h"

/* Words */

/* @want: the words, each followed by '|'. */
static void splits(const char *command, const char *want)
{
	struct kx_err err = { 0 };
	char got[256] = "", **words;

	if (kx_hook_words(command, &words, &err))
		fail_msg("'%s': %s", command, err.text);
	for (size_t i = 0; words[i]; i++) {
		strcat(got, words[i]);
		strcat(got, "|");
	}
	assert_string_equal(got, want);
	kx_hook_words_free(words);
}

static void refuses(const char *command, const char *part)
{
	struct kx_err err = { 0 };
	char **words = (char **)1;

	assert_int_equal(kx_hook_words(command, &words, &err), -EINVAL);
	assert_null(words);
	if (!strstr(err.text, part))
		fail_msg("'%s' is not in '%s'", part, err.text);
}

static void test_words(void **state)
{
	(void)state;
	splits("upload {}", "upload|{}|");
	splits(" \t upload\n{} \n", "upload|{}|");
	splits("a b c d e {}", "a|b|c|d|e|{}|");
	splits("upload --file={}.gz {}", "upload|--file={}.gz|{}|");
	/* quotes keep blanks, and the other quote; parts of a word join */
	splits("'a b' \"c d\" {}", "a b|c d|{}|");
	splits("x a'b c'd\"e f\"g{}", "x|ab cde fg{}|");
	splits("x '\"' \"'\" {}", "x|\"|'|{}|");
	splits("x '' \"\" {}", "x|||{}|");
	splits("sh -c 'cat \"$1\" | nc host 1' - {}", "sh|-c|cat \"$1\" | nc host 1|-|{}|");
	/* a backslash keeps the next character, but not in '...' */
	splits("x a\\ b \\' \\\" \\\\ {}", "x|a b|'|\"|\\|{}|");
	splits("x 'a\\ b' {}", "x|a\\ b|{}|");
	splits("x \"a\\\"b\" {}", "x|a\"b|{}|");
	splits("x {} \\", "x|{}|\\|");
	/* the shell's other characters mean nothing */
	splits("x $HOME * > ; & `y` {}", "x|$HOME|*|>|;|&|`y`|{}|");
	splits("\xc3\xa9t\xc3\xa9 {}", "\xc3\xa9t\xc3\xa9|{}|");
}

static void test_refused_words(void **state)
{
	(void)state;
	refuses("", "takes a command and '{}'");
	refuses("  \t\n", "takes a command and '{}'");
	refuses("upload", "takes a command and '{}'");
	refuses("{}", "takes a command and '{}'");
	refuses("upload { }", "takes a command and '{}'");
	refuses("upload '{}", "a quote is not closed");
	refuses("upload \"{}'", "a quote is not closed");
	refuses("upload {} \"a\\\"", "a quote is not closed");
}

static void test_path_in_words(void **state)
{
	struct kx_err err = { 0 };
	char **words, **with;

	(void)state;
	assert_int_equal(kx_hook_words("cmd {} a{}b{} x", &words, &err), 0);
	with = kx_hook_words_with(words, "/tmp/a 'b' {} $(c)");
	assert_string_equal(with[0], "cmd");
	assert_string_equal(with[1], "/tmp/a 'b' {} $(c)");
	assert_string_equal(with[2], "a/tmp/a 'b' {} $(c)b/tmp/a 'b' {} $(c)");
	assert_string_equal(with[3], "x");
	assert_null(with[4]);
	kx_hook_words_free(with);
	/* no option */
	with = kx_hook_words_with(words, "-rf");
	assert_string_equal(with[1], "./-rf");
	kx_hook_words_free(with);
	kx_hook_words_free(words);
}

/* Runs */

struct run {
	char folder[64];
	char dump[96];
	char notices[8192]; /* one a line */
	struct kx_notices to;
	struct kx_dump_hook *hook;
};

static void on_notice(void *ctx, const char *text)
{
	struct run *r = ctx;
	size_t used = strlen(r->notices);

	snprintf(r->notices + used, sizeof(r->notices) - used, "%s\n", text);
}

static void make_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static void begin(struct run *r, const char *command, double limit)
{
	struct kx_err err = { 0 };

	*r = (struct run){ .folder = "/tmp/kxray-hook.XXXXXX" };
	assert_non_null(mkdtemp(r->folder));
	snprintf(r->dump, sizeof(r->dump), "%s/d", r->folder);
	make_file(r->dump, "", 0600);
	r->to = (struct kx_notices){ .each = on_notice, .ctx = r };
	if (kx_dump_hook_new(command, limit, &r->to, &r->hook, &err))
		fail_msg("%s", err.text);
}

static struct kx_dump_hook_counts end(struct run *r)
{
	struct kx_dump_hook_counts counts;
	char command[128];

	kx_dump_hook_get_counts(r->hook, &counts);
	kx_dump_hook_free(r->hook);
	snprintf(command, sizeof(command), "rm -rf '%s'", r->folder);
	assert_int_equal(system(command), 0);
	return counts;
}

static void assert_counts(struct kx_dump_hook_counts c, unsigned ran, unsigned failed,
			  unsigned killed, unsigned skipped)
{
	assert_int_equal(c.ran, ran);
	assert_int_equal(c.failed, failed);
	assert_int_equal(c.killed, killed);
	assert_int_equal(c.skipped, skipped);
}

static void has(const struct run *r, const char *part)
{
	if (!strstr(r->notices, part))
		fail_msg("'%s' is not in '%s'", part, r->notices);
}

static void test_runs_are_counted(void **state)
{
	struct run r;

	(void)state;
	begin(&r, "sh -c 'exit $(cat \"$1\")' - {}", 600);
	make_file(r.dump, "0", 0600);
	kx_dump_hook_add(r.hook, r.dump);
	assert_true(kx_dump_hook_busy(r.hook));
	kx_dump_hook_finish(r.hook);
	assert_false(kx_dump_hook_busy(r.hook));
	assert_string_equal(r.notices, "");
	make_file(r.dump, "3", 0600);
	kx_dump_hook_add(r.hook, r.dump);
	kx_dump_hook_finish(r.hook);
	has(&r, "'sh' for /tmp/");
	has(&r, "ended with status 3; recording continues\n");
	/* not kxray's own: the command ran */
	make_file(r.dump, "127", 0600);
	kx_dump_hook_add(r.hook, r.dump);
	kx_dump_hook_finish(r.hook);
	has(&r, "ended with status 127; recording continues\n");
	assert_counts(end(&r), 1, 2, 0, 0);
	begin(&r, "sh -c 'kill -9 $$' - {}", 600);
	kx_dump_hook_add(r.hook, r.dump);
	kx_dump_hook_finish(r.hook);
	has(&r, "was killed by signal 9; recording continues\n");
	assert_counts(end(&r), 0, 1, 0, 0);
}

static void test_full_queue(void **state)
{
	char gate[128];
	struct run r;

	(void)state;
	begin(&r, "sh -c 'until [ -e \"$1.go\" ]; do sleep 0.01; done' - {}", 600);
	kx_dump_hook_add(r.hook, r.dump);
	kx_dump_hook_poll(r.hook);
	for (unsigned i = 0; i < KX_DUMP_HOOK_QUEUE; i++)
		kx_dump_hook_add(r.hook, r.dump);
	assert_string_equal(r.notices, "");
	kx_dump_hook_add(r.hook, r.dump);
	kx_dump_hook_add(r.hook, r.dump);
	has(&r, "/d: 16 dumps are waiting for it\n");
	snprintf(gate, sizeof(gate), "%s.go", r.dump);
	make_file(gate, "", 0600);
	kx_dump_hook_finish(r.hook);
	assert_counts(end(&r), 1 + KX_DUMP_HOOK_QUEUE, 0, 0, 2);
}

static void test_removed_dump(void **state)
{
	struct run r;

	(void)state;
	begin(&r, "true {}", 600);
	kx_dump_hook_add(r.hook, r.dump);
	assert_int_equal(unlink(r.dump), 0);
	kx_dump_hook_finish(r.hook);
	assert_counts(end(&r), 0, 0, 0, 1);
}

static void test_time_limit(void **state)
{
	struct run r;

	(void)state;
	begin(&r, "sh -c 'trap \"\" TERM INT; while :; do sleep 1; done' {}", 0.01);
	kx_dump_hook_add(r.hook, r.dump);
	kx_dump_hook_finish(r.hook);
	has(&r, "/d was killed after ");
	assert_counts(end(&r), 0, 0, 1, 0);
}

/* A signal that came while kxray waits at its end. */
static void test_stop_signal(void **state)
{
	sigset_t stop, old;
	struct run r;

	(void)state;
	kx_stop_signals(&stop);
	sigprocmask(SIG_BLOCK, &stop, &old);
	begin(&r, "sh -c 'trap \"\" TERM INT; while :; do sleep 1; done' {}", 600);
	kx_dump_hook_add(r.hook, r.dump);
	kx_dump_hook_poll(r.hook);
	kx_dump_hook_add(r.hook, r.dump);
	kx_dump_hook_add(r.hook, r.dump);
	raise(SIGINT);
	kx_dump_hook_finish(r.hook);
	has(&r, "/d was killed after ");
	assert_counts(end(&r), 0, 0, 1, 2);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

static void missing(const char *command, int code, const char *part)
{
	struct kx_dump_hook *hook = NULL;
	struct kx_err err = { 0 };

	assert_int_equal(kx_dump_hook_new(command, 1, NULL, &hook, &err), code);
	assert_null(hook);
	if (!strstr(err.text, part))
		fail_msg("'%s' is not in '%s'", part, err.text);
}

static void test_missing_program(void **state)
{
	char program[96], command[128];
	struct run r;

	(void)state;
	missing("no-such-program-of-kxray {}", -ENOENT,
		"'no-such-program-of-kxray' cannot be run: No such file or directory; install it");
	missing("/no/such {}", -ENOENT, "'/no/such' cannot be run");
	missing("/etc/passwd {}", -EACCES, "Permission denied");
	missing("/ {}", -EACCES, "Permission denied");
	/* one whose interpreter is missing, or that goes away, is a failed run */
	begin(&r, "true {}", 1);
	snprintf(program, sizeof(program), "%s/program", r.folder);
	snprintf(command, sizeof(command), "%s {}", program);
	make_file(program, "#!/no/such\n", 0700);
	kx_dump_hook_free(r.hook);
	r.hook = NULL;
	assert_int_equal(kx_dump_hook_new(command, 600, &r.to, &r.hook, &(struct kx_err){ 0 }), 0);
	kx_dump_hook_add(r.hook, r.dump);
	kx_dump_hook_finish(r.hook);
	has(&r, "/d could not be run: No such file or directory; recording continues\n");
	r.notices[0] = 0;
	unlink(program);
	kx_dump_hook_add(r.hook, r.dump);
	kx_dump_hook_finish(r.hook);
	has(&r, "/d could not be run: No such file or directory; recording continues\n");
	assert_counts(end(&r), 0, 2, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),		cmocka_unit_test(test_refused_words),
		cmocka_unit_test(test_path_in_words),	cmocka_unit_test(test_runs_are_counted),
		cmocka_unit_test(test_full_queue),	cmocka_unit_test(test_removed_dump),
		cmocka_unit_test(test_time_limit),	cmocka_unit_test(test_stop_signal),
		cmocka_unit_test(test_missing_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
