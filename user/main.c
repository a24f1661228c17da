// SPDX-License-Identifier: BSD-2-Clause
/* The kxray program: finds the subcommand and hands over. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"

#ifndef KX_VERSION
#define KX_VERSION "unknown"
#endif

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary;
} commands[] = {
	{ "record", kx_cmd_record, "trace a running program, or start one, and write a trace" },
	{ "report", kx_cmd_report, "show a trace as a table of functions" },
	{ "export", kx_cmd_export, "convert a trace to the format of another tool" },
	{ "dump", kx_cmd_dump, "print every record of a trace" },
	{ "functions", kx_cmd_functions, "list what can be traced, where and at what cost" },
	{ "doctor", kx_cmd_doctor, "say what this kernel and this user may do, and what it costs" },
};

#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_help(FILE *to)
{
	fprintf(to, "kxray traces the functions of running, unmodified programs.\n"
		    "\n"
		    "Usage: kxray COMMAND [OPTION...]\n"
		    "\n"
		    "Commands:\n");
	for (size_t i = 0; i < NCOMMANDS; i++)
		fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].summary);
	fprintf(to,
		"\n"
		"First steps:\n"
		"  kxray record -p PID -f 'handle_*' -d 5     trace five seconds into trace.xray\n"
		"  kxray report trace.xray                    read it\n"
		"\n"
		"'kxray COMMAND --help' explains a command, 'man kxray' all of them.\n"
		"Exit status: 0 done, 1 failed, 2 wrong usage, 3 events lost with --fail-on-loss.\n");
}

/* Flushes standard output, so that a full disk or closed pipe is not taken for success. */
static int finish(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	perror("kxray: cannot write to standard output");
	return status == KX_EXIT_DONE ? KX_EXIT_FAILED : status;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;

	if (!name) {
		print_help(stderr);
		return KX_EXIT_USAGE;
	}
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0 ||
	    strcmp(name, "version") == 0) {
		printf("kxray %s\n", KX_VERSION);
		return finish(KX_EXIT_DONE);
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
	    (strcmp(name, "help") == 0 && argc == 2)) {
		print_help(stdout);
		return finish(KX_EXIT_DONE);
	}
	// `kxray help record` is `kxray record --help`.
	if (strcmp(name, "help") == 0) {
		name = argv[2];
		argv[1] = argv[2];
		argv[2] = (char[]){ "--help" };
		argc = 3;
	}
	for (size_t i = 0; i < NCOMMANDS; i++) {
		if (strcmp(commands[i].name, name) == 0)
			return finish(commands[i].run(argc - 1, argv + 1));
	}
	fprintf(stderr, "kxray: there is no command '%s'; 'kxray --help' lists them.\n", name);
	return KX_EXIT_USAGE;
}
