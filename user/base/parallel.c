// SPDX-License-Identifier: BSD-2-Clause
#include "base/parallel.h"

#include <pthread.h>

void kx_parallel_run(size_t n, void *(*run)(void *), void *ctx)
{
	pthread_t threads[KX_PARALLEL_MAX - 1];
	size_t started = 0;

	if (n > KX_PARALLEL_MAX)
		n = KX_PARALLEL_MAX;
	while (started + 1 < n && !pthread_create(&threads[started], NULL, run, ctx))
		started++;
	run(ctx);
	while (started)
		pthread_join(threads[--started], NULL);
}
