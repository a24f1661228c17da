// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a trace must say of itself to be understood on another machine: the
 * command line, host, clock, modules, functions, losses. All but the functions is
 * one JSON object in the map's section ".kxray.session" (see map_file.h):
 *
 *   {"kxray":1, "session":{...},
 *    "modules":[{"name","path","build_id","load_bias","map_base"}, ...]}
 *
 * Addresses are hexadecimal strings ("0x401000"), because JSON readers round
 * numbers over 53 bits. A function's id is its place in the list, from 1 on.
 */
#ifndef KX_SESSION_H
#define KX_SESSION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* A function as the map stores it; its id is its index + 1. */
struct kx_map_function {
	const char *symbol;   /* mangled name as the symbol table has it */
	uint32_t module;      /* index into modules */
	uint64_t address;     /* ELF virtual address inside its module */
	uint64_t size;        /* bytes */
};

struct kx_map_module {
	const char *name;     /* file name, e.g. libc.so.6 */
	const char *path;     /* as the process had it mapped */
	const char *build_id; /* lower-case hex, "" if none */
	uint64_t load_bias;   /* run-time address minus ELF virtual address; 0 if unknown */
	uint64_t map_base;    /* first address of the module's range in the map; set by the writer */
};

struct kx_map {
	struct kx_map_module *modules;
	size_t nmodules;
	struct kx_map_function *functions;
	size_t nfunctions;
	json_t *session; /* free-form object: what record knows; may be NULL */
	void *storage;   /* of map_read.c; NULL in a map made by hand */
};

#endif
