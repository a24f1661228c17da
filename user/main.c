// SPDX-License-Identifier: BSD-2-Clause
/* The kxray program: finds the subcommand and runs it. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"
#include "cmd/commands.h"
#include "cmd/help.h"

#ifndef KX_VERSION
#define KX_VERSION "unknown"
#endif

/* Flushes standard output: a full disk or a closed pipe is a failure. */
static int finish(int status)
{
	const int failed = fflush(stdout);

	if (!failed && !ferror(stdout))
		return status;
	/* why an earlier write has failed is not known here */
	fprintf(stderr, "kxray: cannot write to standard output%s%s\n", failed ? ": " : "", failed ? strerror(errno) : "");
	return status == KX_EXIT_DONE ? KX_EXIT_FAILED : status;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct kx_command *c;

	if (!name) {
		kx_help_print(stderr);
		return KX_EXIT_USAGE;
	}
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0 ||
	    strcmp(name, "version") == 0) {
		printf("kxray %s\n", KX_VERSION);
		return finish(KX_EXIT_DONE);
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
		kx_help_print(stdout);
		return finish(KX_EXIT_DONE);
	}
	if (strcmp(name, "help") == 0)
		return finish(kx_help(argc - 1, argv + 1));
	c = kx_command_find(name);
	return c ? finish(c->run(argc - 1, argv + 1)) : kx_help_unknown(name);
}
