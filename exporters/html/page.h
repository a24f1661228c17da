// SPDX-License-Identifier: BSD-2-Clause
/*
 * The page without its data: page.html, which `make html-assets` makes of the sources in page/, is
 * part of the program. The data follows it (see html.c).
 */
#ifndef KX_HTML_PAGE_H
#define KX_HTML_PAGE_H

#include <stddef.h>

/* The page, of *@size bytes, without a final NUL; it is part of the program. */
const char *kx_html_page(size_t *size);

#endif
