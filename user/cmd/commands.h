// SPDX-License-Identifier: BSD-2-Clause
/* The table of subcommands. */
#ifndef KX_COMMANDS_H
#define KX_COMMANDS_H

#include "cmd/options.h"

extern const struct kx_command kx_command_record, kx_command_top, kx_command_report, kx_command_diff,
	kx_command_merge, kx_command_export, kx_command_dump, kx_command_functions, kx_command_detach,
	kx_command_doctor;

/* All commands in the order of `kxray --help`, NULL-terminated. */
extern const struct kx_command *const kx_commands[];

/* The command of this name; NULL: there is none. */
const struct kx_command *kx_command_find(const char *name);

#endif
