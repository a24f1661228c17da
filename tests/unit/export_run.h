// SPDX-License-Identifier: BSD-2-Clause
/*
 * Traces of known calls, and exporters run on them without the command. Include after cmocka.h.
 * All files are in a folder that the test creates and removes.
 */
#ifndef KX_TEST_EXPORT_RUN_H
#define KX_TEST_EXPORT_RUN_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporters/exporter.h"
#include "trace/fdr_writer.h"
#include "trace/map_file.h"
#include "folder.h"

#define EXPORT_HZ 2000000000ull /* ticks a second: two a nanosecond */
#define EXPORT_T0 1000000ull

static char trace_path[64], output_path[64];

static inline int name_files(void **state)
{
	if (make_folder(state))
		return -1;
	snprintf(trace_path, sizeof(trace_path), "%s/trace.xray", folder);
	snprintf(output_path, sizeof(output_path), "%s/out", folder);
	return 0;
}

/* A trace of version @version (0: the newest) with @hz ticks a second, to be written. */
static inline struct kx_fdr_writer *begin_trace(int version, uint64_t hz, int *fd)
{
	const struct kx_fdr_options options = {
		.version = version, .tsc_hz = hz, .constant_tsc = true, .nonstop_tsc = true,
		.start_tsc = EXPORT_T0, .wall_sec = 5,
	};
	struct kx_fdr_writer *w;
	struct kx_err err = { 0 };
	char map[80];

	snprintf(map, sizeof(map), "%s.map", trace_path);
	unlink(map);
	*fd = open(trace_path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	assert_true(*fd >= 0);
	if (kx_fdr_writer_new(*fd, &options, &w, &err))
		fail_msg("%s", err.text);
	return w;
}

static inline void end_trace(struct kx_fdr_writer *w, int fd)
{
	struct kx_err err = { 0 };

	if (kx_fdr_finish(w, 0, &err))
		fail_msg("%s", err.text);
	kx_fdr_writer_free(w);
	close(fd);
}

static inline void enter(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu, uint32_t func)
{
	assert_int_equal(kx_fdr_entry(t, tsc, cpu, func, NULL, 0), 0);
}

static inline void leave(struct kx_fdr_thread *t, uint64_t tsc, uint16_t cpu, uint32_t func)
{
	assert_int_equal(kx_fdr_exit(t, tsc, cpu, func, false), 0);
}

static inline void note(struct kx_fdr_thread *t, uint64_t tsc, const char *text)
{
	assert_int_equal(kx_fdr_custom(t, tsc, text, strlen(text)), 0);
}

/* Two modules: functions 1 to n - 1 at 0x1000, 0x1100, ..., the last one in the second. */
static inline void write_map(const char *const *names, size_t n, const char *session)
{
	struct kx_map_module modules[2] = {
		{ .name = "main", .path = "/bin/main", .build_id = "" },
		{ .name = "lib.so", .path = "/lib/lib.so", .build_id = "" },
	};
	struct kx_map_function functions[16] = { 0 };
	struct kx_map map = { .modules = modules, .nmodules = 2, .functions = functions,
			      .nfunctions = n };
	struct kx_err err = { 0 };
	char path[80];

	assert_in_range(n, 1, 16);
	for (size_t i = 0; i < n; i++)
		functions[i] = (struct kx_map_function){
			.symbol = names[i], .module = i == n - 1, .address = 0x1000 + 0x100 * i,
			.size = 16,
		};
	map.session = session ? json_loads(session, 0, NULL) : json_object();
	assert_non_null(map.session);
	snprintf(path, sizeof(path), "%s.map", trace_path);
	if (kx_map_write(path, &map, &err))
		fail_msg("%s", err.text);
	json_decref(map.session);
}

struct exported {
	int result;
	struct kx_err err;
	char notices[4096]; /* one a line */
	uint8_t *data;      /* the output; followed by a NUL that is not counted */
	size_t size;
};

struct export_context {
	const char *const *options; /* names, NULL at the end; a value may follow after '=' */
	struct exported *result;
	const struct kx_export *x;
};

static inline const char *export_option(const struct kx_export *x, const char *name)
{
	const struct export_context *c = x->options_ctx;
	size_t n = strlen(name);

	for (size_t i = 0; c->options && c->options[i]; i++)
		if (!strncmp(c->options[i], name, n) && strchr("=", c->options[i][n]))
			return c->options[i] + n + (c->options[i][n] == '=');
	return NULL;
}

static inline void export_notice(const struct kx_export *x, const char *text)
{
	struct exported *e = ((const struct export_context *)x->options_ctx)->result;
	size_t used = strlen(e->notices);

	snprintf(e->notices + used, sizeof(e->notices) - used, "%s\n", text);
}

static inline void read_output(int fd, struct exported *e)
{
	off_t size = lseek(fd, 0, SEEK_END);

	assert_true(size >= 0);
	e->size = (size_t)size;
	e->data = malloc(e->size + 1);
	assert_non_null(e->data);
	assert_int_equal(pread(fd, e->data, e->size, 0), size);
	e->data[e->size] = 0;
}

/*
 * Runs an exporter on the trace into output_path, which is emptied first; with @keep the output is
 * appended. Free with free_export.
 */
static inline void run_export(const struct kx_exporter *exporter, const char *const *options,
			      const struct kx_call_filter *filter, bool keep, struct exported *e)
{
	static struct kx_text_out out;
	struct export_context context = { .options = options, .result = e };
	struct kx_symbolizer names;
	struct kx_export x = { .names = &names, .out = &out, .option = export_option,
			       .options_ctx = &context, .out_path = output_path,
			       .notice = export_notice };
	struct kx_fdr_file *file = NULL;
	struct kx_calls *calls = NULL;
	int fd = open(output_path, O_RDWR | O_CREAT | (keep ? 0 : O_TRUNC), 0644), r;

	memset(e, 0, sizeof(*e));
	assert_true(fd >= 0);
	lseek(fd, 0, SEEK_END);
	r = kx_fdr_open(trace_path, &file, &e->err);
	r = r ? r : kx_symbolizer_open(trace_path, NULL, &names, &e->err);
	r = r ? r : kx_calls_new(file, &names, filter, &calls, &e->err);
	if (r)
		fail_msg("%s", e->err.text);
	x.file = file;
	x.calls = calls;
	x.info = kx_fdr_get_info(file);
	x.tsc_hz = x.info->tsc_hz ? x.info->tsc_hz : 1000000000;
	x.session = names.has_map ? names.map.session : NULL;
	kx_text_init(&out, fd);
	e->result = exporter->run(&x, &e->err);
	assert_int_equal(kx_text_flush(&out), 0);
	read_output(fd, e);
	close(fd);
	kx_calls_free(calls);
	kx_symbolizer_free(&names);
	kx_fdr_close(file);
}

static inline void free_export(struct exported *e)
{
	free(e->data);
	e->data = NULL;
}

/* The JSON that tests/readers/@reader prints for output_path; fails the test with its message. */
static inline json_t *read_strictly(const char *reader)
{
	char command[512];
	json_error_t error;
	json_t *json;
	FILE *f;

	snprintf(command, sizeof(command), "python3 tests/readers/%s %s", reader, output_path);
	f = popen(command, "r");
	assert_non_null(f);
	json = json_loadf(f, 0, &error);
	assert_int_equal(pclose(f), 0);
	if (!json)
		fail_msg("%s: %s", command, error.text);
	return json;
}

/* The integer at @path, keys and indexes between slashes; '~1' is a slash in a key. */
static inline json_int_t number_at(const json_t *json, const char *path)
{
	char copy[256], *rest = copy, *key;

	snprintf(copy, sizeof(copy), "%s", path);
	while ((key = strsep(&rest, "/"))) {
		char *tilde = strstr(key, "~1");

		if (tilde) {
			*tilde = '/';
			memmove(tilde + 1, tilde + 2, strlen(tilde + 1));
		}
		json = json_is_array(json) ? json_array_get(json, strtoul(key, NULL, 10))
					   : json_object_get(json, key);
		if (!json)
			fail_msg("no %s in %s", key, path);
	}
	if (!json_is_integer(json))
		fail_msg("%s is no integer", path);
	return json_integer_value(json);
}

/* Two calls, with a migration to another CPU inside the inner one. */
static inline void tiny_trace(uint64_t hz)
{
	static const char *const names[] = { "outer", "inner", "unused" };
	struct kx_fdr_thread *t;
	struct kx_fdr_writer *w;
	int fd;

	w = begin_trace(0, hz, &fd);
	t = kx_fdr_writer_thread(w, 10, 20, "worker", "server");
	enter(t, EXPORT_T0 + 2000, 3, 1);
	enter(t, EXPORT_T0 + 4000, 3, 2);
	assert_int_equal(kx_fdr_cpu(t, EXPORT_T0 + 5000, 65535), 0);
	leave(t, EXPORT_T0 + 6000, 65535, 2);
	leave(t, EXPORT_T0 + 9001, 65535, 1);
	end_trace(w, fd);
	write_map(names, 3, "{\"started\":\"2026-01-31T23:59:58.999999999Z\"}");
}

#endif
