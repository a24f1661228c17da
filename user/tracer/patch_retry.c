// SPDX-License-Identifier: BSD-2-Clause
/* Jumps taken out of a process that is not ready for it now, but soon. */
#include <errno.h>
#include <string.h>

#include "base/monotonic.h"
#include "tracer/debugger.h"
#include "tracer/keeper.h"
#include "tracer/patch_area.h"
#include "tracer/remote_stop.h"

#define TRIES	       5
#define PAUSE_US       200000 /* threads that were stopped in a try go on */
#define KEEPER_SECONDS 10

/* Whether another try may succeed after this error; *@keeper: as soon as a keeper has done the same. */
static bool is_passing(pid_t pid, int code, bool *keeper)
{
	char name[32];

	*keeper = false;
	if (code != -EBUSY && code != -EPERM)
		return false;
	if (!kx_tracer_of(pid, name, sizeof(name)))
		return true;
	*keeper = !strcmp(name, KX_KEEPER_NAME);
	return *keeper;
}

int kx_patch_remove_soon(pid_t pid, struct kx_patch_removal *out, struct kx_err *err)
{
	const double until = kx_monotonic_seconds() + KEEPER_SECONDS;

	for (unsigned tries = 1;; tries++) {
		const int code = kx_patch_remove(pid, out, err);
		bool keeper;

		if (!is_passing(pid, code, &keeper))
			return code;
		if (keeper ? kx_monotonic_seconds() > until : tries >= TRIES)
			return code;
		kx_remote_pause(PAUSE_US);
	}
}
