// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/help.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/near_names.h"
#include "base/printable.h"
#include "cmd/cmd.h"
#include "cmd/commands.h"
#include "cmd/completion.h"
#include "cmd/option_manual.h"
#include "exporters/exporter.h"

void kx_help_print(FILE *to)
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
		"'kxray COMMAND --help' explains a command, 'man kxray-COMMAND' in more words.\n"
		"Exit status: 0 done, 1 failed, 2 wrong usage, 3 events lost with "
		"--fail-on-loss.\n");
}

int kx_help_unknown(const char *name)
{
	struct kx_near_names near = { .wanted = name };

	for (size_t i = 0; kx_commands[i]; i++)
		kx_near_names_look(&near, kx_commands[i]->name);
	if (strstr(name, "completion"))
		kx_print(stderr,
			 "kxray: there is no command '%s'; 'kxray help --completion bash' (zsh, "
			 "fish) prints the completion, 'make install' installs it\n",
			 name);
	else if (*near.text)
		kx_print(stderr, "kxray: there is no command '%s'; is it %s?\n", name, near.text);
	else
		kx_print(stderr, "kxray: there is no command '%s'; 'kxray --help' lists them.\n",
			 name);
	return KX_EXIT_USAGE;
}

static void print_commands(void)
{
	char page[64];

	for (size_t i = 0; kx_commands[i]; i++) {
		snprintf(page, sizeof(page), "kxray-%s", kx_commands[i]->name);
		kx_option_manual_print_entry(page, 1, kx_commands[i]->summary, stdout);
	}
}

static void print_formats(void)
{
	for (size_t i = 0; kx_exporters[i]; i++)
		kx_option_manual_print_entry(kx_exporters[i]->name, 0, kx_exporters[i]->summary,
					     stdout);
}

/* `kxray help --man WHAT [examples]`: man(7) source for scripts/manual.awk. */
static int print_manual(const char *what, const char *part)
{
	const struct kx_command *c = kx_command_find(what);

	if (!c && !strcmp(what, "commands"))
		print_commands();
	else if (!c && !strcmp(what, "formats"))
		print_formats();
	else if (!c)
		return kx_help_unknown(what);
	else if (part && !strcmp(part, "examples"))
		kx_option_manual_print_examples(c, stdout);
	else
		kx_option_manual_print(c, stdout);
	return KX_EXIT_DONE;
}

static int print_completion(const char *shell)
{
	const char *script = kx_completion_script(shell);

	if (!script)
		return kx_cmd_usage("help", "--completion takes bash, zsh or fish, not '%s'",
				    shell);
	fputs(script, stdout);
	return KX_EXIT_DONE;
}

int kx_help(int argc, char **argv)
{
	const struct kx_command *c;
	char option[] = "--help", *args[] = { argc > 1 ? argv[1] : NULL, option, NULL };

	if (argc > 2 && !strcmp(argv[1], "--man"))
		return print_manual(argv[2], argv[3]);
	if (argc > 1 && !strcmp(argv[1], "--completion"))
		return print_completion(argc > 2 ? argv[2] : "");
	if (argc > 3 && !strcmp(argv[1], "--complete")) {
		kx_complete(argv + 3, argc - 3, atoi(argv[2]), stdout);
		return KX_EXIT_DONE;
	}
	if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		kx_help_print(stdout);
		return KX_EXIT_DONE;
	}
	c = kx_command_find(argv[1]);
	return c ? c->run(2, args) : kx_help_unknown(argv[1]);
}
