// SPDX-License-Identifier: BSD-2-Clause
/*
 * Traces of a simulated server whose times are as noisy as real ones, always the same for a seed.
 * Each request calls functions that call others; a call's time is lognormal, and varies with the
 * run        the machine's speed differs from run to run slow drift     of the machine, over the
 * whole run and with a memory of a twentieth of it the function   a drift of its own heavy tails
 * some calls are interrupted, for up to milliseconds (Pareto, exponent 1.5) Include after
 * export_run.h.
 */
#ifndef KX_TEST_NOISY_TRACE_H
#define KX_TEST_NOISY_TRACE_H

#include <math.h>

#define NOISY_FUNCTIONS 12
#define NOISY_THREADS	3
#define NOISY_STEPS	200 /* in which drifts change */

struct noisy_options {
	uint64_t seed;
	unsigned requests;
	double speed;	   /* of the machine: standard deviation of its logarithm from run to run */
	unsigned slow;	   /* this function ... */
	double factor;	   /* ... takes so many times as long; 0: none does */
	double all_factor; /* all take so many times as long; 0: none */
};

struct noisy_run {
	const struct noisy_options *o;
	uint64_t random;
	double speed, phase;
	double drift[NOISY_STEPS], own[NOISY_FUNCTIONS][NOISY_STEPS];
	double last[NOISY_THREADS]; /* time of the thread, ns */
	double end;		    /* of the run, about */
};

static inline uint32_t noisy_number(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (uint32_t)(*state * 0x2545f4914f6cdd1du >> 32);
}

/* Above 0, below 1. */
static inline double noisy_even(struct noisy_run *r)
{
	return (noisy_number(&r->random) + 0.5) / 4294967296.0;
}

static inline double noisy_normal(struct noisy_run *r)
{
	return sqrt(-2 * log(noisy_even(r))) * cos(2 * M_PI * noisy_even(r));
}

static inline void noisy_walk(struct noisy_run *r, double *values, double deviation)
{
	const double memory = 1 - 1.0 / (NOISY_STEPS / 20);

	values[0] = deviation * noisy_normal(r);
	for (int i = 1; i < NOISY_STEPS; i++)
		values[i] = memory * values[i - 1] +
			    sqrt(1 - memory * memory) * deviation * noisy_normal(r);
}

/* How much longer than usual function @f takes at @now. */
static inline double noisy_factor(const struct noisy_run *r, unsigned f, double now)
{
	double part = now / r->end;
	int step = (int)(part * NOISY_STEPS);

	step = step < NOISY_STEPS ? step : NOISY_STEPS - 1;
	return exp(r->speed + 0.02 * sin(2 * M_PI * (part * 0.8 + r->phase)) + r->drift[step] +
		   r->own[f - 1][step]) *
	       (r->o->factor > 0 && f == r->o->slow ? r->o->factor : 1) *
	       (r->o->all_factor > 0 ? r->o->all_factor : 1);
}

/* Some of a function's time, ns: @base at the median. */
static inline void noisy_work(struct noisy_run *r, unsigned thread, unsigned f, double base)
{
	double time = base * exp(0.25 * noisy_normal(r)) * noisy_factor(r, f, r->last[thread]);

	if (noisy_even(r) < 0.002)
		time += fmin(20000 * pow(noisy_even(r), -1 / 1.5), 5e6);
	r->last[thread] += time;
}

static inline uint64_t noisy_ticks(double ns)
{
	return EXPORT_T0 + (uint64_t)(ns * (EXPORT_HZ / 1e9));
}

/* Function 1 handles a request: it calls 2 and 3, which call others. */
static inline void noisy_call(struct noisy_run *r, struct kx_fdr_thread *t, unsigned thread,
			      unsigned f)
{
	static const double base[NOISY_FUNCTIONS + 1] = {
		0, 20000, 5000, 9000, 700, 1500, 3000, 400, 12000, 2500, 30000, 1100, 6000,
	};
	static const unsigned char callees[NOISY_FUNCTIONS + 1][8] = {
		[1] = { 2, 3, 2, 10 }, [2] = { 4, 5, 4 }, [3] = { 6, 7, 8, 6 },
		[8] = { 9, 11 },       [10] = { 12, 4 },
	};

	enter(t, noisy_ticks(r->last[thread]), (uint16_t)thread, f);
	noisy_work(r, thread, f, base[f] / 2);
	for (int i = 0; callees[f][i]; i++)
		noisy_call(r, t, thread, callees[f][i]);
	noisy_work(r, thread, f, base[f] / 2);
	leave(t, noisy_ticks(r->last[thread]), (uint16_t)thread, f);
}

/* Into trace_path, with a map. */
static inline void noisy_write(const struct noisy_options *o)
{
	static const char *const names[NOISY_FUNCTIONS] = {
		"request", "parse", "lookup", "token", "number", "hash",
		"compare", "read",  "block",  "reply", "copy",	 "send",
	};
	struct kx_fdr_thread *threads[NOISY_THREADS];
	struct noisy_run r = { .o = o, .random = o->seed * 0x9e3779b97f4a7c15u + 1 };
	struct kx_fdr_writer *w;
	int fd;

	for (int i = 0; i < 20; i++)
		noisy_number(&r.random);
	r.speed = o->speed * noisy_normal(&r);
	r.phase = noisy_even(&r);
	r.end = o->requests * 130000.0 / NOISY_THREADS;
	noisy_walk(&r, r.drift, 0.02);
	for (int f = 0; f < NOISY_FUNCTIONS; f++)
		noisy_walk(&r, r.own[f], 0.005);
	w = begin_trace(5, EXPORT_HZ, &fd);
	for (int i = 0; i < NOISY_THREADS; i++)
		threads[i] = kx_fdr_writer_thread(w, 10, 11 + i, "worker", "server");
	for (unsigned i = 0; i < o->requests; i++) {
		unsigned thread = i % NOISY_THREADS;

		noisy_call(&r, threads[thread], thread, 1);
		r.last[thread] += -20000 * log(noisy_even(&r)); /* until the next request */
	}
	end_trace(w, fd);
	write_map(names, NOISY_FUNCTIONS, "{}");
}

/* The same as @path, with its map. */
static inline void noisy(const char *path, const struct noisy_options *o)
{
	noisy_write(o);
	keep_as(path);
}

#endif
