// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/commands.h"

#include <string.h>

const struct kx_command *const kx_commands[] = {
	&kx_command_record, &kx_command_top,  &kx_command_report,    &kx_command_diff,
	&kx_command_merge, &kx_command_export, &kx_command_dump, &kx_command_functions, &kx_command_detach,
	&kx_command_doctor, NULL,
};

const struct kx_command *kx_command_find(const char *name)
{
	for (size_t i = 0; kx_commands[i]; i++)
		if (!strcmp(kx_commands[i]->name, name))
			return kx_commands[i];
	return NULL;
}
