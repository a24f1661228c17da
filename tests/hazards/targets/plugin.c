// SPDX-License-Identifier: BSD-2-Clause
/* The library of plugins.c */
#include "target.h"

long plugged(long (*back)(long), long n);

TRACED long plugged(long (*back)(long), long n)
{
	volatile long result = back(n);

	return result + 2;
}
