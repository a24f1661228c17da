// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/trace_input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "base/printable.h"

int kx_trace_input_check(const struct kx_trace_input *t, struct kx_err *err)
{
	return t->path ? 0 : kx_err_set(err, -EINVAL,
					"name a trace file, or '-' for standard input");
}

static bool exists(const char *path)
{
	return !access(path, F_OK);
}

static bool is_elf(const char *path)
{
	char head[4] = "";
	FILE *f = fopen(path, "re");
	bool is = f && fread(head, 1, sizeof(head), f) == sizeof(head) && !memcmp(head, "\177ELF", 4);

	if (f)
		fclose(f);
	return is;
}

/* A file that is no trace, but has to do with one. */
static int explain(const char *path, int code, struct kx_err *err)
{
	static const char *const ends[] = { KX_COMPRESSED_SUFFIX, ".xray", (".xray" KX_COMPRESSED_SUFFIX) };
	size_t length = strlen(path);
	struct kx_err why = *err;
	char near[4096];

	for (size_t i = 0; code == -ENOENT && i < sizeof(ends) / sizeof(ends[0]); i++) {
		snprintf(near, sizeof(near), "%s%s", path, ends[i]);
		if (exists(near))
			return kx_err_set(err, code, "%.700s; there is '%.200s'", why.text, near);
	}
	if (code == -ENOENT && length > 5 && !strcmp(path + length - 5, ".xray")) {
		snprintf(near, sizeof(near), "%.*s.1.xray", (int)length - 5, path);
		if (exists(near))
			return kx_err_set(err, code, "%.700s; there are numbered files, the first is '%.200s'", why.text, near);
	}
	if (code == -ENOENT || !is_elf(path))
		return code;
	snprintf(near, sizeof(near), "%.*s", (int)(length > 4 ? length - 4 : 0), path);
	if (length > 4 && !strcmp(path + length - 4, ".map") && !exists(near))
		snprintf(near, sizeof(near), "%.*s%s", (int)length - 4, path, KX_COMPRESSED_SUFFIX);
	if (length > 4 && !strcmp(path + length - 4, ".map") && exists(near))
		return kx_err_set(err, code, "%s: is not an XRay trace but the map of one; name the trace: %s", path, near);
	return kx_err_set(err, code,
			  "%s: is not an XRay trace but an ELF file (a program, a library or a map); 'kxray record' writes "
			  "traces, 'kxray functions' lists the functions of a program",
			  path);
}

int kx_trace_input_open(struct kx_trace_input *t, bool damaged_too, struct kx_err *err)
{
	int r = damaged_too ? kx_fdr_open_damaged(t->path, &t->file, err) :
			      kx_fdr_open(t->path, &t->file, err);

	if (r && strcmp(t->path, "-") != 0)
		return explain(t->path, r, err);
	if (!r)
		r = t->names_only ? kx_symbolizer_open_names(t->path, t->map, &t->names, err) :
				    kx_symbolizer_open(t->path, t->map, &t->names, err);
	return r ? r : kx_symbolizer_check(&t->names, t->file, err);
}

void kx_trace_input_close(struct kx_trace_input *t)
{
	kx_symbolizer_free(&t->names);
	kx_fdr_close(t->file);
	t->file = NULL;
}

void kx_trace_input_warn(const struct kx_trace_input *t, const char *command, const char *done)
{
	const struct kx_fdr_info *info = kx_fdr_get_info(t->file);
	bool is_stdin = !strcmp(t->path, "-");

	if (info->truncated)
		kx_print(stderr,
			 "kxray %s: %s: the trace ends inside a buffer, as after an interrupted "
			 "recording; all whole records up to offset %" PRIu64 " are %s\n",
			 command, t->path, info->truncated_at, done);
	if (!t->names.has_map)
		kx_print(stderr,
			 "kxray %s: no map (%s%s): functions are shown by number; name one with "
			 "-m (kxray's .map file, or the binary built with XRay)\n",
			 command, is_stdin ? "standard input" : t->path,
			 is_stdin ? " has none" : ".map does not exist");
}
