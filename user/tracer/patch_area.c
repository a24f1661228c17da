// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/patch_area.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracer/patch_pause.h"
#include "tracer/patch_write.h"
#include "tracer/remote_stop.h"
#include "tracer/remote_threads.h"

/* Threads that do not stop within that time wait in the kernel. */
#define STOP_MS 200
/* Between two tries: a thread that was preempted in a window gets out of it meanwhile. */
#define RETRY_US 500

/* An installation: by site. */
struct install {
	const struct kx_patch_area *area;
	size_t n;
	const uint8_t *window_length;
	bool *left_out;
	bool *inside; /* a thread or a stack, in this stop */
	bool *done;   /* the site holds the jump */
	struct kx_patch_change *to_jump, *to_old;
	struct kx_patch_change *now; /* the changes of this stop */
	size_t *of_now;		     /* their sites */
};

/* The site in whose window @pc is, behind its first byte; NULL. */
static void mark_inside(void *ctx, uint64_t pc)
{
	struct install *in = ctx;
	size_t low = 0, high = in->n;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (in->to_jump[mid].at < pc)
			low = mid + 1;
		else
			high = mid;
	}
	if (low) {
		const uint64_t length = in->window_length[low - 1];

		if (pc - in->to_jump[low - 1].at <
		    (length > KX_PATCH_BYTES ? length : KX_PATCH_BYTES))
			in->inside[low - 1] = true;
	}
}

/* Writes what can be written now; returns how many sites still wait. */
static size_t write_sites(struct install *in)
{
	size_t n = 0, waiting = 0;

	for (size_t i = 0; i < in->n; i++) {
		if (!in->left_out[i] && (in->done[i] || in->inside[i])) {
			waiting += !in->done[i];
			continue;
		}
		in->of_now[n] = i;
		in->now[n++] = in->left_out[i] ? in->to_old[i] : in->to_jump[i];
	}
	kx_patch_write(in->area->mem, in->now, n);
	for (size_t k = 0; k < n; k++) {
		const size_t i = in->of_now[k];

		if (in->now[k].result == KX_PATCH_WRITTEN || in->now[k].result == KX_PATCH_ALREADY)
			in->done[i] = !in->left_out[i];
		else
			in->left_out[i] = true;
	}
	return waiting;
}

static int stop_and_write(struct install *in, size_t *waiting, struct kx_patch_times *times,
			  struct kx_err *err)
{
	const struct kx_remote_range all = { in->to_jump[0].at,
					     in->to_jump[in->n - 1].at + UINT8_MAX };
	struct kx_remote_threads threads;
	double ms;
	int code = kx_remote_threads_stop(in->area->pid, STOP_MS, &threads, err);

	if (code)
		return code;
	memset(in->inside, 0, in->n);
	code = kx_remote_threads_scan(&threads, in->area->pid, in->area->mem, &all, 1, mark_inside,
				      in, err);
	if (!code)
		*waiting = write_sites(in);
	ms = kx_remote_threads_resume(&threads);
	times->stopped_ms = ms > times->stopped_ms ? ms : times->stopped_ms;
	times->tries++;
	return code;
}

static int install(struct install *in, struct kx_patch_times *times, struct kx_err *err)
{
	size_t waiting = in->n;
	int code = 0;

	kx_patch_copy_pages(in->area->mem, in->to_jump, in->n);
	for (unsigned tries = 0; waiting && !code && tries < KX_PATCH_TRIES; tries++) {
		struct kx_patch_pause pause;

		if (tries)
			kx_remote_pause(RETRY_US);
		kx_patch_pause_begin(&pause);
		code = stop_and_write(in, &waiting, times, err);
		kx_patch_pause_end(&pause);
	}
	for (size_t i = 0; !code && i < in->n; i++)
		in->left_out[i] |= !in->done[i];
	return code;
}

/* The table is memory of the target, too: it is copied. */
static void copy_sites(struct install *in, const struct kx_patch_table *table)
{
	for (size_t i = 0; i < in->n; i++) {
		const struct kx_patch_site site = table->sites[i];

		in->to_jump[i].at = in->to_old[i].at = site.at;
		memcpy(in->to_jump[i].from, site.old, KX_PATCH_BYTES);
		memcpy(in->to_jump[i].to, site.jump, KX_PATCH_BYTES);
		memcpy(in->to_old[i].from, site.jump, KX_PATCH_BYTES);
		memcpy(in->to_old[i].to, site.old, KX_PATCH_BYTES);
	}
}

int kx_patch_install(struct kx_patch_area *area, size_t nsites, const uint8_t *window_length,
		     bool *left_out, struct kx_patch_times *times, struct kx_err *err)
{
	struct install in = {
		.area = area, .n = nsites, .window_length = window_length, .left_out = left_out
	};
	int code = -ENOMEM;

	*times = (struct kx_patch_times){ 0 };
	if (!nsites)
		return 0;
	in.inside = calloc(nsites, sizeof(*in.inside));
	in.done = calloc(nsites, sizeof(*in.done));
	in.to_jump = calloc(nsites, sizeof(*in.to_jump));
	in.to_old = calloc(nsites, sizeof(*in.to_old));
	in.now = calloc(nsites, sizeof(*in.now));
	in.of_now = calloc(nsites, sizeof(*in.of_now));
	if (in.inside && in.done && in.to_jump && in.to_old && in.now && in.of_now) {
		copy_sites(&in, area->table);
		code = install(&in, times, err);
	} else {
		kx_err_set(err, code, "out of memory");
	}
	free(in.inside);
	free(in.done);
	free(in.to_jump);
	free(in.to_old);
	free(in.now);
	free(in.of_now);
	return code;
}

int kx_patch_enable(const struct kx_patch_area *area, bool enabled)
{
	const uint32_t value = enabled;
	const uint64_t at = area->table->head + offsetof(struct kx_patch_head, enabled);

	return pwrite(area->mem, &value, sizeof(value), (off_t)at) == (ssize_t)sizeof(value)
		       ? 0
		       : -ESRCH;
}
