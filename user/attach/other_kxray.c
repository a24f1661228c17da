// SPDX-License-Identifier: BSD-2-Clause
#include "attach/other_kxray.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/each_number.h"
#include "base/process_arguments.h"
#include "base/process_name.h"

#define NAME "kxray"

static bool is_named(pid_t pid)
{
	char name[KX_PROCESS_NAME];

	kx_process_name(pid, "", name, sizeof(name));
	return !strncmp(name, NAME, strlen(NAME));
}

/* Whether an argument is "12,34", "-p12,34" or "--pid=12,34" with the process among the numbers. */
static bool has_number(const void *process, const char *argument)
{
	const pid_t pid = *(const pid_t *)process;
	const char *p = argument + strcspn(argument, "0123456789");
	char *end;

	if (p != argument && strncmp(argument, "-p", 2) && strncmp(argument, "--pid=", 6))
		return false;
	if (p[strspn(p, "0123456789,")])
		return false;
	for (; *p; p = *end ? end + 1 : end) {
		const long number = strtol(p, &end, 10);

		if (end == p)
			return false;
		if (number == pid)
			return true;
	}
	return false;
}

static int look(void *ctx, pid_t other)
{
	const pid_t pid = *(const pid_t *)ctx;

	if (other == getpid() || other == pid || !is_named(other))
		return 0;
	return kx_process_any_argument(other, has_number, ctx) ? other : 0;
}

static pid_t other_kxray(pid_t pid)
{
	const int found = kx_each_number("/proc", look, &pid);

	return found > 0 ? found : 0;
}

const char *kx_other_kxray_name(pid_t pid, const char *unknown, char *text, size_t size)
{
	const pid_t other = other_kxray(pid);

	if (!other)
		return unknown;
	snprintf(text, size, "another kxray (process %d)", (int)other);
	return text;
}
