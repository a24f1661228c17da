// SPDX-License-Identifier: BSD-2-Clause
/*
 * Types as debug information describes them, the same for DWARF and BTF: a source says what a type
 * is, with typedefs and qualifiers removed, and lists its members. value_abi.h and value_path.h are
 * made of this.
 */
#ifndef KX_TYPE_SOURCE_H
#define KX_TYPE_SOURCE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kx_type_class {
	KX_TYPE_OTHER, /* void, a function, a complex number, ... */
	KX_TYPE_INTEGER,
	KX_TYPE_CHAR,
	KX_TYPE_BOOL,
	KX_TYPE_FLOAT,
	KX_TYPE_ENUM,
	KX_TYPE_POINTER, /* and references */
	KX_TYPE_STRUCT,
	KX_TYPE_UNION,
	KX_TYPE_ARRAY,
};

union kx_type_handle {
	Dwarf_Die die;
	uint32_t btf;
};

struct kx_type {
	enum kx_type_class class;
	bool is_signed;
	bool reference;	   /* a C++ reference: its target is meant */
	bool incomplete;   /* declared only */
	bool has_target;
	bool vector; /* an array that is one register */
	uint64_t size;			   /* bytes */
	uint64_t alignment;		   /* bytes, where the source asks for it; 0: that of its members */
	const char *name;		   /* NULL: none; as long as the source */
	union kx_type_handle self, target; /* what is pointed to, the elements */
	uint64_t count;			   /* elements of an array; 0: unknown */
};

struct kx_type_member {
	const char
		*name; /* NULL: its members belong to the type around it (anonymous, base class) */
	union kx_type_handle type;
	uint64_t offset; /* bytes */
	bool bitfield;	 /* offset is not exact */
};

struct kx_type_source {
	void *ctx;
	/* 0, or -ENODATA: damaged, or nested too deep */
	int (*describe)(void *ctx, const union kx_type_handle *handle, struct kx_type *out);
	/* Makes a type that is incomplete the one that is declared, if that is known: true. NULL: none is. May take long. */
	bool (*complete)(void *ctx, struct kx_type *type);
	/* Not zero from @each ends it and is returned. */
	int (*members)(void *ctx, const struct kx_type *type,
		       int (*each)(void *arg, const struct kx_type_member *member), void *arg);
	/* Whether it is a C++ class that is passed by its address, as its copies are not trivial; NULL: none is. */
	bool (*by_reference)(void *ctx, const struct kx_type *type);
	int (*names)(void *ctx, const struct kx_type *type,
		     int (*each)(void *arg, const char *name, int64_t value), void *arg);
};

#define KX_PARAMETERS 32
#define KX_AT_ABI     0xff

struct kx_type_parameter {
	const char *name; /* NULL: none */
	union kx_type_handle type;
	uint8_t from; /* enum kx_fetch_from: the debug information names this register; KX_AT_ABI:
			 where the ABI has it */
	const char *unknown; /* why it cannot be known; NULL */
};

enum kx_type_language { KX_LANGUAGE_C, KX_LANGUAGE_RUST, KX_LANGUAGE_GO };

struct kx_type_function {
	const char *name;
	enum kx_type_language language;
	bool go_registers; /* a Go function of the register ABI (1.17 and later) */
	bool has_result;
	union kx_type_handle result;
	struct kx_type_parameter parameters[KX_PARAMETERS];
	size_t n;
};

#endif
