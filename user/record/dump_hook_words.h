// SPDX-License-Identifier: BSD-2-Clause
/* The command of --on-dump as words, and the words with a path in them. */
#ifndef KX_DUMP_HOOK_WORDS_H
#define KX_DUMP_HOOK_WORDS_H

#include "base/err.h"

/*
 * Splits @command as dump_hook.h describes; *@out ends with NULL. Errors: -EINVAL, -ENOMEM; *@out is
 * NULL then.
 */
int kx_hook_words(const char *command, char ***out, struct kx_err *err);
/*
 * A copy of @words with @path in place of each "{}". A path that begins with '-' gets "./" before it,
 * so that no command takes it for an option. NULL: no memory.
 */
char **kx_hook_words_with(char *const *words, const char *path);
void kx_hook_words_free(char **words);

#endif
