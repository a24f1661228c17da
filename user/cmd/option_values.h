// SPDX-License-Identifier: BSD-2-Clause
/* The values of options as people write them: one parser for each kind. None prints anything. */
#ifndef KX_OPTION_VALUES_H
#define KX_OPTION_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A decimal number without sign or blanks, @min to @max. */
bool kx_value_number(const char *text, uint64_t min, uint64_t max, uint64_t *out);
/* Bytes: a number with an optional K, M or G (powers of 1024), @min to 16 GiB. */
bool kx_value_size(const char *text, uint64_t min, uint64_t *out);
/* A number with an optional fraction, above 0 and at most @max; a % may follow. */
bool kx_value_percent(const char *text, double max, double *out);
/* The index of @text in the NULL-terminated @words, or -1. */
int kx_value_choice(const char *text, const char *const *words);
/*
 * Adds the ids of "12,34", each @min to INT32_MAX, to the @n of *@list, which grows; those that are
 * there already are not added again. Errors: -EINVAL, -ENOMEM.
 */
int kx_value_ids(const char *text, int32_t min, int32_t **list, size_t *n);
/* Adds @text, which is borrowed, to the @n of *@list, which grows. Errors: -ENOMEM. */
int kx_value_text(const char *text, const char ***list, size_t *n);

#endif
