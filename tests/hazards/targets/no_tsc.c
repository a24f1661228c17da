// SPDX-License-Identifier: BSD-2-Clause
/* Forbids itself to read the time stamp counter, as sandboxes do: rdtsc is a SIGSEGV from then on.
 */
#include <sys/prctl.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include "outer_leaf.h"

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	long answer = hz_outer(0);

	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV))
		return 2;
	for (long n = 1; n < 2000; n++)
		answer += hz_outer(n);
	return hazard_end(&o, answer, 2000 * 2001);
}
