// SPDX-License-Identifier: BSD-2-Clause
/*
 * What all subcommands share: exit statuses, the way errors are printed, and the way a command line
 * is taken. Each command is a struct kx_command (see options.h) in a file cmd_NAME.c; commands.c lists
 * them. A command prints one sentence on stderr where it fails and returns kxray's exit status.
 */
#ifndef KX_CMD_H
#define KX_CMD_H

#include "base/err.h"
#include "cmd/options.h"

enum kx_exit_status {
	KX_EXIT_DONE = 0,
	KX_EXIT_FAILED = 1,
	KX_EXIT_USAGE = 2,
	KX_EXIT_LOSS = 3, /* events were lost and --fail-on-loss was given */
};

int kx_cmd_record(int argc, char **argv);
int kx_cmd_top(int argc, char **argv);
int kx_cmd_report(int argc, char **argv);
int kx_cmd_diff(int argc, char **argv);
int kx_cmd_merge(int argc, char **argv);
int kx_cmd_export(int argc, char **argv);
int kx_cmd_dump(int argc, char **argv);
int kx_cmd_functions(int argc, char **argv);
int kx_cmd_detach(int argc, char **argv);
int kx_cmd_doctor(int argc, char **argv);

/* Prints "kxray COMMAND: TEXT" on stderr; returns KX_EXIT_FAILED. */
int kx_cmd_fail(const char *command, const struct kx_err *err);
/* The same for wrong usage, with a hint at "kxray COMMAND --help"; returns KX_EXIT_USAGE. */
int kx_cmd_usage(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Debug files may be downloaded from now on (binary/debuginfod.h); the sentences go to stderr as "kxray COMMAND: TEXT". */
void kx_cmd_allow_downloads(const char *command);

/*
 * Ends a command after kx_options_parse or one of its own checks returned @result, not 0: prints the
 * help or the error; returns the exit status.
 */
int kx_cmd_end_parse(const struct kx_command *c, int result, const struct kx_err *err);

#endif
