// SPDX-License-Identifier: BSD-2-Clause
/*
 * Programs that execute a translated copy of another program's code, such as valgrind. They would translate a probe's breakpoint, too, and
 * the program would be killed.
 */
#ifndef KX_TRANSLATOR_H
#define KX_TRANSLATOR_H

#include <sys/types.h>

#include "binary/modules.h"

/* The translator that a process runs under, by what it has mapped, e.g. "valgrind"; NULL: none is recognised. */
const char *kx_modules_translator(const struct kx_modules *mods);
/* The same by its executable file alone, which it has from the beginning of exec(2) on; NULL also if that cannot be read. */
const char *kx_process_translator(pid_t pid);

#endif
