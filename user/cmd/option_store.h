// SPDX-License-Identifier: BSD-2-Clause
/* Storing the value of an option in its field, as the option's row says. */
#ifndef KX_OPTION_STORE_H
#define KX_OPTION_STORE_H

#include <stddef.h>

#include "base/err.h"
#include "cmd/options.h"

/*
 * Reads @value (NULL for an option without one) by the row @o into @field; @count is the length of the
 * list, for rows that have one. Texts are borrowed, lists grow on the heap. @shown is the option as the
 * user wrote it, for messages. Errors: -EINVAL, a value that the row does not allow; -ENOMEM; what
 * the row's .set returned.
 */
int kx_option_store(const struct kx_option *o, void *field, size_t *count, const char *shown,
		    const char *value, struct kx_err *err);

#endif
