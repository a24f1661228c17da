// SPDX-License-Identifier: BSD-2-Clause
/* The kxray program: finds the subcommand and runs it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/near_names.h"
#include "base/printable.h"
#include "cmd/cmd.h"
#include "cmd/commands.h"
#include "cmd/option_help.h"

#ifndef KX_VERSION
#define KX_VERSION "unknown"
#endif

static void print_help(FILE *to)
{
	fprintf(to, "kxray traces the functions of running, unmodified programs.\n"
		    "\n"
		    "Usage: kxray COMMAND [OPTION...]\n"
		    "\n"
		    "Commands:\n");
	for (size_t i = 0; kx_commands[i]; i++)
		fprintf(to, "  %-10s %s\n", kx_commands[i]->name, kx_commands[i]->summary);
	fprintf(to,
		"\n"
		"First steps:\n"
		"  kxray record -p PID -f 'handle_*' -d 5     trace five seconds into trace.xray\n"
		"  kxray report trace.xray                    read it\n"
		"\n"
		"'kxray COMMAND --help' explains a command, 'man kxray' all of them.\n"
		"Exit status: 0 done, 1 failed, 2 wrong usage, 3 events lost with --fail-on-loss.\n");
}

/* Flushes standard output: a full disk or a closed pipe is a failure. */
static int finish(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	perror("kxray: cannot write to standard output");
	return status == KX_EXIT_DONE ? KX_EXIT_FAILED : status;
}

static int unknown_command(const char *name)
{
	struct kx_near_names near = { .wanted = name };

	for (size_t i = 0; kx_commands[i]; i++)
		kx_near_names_look(&near, kx_commands[i]->name);
	if (*near.text)
		kx_print(stderr, "kxray: there is no command '%s'; is it %s?\n", name, near.text);
	else
		kx_print(stderr, "kxray: there is no command '%s'; 'kxray --help' lists them.\n", name);
	return KX_EXIT_USAGE;
}

/* `kxray help [COMMAND]`, and `kxray help --man COMMAND` for the build of the manual page. */
static int help(int argc, char **argv)
{
	bool manual = argc > 1 && strcmp(argv[1], "--man") == 0;
	const char *name = argc > 1 + manual ? argv[1 + manual] : NULL;
	const struct kx_command *c = name ? kx_command_find(name) : NULL;
	char *args[] = { NULL, (char[]){ "--help" }, NULL };

	if (!name) {
		print_help(stdout);
		return KX_EXIT_DONE;
	}
	if (!c)
		return unknown_command(name);
	args[0] = argv[1];
	if (!manual)
		return c->run(2, args);
	kx_option_help_print_manual(c, stdout);
	return KX_EXIT_DONE;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct kx_command *c;

	if (!name) {
		print_help(stderr);
		return KX_EXIT_USAGE;
	}
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0 ||
	    strcmp(name, "version") == 0) {
		printf("kxray %s\n", KX_VERSION);
		return finish(KX_EXIT_DONE);
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
		print_help(stdout);
		return finish(KX_EXIT_DONE);
	}
	if (strcmp(name, "help") == 0)
		return finish(help(argc - 1, argv + 1));
	c = kx_command_find(name);
	return c ? finish(c->run(argc - 1, argv + 1)) : unknown_command(name);
}
