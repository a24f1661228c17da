// SPDX-License-Identifier: BSD-2-Clause
/* Inside the writer of maps: sections of NUL-terminated text, and how names are put into them. */
#ifndef KX_MAP_STRINGS_H
#define KX_MAP_STRINGS_H

#include <stddef.h>
#include <stdint.h>

struct kx_map_strings {
	char *data;	  /* to be freed */
	size_t len, size; /* bytes used, and allocated */
};

/*
 * Each adds a string and sets *@offset to its place in the section. Errors: -ENOMEM, -E2BIG
 * (over 4 GiB).
 */

int kx_map_add_string(struct kx_map_strings *s, const char *text, size_t len, uint32_t *offset);
/* With '_' for what the trace_event, csv and flame outputs of llvm-xray would have to escape. */
int kx_map_add_plain(struct kx_map_strings *s, const char *text, size_t len, uint32_t *offset);
/*
 * A symbol so that llvm-xray demangles it to a name without a quotation mark; without its
 * version.
 */
int kx_map_add_llvm_name(struct kx_map_strings *s, const char *symbol, uint32_t *offset);
/* A symbol as it is; bytes that are not UTF-8 are replaced (see json_text.h). */
int kx_map_add_text(struct kx_map_strings *s, const char *symbol, uint32_t *offset);

#endif
