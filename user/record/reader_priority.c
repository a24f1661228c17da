// SPDX-License-Identifier: BSD-2-Clause
#include "record/reader_priority.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>

static bool set(int policy, int nice)
{
	const struct sched_param none = { 0 };

	/* 0: the calling thread, in both */
	return sched_setscheduler(0, policy, &none) == 0 && setpriority(PRIO_PROCESS, 0, nice) == 0;
}

bool kx_reader_priority_raise(void)
{
	errno = 0;
	if (sched_getscheduler(0) != SCHED_OTHER || getpriority(PRIO_PROCESS, 0) != 0 || errno)
		return false;
	if (set(SCHED_OTHER | SCHED_RESET_ON_FORK, KX_READER_NICE))
		return true;
	set(SCHED_OTHER, 0);
	return false;
}

void kx_reader_priority_restore(void)
{
	set(SCHED_OTHER, 0);
}
