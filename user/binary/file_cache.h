// SPDX-License-Identifier: BSD-2-Clause
/*
 * Facts about files that many processes have mapped, so that examining a process does not open every
 * library again. Bounded: a new file may evict an old one.
 */
#ifndef KX_FILE_CACHE_H
#define KX_FILE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "binary/elf_image.h"

#define KX_FILE_SEGMENTS 4

/* What a file means for return probes: see unwind_risk.h. */
struct kx_file_verdict {
	bool is_go;
	bool loads;           /* calls dlopen */
	bool switches_stacks;
	bool dispatches;      /* handles its own system calls */
	bool leaves_unwind;   /* calls pthread_setcanceltype, or turns faults into exceptions */
	bool may_switch;      /* only if the program asks for it, or in code that it generates */
	char reason[256];     /* why it is a risk; empty if it is none */
};

/* Facts about one version of a file. All zero but the key until modules.c and unwind_risk.c fill it. */
struct kx_file_facts {
	uint64_t device, inode;
	uint64_t changed; /* st_ctim in nanoseconds */
	char name[64];    /* file name, which the unwind risk depends on */

	/* by modules.c */
	bool has_segments;
	int elf_error; /* 0, or what kx_elf_open returned */
	unsigned nsegments;
	struct kx_elf_section segments[KX_FILE_SEGMENTS]; /* executable ones, without data */

	/* by unwind_risk.c */
	bool is_judged;
	struct kx_file_verdict verdict;
};

struct kx_file_cache;

struct kx_file_cache *kx_file_cache_new(void); /* NULL without memory */
void kx_file_cache_free(struct kx_file_cache *cache);

/*
 * The facts of that file, fresh ones if there were none; valid until the next call. NULL for a NULL
 * @cache, a name that is too long, and without memory: then the file has to be opened.
 */
struct kx_file_facts *kx_file_cache_get(struct kx_file_cache *cache, uint64_t device,
					uint64_t inode, uint64_t changed, const char *name);

#endif
