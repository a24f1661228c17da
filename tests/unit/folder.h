// SPDX-License-Identifier: BSD-2-Clause
/* A folder for a test program's files: the set-up and tear-down of its group. */
#ifndef KX_TEST_FOLDER_H
#define KX_TEST_FOLDER_H

#include <stdio.h>
#include <stdlib.h>

static char folder[] = "/tmp/kx_unit_XXXXXX";

static inline int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

/* With all that is in it. */
static inline int remove_folder(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

#endif
