// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/trace_input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"

int kx_trace_input_check(const struct kx_trace_input *t, struct kx_err *err)
{
	return t->path ? 0 : kx_err_set(err, -EINVAL,
					"name a trace file, or '-' for standard input");
}

int kx_trace_input_open(struct kx_trace_input *t, bool damaged_too, struct kx_err *err)
{
	int r = damaged_too ? kx_fdr_open_damaged(t->path, &t->file, err) :
			      kx_fdr_open(t->path, &t->file, err);

	if (!r)
		r = kx_symbolizer_open(t->path, t->map, &t->names, err);
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
