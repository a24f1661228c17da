// SPDX-License-Identifier: BSD-2-Clause
/* Processes whose mapped files are read. Include it after cmocka's headers. */
#ifndef KX_TEST_MODULES_RIG_H
#define KX_TEST_MODULES_RIG_H

#include <sched.h>
#include <sys/mount.h>

#include "binary/elf_image.h"
#include "binary/mappings.h"
#include "binary/modules.h"
#include "target.h"

/* Prints the run-time address of a function of its own and of one of its library. */
static const char main_source[] =
	"#include <stdio.h>\n#include <unistd.h>\n"
	"int lib_function(int);\n"
	"__attribute__((noinline)) int main_function(int a) { return a + 1; }\n"
	"int main(void) {\n"
	"	printf(\"%p %p\\n\", (void *)main_function, (void *)lib_function);\n"
	"	fflush(stdout); for (;;) pause();\n}\n";

static inline int build(void **state)
{
	if (target_setup(state))
		return -1;
	write_file("m.c", main_source);
	write_file("l.c", "int lib_function(int a) { return a * 2; }\n");
	sh("gcc -g -shared -fPIC l.c -o libone.so.1");
	sh("gcc -g m.c ./libone.so.1 -o prog");
	sh("gcc -g -no-pie m.c ./libone.so.1 -o fixed");
	/* lld packs segments without page alignment in the file */
	sh("gcc -g m.c ./libone.so.1 -o packed -Wl,-z,noseparate-code -Wl,-z,max-page-size=0x10000");
	return 0;
}

/* Starts a program of the folder and reads the two addresses it prints. */
static inline pid_t start(const char *command, uint64_t *in_main, uint64_t *in_lib)
{
	char script[512];
	void *a, *b;
	FILE *f;
	pid_t pid;

	snprintf(script, sizeof(script), "cd %s && exec %s > out", dir, command);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		execl("/bin/sh", "sh", "-c", script, NULL);
		_exit(127);
	}
	for (int i = 0; i < 500; i++) {
		usleep(10000);
		f = fopen(in_dir("out"), "r");
		if (f && fscanf(f, "%p %p", &a, &b) == 2) {
			fclose(f);
			sh("rm out");
			*in_main = (uintptr_t)a;
			*in_lib = (uintptr_t)b;
			return pid;
		}
		if (f)
			fclose(f);
	}
	fail_msg("'%s' did not start", command);
	return 0;
}

#endif
