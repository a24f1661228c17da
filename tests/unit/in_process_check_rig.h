// SPDX-License-Identifier: BSD-2-Clause
/* Processes, and whether jumps in their code are harmless. Include it after cmocka's headers. */
#ifndef KX_TEST_IN_PROCESS_CHECK_RIG_H
#define KX_TEST_IN_PROCESS_CHECK_RIG_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "attach/in_process_check.h"
#include "attach/risky_calls.h"
#include "tracer/process_state.h"
#include "target.h"

/* A program that does one thing and waits. */
static const char program[] = "#define _GNU_SOURCE\n#include <link.h>\n#include <linux/filter.h>\n#include "
			      "<linux/seccomp.h>\n#include <pthread.h>\n#include <sched.h>\n"
			      "#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include "
			      "<sys/mman.h>\n#include <sys/prctl.h>\n"
			      "#include <sys/syscall.h>\n#include <ucontext.h>\n#include <unistd.h>\n"
			      "static void *waits(void *arg) { pause(); return arg; }\n"
			      "static int waits_too(void *arg) { pause(); return arg != 0; }\n"
			      "static void handler(int sig) { (void)sig; }\n"
			      "static char stack[65536] __attribute__((aligned(16)));\n"
			      "int part(int n);\n"
			      "int main(int argc, char **argv)\n{\n"
			      "	pthread_t t;\n"
			      "	(void)argc; (void)t; (void)stack;\n"
			      "	BODY;\n"
			      "	puts(\"ready\"); fflush(stdout);\n"
			      "	for (;;) pause();\n}\n";

/* Builds the program with BODY; @options: of the compiler, with what belongs to its end. */
static inline void build(const char *body, const char *options)
{
	write_file("program.c", program);
	sh("gcc -O1 '-DBODY=%s' -w -o program program.c %s", body, options);
}

/* Libraries are found where the program is. */
#define HERE "-Wl,-rpath,'$ORIGIN'"

static inline pid_t start(void)
{
	char path[512];
	char *argv[] = { path, NULL };

	snprintf(path, sizeof(path), "%s", in_dir("program"));
	return target_start(argv);
}

#endif
