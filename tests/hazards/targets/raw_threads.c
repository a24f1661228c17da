// SPDX-License-Identifier: BSD-2-Clause
/*
 * Threads that libc does not know of: 200 of clone() with the thread pointer of their creator, with
 * one of their own ("own": zeros; "end": 16 bytes, behind which nothing is mapped), and with none
 * ("none": 0, where nothing is mapped). They call nothing of libc.
 */
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include "outer_leaf.h"

#define STACK	(64 << 10)
#define THREADS 200

static long sum;

static int work(void *n)
{
	__atomic_add_fetch(&sum, hz_outer((long)n), __ATOMIC_RELAXED);
	return 0;
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	char *stack = (char *)mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				   -1, 0);
	char *own = (char *)mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				 -1, 0);
	int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
		    CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
	char *tls = o.rest && strcmp(o.rest, "none") ? own + 8192 : NULL;
	long expected = 0;

	if (stack == MAP_FAILED || own == MAP_FAILED || munmap(own + 12288, 4096))
		return 2;
	if (o.rest && !strcmp(o.rest, "end")) {
		tls = own + 12288 - 16;
		*(char **)tls = tls;
	}
	for (long n = 0; n < THREADS; n++) {
		static int lives;

		lives = 1;
		// The thread's end writes 0 there and wakes who waits for it.
		if (clone(work, stack + STACK, flags | (o.rest ? CLONE_SETTLS : 0), (void *)n, NULL,
			  tls, &lives) < 0)
			return 2;
		while (__atomic_load_n(&lives, __ATOMIC_ACQUIRE))
			syscall(SYS_futex, &lives, FUTEX_WAIT, 1, NULL, NULL, 0);
		expected += 2 * (n + 1);
	}
	return hazard_end(&o, sum, expected);
}
