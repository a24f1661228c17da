// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/cmd.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "base/process_limits.h"
#include "binary/debuginfod.h"
#include "cmd/option_help.h"

int kx_cmd_fail(const char *command, const struct kx_err *err)
{
	const char *text = err->text[0] ? err->text
					: strerror(err->code < 0 ? -err->code : err->code);
	char limit[KX_LIMIT_TEXT];

	if (kx_limits_explain(err->code, limit) && !strstr(text, "ulimit"))
		kx_print(stderr, "kxray %s: %s; %s\n", command, text, limit);
	else
		kx_print(stderr, "kxray %s: %s\n", command, text);
	return KX_EXIT_FAILED;
}

static void say(void *ctx, const char *text)
{
	kx_print(stderr, "kxray %s: %s\n", *(const char **)ctx, text);
}

void kx_cmd_allow_downloads(const char *command)
{
	static const char *name;

	name = command;
	kx_debuginfod_allow(say, &name);
}

int kx_cmd_usage(const char *command, const char *fmt, ...)
{
	struct kx_err err = { 0 };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err.text, sizeof(err.text), fmt, ap);
	va_end(ap);
	kx_print(stderr, "kxray %s: %s", command, err.text);
	kx_print(stderr, "\nTry 'kxray %s --help'.\n", command);
	return KX_EXIT_USAGE;
}

int kx_cmd_end_parse(const struct kx_command *c, int result, const struct kx_err *err)
{
	if (result == KX_OPTIONS_HELP) {
		kx_option_help_print(c, stdout);
		return KX_EXIT_DONE;
	}
	return result == -EINVAL ? kx_cmd_usage(c->name, "%s", err->text) : kx_cmd_fail(c->name, err);
}
