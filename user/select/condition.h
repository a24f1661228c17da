// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which calls are recorded, as --if has it, -f behind " if ", and --trigger:
 *
 *     condition  = and {'||' and}
 *     and        = not {'&&' not}
 *     not        = '!' not | '(' condition ')' | comparison
 *     comparison = operand ('==' | '!=' | '<' | '<=' | '>' | '>=' | '&' | '=~' | '!~') constant
 *     operand    = 'thread' | 'tid' | 'depth' | 'ret' [':' TYPE] | item        item: see
 * value_spec.h constant   = NUMBER | 'C' | "TEXT" | true | false | NAME of an enum
 *
 * ARG & NUMBER holds if any of these bits is set. =~ takes a glob. What an operand is in a
 * function, its type, and so whether the constant fits, is known only there: see condition_table.h.
 */
#ifndef KX_CONDITION_H
#define KX_CONDITION_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "bpf/wire.h"
#include "select/value_spec.h"

enum kx_comparison {
	KX_COMPARE_EQUAL,
	KX_COMPARE_UNEQUAL,
	KX_COMPARE_LESS,
	KX_COMPARE_AT_MOST,
	KX_COMPARE_MORE,
	KX_COMPARE_AT_LEAST,
	KX_COMPARE_BITS,
	KX_COMPARE_MATCHES,
	KX_COMPARE_DIFFERS, /* !~ */
};

enum kx_constant_kind {
	KX_CONSTANT_NUMBER,
	KX_CONSTANT_TEXT,
	KX_CONSTANT_NAME, /* of an enum's type */
};

struct kx_comparison_term {
	enum kx_term_of of;
	struct kx_value_item item; /* KX_TERM_VALUE; owned */
	enum kx_comparison how;
	enum kx_constant_kind kind;
	bool negative; /* number is below 0, as two's complement */
	uint64_t number;
	char *text;			/* of the other kinds; NUL-terminated; owned */
	size_t length;			/* of text, bytes */
	size_t operand_at, constant_at; /* characters of the condition's text, from 1 on */
};

/* A node of the expression: a term, or an operator on nodes before it. */
struct kx_condition_node {
	enum { KX_NODE_TERM, KX_NODE_NOT, KX_NODE_AND, KX_NODE_OR } kind;
	uint8_t left, right; /* nodes; of KX_NODE_TERM left is the term */
};

#define KX_CONDITION_NODES 64

struct kx_condition {
	char *text;	    /* as given, with what stands before it in its option; owned */
	const char *option; /* "--if"; borrowed */
	struct kx_comparison_term terms[KX_MAX_TERMS];
	size_t n;
	struct kx_condition_node nodes[KX_CONDITION_NODES]; /* the last one is the whole */
	size_t nnodes;
};

/*
 * Parses @text from character @from on, which is the value of @option: messages name it, and count
 * positions from its beginning. Errors: -EINVAL, with what is wrong and where; -E2BIG (more than
 * KX_MAX_TERMS comparisons, nested too deep); -ENOMEM.
 */
int kx_condition_parse(const char *option, const char *text, size_t from, struct kx_condition *out,
		       struct kx_err *err);
void kx_condition_free(struct kx_condition *c);

/* A condition of functions, beside those of others that are theirs, too. */
struct kx_condition_rule {
	char *pattern; /* of -f 'PATTERN if ...'; NULL: --if, of every function; owned */
	struct kx_condition condition;
};

/* Where " if " begins in a value of -f or --trigger; its length if there is none. */
size_t kx_condition_find(const char *text);

/* Sets @err: "--if 'TEXT': WHAT, at character @at". Returns @code. */
int kx_condition_complain(const struct kx_condition *c, struct kx_err *err, int code, size_t at, const char *fmt, va_list ap);

#endif
