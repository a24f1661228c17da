// SPDX-License-Identifier: BSD-2-Clause
#include <sys/prctl.h>

int forbid(void);

int forbid(void)
{
	return prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}
