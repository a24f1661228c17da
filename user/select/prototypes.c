// SPDX-License-Identifier: BSD-2-Clause
#include "select/prototypes.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bpf/wire.h"
#include "select/prototype_table.h"

/* Types by their number in a handle; 0: unknown. */
static const struct known_type {
	const char *words; /* as written, without const and struct */
	enum kx_type_class class;
	uint8_t size;
	bool is_signed;
	uint32_t target; /* of a pointer */
} types[] = {
	[1] = { "void *", KX_TYPE_POINTER, 8, false, 0 },
	[2] = { "char", KX_TYPE_CHAR, 1, true, 0 },
	[3] = { "char *", KX_TYPE_POINTER, 8, false, 2 },
	{ "int", KX_TYPE_INTEGER, 4, true, 0 },
	{ "unsigned int", KX_TYPE_INTEGER, 4, false, 0 },
	{ "unsigned", KX_TYPE_INTEGER, 4, false, 0 },
	{ "long", KX_TYPE_INTEGER, 8, true, 0 },
	{ "long int", KX_TYPE_INTEGER, 8, true, 0 },
	{ "unsigned long", KX_TYPE_INTEGER, 8, false, 0 },
	{ "size_t", KX_TYPE_INTEGER, 8, false, 0 },
	{ "ssize_t", KX_TYPE_INTEGER, 8, true, 0 },
	{ "off_t", KX_TYPE_INTEGER, 8, true, 0 },
	{ "loff_t", KX_TYPE_INTEGER, 8, true, 0 },
	{ "pid_t", KX_TYPE_INTEGER, 4, true, 0 },
	{ "uid_t", KX_TYPE_INTEGER, 4, false, 0 },
	{ "gid_t", KX_TYPE_INTEGER, 4, false, 0 },
	{ "mode_t", KX_TYPE_INTEGER, 4, false, 0 },
	{ "umode_t", KX_TYPE_INTEGER, 2, false, 0 },
	{ "socklen_t", KX_TYPE_INTEGER, 4, false, 0 },
	{ "clockid_t", KX_TYPE_INTEGER, 4, true, 0 },
	{ "time_t", KX_TYPE_INTEGER, 8, true, 0 },
	{ "pthread_t", KX_TYPE_INTEGER, 8, false, 0 },
	{ "qid_t", KX_TYPE_INTEGER, 4, false, 0 },
	{ "key_t", KX_TYPE_INTEGER, 4, true, 0 },
	{ "timer_t", KX_TYPE_INTEGER, 4, true, 0 },
	{ "mqd_t", KX_TYPE_INTEGER, 4, true, 0 },
	{ "aio_context_t", KX_TYPE_INTEGER, 8, false, 0 },
	{ "key_serial_t", KX_TYPE_INTEGER, 4, true, 0 },
	{ "rwf_t", KX_TYPE_INTEGER, 4, true, 0 },
	{ "u32", KX_TYPE_INTEGER, 4, false, 0 },
	{ "__u32", KX_TYPE_INTEGER, 4, false, 0 },
	{ "u64", KX_TYPE_INTEGER, 8, false, 0 },
	{ "__u64", KX_TYPE_INTEGER, 8, false, 0 },
	{ "uint32_t", KX_TYPE_INTEGER, 4, false, 0 },
	{ "uint64_t", KX_TYPE_INTEGER, 8, false, 0 },
	{ "landlock_rule_type", KX_TYPE_INTEGER, 4, false, 0 },
	{ "cap_user_header_t", KX_TYPE_POINTER, 8, false, 0 },
	{ "cap_user_data_t", KX_TYPE_POINTER, 8, false, 0 },
	{ "__sighandler_t", KX_TYPE_POINTER, 8, false, 0 },
	{ "old_uid_t", KX_TYPE_INTEGER, 2, false, 0 },
	{ "old_gid_t", KX_TYPE_INTEGER, 2, false, 0 },
	{ "__s32", KX_TYPE_INTEGER, 4, true, 0 },
};

#define TYPES (sizeof(types) / sizeof(types[0]))

static int describe(void *ctx, const union kx_type_handle *handle, struct kx_type *out)
{
	const struct known_type *t = &types[handle->btf];

	(void)ctx;
	*out = (struct kx_type){ .class = t->class,
				 .size = t->size,
				 .is_signed = t->is_signed,
				 .name = t->class == KX_TYPE_POINTER ? NULL : t->words,
				 .has_target = t->target != 0,
				 .target.btf = t->target,
				 .self = *handle };
	return 0;
}

static int no_members(void *ctx, const struct kx_type *type,
		      int (*each)(void *arg, const struct kx_type_member *member), void *arg)
{
	(void)ctx, (void)type, (void)each, (void)arg;
	return 0;
}

static int no_names(void *ctx, const struct kx_type *type,
		    int (*each)(void *arg, const char *name, int64_t value), void *arg)
{
	(void)ctx, (void)type, (void)each, (void)arg;
	return 0;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool is_qualifier(const char *word)
{
	return !strcmp(word, "const") || !strcmp(word, "struct") || !strcmp(word, "union") ||
	       !strcmp(word, "enum") || !strcmp(word, "volatile") || !strcmp(word, "restrict") ||
	       !strcmp(word, "__user");
}

/* The number of the type that @words are, with that many stars: all pointers but "char *" are
 * alike. */
static uint32_t type_number(const char *words, unsigned stars)
{
	if (stars)
		return stars == 1 && !strcmp(words, "char") ? 3 : 1;
	for (uint32_t i = 1; i < TYPES; i++)
		if (types[i].words && !strcmp(types[i].words, words))
			return i;
	return 0;
}

/* One declaration, "const char *path" in @text of @n bytes: its name is the last word. */
static int declaration(const char *text, size_t n, char name[64], uint32_t *type)
{
	char words[128] = "", word[64] = "", last[64] = "";
	unsigned stars = 0;

	for (size_t i = 0; i < n;) {
		size_t length = 0;

		stars += text[i] == '*' || text[i] == '[';
		while (i + length < n && is_word(text[i + length]))
			length++;
		if (!length) {
			i++;
			continue;
		}
		if (length >= sizeof(word))
			return -EINVAL;
		memcpy(word, text + i, length);
		word[length] = 0;
		i += length;
		if (is_qualifier(word) || isdigit((unsigned char)word[0]))
			continue;
		if (last[0] && strlen(words) + strlen(last) + 2 < sizeof(words)) {
			strcat(words, words[0] ? " " : "");
			strcat(words, last);
		}
		strcpy(last, word);
	}
	strcpy(name, last);
	*type = words[0] ? type_number(words, stars) : 0;
	return last[0] ? 0 : -EINVAL;
}

static const char *keep_name(struct kx_prototype *p, size_t *used, const char *name)
{
	size_t n = strlen(name) + 1;
	char *at = p->names + *used;

	if (*used + n > sizeof(p->names))
		return NULL;
	memcpy(at, name, n);
	*used += n;
	return at;
}

int kx_prototype_parse(const char *text, struct kx_prototype *p)
{
	const char *open = strchr(text, '('), *at = open ? open + 1 : NULL;
	struct kx_type_function *f = &p->function;
	size_t used = 0;
	char name[64];
	uint32_t type;

	memset(p, 0, sizeof(*p));
	if (!open || declaration(text, (size_t)(open - text), name, &type))
		return -EINVAL;
	f->name = keep_name(p, &used, name);
	f->has_result = type != 0;
	f->result.btf = type;
	while (f->n < KX_PARAMETERS) {
		struct kx_type_parameter *q = &f->parameters[f->n];
		size_t n = strcspn(at, ",)");

		if (!at[n])
			return -EINVAL;
		if (!strncmp(at, "void)", 5) || !n || strspn(at, " .") == n) /* none, or "..." */
			return f->name ? 0 : -EINVAL;
		if (declaration(at, n, name, &type) || !type)
			return -EINVAL;
		*q = (struct kx_type_parameter){ .name = keep_name(p, &used, name),
						 .type.btf = type,
						 .from = KX_AT_ABI };
		if (!q->name)
			return -EINVAL;
		f->n++;
		at += n + 1;
		if (at[-1] == ')')
			return 0;
	}
	return -EINVAL;
}

static bool find(const char *const *table, size_t n, const char *name, struct kx_prototype *out)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < n; i++) {
		const char *open = strchr(table[i], '(');

		if ((size_t)(open - table[i]) > length && !strncmp(open - length, name, length) &&
		    !is_word(open[-1 - (long)length]))
			return kx_prototype_parse(table[i], out) == 0;
	}
	return false;
}

bool kx_prototype_of_library(const char *name, struct kx_prototype *out)
{
	return find(kx_library_prototypes, kx_library_prototypes_count, name, out);
}

bool kx_prototype_of_syscall(const char *name, struct kx_prototype *out)
{
	if (!find(kx_syscall_prototypes, kx_syscall_prototypes_count, name, out))
		return false;
	/* the instruction syscall overwrites rcx */
	if (out->function.n > 3)
		out->function.parameters[3].from = KX_FROM_R10;
	return true;
}

int kx_prototype_resolve(const struct kx_prototype *p, const struct kx_value_request *request,
			 struct kx_value_found *out, struct kx_err *err)
{
	static const struct kx_type_source source = { .describe = describe,
						      .members = no_members,
						      .names = no_names };

	return kx_value_path_resolve(&source, &p->function, request, out, err);
}
