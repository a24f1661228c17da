// SPDX-License-Identifier: BSD-2-Clause
/*
 * The parts of a CPEL file: numbers in either byte order, sections, the string table.
 * Section numbers and layouts are those that VPP's tools read (the document lost the
 * headings of types 1 to 3); "unsigned long" in the document is 32 bits.
 */
#ifndef KX_CPEL_FILE_H
#define KX_CPEL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text_out.h"

enum kx_cpel_section {
	KX_CPEL_STRTAB = 1,   /* NUL-terminated strings, the first is the table's name */
	KX_CPEL_SYMTAB = 2,   /* name of table, n, then value, name */
	KX_CPEL_EVTDEF = 3,   /* name of table, n, then code, event format, datum format */
	KX_CPEL_TRACKDEF = 4, /* name of table, n, then track, name */
	KX_CPEL_EVENT = 5,    /* name of table, n, clock, then time high, low, track, code, datum */
};

#define KX_CPEL_VERSION 1
#define KX_CPEL_LITTLE 0x80
#define KX_CPEL_TABLE_NAME "FileStrtab" /* as VPP's own writer calls it */
#define KX_CPEL_EVENT_SIZE 20
#define KX_CPEL_EVENT_HEADER 72
/* A section's length has 32 bits. */
#define KX_CPEL_MAX_EVENTS ((UINT32_MAX - KX_CPEL_EVENT_HEADER) / KX_CPEL_EVENT_SIZE)

struct kx_cpel_strings {
	char *bytes;
	size_t size, room;
	uint32_t *places; /* offset + 1 of the string with this hash; 0: free */
	size_t nplaces;   /* a power of two */
	size_t count;
};

/* The table with its name in it. Free with kx_cpel_strings_free, also after an error: -ENOMEM. */
int kx_cpel_strings_new(struct kx_cpel_strings *s);
void kx_cpel_strings_free(struct kx_cpel_strings *s);
/* Offset of @text, which is added if it's new. Errors: -ENOMEM, -EFBIG (4 GiB). */
int kx_cpel_string(struct kx_cpel_strings *s, const char *text, uint32_t *offset);
/* The same of a string that is there; false if it isn't. */
bool kx_cpel_string_find(const struct kx_cpel_strings *s, const char *text, uint32_t *offset);

/* In the byte order of the file. */
static inline void kx_cpel_set32(uint8_t *p, uint32_t v, bool little)
{
	v = little == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) ? v : __builtin_bswap32(v);
	__builtin_memcpy(p, &v, sizeof(v));
}

/* The same as text's next bytes. */
void kx_cpel_put16(struct kx_text_out *o, uint16_t v, bool little);
void kx_cpel_put32(struct kx_text_out *o, uint32_t v, bool little);
/* Type and length; @length is that of what follows. */
void kx_cpel_section(struct kx_text_out *o, enum kx_cpel_section type, uint64_t length,
		     bool little);
/* Name of the string table and @n: what starts every section but the string table. */
void kx_cpel_table(struct kx_text_out *o, uint32_t n, bool little);
/* The string table section, filled up with NULs to a multiple of @align bytes. */
void kx_cpel_strings_write(const struct kx_cpel_strings *s, struct kx_text_out *o, unsigned align,
			   bool little);

#endif
