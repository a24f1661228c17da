// SPDX-License-Identifier: BSD-2-Clause
/*
 * An AutoFDO profile in memory, common to all its file forms: functions with head
 * counts, and in them source places (line offset from the function's name, discriminator)
 * with counts, call targets and inlined bodies.
 *
 * Facts: RFC "AutoFDO GCOV Profile Format Version 4" (gcc@gcc.gnu.org, April 2026), gcc
 * 12.2's auto-profile.cc for versions 2 and 3.
 */
#ifndef KX_AUTOFDO_MODEL_H
#define KX_AUTOFDO_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KX_AFDO_NONE UINT32_MAX
#define KX_AFDO_MAX_LINE 0xffffffu /* of version 4; 2 and 3 have 16 bits */
#define KX_AFDO_MAX_DISCRIMINATOR 0xffffu

struct kx_afdo_target {
	uint32_t symbol;
	uint64_t count;
};

struct kx_afdo_body;

/* One line of code, or a part of it with a discriminator of its own. */
struct kx_afdo_place {
	uint32_t line; /* offset from the line of the function's declaration */
	uint32_t disc;
	bool counted;    /* count is valid (it may be 0) */
	bool has_code;   /* while the profile is built: in the line table */
	uint64_t count;  /* executions */
	/* while the profile is built: calls that enter here, samples, bytes of code */
	uint64_t entries, samples, bytes;
	struct kx_afdo_target *targets; /* of calls here; sorted by id after kx_afdo_finish */
	size_t ntargets;
};

struct kx_afdo_inlined {
	uint32_t line, disc;
	uint32_t symbol;
	struct kx_afdo_body *body;
};

/* Both lists are sorted by line, discriminator (inlined also by id after kx_afdo_finish). */
struct kx_afdo_body {
	struct kx_afdo_place *places;
	size_t nplaces, places_size;
	struct kx_afdo_inlined *inlined;
	size_t ninlined, inlined_size;
};

struct kx_afdo_symbol {
	char *name;      /* linkage name without suffixes of clones */
	uint32_t file;   /* index, KX_AFDO_NONE if not known */
	uint32_t id;     /* from 1 on, in order of file and name; 0: not in the file (finish) */
	bool top;        /* has a body of its own in the file */
	bool sampled;    /* while the profile is built: has samples */
	bool has_rows;   /* while the profile is built: its lines are known */
	uint64_t head;   /* calls */
	uint64_t first_ns; /* time of the first one; 0: not known */
	struct kx_afdo_body body;
};

struct kx_afdo_cutoff {
	uint32_t cutoff; /* of 1,000,000 */
	uint64_t min_count, num_counts;
};

#define KX_AFDO_CUTOFFS 16

struct kx_afdo_summary {
	uint64_t total, max, max_head, num_counts, num_functions;
	struct kx_afdo_cutoff cutoffs[KX_AFDO_CUTOFFS];
	size_t ncutoffs; /* 0 if the profile has no counts */
};

struct kx_afdo {
	struct kx_afdo_symbol *symbols;
	size_t nsymbols, symbols_size;
	uint32_t *symbol_slots; /* hash table of indexes */
	size_t nslots;
	char **files;
	size_t nfiles, files_size;
	/* after kx_afdo_finish */
	uint32_t *order;      /* symbols with an id, by id: order[0] has 1 */
	size_t norder;
	uint32_t *file_order; /* files of those symbols, by path */
	size_t nfile_order;
	uint32_t *file_rank;  /* place of a file in file_order, or KX_AFDO_NONE */
	struct kx_afdo_summary summary;
};

void kx_afdo_free(struct kx_afdo *a); /* what it holds; @a itself is the caller's */

/* Index of @path, added if it is new; KX_AFDO_NONE for NULL or "". -ENOMEM. */
int kx_afdo_file(struct kx_afdo *a, const char *path, uint32_t *file);
/* Index of the symbol of that name (suffixes of clones are cut) and file. -ENOMEM. */
int kx_afdo_get_symbol(struct kx_afdo *a, const char *name, uint32_t file, uint32_t *symbol);
/* The place, added if it is new; valid until the next is added. NULL without memory. */
struct kx_afdo_place *kx_afdo_get_place(struct kx_afdo_body *body, uint32_t line, uint32_t disc);
/* The body of @symbol inlined at a place, added if it is new; stays valid. NULL: no memory. */
struct kx_afdo_body *kx_afdo_get_inlined(struct kx_afdo_body *body, uint32_t line, uint32_t disc,
				     uint32_t symbol);
/* Adds calls to a place's target. -ENOMEM. */
int kx_afdo_add_target(struct kx_afdo_place *place, uint32_t symbol, uint64_t count);
/* True if there is a count or call anywhere in it. */
bool kx_afdo_has_counts(const struct kx_afdo_body *body);
/* Raises the place's count to @count. */
void kx_afdo_count(struct kx_afdo_place *place, uint64_t count);

/*
 * To be called once, after the last addition: drops empty places, gives ids to the symbols
 * that the top ones refer to, sorts, and computes the summary. -ENOMEM.
 */
int kx_afdo_finish(struct kx_afdo *a);

/* Length of @name without symbol version and suffixes of clones. */
size_t kx_afdo_name_length(const char *name);
/* True for functions that are pieces of another: their entries are not its calls. */
bool kx_afdo_is_part(const char *name);

#endif
