// SPDX-License-Identifier: BSD-2-Clause
/*
 * Threads count in restartable sequences (rseq(2)), each in the counter of its CPU, which signals' handlers do as well: what is interrupted between its load
 * and its store must begin anew. The sequence's descriptor is not in the section that tools look for.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/rseq.h>

#define HAZARD_FUNCTIONS X(hz_add)
#include "hazard.h"

#define THREADS 3
#define SIGNALS 400 /* that each thread handles */
#define CPUS	4096

static struct {
	long n;
	char rest[56];
} counters[CPUS];

static volatile int working = THREADS;
static _Thread_local volatile int handled;

HZ void hz_add(struct rseq *thread)
{
	HIT(hz_add);
	__asm__ volatile(".pushsection .data.rel.ro.described, \"aw\"\n\t"
			 ".balign 32\n"
			 "1: .long 0, 0\n\t"
			 ".quad 2f, 3f - 2f, 4f\n\t"
			 ".popsection\n"
			 "5: lea 1b(%%rip), %%rax\n\t"
			 "mov %%rax, %c[section](%[thread])\n"
			 "2: mov %c[cpu](%[thread]), %%eax\n\t"
			 "shl $6, %%rax\n\t"
			 "mov (%[counters], %%rax), %%rcx\n\t"
			 "inc %%rcx\n\t"
			 "mov %%rcx, (%[counters], %%rax)\n"
			 "3:\n\t"
			 ".pushsection .text.aborted, \"ax\"\n\t"
			 ".byte 0x0f, 0xb9, 0x3d\n\t"
			 ".long 0x53053053\n"
			 "4: jmp 5b\n\t"
			 ".popsection"
			 :
			 : [thread] "r"(thread), [counters] "r"(counters), [section] "i"(offsetof(struct rseq, rseq_cs)),
			   [cpu] "i"(offsetof(struct rseq, cpu_id))
			 : "rax", "rcx", "memory", "cc");
}

static struct rseq *own(void)
{
	return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

static void handler(int signal)
{
	handled += signal == SIGUSR1;
	hz_add(own());
}

static void *work(void *ctx)
{
	while (handled < SIGNALS)
		hz_add(own());
	__atomic_sub_fetch(&working, 1, __ATOMIC_RELEASE);
	return ctx;
}

/* Signals as fast as the threads take them. */
static void interrupt(const pthread_t *threads)
{
	while (__atomic_load_n(&working, __ATOMIC_ACQUIRE))
		for (int i = 0; i < THREADS; i++)
			pthread_kill(threads[i], SIGUSR1);
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	pthread_t threads[THREADS];
	long sum = 0;

	if (!__rseq_size || sigaction(SIGUSR1, &action, NULL))
		return 3;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 3;
	interrupt(threads);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < CPUS; i++)
		sum += counters[i].n;
	return hazard_end(&o, sum - hazard_own[N_hz_add], 0);
}
