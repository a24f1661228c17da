// SPDX-License-Identifier: BSD-2-Clause
#include "base/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle_plain.h"

/* Itanium C++ and legacy Rust begin _Z (some tools add underscores), Rust v0 _R. */
bool kx_is_mangled(const char *s)
{
	return s[0] == '_' && (s[1] == 'Z' || s[1] == 'R' || (s[1] == '_' && strstr(s, "_Z")));
}

/* Legacy Rust names end in a hash of 17 characters, the first of them 'h', perhaps with a suffix (".llvm.1234"). */
static bool may_be_legacy_rust(const char *symbol)
{
	size_t len = strlen(symbol);

	if (len >= 20 && !memcmp(symbol + len - 20, "17h", 3))
		return true;
	return memchr(symbol, '.', len) && strstr(symbol, "17h");
}

/* What libiberty prints, up to KX_DEMANGLE_MAX bytes. */
struct bounded {
	void (*put)(const char *text, size_t len, void *opaque);
	void *opaque;
	size_t len;
	jmp_buf full;
};

/*
 * A name of some hundred bytes can stand for one of terabytes, whose parts refer to each other. libiberty cannot be asked to stop, and
 * has nothing allocated while it prints, so it is left by a jump.
 */
static void put_bounded(const char *text, size_t len, void *opaque)
{
	struct bounded *b = opaque;

	if (len > KX_DEMANGLE_MAX - b->len)
		longjmp(b->full, 1);
	b->len += len;
	b->put(text, len, b->opaque);
}

static bool demangle_bounded(const char *symbol, int options, void (*put)(const char *text, size_t len, void *opaque),
			     void *opaque)
{
	struct bounded b = { .put = put, .opaque = opaque };

	if (_setjmp(b.full))
		return false;
	if ((symbol[1] == 'R' || may_be_legacy_rust(symbol)) && rust_demangle_callback(symbol, options, put_bounded, &b))
		return true;
	b.len = 0;
	return cplus_demangle_v3_callback(symbol, options, put_bounded, &b);
}

bool kx_demangle_to(const char *symbol, void (*put)(const char *text, size_t len, void *opaque),
		    void *opaque)
{
	char plain[KX_DEMANGLE_PLAIN_MAX];
	size_t len;

	if (!kx_is_mangled(symbol))
		return false;
	len = may_be_legacy_rust(symbol) ? 0 : kx_demangle_plain(symbol, plain);
	if (!len)
		return demangle_bounded(symbol, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO, put, opaque);
	put(plain, len, opaque);
	return true;
}

struct text {
	char *data;
	size_t len, room;
	bool failed;
};

static void append(const char *data, size_t len, void *opaque)
{
	struct text *t = opaque;

	if (t->room - t->len <= len) {
		size_t room = 2 * t->room + len + 64;
		char *grown = t->failed ? NULL : realloc(t->data, room);

		t->failed |= !grown;
		if (!grown)
			return;
		t->data = grown;
		t->room = room;
	}
	if (len)
		memcpy(t->data + t->len, data, len);
	t->len += len;
	t->data[t->len] = 0;
}

static char *text_of(struct text *t, bool whole)
{
	if (whole && !t->failed && t->data)
		return t->data;
	free(t->data);
	return NULL;
}

char *kx_demangle(const char *symbol)
{
	struct text t = { 0 };
	bool whole = kx_demangle_to(symbol, append, &t);

	return text_of(&t, whole);
}

char *kx_demangle_name(const char *symbol)
{
	struct text t = { 0 };
	char *name, *clone;
	bool whole;

	if (!kx_is_mangled(symbol))
		return NULL;
	/* Without DMGL_PARAMS libiberty prints neither arguments nor the return type. */
	whole = demangle_bounded(symbol, DMGL_ANSI | DMGL_AUTO, append, &t);
	name = text_of(&t, whole);
	clone = name ? strstr(name, " [clone ") : NULL;
	if (clone)
		*clone = 0;
	return name;
}
