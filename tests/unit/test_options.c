// SPDX-License-Identifier: BSD-2-Clause
/* The option table: every kind of row, all spellings, every usage error; and the commands' own tables. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/commands.h"
#include "cmd/option_help.h"
#include "cmd/option_manual.h"
#include "cmd/option_values.h"
#include "cmd/options.h"

struct shared {
	const char **texts;
	size_t ntexts;
};

struct arguments {
	bool flag, other;
	int sign;
	const char *text, *operand;
	char *const *command;
	uint8_t byte;
	uint32_t number;
	uint64_t size, time;
	double seconds, percent;
	int choice;
	int32_t *ids;
	size_t nids;
	struct shared shared;
	unsigned custom;
};

static const char *const words[] = { "one", "two", "three", NULL };

static int set_custom(void *field, const struct kx_option *o, const char *value, struct kx_err *err)
{
	if (!strcmp(value, "broken"))
		return kx_err_set(err, -EIO, "--%s is broken", o->name);
	*(unsigned *)field += (unsigned)strlen(value);
	return 0;
}

#define FIELD(member) KX_FIELD(struct arguments, member)

static const struct kx_option rows[] = {
	{ .name = "flag", .short_name = 'a', .kind = KX_OPTION_FLAG, FIELD(flag), .help = "a flag" },
	{ .name = "other", .short_name = 'b', .kind = KX_OPTION_FLAG, FIELD(other), .help = "one more" },
	{ .name = "plus", .kind = KX_OPTION_CONSTANT, .constant = 1, FIELD(sign), .help = "up" },
	{ .name = "minus", .kind = KX_OPTION_CONSTANT, .constant = -1, FIELD(sign), .help = "down" },
	{ .name = "text", .short_name = 'o', .kind = KX_OPTION_TEXT, .argument = "TEXT", FIELD(text),
	  .help = "a text" },
	{ .name = "byte", .kind = KX_OPTION_NUMBER, .argument = "N", FIELD(byte), .help = "a byte" },
	{ .name = "number", .short_name = 'n', .kind = KX_OPTION_NUMBER, .argument = "N", .min = 2,
	  .max = 10, FIELD(number), .help = "a number" },
	{ .name = "size", .kind = KX_OPTION_SIZE, .argument = "SIZE", .min = 2048, FIELD(size),
	  .help = "a size" },
	{ .name = "time", .kind = KX_OPTION_TIME, .argument = "TIME", .min = 5, .max = 2000000000,
	  FIELD(time), .help = "a time" },
	{ .name = "seconds", .kind = KX_OPTION_SECONDS, .argument = "SECONDS", .max = 60,
	  FIELD(seconds), .help = "seconds" },
	{ .name = "percent", .kind = KX_OPTION_PERCENT, .argument = "PCT", .max = 200, FIELD(percent),
	  .help = "percent" },
	{ .name = "choice", .kind = KX_OPTION_CHOICE, .argument = "WORD", .words = words, .constant = -1,
	  FIELD(choice), .help = "a word" },
	{ .name = "ids", .short_name = 'p', .kind = KX_OPTION_IDS, .argument = "ID[,ID...]", .min = 1,
	  KX_LIST(struct arguments, ids, nids), .help = "ids" },
	{ .name = "custom", .kind = KX_OPTION_CUSTOM, .argument = "X", .set = set_custom, FIELD(custom),
	  .help = "anything" },
	KX_HELP_OPTION,
	{ 0 },
};

static const struct kx_option shared_rows[] = {
	{ .name = "pattern", .short_name = 'o', .kind = KX_OPTION_PATTERNS, .argument = "PATTERN",
	  KX_LIST(struct shared, texts, ntexts), .help = "a pattern" },
	{ .name = "hidden", .kind = KX_OPTION_TEXTS, .argument = "X",
	  KX_LIST(struct shared, texts, ntexts) },
	{ 0 },
};

static const struct kx_option_group groups[] = {
	{ .options = rows },
	{ .heading = "Shared", .options = shared_rows, .offset = offsetof(struct arguments, shared) },
	{ 0 },
};

static struct kx_command command = {
	.name = "test",
	.usage = "Usage: kxray test\n",
	.groups = groups,
	.operands = KX_OPERANDS_ONE,
	.operand = offsetof(struct arguments, operand),
};

static struct arguments a;
static struct kx_err err;
static char *argv[32];

/* Parses @line, split at blanks; "''" stands for an empty word. */
static int parse(const char *line)
{
	static char copy[512];
	char *save = NULL;
	int argc = 0;

	kx_options_free(&command, &a);
	memset(&a, 0, sizeof(a));
	memset(&err, 0, sizeof(err));
	snprintf(copy, sizeof(copy), "test %s", line);
	for (char *p = strtok_r(copy, " ", &save); p; p = strtok_r(NULL, " ", &save))
		argv[argc++] = strcmp(p, "''") ? p : p + 2;
	argv[argc] = NULL;
	return kx_options_parse(&command, &a, argc, argv, &err);
}

static void accepted(const char *line)
{
	int r = parse(line);

	if (r)
		fail_msg("%s: %d, %s", line, r, err.text);
}

static void refused(const char *line, const char *text)
{
	int r = parse(line);

	if (r != -EINVAL || strcmp(err.text, text) != 0)
		fail_msg("%s: %d, '%s', not '%s'", line, r, err.text, text);
}

static void test_spellings(void **state)
{
	(void)state;
	accepted("-ab -n5 file");
	assert_true(a.flag && a.other);
	assert_int_equal(a.number, 5);
	assert_string_equal(a.operand, "file");
	accepted("file --number=6 --text=x=y");
	assert_false(a.flag || a.other);
	assert_int_equal(a.number, 6);
	assert_string_equal(a.text, "x=y");
	assert_string_equal(a.operand, "file");
	accepted("--fl --num 7 -abo -b");
	assert_true(a.flag && a.other);
	assert_int_equal(a.number, 7);
	assert_string_equal(a.text, "-b");
	assert_null(a.operand);
	accepted("-- --flag");
	assert_false(a.flag);
	assert_string_equal(a.operand, "--flag");
	accepted("-n 3 -n 4");
	assert_int_equal(a.number, 4);
	assert_int_equal(parse("--help --no-such"), KX_OPTIONS_HELP);
	assert_int_equal(parse("-ah"), KX_OPTIONS_HELP);
}

static void test_mistakes(void **state)
{
	(void)state;
	refused("--no-such", "there is no option '--no-such'");
	refused("-z", "there is no option '-z'");
	refused("-az", "there is no option '-z'");
	refused("--no-such=1", "there is no option '--no-such=1'");
	refused("-n", "option '-n' needs a value");
	refused("-an", "option '-n' needs a value");
	refused("--number", "option '--number' needs a value");
	refused("--flag=1", "option '--flag' takes no value");
	refused("a b", "unexpected argument 'b' after 'a'");
	command.operands = KX_OPERANDS_NONE;
	refused("a", "unexpected argument 'a'");
	accepted("-b");
	assert_true(a.other);
	command.operands = KX_OPERANDS_ONE;
}

static void test_command_operand(void **state)
{
	(void)state;
	command.operands = KX_OPERANDS_COMMAND;
	command.operand = offsetof(struct arguments, command);
	accepted("-a -- sh -b --flag");
	assert_true(a.flag);
	assert_false(a.other);
	assert_string_equal(a.command[0], "sh");
	assert_string_equal(a.command[1], "-b");
	assert_string_equal(a.command[2], "--flag");
	assert_null(a.command[3]);
	accepted("-a --");
	assert_null(a.command);
	assert_int_equal(parse("-a sh -b"), -EINVAL);
	assert_non_null(strstr(err.text, "'sh' is not an option"));
	command.operands = KX_OPERANDS_ONE;
	command.operand = offsetof(struct arguments, operand);
}

static void test_numbers(void **state)
{
	(void)state;
	accepted("--plus");
	assert_int_equal(a.sign, 1);
	accepted("--plus --minus");
	assert_int_equal(a.sign, -1);
	accepted("--byte 255");
	assert_int_equal(a.byte, 255);
	assert_int_equal(a.number, 0);
	accepted("--byte 0");
	refused("--byte 256", "--byte takes a number, not '256'");
	accepted("-n 2");
	accepted("-n 10");
	assert_int_equal(a.number, 10);
	refused("-n 1", "-n takes 2 to 10, not '1'");
	refused("--number 11", "--number takes 2 to 10, not '11'");
	refused("--num 11", "--number takes 2 to 10, not '11'");
	refused("-n ''", "-n takes 2 to 10, not ''");
	refused("-n -3", "-n takes 2 to 10, not '-3'");
	refused("-n +3", "-n takes 2 to 10, not '+3'");
	refused("-n 3x", "-n takes 2 to 10, not '3x'");
	refused("-n 99999999999999999999", "-n takes 2 to 10, not '99999999999999999999'");
	accepted("--choice one");
	assert_int_equal(a.choice, -1);
	accepted("--choice three");
	assert_int_equal(a.choice, 1);
	refused("--choice thre", "--choice takes one, two or three, not 'thre'");
}

static void test_units(void **state)
{
	(void)state;
	accepted("--size 2048");
	assert_int_equal(a.size, 2048);
	accepted("--size 2k");
	assert_int_equal(a.size, 2048);
	accepted("--size 3M");
	assert_int_equal(a.size, 3 << 20);
	accepted("--size 16G");
	assert_true(a.size == 16ULL << 30);
	refused("--size 17G", "--size takes bytes, 2K at least, as in 512K or 16M, not '17G'");
	refused("--size 2047", "--size takes bytes, 2K at least, as in 512K or 16M, not '2047'");
	refused("--size 3T", "--size takes bytes, 2K at least, as in 512K or 16M, not '3T'");
	refused("--size 3MB", "--size takes bytes, 2K at least, as in 512K or 16M, not '3MB'");
	refused("--size K", "--size takes bytes, 2K at least, as in 512K or 16M, not 'K'");
	accepted("--time 1.5us");
	assert_int_equal(a.time, 1500);
	accepted("--time 2");
	assert_int_equal(a.time, 2000000000);
	refused("--time 4ns", "--time takes a time of 5ns to 2s, as in 5us or 0.5ms, not '4ns'");
	refused("--time 2.1s", "--time takes a time of 5ns to 2s, as in 5us or 0.5ms, not '2.1s'");
	accepted("--seconds .25");
	assert_true(a.seconds == .25);
	accepted("--seconds 60");
	refused("--seconds 60.1", "--seconds takes a time above 0, at most 60s, as in 5 (seconds), 500ms or 2m, not '60.1'");
	refused("--seconds 0", "--seconds takes a time above 0, at most 60s, as in 5 (seconds), 500ms or 2m, not '0'");
	accepted("--seconds 1m");
	assert_true(a.seconds == 60);
	accepted("--seconds 500ms");
	assert_true(a.seconds == .5);
	refused("--seconds 2m", "--seconds takes a time above 0, at most 60s, as in 5 (seconds), 500ms or 2m, not '2m'");
	refused("--seconds 1x", "--seconds takes a time above 0, at most 60s, as in 5 (seconds), 500ms or 2m, not '1x'");
	refused("--seconds nan", "--seconds takes a time above 0, at most 60s, as in 5 (seconds), 500ms or 2m, not 'nan'");
	refused("--seconds 5%", "--seconds takes a time above 0, at most 60s, as in 5 (seconds), 500ms or 2m, not '5%'");
	accepted("--percent 12.5%");
	assert_true(a.percent == 12.5);
	accepted("--percent 3");
	assert_true(a.percent == 3);
	refused("--percent 5%%", "--percent takes percent, as in 5 or 12.5%, not '5%%'");
	refused("--percent .", "--percent takes percent, as in 5 or 12.5%, not '.'");
}

static void test_lists(void **state)
{
	(void)state;
	accepted("-p 7,8 --ids=9 -p 8,2147483647");
	assert_int_equal(a.nids, 4);
	assert_int_equal(a.ids[0], 7);
	assert_int_equal(a.ids[1], 8);
	assert_int_equal(a.ids[2], 9);
	assert_int_equal(a.ids[3], INT32_MAX);
	for (const char *const *bad = (const char *const[]){ "0", "-1", "1,", ",1", "1,,2", "12x", "''",
							     "2147483648", "1, 2", NULL };
	     *bad; bad++) {
		char line[64];

		snprintf(line, sizeof(line), "--ids %s", *bad);
		assert_int_equal(parse(line), -EINVAL);
		assert_non_null(strstr(err.text, "--ids takes numbers separated by commas, as in 12,34"));
	}
	accepted("--pattern lib:f* --hidden : --pattern g");
	assert_int_equal(a.shared.ntexts, 3);
	assert_string_equal(a.shared.texts[0], "lib:f*");
	assert_string_equal(a.shared.texts[1], ":");
	assert_string_equal(a.shared.texts[2], "g");
	assert_int_equal(parse("--pattern :"), -EINVAL);
	assert_non_null(strstr(err.text, "pattern"));
	accepted("--custom abc --custom de");
	assert_int_equal(a.custom, 5);
	assert_int_equal(parse("--custom broken"), -EIO);
	assert_string_equal(err.text, "--custom is broken");
	kx_options_free(&command, &a);
	assert_null(a.shared.texts);
	assert_int_equal(a.shared.ntexts, 0);
}

static char *printed(void (*print)(const struct kx_command *c, FILE *to), const struct kx_command *c)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	assert_non_null(to);
	print(c, to);
	fclose(to);
	return text;
}

static void test_help(void **state)
{
	static const struct kx_option wide[] = {
		{ .name = "a-very-long-option-name", .kind = KX_OPTION_TEXT, .argument = "NAME",
		  .help = "short" },
		{ .name = "x", .kind = KX_OPTION_FLAG,
		  .help = "words that fill the line to the hundredth column exactly and nothing but "
			  "a word, then the rest",
		  .manual = "Use -x, --x or NAME: a-b.\n\nSecond." },
		{ 0 },
	};
	static const struct kx_option_group one[] = { { .heading = "H", .options = wide }, { 0 } };
	static const struct kx_option dotted[] = {
		{ .name = "y", .kind = KX_OPTION_FLAG,
		  .help = "of a text that is longer than one line words such as those inside "
			  ".profile or --y come after the end of the line" },
		{ 0 },
	};
	static const struct kx_example examples[] = { { "kxray c -x", "what for" }, { 0 } };
	static const struct kx_option_group two[] = { { .options = dotted }, { 0 } };
	const struct kx_command long_text = { .name = "l", .groups = two };
	const struct kx_command c = { .name = "c", .usage = "Usage\n", .groups = one, .notes = "Notes\n",
				      .examples = examples };
	char *text = printed(kx_option_help_print, &c);

	(void)state;
	assert_string_equal(text, "Usage\n\nH:\n"
				  "      --a-very-long-option-name NAME  short\n"
				  "      --x                   words that fill the line to the hundredth column "
				  "exactly and nothing but\n"
				  "                            a word, then the rest\n"
				  "\nNotes\n\nExamples:\n  kxray c -x\n      what for\n");
	free(text);
	text = printed(kx_option_manual_print_examples, &c);
	assert_string_equal(text, ".TP\n\\fBkxray c \\-x\\fR\n\\&what for\n");
	free(text);
	text = printed(kx_option_manual_print, &c);
	assert_string_equal(text, ".SS \"H\"\n.TP\n"
				  "\\fB\\-\\-a\\-very\\-long\\-option\\-name\\fR \\fINAME\\fR\n\\&Short.\n"
				  ".TP\n\\fB\\-\\-x\\fR\n\\&Use \\fB\\-x\\fR, \\fB\\-\\-x\\fR or NAME: "
				  "a\\-b.\n.IP\nSecond.\n");
	free(text);
	/* a long text is broken into lines of at most 80 bytes, none of which is a request */
	text = printed(kx_option_manual_print, &long_text);
	assert_string_equal(text, ".TP\n\\fB\\-\\-y\\fR\n"
				  "\\&Of a text that is longer than one line words such as those inside\n"
				  "\\&.profile or \\fB\\-\\-y\\fR come after the end of the line.\n");
	free(text);
	/* hidden options are not shown, and a short name belongs to the first row that has it */
	text = printed(kx_option_help_print, &command);
	assert_null(strstr(text, "hidden"));
	assert_non_null(strstr(text, "\n  -o, --text TEXT"));
	assert_non_null(strstr(text, "\n      --pattern PATTERN"));
	free(text);
}

/* The rows of all commands */

struct check {
	const struct kx_command *command;
	char *help, *manual;
	unsigned rows;
};

static const char *without_dashes(const char *text)
{
	static char copy[1 << 17];
	size_t n = 0;

	for (; *text && n < sizeof(copy) - 1; text++)
		if (*text != '\\' || text[1] != '-')
			copy[n++] = *text;
	copy[n] = 0;
	return copy;
}

static int check_row(void *ctx, const struct kx_option_group *g, const struct kx_option *o)
{
	struct check *c = ctx;
	char line[128];
	bool integer = o->kind == KX_OPTION_NUMBER || o->kind == KX_OPTION_CHOICE ||
		       o->kind == KX_OPTION_CONSTANT;
	bool takes_value = o->kind != KX_OPTION_FLAG && o->kind != KX_OPTION_CONSTANT &&
			   o->kind != KX_OPTION_HELP && o->kind != KX_OPTION_CUSTOM;

	(void)g;
	c->rows++;
	if (takes_value && !o->argument)
		fail_msg("%s --%s: no name for its value", c->command->name, o->name);
	if (integer && o->size != 1 && o->size != 2 && o->size != 4 && o->size != 8)
		fail_msg("%s --%s: a field of %zu bytes", c->command->name, o->name, o->size);
	if (o->kind == KX_OPTION_FLAG && o->size != 1)
		fail_msg("%s --%s: not a bool", c->command->name, o->name);
	if ((o->kind == KX_OPTION_CUSTOM) != (o->set != NULL) ||
	    (o->kind == KX_OPTION_CHOICE) != (o->words != NULL))
		fail_msg("%s --%s: .set or .words", c->command->name, o->name);
	if (!o->help)
		return 0;
	snprintf(line, sizeof(line), "--%s%s%s ", o->name, o->argument && *o->argument != '[' ? " " : "",
		 o->argument ? o->argument : "");
	if (!strstr(c->help, line))
		fail_msg("%s --%s is not in the help", c->command->name, o->name);
	snprintf(line, sizeof(line), "\\fB\\-\\-%s\\fR", o->name);
	if (strcmp(o->name, "help") != 0 && !strstr(c->manual, without_dashes(line)))
		fail_msg("%s --%s is not in the manual", c->command->name, o->name);
	return 0;
}

static void test_commands(void **state)
{
	unsigned n = 0;

	(void)state;
	for (size_t i = 0; kx_commands[i]; i++) {
		struct check c = { .command = kx_commands[i] };
		char *manual = printed(kx_option_manual_print, kx_commands[i]);

		c.help = printed(kx_option_help_print, kx_commands[i]);
		c.manual = strdup(without_dashes(manual));
		kx_options_each(kx_commands[i], check_row, &c);
		assert_non_null(kx_commands[i]->examples); /* which tests/files/manual.sh parses */
		assert_true(c.rows >= 2);
		assert_ptr_equal(kx_command_find(kx_commands[i]->name), kx_commands[i]);
		n += c.rows;
		free(manual);
		free(c.manual);
		free(c.help);
	}
	assert_true(n >= 80);
	assert_null(kx_command_find("recor"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spellings), cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_command_operand), cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_units), cmocka_unit_test(test_lists),
		cmocka_unit_test(test_help), cmocka_unit_test(test_commands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
