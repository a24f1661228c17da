// SPDX-License-Identifier: BSD-2-Clause
/*
 * For tests of exporters: a trace with known calls and names that are hard to quote, an
 * exporter run on it, and readers of tests/readers that print the content of the file.
 */
#ifndef KX_TEST_KNOWN_TRACE_H
#define KX_TEST_KNOWN_TRACE_H

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "exporters/exporter.h"
#include "trace/fdr_writer.h"
#include "target.h"

#define KNOWN_START 1000u       /* ticks */
#define KNOWN_HZ 2000000000u    /* two ticks a nanosecond */

/* Ids 1 to 4; 5 is in no map. */
static struct kx_map_function known_functions[] = {
	{ "main", 0x401000, 0, 16 },
	{ "a \"b\",c;d\n\t\\%s\x01\xc3\xa9", 0x401010, 0, 16 },
	{ "bad \xff \xc3(", 0x2000, 1, 16 },
	{ "_ZN3foo3barEv", 0x3000, 1, 16 },
};
static struct kx_map_module known_modules[] = {
	{ "prog", "/opt/the prog", "0123abcd", 0, 0, NULL },
	{ "libx.so", "/usr/lib/libx.so", "", 0x7f0000000000, 0, NULL },
};

static inline void must(int r, const struct kx_err *err)
{
	if (r)
		fail_msg("%d: %s", r, err ? err->text : strerror(-r));
}

static inline struct kx_fdr_writer *known_writer(const char *path, int *fd)
{
	const struct kx_fdr_options options = {
		.tsc_hz = KNOWN_HZ, .start_tsc = KNOWN_START, .constant_tsc = true,
	};
	struct kx_fdr_writer *w = NULL;
	struct kx_err err = { 0 };

	*fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	assert_true(*fd >= 0);
	must(kx_fdr_writer_new(*fd, &options, &w, &err), &err);
	return w;
}

static inline void known_end(struct kx_fdr_writer *w, int fd)
{
	struct kx_err err = { 0 };

	must(kx_fdr_finish(w, 0, &err), &err);
	kx_fdr_writer_free(w);
	assert_int_equal(close(fd), 0);
}

static inline void known_note(struct kx_fdr_thread *t, uint64_t tsc, const char *text)
{
	must(kx_fdr_custom(t, tsc, text, strlen(text)), NULL);
}

/*
 * The trace: nested calls, arguments, a tail exit, a repaired call, calls that never end, CPU
 * 65535, a thread id over 65535, a gap, an event, recursion, a process without id.
 */
static inline void known_write(const char *path)
{
	const uint64_t args[] = { 5, UINT64_MAX };
	struct kx_fdr_thread *a, *b, *c;
	struct kx_fdr_writer *w;
	int fd;

	w = known_writer(path, &fd);
	a = kx_fdr_writer_thread(w, 100, 70000, "w\xc3\xb6rker \"1\"", "a,b;c%d\\");
	must(kx_fdr_entry(a, 1000, 65535, 1, args, 2), NULL);
	must(kx_fdr_entry(a, 1003, 65535, 2, NULL, 0), NULL); /* 1.5 ns: rounded up */
	must(kx_fdr_exit(a, 1007, 65535, 2, false), NULL);
	must(kx_fdr_cpu(a, 1010, 3), NULL);
	must(kx_fdr_entry(a, 1000 + (1ull << 33), 3, 3, NULL, 0), NULL);
	must(kx_fdr_exit(a, 1002 + (1ull << 33), 3, 3, true), NULL);
	known_note(a, 1004 + (1ull << 33), "hello \x01 \"q\"");
	known_note(a, 1100 + (1ull << 33),
		   "kxray:loss {\"entries\":7,\"exits\":5,\"from\":8589935600,\"to\":8589935692}");
	known_note(a, 1200 + (1ull << 33), "kxray:repaired {\"exits\":1}");
	must(kx_fdr_exit(a, 1200 + (1ull << 33), 3, 1, false), NULL);
	must(kx_fdr_entry(a, 1300 + (1ull << 33), 3, 4, NULL, 0), NULL);
	must(kx_fdr_entry(a, 1310 + (1ull << 33), 3, 5, NULL, 0), NULL);
	b = kx_fdr_writer_thread(w, 200, 1, NULL, NULL);
	must(kx_fdr_entry(b, 1020, 0, 1, NULL, 0), NULL);
	must(kx_fdr_entry(b, 1030, 0, 1, NULL, 0), NULL);
	must(kx_fdr_exit(b, 1050, 0, 1, false), NULL);
	must(kx_fdr_exit(b, 1060, 0, 1, false), NULL);
	must(kx_fdr_entry(b, 1060, 0, 1, NULL, 0), NULL);
	must(kx_fdr_exit(b, 1060, 0, 1, false), NULL);
	c = kx_fdr_writer_thread(w, 0, 7, "c", NULL);
	must(kx_fdr_entry(c, 1100, 1, 4, NULL, 0), NULL);
	must(kx_fdr_exit(c, 1110, 1, 4, false), NULL);
	known_end(w, fd);
}

static inline void known_write_empty(const char *path)
{
	struct kx_fdr_writer *w;
	int fd;

	w = known_writer(path, &fd);
	known_end(w, fd);
}

/* @threads threads of one process with one call of 1 each, of 10 ns. */
static inline void known_write_threads(const char *path, int threads)
{
	struct kx_fdr_writer *w;
	int fd;

	w = known_writer(path, &fd);
	for (int i = 0; i < threads; i++) {
		struct kx_fdr_thread *t = kx_fdr_writer_thread(w, 1, 1000 + i, "many", "of them");

		must(kx_fdr_entry(t, 1000 + (uint64_t)i, 0, 1, NULL, 0), NULL);
		must(kx_fdr_exit(t, 1020 + (uint64_t)i, 0, 1, false), NULL);
	}
	known_end(w, fd);
}

static char known_notice[256]; /* the last one of an export */

static inline void known_keep_notice(const struct kx_export *x, const char *text)
{
	(void)x;
	snprintf(known_notice, sizeof(known_notice), "%s", text);
}

static inline const char *known_no_option(const struct kx_export *x, const char *name)
{
	(void)x;
	(void)name;
	return NULL;
}

/* The exporter's result, or that of the last write. @session may be NULL; no map if @no_map. */
static inline int known_export(const struct kx_exporter *e, const char *trace, const char *out,
			       json_t *session, bool no_map)
{
	static struct kx_text_out text;
	struct kx_symbolizer names = {
		.has_map = !no_map,
		.map = {
			.modules = known_modules, .nmodules = 2,
			.functions = known_functions, .nfunctions = 4,
		},
	};
	struct kx_export x = {
		.names = &names, .session = session, .out = &text, .notice = known_keep_notice,
		.option = known_no_option,
	};
	struct kx_err err = { 0 };
	int fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600), r;

	known_notice[0] = 0;
	assert_true(fd >= 0);
	kx_text_init(&text, fd);
	must(kx_fdr_open(trace, &x.file, &err), &err);
	must(kx_calls_new(x.file, &names, NULL, &x.calls, &err), &err);
	x.info = kx_fdr_get_info(x.file);
	x.tsc_hz = x.info->tsc_hz ? x.info->tsc_hz : 1000000000;
	r = e->run(&x, &err);
	if (!r)
		r = kx_text_flush(&text);
	close(fd);
	kx_calls_free(x.calls);
	kx_fdr_close(x.file);
	kx_symbolizer_free(&names);
	return r;
}

/* The output of a reader in tests/readers, valid until the next call; the test fails if the reader does. */
static inline const char *known_read(const char *reader, const char *option, const char *file)
{
	static char text[1 << 20];
	char command[512];
	size_t n;
	FILE *f;

	snprintf(command, sizeof(command), "python3 tests/readers/%s %s '%s' 2>&1", reader, option,
		 file);
	f = popen(command, "r");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = 0;
	if (pclose(f))
		fail_msg("%s", text);
	return text;
}

/* As Python writes them in JSON. */
#define KNOWN_NAME2 "\"a \\\"b\\\",c;d\\n\\t\\\\%s\\u0001\\u00e9\""
#define KNOWN_NAME3 "\"bad ? ?(\""
#define KNOWN_WORKER "\"w\\u00f6rker \\\"1\\\"\""
#define KNOWN_PROCESS "\"a,b;c%d\\\\\""

/* Lines common to all timelines; lines that only some formats have are inserted between them. */
#define KNOWN_MAIN "call 100 70000 0 0 4294967396 \"main\""
#define KNOWN_2 "call 100 70000 1 2 2 " KNOWN_NAME2
#define KNOWN_3 "call 100 70000 1 4294967296 1 " KNOWN_NAME3
#define KNOWN_4 "call 100 70000 0 4294967446 5 \"foo::bar()\""
#define KNOWN_5 "call 100 70000 1 4294967451 0 \"#5\""
#define KNOWN_B0 "call 200 1 0 10 20 \"main\""
#define KNOWN_B1 "call 200 1 1 15 10 \"main\""
#define KNOWN_B2 "call 200 1 0 30 0 \"main\""
#define KNOWN_C "call 0 7 0 50 5 \"foo::bar()\""

/* The output of chrome.py and perfetto.py for it. */
#define KNOWN_TIMELINE \
	"thread 100 70000 " KNOWN_WORKER " " KNOWN_PROCESS "\n" \
	"thread 200 1 \"\" \"\"\n" \
	"thread 0 7 \"c\" \"\"\n" \
	KNOWN_MAIN " arg1=\"0x5\" arg2=\"0xffffffffffffffff\" end=\"repaired\" module=\"prog\"\n" \
	KNOWN_2 " module=\"prog\"\n" \
	KNOWN_3 " end=\"tail jump\" module=\"libx.so\"\n" \
	KNOWN_4 " end=\"open\" module=\"libx.so\"\n" \
	KNOWN_5 " end=\"open\"\n" \
	KNOWN_B0 " module=\"prog\"\n" \
	KNOWN_B1 " module=\"prog\"\n" \
	KNOWN_B2 " module=\"prog\"\n" \
	KNOWN_C " module=\"libx.so\"\n" \
	"mark 100 70000 4294967298 \"hello \\\\x01 \\\"q\\\"\"\n" \
	"mark 100 70000 4294967346 \"lost 12 events\" entries=7 exits=5 gap_ns=46\n" \
	"cpu 0 7 50 1\n" \
	"cpu 100 70000 0 65535\n" \
	"cpu 100 70000 5 3\n" \
	"cpu 200 1 10 0\n"

#endif
