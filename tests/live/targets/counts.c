// SPDX-License-Identifier: BSD-2-Clause
/*
 * Four threads call functions a fixed number of times and move themselves between
 * CPUs; the counts are printed per thread. They differ between threads, so that
 * mixed-up threads show.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "target.h"

#define THREADS 4
#define MOVES 12

enum function {
	LEAF_A,
	LEAF_B,
	LEAF_NOP5,
	OUTER,
	MIDDLE,
	INNER,
	RECURSIVE,
	TAIL_FIRST,
	TAIL_LAST,
	SLEEP_2MS,
	SIX_ARGS,
	ON_CPU,
	FUNCTIONS,
};

static const char *const names[FUNCTIONS] = {
	"leaf_a",    "leaf_b",	   "leaf_nop5", "outer",     "middle",	 "inner",
	"recursive", "tail_first", "tail_last", "sleep_2ms", "six_args", "on_cpu",
};

struct worker {
	pthread_t thread;
	int index;
	long repeat;
	int tid;
	long calls[FUNCTIONS];
	int *cpus; /* in order, one for each call of on_cpu */
	long ncpus;
	int misplaced; /* calls of on_cpu that ran on another CPU */
	long longest;  /* call of sleep_2ms in nanoseconds, measured by its caller */
};

static volatile long sink;
static pthread_barrier_t start;
static int allowed[CPU_SETSIZE];
static int nallowed;

TRACED long leaf_a(long x)
{
	sink = x;
	return x * 3 + 1;
}

TRACED long leaf_b(long x, long y)
{
	sink = y;
	return x ^ y;
}

/* Starts with the five-byte nop that newer kernels turn into a call. */
long leaf_nop5(long x);
__asm__(".text\n.p2align 4\n.globl leaf_nop5\n.type leaf_nop5, @function\n"
	"leaf_nop5:\n\t.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
	"\tlea 1(%rdi), %rax\n\tret\n.size leaf_nop5, . - leaf_nop5");

TRACED long inner(long x)
{
	sink = x;
	return x + 7;
}

TRACED long middle(long x)
{
	return inner(x) + inner(x + 1);
}

TRACED long outer(long x)
{
	return middle(x) * 2;
}

TRACED long recursive(long depth)
{
	// The store keeps gcc from turning the recursion into a loop.
	return depth == 0 ? 1 : (sink = recursive(depth - 1)) + depth;
}

TRACED long tail_last(long x)
{
	sink = x;
	return x - 1;
}

TRACED long tail_first(long x)
{
	sink = x;
	return tail_last(x + 1);
}

TRACED void sleep_2ms(void)
{
	target_pause(2);
}

TRACED long six_args(long a, long b, long c, long d, long e, long f)
{
	sink = a;
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f;
}

TRACED int on_cpu(int cpu)
{
	return sched_getcpu() == cpu;
}

static void move(struct worker *w, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		perror("sched_setaffinity");
		exit(1);
	}
	w->misplaced += !on_cpu(cpu);
	w->calls[ON_CPU]++;
	w->cpus[w->ncpus++] = cpu;
}

static void timed_sleep(struct worker *w)
{
	struct timespec t0, t1;
	long took;

	clock_gettime(CLOCK_MONOTONIC, &t0);
	sleep_2ms();
	clock_gettime(CLOCK_MONOTONIC, &t1);
	took = (t1.tv_sec - t0.tv_sec) * 1000000000 + t1.tv_nsec - t0.tv_nsec;
	if (took > w->longest)
		w->longest = took;
}

static void round_of_work(struct worker *w)
{
	int i = w->index;

	for (int n = 0; n < 1000 + 100 * i; n++)
		leaf_a(n);
	for (int n = 0; n < 500 + 10 * i; n++)
		leaf_b(n, i);
	for (int n = 0; n < 300 + i; n++)
		leaf_nop5(n);
	for (int n = 0; n < 200 + 20 * i; n++)
		outer(n);
	for (int n = 0; n < 50 + i; n++)
		recursive(9);
	for (int n = 0; n < 100 + 5 * i; n++)
		tail_first(n);
	for (int n = 0; n < 5 + i; n++)
		timed_sleep(w);
	for (int n = 0; n < 10 + i; n++)
		six_args(n, n + 1, n + 2, n + 3, n + 4, 0x123456789abcdef0 + i);
	for (int n = 0; n < MOVES; n++)
		move(w, allowed[(n + i) % nallowed]);

	w->calls[LEAF_A] += 1000 + 100 * i;
	w->calls[LEAF_B] += 500 + 10 * i;
	w->calls[LEAF_NOP5] += 300 + i;
	w->calls[OUTER] += 200 + 20 * i;
	w->calls[MIDDLE] += 200 + 20 * i;
	w->calls[INNER] += 2 * (200 + 20 * i);
	w->calls[RECURSIVE] += 10 * (50 + i);
	w->calls[TAIL_FIRST] += 100 + 5 * i;
	w->calls[TAIL_LAST] += 100 + 5 * i;
	w->calls[SLEEP_2MS] += 5 + i;
	w->calls[SIX_ARGS] += 10 + i;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	char name[16];

	snprintf(name, sizeof(name), "worker-%d", w->index);
	pthread_setname_np(pthread_self(), name);
	w->tid = (int)syscall(SYS_gettid);
	pthread_barrier_wait(&start);
	for (long r = 0; r < w->repeat; r++)
		round_of_work(w);
	return NULL;
}

static void print_calls(const long *calls)
{
	printf("{");
	for (int f = 0; f < FUNCTIONS; f++)
		printf("%s\"%s\":%ld", f ? "," : "", names[f], calls[f]);
	printf("}");
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	struct worker workers[THREADS] = { 0 };
	long total[FUNCTIONS] = { 0 };
	long longest = 0;
	int misplaced = 0;
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set))
			allowed[nallowed++] = cpu;
	}
	pthread_barrier_init(&start, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++) {
		workers[i].index = i;
		workers[i].repeat = o.repeat;
		workers[i].cpus = calloc((size_t)o.repeat * MOVES, sizeof(int));
		if (!workers[i].cpus ||
		    pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 1;
	}
	target_ready(&o);
	pthread_barrier_wait(&start);
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);

	printf("{\"pid\":%d,\"threads\":[", (int)getpid());
	for (int i = 0; i < THREADS; i++) {
		struct worker *w = &workers[i];

		printf("%s{\"tid\":%d,\"name\":\"worker-%d\",\"calls\":", i ? "," : "", w->tid, i);
		print_calls(w->calls);
		printf(",\"cpus\":[");
		for (long n = 0; n < w->ncpus; n++)
			printf("%s%d", n ? "," : "", w->cpus[n]);
		printf("]}");
		for (int f = 0; f < FUNCTIONS; f++)
			total[f] += w->calls[f];
		misplaced += w->misplaced;
		if (w->longest > longest)
			longest = w->longest;
		free(w->cpus);
	}
	printf("],\"calls\":");
	print_calls(total);
	printf(",\"longest_sleep_ns\":%ld,\"misplaced\":%d}\n", longest, misplaced);
	return target_done(&o, misplaced == 0);
}
