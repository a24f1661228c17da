// SPDX-License-Identifier: BSD-2-Clause
/*
 * Executed by some processes of the tree: tree-child LOG INDEX COUNTS. It calls its own functions
 * and logs the calls of the process before and after the exec.
 */
#include "tree.h"

static volatile long sink;

TRACED long child_leaf(long x)
{
	sink = x;
	return x + 3;
}

TRACED long child_work(long x)
{
	x += child_leaf(x);
	count_call(CHILD_LEAF);
	return x;
}

int main(int argc, char **argv)
{
	int index;

	if (argc != 4)
		return 2;
	index = atoi(argv[2]);
	alarm(600);
	unpack_calls(argv[3]);
	for (int n = 0; n < 40 + index; n++) {
		child_work(n);
		count_call(CHILD_WORK);
	}
	append_calls(argv[1], index);
	return 0;
}
