// SPDX-License-Identifier: BSD-2-Clause
#include "record/clock_log.h"

#include <string.h>

/* Where lines differ by nothing but noise, those that are close together go first: as if a clock
 * wandered by 1 ns a second. */
#define NS_PER_WANDER	 1000000000u
#define INTERVAL_SECONDS 1.0

void kx_clock_log_start(struct kx_clock_log *log)
{
	memset(log, 0, sizeof(*log));
	kx_clock_log_add(log);
}

void kx_clock_log_add(struct kx_clock_log *log)
{
	struct kx_clock_snapshot s;

	kx_clock_take_snapshot(&s);
	kx_clock_log_put(log, &s);
}

void kx_clock_log_poll(struct kx_clock_log *log, double now)
{
	if (!log->n || now - log->polled < INTERVAL_SECONDS)
		return;
	kx_clock_log_add(log);
	log->polled = now;
}

static uint64_t distance(uint64_t a, uint64_t b, uint64_t between,
			 const struct kx_clock_snapshot *from, const struct kx_clock_snapshot *mid,
			 const struct kx_clock_snapshot *to)
{
	__int128 ticks = (__int128)(mid->tsc - from->tsc), span = (__int128)(to->tsc - from->tsc);
	__int128 off = (__int128)a + ((__int128)b - (__int128)a) * ticks / span - (__int128)between;

	return (uint64_t)(off < 0 ? -off : off);
}

/* How far the clocks would be off the line from the snapshot before @i to the one after it. */
static uint64_t error_without(const struct kx_clock_log *log, size_t i)
{
	const struct kx_clock_snapshot *a = &log->items[i - 1].s, *b = &log->items[i].s,
				       *c = &log->items[i + 1].s;
	const uint64_t of[] = {
		distance(a->realtime_ns, c->realtime_ns, b->realtime_ns, a, b, c),
		distance(a->boottime_ns, c->boottime_ns, b->boottime_ns, a, b, c),
		distance(a->monotonic_ns, c->monotonic_ns, b->monotonic_ns, a, b, c),
	};
	uint64_t before = log->items[i].line_error, after = log->items[i + 1].line_error, most = 0;

	for (size_t k = 0; k < sizeof(of) / sizeof(of[0]); k++)
		most = of[k] > most ? of[k] : most;
	/* the new line leaves the old ones by most where they meet */
	return (before > after ? before : after) + most + 1; /* it is rounded down */
}

static void leave_out(struct kx_clock_log *log, size_t i)
{
	log->items[i + 1].line_error = error_without(log, i);
	memmove(&log->items[i], &log->items[i + 1], (log->n - i - 1) * sizeof(log->items[0]));
	log->n--;
}

static void thin(struct kx_clock_log *log)
{
	uint64_t least = UINT64_MAX;
	size_t which = 1;

	for (size_t i = 1; i + 1 < log->n; i++) {
		uint64_t span = log->items[i + 1].s.monotonic_ns - log->items[i - 1].s.monotonic_ns;
		uint64_t cost = error_without(log, i) + span / NS_PER_WANDER;

		if (cost < least) {
			least = cost;
			which = i;
		}
	}
	leave_out(log, which);
}

void kx_clock_log_put(struct kx_clock_log *log, const struct kx_clock_snapshot *s)
{
	if (log->n && s->tsc <= log->items[log->n - 1].s.tsc)
		return;
	log->items[log->n].s = *s;
	log->items[log->n++].line_error = 0;
	if (log->n > KX_CLOCK_LOG)
		thin(log);
}

void kx_clock_log_cut(struct kx_clock_log *log, uint64_t tsc)
{
	while (log->n > 2 && log->items[2].s.tsc <= tsc)
		leave_out(log, 1);
}

static json_t *snapshot(const char *when, const struct kx_clock_snapshot *s, uint64_t tsc_hz)
{
	return json_pack("{s:s,s:I,s:I,s:I,s:I,s:I}", "when", when, "tsc", (json_int_t)s->tsc,
			 "monotonic_ns", (json_int_t)s->monotonic_ns, "boottime_ns",
			 (json_int_t)s->boottime_ns, "realtime_ns", (json_int_t)s->realtime_ns,
			 "error_ns",
			 (json_int_t)((double)s->error * 1e9 / (double)(tsc_hz ? tsc_hz : 1)) + 1);
}

json_t *kx_clock_log_json(const struct kx_clock_log *log, const struct kx_clock_snapshot *end,
			  uint64_t tsc_hz)
{
	json_t *all = json_array(), *one;

	for (size_t i = 0; i < log->n; i++) {
		one = snapshot(i ? "flush" : "start", &log->items[i].s, tsc_hz);
		if (one && log->items[i].line_error)
			json_object_set_new(one, "line_error_ns",
					    json_integer((json_int_t)log->items[i].line_error));
		if (json_array_append_new(all, one))
			goto no_memory;
	}
	if (!end || !json_array_append_new(all, snapshot("end", end, tsc_hz)))
		return all;
no_memory:
	json_decref(all);
	return NULL;
}
