// SPDX-License-Identifier: BSD-2-Clause
/*
 * Threads that are off-CPU for known reasons, and count how long or how often:
 *
 *   sleeper   nap() sleeps 10 ms, ROUNDS times
 *   reader    take() reads a byte from a pipe, ROUNDS times
 *   writer    give() writes the byte, once the kernel has counted the reader's sleep
 *   spinner   two of them, both on one CPU: spin() uses SPIN_NS of CPU time, SPINS times, and
 *             makes no system call that sleeps
 *   yielder   on the same CPU: pass_on() yields, at least ROUNDS times
 *
 * The spinners and the yielder work until the kernel has counted a switch of each of the three, so
 * that none of them has the CPU to itself, in whatever order the scheduler starts them.
 *
 * Each thread prints its switches and times from /proc, read directly before and after its work.
 * Calls of mark() around these readings show their position in the trace.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "target.h"

#define ROUNDS 20
#define SPINS 6
#define SPIN_NS 10000000
#define SHARING 3 /* threads that share the_cpu */
#define NAP_NS 10000000

struct reading {
	char state;
	long voluntary, involuntary;
	unsigned long long run_ns, wait_ns; /* 0 if the kernel has no schedstat */
};

struct worker {
	const char *name;
	void (*work)(struct worker *w);
	int cpu; /* -1: any */
	pthread_t thread;
	int tid;
	struct reading before, after;
};

static pthread_barrier_t start;
static int pipe_fds[2], the_cpu;
static volatile long sink;
static long reader_slept; /* its voluntary switches before it waits */
static int reader_tid;
static int switched; /* of the threads that share the_cpu, those that have been switched */

TRACED void mark(int n)
{
	sink = n;
}

static unsigned long long now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (unsigned long long)t.tv_sec * 1000000000 + (unsigned long long)t.tv_nsec;
}

/* Plain system calls, since nothing here may sleep. */
static size_t read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);

	text[n < 0 ? 0 : n] = 0;
	if (fd >= 0)
		close(fd);
	return n < 0 ? 0 : (size_t)n;
}

static long number_after(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? atol(at + strlen(key)) : -1;
}

static void read_proc(int tid, struct reading *r)
{
	char path[64], text[8192];

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	read_file(path, text, sizeof(text));
	r->state = strstr(text, "\nState:\t")[8];
	r->voluntary = number_after(text, "\nvoluntary_ctxt_switches:\t");
	r->involuntary = number_after(text, "\nnonvoluntary_ctxt_switches:\t");
	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
	r->run_ns = r->wait_ns = 0;
	if (read_file(path, text, sizeof(text)))
		sscanf(text, "%llu %llu", &r->run_ns, &r->wait_ns);
}

TRACED void nap(void)
{
	struct timespec t = { 0, NAP_NS };

	while (nanosleep(&t, &t))
		;
}

TRACED void take(void)
{
	char c;

	if (read(pipe_fds[0], &c, 1) != 1)
		exit(1);
}

TRACED void give(void)
{
	if (write(pipe_fds[1], "x", 1) != 1)
		exit(1);
}

TRACED void spin(void)
{
	unsigned long long end = now_ns(CLOCK_THREAD_CPUTIME_ID) + SPIN_NS;

	do
		for (int i = 0; i < 20000; i++)
			sink = i;
	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end);
}

TRACED void pass_on(void)
{
	sched_yield();
}

static void work_sleeper(struct worker *w)
{
	(void)w;
	for (int i = 0; i < ROUNDS; i++)
		nap();
}

static void work_reader(struct worker *w)
{
	struct reading r;

	for (int i = 0; i < ROUNDS; i++) {
		read_proc(w->tid, &r);
		reader_slept = r.voluntary;
		__atomic_store_n(&reader_tid, w->tid, __ATOMIC_RELEASE);
		take();
	}
}

/* Spins until the kernel has counted the reader's sleep, so that it is on its CPU when it writes. */
static void work_writer(struct worker *w)
{
	struct reading r;
	int tid;

	(void)w;
	for (int i = 0; i < ROUNDS; i++) {
		while (!(tid = __atomic_load_n(&reader_tid, __ATOMIC_ACQUIRE)))
			sched_yield();
		do {
			sched_yield();
			read_proc(tid, &r);
		} while (r.voluntary == reader_slept || r.state != 'S');
		__atomic_store_n(&reader_tid, 0, __ATOMIC_RELEASE);
		give();
	}
}

/* CPU time of this thread. Does not sleep. */
static long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

/* True if all threads that share the CPU have been switched since they began to work. */
static int all_switched(long before, int *counted)
{
	if (!*counted && switches() > before) {
		*counted = 1;
		__atomic_add_fetch(&switched, 1, __ATOMIC_RELAXED);
	}
	return __atomic_load_n(&switched, __ATOMIC_RELAXED) >= SHARING;
}

static void work_spinner(struct worker *w)
{
	long before = switches();
	int counted = 0;

	(void)w;
	for (int i = 0; i < SPINS || !all_switched(before, &counted); i++)
		spin();
}

static void work_yielder(struct worker *w)
{
	long before = switches();
	int counted = 0;

	(void)w;
	for (int i = 0; i < ROUNDS || !all_switched(before, &counted); i++)
		pass_on();
}

static void *run(void *arg)
{
	struct worker *w = arg;
	cpu_set_t set;

	w->tid = (int)syscall(SYS_gettid);
	CPU_ZERO(&set);
	CPU_SET(the_cpu, &set);
	if (w->cpu >= 0 && sched_setaffinity(0, sizeof(set), &set))
		exit(1);
	pthread_barrier_wait(&start);
	mark(1);
	read_proc(w->tid, &w->before);
	mark(2);
	w->work(w);
	mark(3);
	read_proc(w->tid, &w->after);
	mark(4);
	return NULL;
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	struct worker workers[] = {
		{ .name = "sleeper", .work = work_sleeper, .cpu = -1 },
		{ .name = "reader", .work = work_reader, .cpu = -1 },
		{ .name = "writer", .work = work_writer, .cpu = -1 },
		{ .name = "spinner", .work = work_spinner, .cpu = 0 },
		{ .name = "spinner", .work = work_spinner, .cpu = 0 },
		{ .name = "yielder", .work = work_yielder, .cpu = 0 },
	};
	size_t n = sizeof(workers) / sizeof(workers[0]);

	the_cpu = sched_getcpu();
	if (pipe(pipe_fds) || pthread_barrier_init(&start, NULL, (unsigned)n + 1))
		return 1;
	for (size_t i = 0; i < n; i++)
		if (pthread_create(&workers[i].thread, NULL, run, &workers[i]))
			return 1;
	target_ready(&o);
	pthread_barrier_wait(&start);
	for (size_t i = 0; i < n; i++)
		pthread_join(workers[i].thread, NULL);

	printf("{\"main\":%d,\"cpu\":%d,\"rounds\":%d,\"nap_ns\":%d,\"spin_ns\":%d,\"threads\":[",
	       (int)getpid(), the_cpu, ROUNDS, NAP_NS, SPIN_NS);
	for (size_t i = 0; i < n; i++) {
		const struct worker *w = &workers[i];

		printf("%s{\"name\":\"%s\",\"tid\":%d,\"voluntary\":%ld,\"involuntary\":%ld,"
		       "\"run_ns\":%llu,\"wait_ns\":%llu}", i ? "," : "", w->name, w->tid,
		       w->after.voluntary - w->before.voluntary,
		       w->after.involuntary - w->before.involuntary,
		       w->after.run_ns - w->before.run_ns, w->after.wait_ns - w->before.wait_ns);
	}
	printf("]}\n");
	return target_done(&o, 1);
}
