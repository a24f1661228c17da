// SPDX-License-Identifier: BSD-2-Clause
/* Forbids the calling thread the time stamp counter, in the way whose name is given: by prctl(3), syscall(2), or strict seccomp. */
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int forbid(const char *how);

int forbid(const char *how)
{
	if (!strcmp(how, "syscall"))
		return (int)syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV);
	if (!strcmp(how, "strict"))
		return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	if (!strcmp(how, "strict by syscall"))
		return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL);
	return prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
}
