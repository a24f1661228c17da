// SPDX-License-Identifier: BSD-2-Clause
#ifndef KX_TEST_FAST_SIZE_H
#define KX_TEST_FAST_SIZE_H

#include <stdlib.h>

/* A size for tests of many: the fast tests (tests/run.sh fast), which take a minute, use @fast. */
static inline int fast_size(int full, int fast)
{
	return getenv("KX_TEST_FAST") ? fast : full;
}

#endif
