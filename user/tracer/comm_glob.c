// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/comm_glob.h"

#include <errno.h>
#include <string.h>

#include "base/glob_steps.h"

int kx_comm_glob_compile(const char *glob, struct kx_comm_glob *out, struct kx_err *err)
{
	struct kx_glob_steps steps;
	int code;

	memset(out, 0, sizeof(*out));
	if (!*glob)
		return kx_err_set(err, -EINVAL, "--comm takes a name or a glob such as 'redis*'");
	code = kx_glob_steps_compile(glob, KX_COMM_MAX, &steps);
	if (code == -EINVAL)
		return kx_err_set(err, code, "the glob '%s' of --comm ends in a backslash", glob);
	if (code)
		return kx_err_set(err, -EINVAL,
				  "no name fits '%s': the kernel keeps %d bytes of a name; "
				  "write '%.*s' or a glob such as '%.*s*'",
				  glob, KX_COMM_MAX, KX_COMM_MAX, glob, KX_COMM_MAX - 1, glob);
	for (unsigned c = 0; c < 256; c++)
		out->step[c] = (uint32_t)steps.step[c];
	out->loop = (uint32_t)steps.loop;
	out->accept = (uint32_t)steps.accept;
	return 0;
}

bool kx_comm_glob_matches(const struct kx_comm_glob *g, const char *name)
{
	uint32_t states = 1;

	for (; *name; name++)
		states = (states << 1 & g->step[(unsigned char)*name]) | (states & g->loop);
	return states & g->accept;
}
