// SPDX-License-Identifier: BSD-2-Clause
/*
 * What recording in process costs: calls a function of its own, untraced, with jumps whose
 * recording is off, and recorded, in turns, and prints ns a call: the least of short rounds in some seconds, which
 * some get through undisturbed on a busy machine. So do the floors: two readings of the clock, and the
 * least code that puts the same two records into the same rings, compiled into the caller. Then threads that call it as fast as they can,
 * while another one reads the rings: events a second, and how many were lost. in_process [ROUNDS
 * [THREADS [CALLS]]]
 */
#include <pthread.h>
#include <time.h>

#include "tests/unit/patched.h"

#define CALLS_OF_ROUND 2000
#ifndef SLOTS
#define SLOTS (1u << 21)
#endif

static volatile long sink __attribute__((used));

__asm__(".pushsection .text\n .p2align 6\n .globl bench_call\n .type bench_call,@function\n"
	"bench_call: mov %rdi,sink(%rip)\n"
	"bench_window: mov sink(%rip),%rax\n"
	"bench_exit_window: add %rdi,%rax\n"
	"bench_exit: ret\n nop\n nop\n"
	"bench_end: .size bench_call,.-bench_call\n .popsection\n");
long bench_call(long n);
extern uint8_t bench_window[], bench_exit_window[], bench_exit[];

static struct patched p;
static struct kx_window windows[2];
static struct kx_jump jumps[2];
static uint8_t old[2][KX_JUMP_SIZE];

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline uint64_t read_tsc(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
}

__attribute__((noinline)) static long read_clock_twice(long n)
{
	sink = n + (long)read_tsc();
	sink = n + (long)read_tsc();
	return n;
}

static inline void put_record(struct kx_target_rings *rings, long n, uint32_t func, uint64_t kind)
{
	uint32_t cpu;
	struct kx_ring_header *ring;
	struct kx_wire_record *rec;
	uint64_t position;

	if (rings->cpu_by == KX_TARGET_RDPID)
		__asm__ volatile(".byte 0xf3, 0x0f, 0xc7, 0xf8" : "=a"(position)); /* rdpid %rax */
	else if (rings->cpu_by == KX_TARGET_RSEQ)
		__asm__ volatile("mov %%fs:(%1), %k0" : "=r"(position) : "r"((uint64_t)rings->cpu_offset));
	else
		__asm__ volatile("lsl %k1, %k0" : "=r"(position) : "r"((uint64_t)KX_RECORDER_CPU_SEGMENT) : "cc");
	cpu = (uint32_t)position & KX_RECORDER_CPU_MASK;
	ring = KX_TARGET_RING_AT(rings, cpu);
	position = __atomic_fetch_add(&ring->head, 1, __ATOMIC_ACQ_REL);
	rec = (struct kx_wire_record *)(ring + 1) + (position & (rings->nslots - 1));
	rec->tid = 1;
	rec->func = func;
	rec->sp = (uint64_t)n;
	rec->clock = read_tsc();
	__atomic_store_n((uint64_t *)&rec->cpu, cpu | kind << 16 | (position + 1) << 32, __ATOMIC_RELEASE);
}

__attribute__((noinline)) static long put_both_records(long n)
{
	struct kx_target_rings *rings = (struct kx_target_rings *)(uintptr_t)p.head->rings;

	put_record(rings, n, 1, KX_EVENT_ENTRY);
	sink = n;
	put_record(rings, n, 1, KX_EVENT_EXIT);
	return sink + n;
}

static double round_ns(long (*call)(long n))
{
	const double from = seconds();

	for (long i = 0; i < CALLS_OF_ROUND; i++)
		call(i);
	return (seconds() - from) * 1e9 / CALLS_OF_ROUND;
}

static void empty_rings(void)
{
	for (unsigned cpu = 0; cpu < p.views->ncpus; cpu++) {
		struct kx_ring *r = &p.views->items[cpu];

		while (kx_ring_take(p.views, r))
			;
		kx_ring_release(r);
	}
}

static void patch(bool jump)
{
	for (unsigned i = 0; i < 2; i++)
		patched_write(windows[i].start, jump ? jumps[i].bytes : old[i], KX_JUMP_SIZE);
}

static bool prepare(void)
{
	windows[0] = (struct kx_window){ .start = (uintptr_t)bench_window,
					 .length = (uint16_t)(bench_exit_window - bench_window),
					 .entry = true };
	windows[1] = (struct kx_window){ .start = (uintptr_t)bench_exit_window,
					 .length = 6,
					 .exit = (uintptr_t)bench_exit,
					 .starts = 8 };
	if (!patched_init(&p, (uintptr_t)bench_call, 256 << 20, SLOTS,
			  (unsigned)sysconf(_SC_NPROCESSORS_CONF)) ||
	    !patched_open_self(&p, "bench_call", (uintptr_t)bench_call))
		return false;
	for (unsigned i = 0; i < 2; i++) {
		memcpy(old[i], (const void *)windows[i].start, KX_JUMP_SIZE);
		if (!patched_prepare(&p, &windows[i], 1, &jumps[i]))
			return false;
	}
	return true;
}

static void measure_calls(long rounds)
{
	static const struct {
		const char *name;
		long (*call)(long n);
	} ways[] = { { "untraced", bench_call },
		     { "disabled", bench_call },
		     { "recorded", bench_call },
		     { "two_clocks", read_clock_twice },
		     { "least_records", put_both_records } };
	double least[] = { 1e9, 1e9, 1e9, 1e9, 1e9 };

	for (long i = 0; i < rounds; i++) {
		if (i % 64 == 0)
			usleep(50000);
		for (unsigned way = 0; way < 5; way++) {
			double ns;

			if (i % 64 == 0 || way < 2)
				patch(way > 0);
			p.head->enabled = way == 2;
			round_ns(ways[way].call); /* changed code is decoded anew */
			ns = round_ns(ways[way].call);
			least[way] = ns < least[way] ? ns : least[way];
			empty_rings();
		}
	}
	for (unsigned way = 0; way < 5; way++) {
		printf("%s_ns %.2f\n", ways[way].name, least[way]);
		if (way)
			printf("%s_over_untraced_ns %.2f\n", ways[way].name, least[way] - least[0]);
	}
}

static long calls;
static bool reading;

static void *call_all(void *arg)
{
	for (long i = 0; i < calls; i++)
		bench_call(i);
	return arg;
}

static void *read_all(void *arg)
{
	while (__atomic_load_n(&reading, __ATOMIC_RELAXED)) {
		empty_rings();
		usleep(1000);
	}
	return arg;
}

static void measure_threads(unsigned n)
{
	pthread_t threads[64], reader;
	uint64_t lost = 0, heads = kx_rings_heads(p.views), before = 0;
	double from;

	for (unsigned cpu = 0; cpu < p.views->ncpus; cpu++)
		before += p.views->items[cpu].header->lost[KX_LOSS_RING_FULL];
	patch(true);
	p.head->enabled = reading = true;
	pthread_create(&reader, NULL, read_all, NULL);
	from = seconds();
	for (unsigned i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, call_all, NULL);
	for (unsigned i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	from = seconds() - from;
	__atomic_store_n(&reading, false, __ATOMIC_RELAXED);
	pthread_join(reader, NULL);
	for (unsigned cpu = 0; cpu < p.views->ncpus; cpu++)
		lost += p.views->items[cpu].header->lost[KX_LOSS_RING_FULL];
	heads = kx_rings_heads(p.views) - heads;
	printf("threads %u\nevents %llu\nlost %llu\nmissing %lld\nmillion_events_per_second %.1f\n",
	       n, (unsigned long long)heads, (unsigned long long)(lost - before),
	       (long long)((uint64_t)n * (uint64_t)calls * 2 - heads - (lost - before)),
	       (double)n * (double)calls * 2 / from / 1e6);
}

int main(int argc, char **argv)
{
	const long rounds = argc > 1 ? atol(argv[1]) : 2000;
	const unsigned threads = argc > 2 ? (unsigned)atoi(argv[2]) : 2;

	calls = argc > 3 ? atol(argv[3]) : 20000000;
	if (threads > 64 || !prepare()) {
		fprintf(stderr, "in_process: this program cannot be patched\n");
		return 1;
	}
	measure_calls(rounds);
	measure_threads(threads);
	patched_free(&p);
	return 0;
}
