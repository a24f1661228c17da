// SPDX-License-Identifier: BSD-2-Clause
/* Maps that are written, read back, and given to llvm-xray. Include it after cmocka's headers. */
#ifndef KX_TEST_MAP_RIG_H
#define KX_TEST_MAP_RIG_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/fdr_writer.h"
#include "trace/map_file.h"
#include "folder.h"
#include "llvm_xray.h"

static char map_path[64], trace_path[64];

enum { EXE, LIBC, KERNEL, SYSCALL, NMODULES };

static const struct kx_map_module modules_template[NMODULES] = {
	[EXE] = { "server", "/usr/bin/server", "0123abcd", 0x555555554000, 0, NULL },
	[LIBC] = { "libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6", "ffee", 0x7ffff7d00000, 0, NULL },
	[KERNEL] = { "kernel", "", "", 0, 0, NULL },
	[SYSCALL] = { "syscall", "", "", 0, 0, NULL },
};

struct expected {
	struct kx_map_function function;
	const char *pretty;      /* the name that kxray prints */
	const char *llvm_pretty; /* the name that llvm-xray prints; NULL: the same */
};

static const struct expected functions_template[] = {
	{ { "main", 0x1139, EXE, 40 }, "main", NULL },
	{ { "_ZN3foo3barEi", 0x1200, EXE, 100 }, "foo::bar(int)", NULL },
	{ { "malloc@@GLIBC_2.2.5", 0x1139, LIBC, 300 }, "malloc", NULL },
	{ { "free", 0x2000, LIBC, 20 }, "free", NULL },
	{ { "do_sys_open", 0xffffffff81234560, KERNEL, 99 }, "do_sys_open", NULL },
	{ { "vfs_read", 0xffffffffc0000010, KERNEL, 0 }, "vfs_read", NULL },
	/* the same address, in adjacent and in distant entries */
	{ { "read", 0, SYSCALL, 0 }, "read", NULL },
	{ { "write", 0, SYSCALL, 0 }, "write", NULL },
	{ { "openat", 0, SYSCALL, 0 }, "openat", NULL },
	{ { "main_again", 0x1139, EXE, 40 }, "main_again", NULL },
	{ { "a\"b\\c;d\n", 0x1300, EXE, 1 }, "a\"b\\c;d\n", "a_b_c_d_" },
	{ { "_Zli3_kby", 0x1310, EXE, 1 }, "operator\"\" _kb(unsigned long long)",
	  "operator__ _kb(unsigned long long)" },
	{ { "_RNvC6_123foo3bar", 0x1320, EXE, 16 }, "123foo::bar", NULL },
	{ { "_ZN4core3fmt5write17h0123456789abcdefE", 0x1330, EXE, 16 }, "core::fmt::write",
	  "core::fmt::write::h0123456789abcdef" },
};
#define N (sizeof(functions_template) / sizeof(functions_template[0]))

struct made {
	struct kx_map map;
	struct kx_map_module modules[NMODULES];
	struct kx_map_function functions[N];
};

static inline void make_map(struct made *m)
{
	memset(m, 0, sizeof(*m));
	memcpy(m->modules, modules_template, sizeof(m->modules));
	for (size_t i = 0; i < N; i++)
		m->functions[i] = functions_template[i].function;
	m->map.modules = m->modules;
	m->map.nmodules = NMODULES;
	m->map.functions = m->functions;
	m->map.nfunctions = N;
}

static inline void write_map(struct kx_map *map)
{
	struct kx_err err = { 0 };

	if (kx_map_write(map_path, map, &err) != 0)
		fail_msg("%s", err.text);
}

static inline void read_map(const char *path, struct kx_map *map)
{
	struct kx_err err = { 0 };

	if (kx_map_read(path, map, &err) != 0)
		fail_msg("%s", err.text);
}

/* A trace in which function id i is called i times. */
static inline void write_trace(uint32_t nfunctions)
{
	struct kx_fdr_options o = { .tsc_hz = 1000000000, .start_tsc = 1 };
	struct kx_fdr_writer *w;
	struct kx_fdr_thread *t;
	uint64_t tsc = 100;
	int fd = open(trace_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(kx_fdr_writer_new(fd, &o, &w, NULL), 0);
	t = kx_fdr_writer_thread(w, 1, 1, "t", "p");
	for (uint32_t f = 1; f <= nfunctions; f++)
		for (uint32_t i = 0; i < f; i++) {
			assert_int_equal(kx_fdr_entry(t, ++tsc, 0, f, NULL, 0), 0);
			assert_int_equal(kx_fdr_exit(t, ++tsc, 0, f, false), 0);
		}
	assert_int_equal(kx_fdr_finish(w, 0, NULL), 0);
	kx_fdr_writer_free(w);
	close(fd);
}

static inline int name_files(void **state)
{
	if (make_folder(state))
		return -1;
	snprintf(map_path, sizeof(map_path), "%s/trace.map", folder);
	snprintf(trace_path, sizeof(trace_path), "%s/trace", folder);
	return 0;
}

#endif
