// SPDX-License-Identifier: BSD-2-Clause
/*
 * Buffered text to a descriptor, for output of millions of lines. Errors are kept until
 * the end; after one nothing more is written.
 */
#ifndef KX_TEXT_OUT_H
#define KX_TEXT_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kx_text_out {
	int fd;
	int error; /* negative errno of the first failed write; -EPIPE if the reader left */
	size_t used;
	char buf[64 << 10];
};

void kx_text_init(struct kx_text_out *o, int fd);
void kx_text_bytes(struct kx_text_out *o, const char *text, size_t size);
void kx_text_str(struct kx_text_out *o, const char *text);
void kx_text_char(struct kx_text_out *o, char c);
void kx_text_u64(struct kx_text_out *o, uint64_t value);
/* @width characters at least: blanks before (positive) or after (negative) it. */
void kx_text_field(struct kx_text_out *o, int width, const char *text, size_t size);
/* Bytes of the valid UTF-8 character of two or more bytes at @p, controls left out; or 0. */
size_t kx_utf8_length(const unsigned char *p, size_t size);
/* Printable ASCII and valid UTF-8 as they are, all else as \n, \t, \\, \" or \xNN. */
void kx_text_escaped(struct kx_text_out *o, const void *data, size_t size);
/* A string as JSON, quotes included; what is not UTF-8 is replaced (see json_text.h). */
void kx_text_json_string(struct kx_text_out *o, const char *text);
/* ,"KEY":VALUE */
void kx_text_json_u64(struct kx_text_out *o, const char *key, uint64_t value);
/* Writes out what is left; 0 or the error. */
int kx_text_flush(struct kx_text_out *o);

#endif
