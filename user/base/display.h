// SPDX-License-Identifier: BSD-2-Clause
/* How many columns of a terminal text takes, and names shortened to fit. Text is in printable form (printable.h). */
#ifndef KX_DISPLAY_H
#define KX_DISPLAY_H

#include <stddef.h>

/* Columns of @text: wide characters (CJK, emoji) take two, combining ones none. */
size_t kx_display_width(const char *text, size_t size);

/* The most bytes of @text, whole characters, that take at most @columns. */
size_t kx_display_fit(const char *text, size_t size, size_t columns);

/*
 * @name, made printable, in at most @columns (at least 1), in allocated memory; NULL if memory ran out. What
 * tells functions apart stays longest. Of a C++ or Rust name, parameters go first, then what the function
 * returns, template arguments ("Index<…>::insert_or_update"), outer scopes ("…::insert_or_update"); what still does
 * not fit, or has no such parts, loses its middle.
 */
char *kx_display_name(const char *name, size_t columns);
/*
 * The function as "NAME [MODULE]", or "NAME" if @module is "", in at most @columns columns (0: whole): a module gives way
 * to a name. *@module_at: where " [" is, or the end. Else the same.
 */
char *kx_display_function(const char *name, const char *module, size_t columns, size_t *module_at);

/* The same for other texts, which lose their end. */
char *kx_display_text(const char *text, size_t columns);

#endif
