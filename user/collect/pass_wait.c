// SPDX-License-Identifier: BSD-2-Clause
#include "collect/pass_wait.h"

#define FIRST_MS 1.0
#define LONGEST_MS 1e4
/* From half a default ring at the fastest rate to 250 ms in 36 quiet passes, some 2 s. */
#define QUIET_FACTOR 1.1

static double busy_ms(const struct kx_pass_wait *w)
{
	const double ms = w->nslots / 2.0 / KX_PASS_FASTEST * 1e3;

	return ms < FIRST_MS ? FIRST_MS : ms;
}

void kx_pass_wait_init(struct kx_pass_wait *w, uint64_t hz, uint32_t nslots, uint64_t now)
{
	*w = (struct kx_pass_wait){ .hz = hz, .nslots = nslots, .last = now };
	w->wait_ms = busy_ms(w);
}

void kx_pass_wait_note(struct kx_pass_wait *w, uint64_t now, const struct kx_pass_arrivals *got)
{
	const double passed_ms = (double)(now - w->last) * 1e3 / (double)w->hz, eighth = w->nslots / 8.0;
	double left, room = w->nslots * 0.75 - (double)got->held;

	w->last = now;
	if (!got->arrived && !got->waiting && !got->runs) {
		w->wait_ms = w->wait_ms < FIRST_MS ? FIRST_MS : w->wait_ms * QUIET_FACTOR;
		if (w->wait_ms > LONGEST_MS)
			w->wait_ms = LONGEST_MS;
		return;
	}
	w->wait_ms = busy_ms(w);
	left = (double)got->waiting < eighth ? eighth - (double)got->waiting : 0;
	if (left == 0) {
		w->wait_ms = 0;
		return;
	}
	if (room < left)
		left = room > 0 ? room : 0;
	if (got->arrived && passed_ms * left / (double)got->arrived < w->wait_ms)
		w->wait_ms = passed_ms * left / (double)got->arrived;
	if (w->wait_ms < FIRST_MS)
		w->wait_ms = FIRST_MS;
}

int kx_pass_wait_ms(const struct kx_pass_wait *w, int most)
{
	return w->wait_ms < most ? (int)w->wait_ms : most;
}
