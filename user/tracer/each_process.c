// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/each_process.h"

#include <unistd.h>

#include "base/each_number.h"
#include "tracer/keeper.h"

struct others {
	int (*each)(void *ctx, pid_t pid);
	void *ctx;
};

static int each_other(void *ctx, pid_t pid)
{
	const struct others *o = ctx;

	return pid == getpid() || pid == kx_keeper_pid() ? 0 : o->each(o->ctx, pid);
}

int kx_each_process(int (*each)(void *ctx, pid_t pid), void *ctx)
{
	struct others o = { each, ctx };

	return kx_each_number("/proc", each_other, &o);
}
