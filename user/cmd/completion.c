// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/completion.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/commands.h"
#include "cmd/completion_words.h"
#include "exporters/exporter.h"

/* A command line as far as it matters here. */
struct line {
	const struct kx_command *command;
	char *const *words;
	int n, at;
	int command_at; /* of the command line after "--"; 0: none */
	const struct kx_option
		*option; /* the word, from .value on, is a value of this one; NULL: it is not */
	const char *value;
	bool is_operand;     /* the word cannot be an option: it follows "--" */
	const char *operand; /* the first one that is not completed, or NULL */
	pid_t pid;	     /* the first of --pid, or 0 */
	bool has_format;     /* an --format that is not completed */
};

struct search {
	const char *name; /* a long name, which ends with @length; NULL: .short_name is meant */
	size_t length;
	char short_name;
	const struct kx_option *exact, *begins;
	unsigned nbegin;
};

static int compare_option(void *ctx, const struct kx_option_group *g, const struct kx_option *o)
{
	struct search *s = ctx;

	(void)g;
	if (s->name ? !strncmp(o->name, s->name, s->length) && !o->name[s->length]
		    : o->short_name == s->short_name)
		s->exact = o;
	else if (s->name && !strncmp(o->name, s->name, s->length) && !s->nbegin++)
		s->begins = o;
	return s->exact != NULL;
}

/* The option that "--NAME" or "--NAME=..." names, also by an unambiguous beginning; NULL: none. */
static const struct kx_option *find_long(const struct kx_command *c, const char *name)
{
	struct search s = { .name = name, .length = strcspn(name, "=") };

	kx_options_each(c, compare_option, &s);
	return s.exact ? s.exact : s.nbegin == 1 ? s.begins : NULL;
}

static const struct kx_option *find_short(const struct kx_command *c, char name)
{
	struct search s = { .short_name = name };

	kx_options_each(c, compare_option, &s);
	return s.exact;
}

/*
 * The option of @word that takes a value, and where in @word that begins; NULL for the value: it is
 * the next word. NULL: the word has no such option.
 */
static const struct kx_option *option_of(const struct kx_command *c, const char *word,
					 const char **value)
{
	const struct kx_option *o = NULL;

	*value = NULL;
	if (!strncmp(word, "--", 2)) {
		o = find_long(c, word + 2);
		if (o && o->argument && strchr(word, '='))
			*value = strchr(word, '=') + 1;
		return o && (*value || (o->argument && *o->argument != '[')) ? o : NULL;
	}
	for (const char *p = word + 1; *word == '-' && *p; p++) {
		o = find_short(c, *p);
		if (o && o->argument) {
			*value = p[1] ? p + 1 : NULL;
			return o;
		}
	}
	return NULL;
}

/* Takes note of an option and its value, which is not the completed word. */
static void note_value(struct line *l, const struct kx_option *o, const char *value)
{
	if (!strcmp(o->name, "pid") && !l->pid)
		l->pid = (pid_t)atoi(value);
	if (!strcmp(o->name, "format"))
		l->has_format = true;
}

static void read_line(struct line *l)
{
	bool ended = false;

	for (int i = 2; i < l->n && !l->command_at; i++) {
		const char *word = l->words[i], *value;
		const struct kx_option *o = ended ? NULL : option_of(l->command, word, &value);
		int at = o && !value ? i + 1 : i; /* where the value is */

		if (!ended && !strcmp(word, "--") && i != l->at) {
			ended = true;
			l->is_operand = i < l->at;
			if (l->command->operands == KX_OPERANDS_COMMAND)
				l->command_at = i + 1;
			continue;
		}
		if (o && at == l->at) {
			l->option = o;
			l->value = value ? value : l->words[at];
		} else if (o && at < l->n) {
			note_value(l, o, value ? value : l->words[at]);
		} else if (!o && i != l->at && (ended || *word != '-' || !word[1]) && !l->operand) {
			l->operand = word;
		}
		i = at;
	}
}

static void add_text(const struct kx_completion *c, const char *text, size_t n, const char *about)
{
	char word[128];

	snprintf(word, sizeof(word), "%.*s", (int)n, text);
	kx_completion_add(c, word, about);
}

/* The words of "one, two or three". */
static void add_listed(const struct kx_completion *c, const char *list)
{
	while (*list) {
		size_t n = strcspn(list, ", ");

		if (n && strncmp(list, "or ", 3) != 0)
			add_text(c, list, n, NULL);
		list += n + strspn(list + n, ", ");
	}
}

static void add_formats(const struct kx_completion *c)
{
	for (size_t i = 0; kx_exporters[i]; i++)
		kx_completion_add(c, kx_exporters[i]->name, kx_exporters[i]->summary);
}

/* The map of the trace on the line, or of the default one, as @map; false: it does not fit. */
static bool map_of_trace(const struct line *l, char *map, size_t size)
{
	const char *trace = "trace.xray";
	size_t n = strlen(trace);

	for (int i = 2; i < l->n; i++) {
		size_t length = strlen(l->words[i]);

		if (length > 4 && !strcmp(l->words[i] + length - 4, ".zst"))
			length -= 4;
		if (length > 5 && !strncmp(l->words[i] + length - 5, ".xray", 5)) {
			trace = l->words[i];
			n = length;
		}
	}
	return snprintf(map, size, "%.*s.map", (int)n, trace) < (int)size;
}

/* Functions of what the line is about: processes, a command, a binary or a trace. */
static void add_functions(const struct line *l, const struct kx_completion *c)
{
	const char *binary = l->command_at && l->command_at < l->n ? l->words[l->command_at] : NULL;
	char map[4096];

	if (l->command == &kx_command_functions)
		binary = l->operand;
	if (l->pid || binary || l->command == &kx_command_functions ||
	    l->command->operands == KX_OPERANDS_COMMAND)
		kx_completion_add_functions(c, l->pid, binary);
	else if (map_of_trace(l, map, sizeof(map)))
		kx_completion_add_recorded(c, map);
}

/* Whether @o takes @name, as one of the alternatives in its argument: "PID[,PID...]", "UID|NAME".
 */
static bool takes(const struct kx_option *o, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = o->argument; p; p = strchr(p, '|')) {
		p += *p == '|';
		p += strncmp(p, "[=", 2) ? 0 : 2;
		if (!strncmp(p, name, n) && !isalpha((unsigned char)p[n]))
			return true;
	}
	return false;
}

/* What the shell adds to the values of @o. */
static const char *shell_adds(const struct kx_option *o)
{
	return takes(o, "FILE") || takes(o, "MAP") || takes(o, "OUT") || takes(o, "PATH") ? "files"
											  : "none";
}

static void add_values(const struct line *l, const struct kx_completion *value)
{
	const struct kx_option *o = l->option;
	struct kx_completion c = *value;
	const char *comma = strrchr(c.word, ',');
	char before[512];

	if (o->kind == KX_OPTION_IDS && comma && comma - c.word < (int)sizeof(before) / 2) {
		snprintf(before, sizeof(before), "%s%.*s", c.before, (int)(comma + 1 - c.word),
			 c.word);
		c.before = before;
		c.word = comma + 1;
	}
	for (size_t i = 0; o->words && o->words[i]; i++)
		kx_completion_add(&c, o->words[i], NULL);
	if (o->kind == KX_OPTION_CUSTOM && takes(o, "KEY") && o->takes)
		add_listed(&c, o->takes);
	if (takes(o, "PID"))
		kx_completion_add_processes(&c, false);
	if (takes(o, "COMM") || !strcmp(o->name, "comm"))
		kx_completion_add_processes(&c, true);
	if (takes(o, "UID"))
		kx_completion_add_users(&c);
	if (takes(o, "FORMAT") && !l->has_format)
		add_formats(&c);
	else if (takes(o, "PATTERN") || takes(o, "FUNCTION") || takes(o, "FORMAT"))
		add_functions(l, &c);
}

struct options {
	const struct kx_completion *completion;
	const struct kx_command *command;
};

static int add_option(void *ctx, const struct kx_option_group *g, const struct kx_option *o)
{
	struct options *all = ctx;
	char word[64], name = kx_option_short_name(all->command, o);

	(void)g;
	if (!o->help)
		return 0;
	snprintf(word, sizeof(word), "--%s=", o->name);
	add_text(all->completion, word, strlen(word) - 1, o->help);
	if (o->argument && *o->argument == '[')
		kx_completion_add(all->completion, word, o->help);
	snprintf(word, sizeof(word), "-%c", name);
	if (name && !all->completion->word[strspn(all->completion->word, "-")])
		kx_completion_add(all->completion, word, o->help);
	return 0;
}

/* "--tree [FUNCTION]" and "--slowest N [FUNCTION]": an operand behind an option. */
static bool may_be_function(const struct line *l)
{
	return l->command == &kx_command_report && !l->is_operand &&
	       (!strcmp(l->words[l->at - 1], "--tree") ||
		(l->at > 3 && !strcmp(l->words[l->at - 2], "--slowest")));
}

static void complete_argument(const struct line *l, struct kx_completion *c)
{
	struct options all = { c, l->command };
	char before[512];

	if (l->option) {
		snprintf(before, sizeof(before), "%.*s", (int)(l->value - l->words[l->at]),
			 l->words[l->at]);
		c->before = before;
		c->word = l->value;
		fprintf(c->to, "%s\n", shell_adds(l->option));
		add_values(l, c);
		return;
	}
	fprintf(c->to, "%s\n",
		l->command->operands == KX_OPERANDS_NONE ||
				l->command->operands == KX_OPERANDS_COMMAND ||
				(*c->word == '-' && !l->is_operand)
			? "none"
		: l->command == &kx_command_functions ? "programs"
						      : "files");
	if (may_be_function(l))
		add_functions(l, c);
	if (l->is_operand)
		return;
	if (*c->word == '-' || l->command->operands == KX_OPERANDS_COMMAND ||
	    l->command->operands == KX_OPERANDS_NONE)
		kx_options_each(l->command, add_option, &all);
	if (l->command->operands == KX_OPERANDS_COMMAND)
		kx_completion_add(c, "--", "a command to run follows");
}

void kx_complete(char *const *words, int n, int at, FILE *to)
{
	struct kx_completion c = { .to = to, .before = "", .word = at < n ? words[at] : "" };
	struct line l = { .words = words, .n = n, .at = at };

	if (at < 1 || at >= n)
		return;
	if (at > 1 && strcmp(words[1], "help") != 0) {
		l.command = kx_command_find(words[1]);
		if (l.command)
			read_line(&l);
		if (!l.command)
			fputs("files\n", to);
		else if (l.command_at && at >= l.command_at)
			fprintf(to, "command %d\n", l.command_at);
		else
			complete_argument(&l, &c);
		return;
	}
	fputs("none\n", to);
	for (size_t i = 0; at < 3 && kx_commands[i]; i++)
		kx_completion_add(&c, kx_commands[i]->name, kx_commands[i]->summary);
	if (at > 1)
		return;
	kx_completion_add(&c, "help", "explain a command");
	if (*c.word == '-') {
		kx_completion_add(&c, "--help", "list the commands");
		kx_completion_add(&c, "--version", "print the version");
	}
}
