// SPDX-License-Identifier: BSD-2-Clause
/*
 * The data of the page: named streams of bytes. Each is cut into pieces, each piece compressed for
 * itself (zlib), so that several CPUs work on them here and in the browser, and written as base64
 * in an element that no browser executes or shows:
 *
 *   <script type="text/plain" data-kx="NAME">BASE64</script>
 *
 * So no byte of a name from the traced program stands in the page as it is, and none needs to be
 * escaped.
 */
#ifndef KX_HTML_BLOCKS_H
#define KX_HTML_BLOCKS_H

#include "base/text_out.h"
#include "exporters/common/bytes.h"

#define KX_HTML_BLOCKS 9

/* All zero to begin with; free with kx_html_blocks_free. */
struct kx_html_blocks {
	struct {
		const char *name;
		bool repeats;
		struct kx_bytes bytes;
	} blocks[KX_HTML_BLOCKS];
	size_t n;
};

/*
 * The bytes of a new stream, to be filled; valid until the blocks are freed. There are at most
 * KX_HTML_BLOCKS. @repeats: it is worth looking for strings that have occurred before, as in text;
 * numbers hardly have any, and without it they are compressed three times faster.
 */
struct kx_bytes *kx_html_block_new(struct kx_html_blocks *b, const char *name, bool repeats);

/* Writes all streams in order and empties them. Errors: -ENOMEM; those of @out are kept there. */
int kx_html_blocks_write(struct kx_html_blocks *b, struct kx_text_out *out);
void kx_html_blocks_free(struct kx_html_blocks *b);

#endif
