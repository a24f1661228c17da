// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/html/page.h"

/* Paths are relative to the folder in which make runs the compiler. */
__asm__(".pushsection .rodata\n"
	"kx_html_page_begin: .incbin \"exporters/html/page.html\"\n"
	"kx_html_page_end: .byte 0\n"
	".popsection\n");

extern const char kx_html_page_begin[], kx_html_page_end[];

const char *kx_html_page(size_t *size)
{
	*size = (size_t)(kx_html_page_end - kx_html_page_begin);
	return kx_html_page_begin;
}
