// SPDX-License-Identifier: BSD-2-Clause
/* A program with a useful profile for a compiler: a hot loop without calls, an indirect call. */
#include "target.h"

#define SIZE 4096

static float a[SIZE], b[SIZE], c[SIZE];
static volatile int sink;

TRACED void hot_loop(float k)
{
	for (int i = 0; i < SIZE; i++)
		a[i] = b[i] * k + c[i];
}

TRACED int often(int x)
{
	return x * 3 + 1;
}

TRACED int rarely(int x)
{
	return x ^ 5;
}

static inline int twice(int x)
{
	int y = often(x);

	return y + often(y);
}

__attribute__((noinline)) int middle(int n, int (*f)(int))
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += f(i);
	if (sum == 12345)
		sum += rarely(sum);
	return sum + twice(n);
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);

	target_ready(&o);
	for (long i = 0; i < 100 * o.repeat; i++) {
		hot_loop((float)i);
		sink = middle(10, i % 50 ? often : rarely);
	}
	printf("{\"a\":%d}\n", (int)a[7]);
	return target_done(&o, 1);
}
