// SPDX-License-Identifier: BSD-2-Clause
/*
 * Text for people. Names of functions, threads and files come from the traced programs and can hold
 * anything: a line break that forges a line of output, or an escape sequence that changes the
 * terminal. What is printed is printable ASCII and valid UTF-8 without controls; every other byte
 * is \n, \t or \xNN.
 */
#ifndef KX_PRINTABLE_H
#define KX_PRINTABLE_H

#include <stddef.h>
#include <stdio.h>

#define KX_PRINTABLE_MAX 4 /* bytes that one byte becomes, at most */

/*
 * Length of the valid UTF-8 character at @p if it has two or more bytes and is no control; else
 * 0.
 */
size_t kx_utf8_length(const unsigned char *p, size_t size);
/*
 * Writes the printable form of the first character of @size > 0 bytes to @out and returns its
 * length; *@used: the bytes that the character has.
 */
size_t kx_printable_char(const unsigned char *p, size_t size, char out[KX_PRINTABLE_MAX],
			 size_t *used);
/* @text in printable form, in allocated memory; NULL if memory ran out. */
char *kx_printable(const char *text, size_t size);

/* @first and @second, made printable, with @between (and @end) as they are; *@first_size: where @between begins. In
 * allocated memory; NULL if memory ran out. */
char *kx_printable_pair(const char *first, const char *between, const char *second, const char *end, size_t *first_size);

/*
 * Prints to @to like fprintf, in printable form but for line breaks at the start and the end of
 * @format. Without memory nothing is printed.
 */
void kx_print(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
