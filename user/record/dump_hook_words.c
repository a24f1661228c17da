// SPDX-License-Identifier: BSD-2-Clause
#include "record/dump_hook_words.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/* Copies the word at *@at to @to without its quotes and moves *@at behind it. false: a quote is open. */
static bool take_word(const char **at, char *to)
{
	const char *p = *at;
	char quote = 0;

	for (; *p && (quote || !is_blank(*p)); p++) {
		if (*p == quote)
			quote = 0;
		else if (!quote && (*p == '\'' || *p == '"'))
			quote = *p;
		else if (*p == '\\' && quote != '\'' && p[1])
			*to++ = *++p;
		else
			*to++ = *p;
	}
	*to = 0;
	*at = p;
	return !quote;
}

static int split(const char *command, char **words, struct kx_err *err)
{
	bool named = false;
	size_t n = 0;

	for (const char *p = command;; n++) {
		while (is_blank(*p))
			p++;
		if (!*p)
			break;
		words[n] = malloc(strlen(p) + 1);
		if (!words[n])
			return kx_err_set(err, -ENOMEM, "out of memory");
		if (!take_word(&p, words[n]))
			return kx_err_set(err, -EINVAL,
					  "--on-dump '%s': a quote is not closed; close it, or write \\' for "
					  "the character itself",
					  command);
		named |= n && strstr(words[n], "{}");
	}
	if (!named)
		return kx_err_set(err, -EINVAL,
				  "--on-dump takes a command and '{}' for the dump's path, as in "
				  "'upload {}', not '%s'",
				  command);
	return 0;
}

int kx_hook_words(const char *command, char ***out, struct kx_err *err)
{
	int code;

	/* a word takes two characters of the command, its blank included */
	*out = calloc(strlen(command) / 2 + 2, sizeof(**out));
	if (!*out)
		return kx_err_set(err, -ENOMEM, "out of memory");
	code = split(command, *out, err);
	if (code) {
		kx_hook_words_free(*out);
		*out = NULL;
	}
	return code;
}

static char *replaced(const char *word, const char *path)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	for (const char *at; (at = strstr(word, "{}")); word = at + 2) {
		fwrite(word, 1, (size_t)(at - word), f);
		fprintf(f, "%s%s", *path == '-' ? "./" : "", path);
	}
	fputs(word, f);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

char **kx_hook_words_with(char *const *words, const char *path)
{
	size_t n = 0;
	char **out;

	while (words[n])
		n++;
	out = calloc(n + 1, sizeof(*out));
	for (size_t i = 0; out && i < n; i++) {
		out[i] = replaced(words[i], path);
		if (!out[i]) {
			kx_hook_words_free(out);
			return NULL;
		}
	}
	return out;
}

void kx_hook_words_free(char **words)
{
	for (size_t i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
}
