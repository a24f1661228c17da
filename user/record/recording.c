// SPDX-License-Identifier: BSD-2-Clause
#include "record/recorded_values.h"
#include "record/recording_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "base/stop_request.h"
#include "record/recording_in_process.h"
#include "record/recording_late.h"
#include "record/session_info.h"
#include "tracer/keeper.h"
#include "tracer/sources.h"
#include "tracer/uprobe_try.h"

/* Between passes, unless a ring fills up and wakes the collector; and after a pass in which nothing had been recorded. */
#define PASS_MS	     100
#define IDLE_PASS_MS 250
#define WAITING_PASS_MS 10 /* while a budget lets probes in */
/* While a process is ending. */
#define END_PASS_MS 10
/* Other probes than single ones go together, in tens of ms. */
#define DETACH_SECONDS 10.0
/* If kxray is killed, the trace lacks at most the events of this time. */
#define FLUSH_SECONDS	 1.0
#define FLUSH_SECONDS_V1 10.0 /* version 1 fills up every buffer that it flushes */

/* Bytes that the open buffers of all threads may hold together. */
#define MAX_BUFFERED (64u << 20)

/* The signal that ends the recording, or 0. It is passed on to the command, unless the terminal
 * sent it to both. */
static int take_signal(struct recording *r, bool again)
{
	struct signalfd_siginfo si;
	int asked = 0;

	while (read(r->signal_fd, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGCHLD)
			continue;
		if (si.ssi_signo == SIGUSR1) {
			if (r->flight)
				kx_flight_request_dump(r->flight);
			else
				kx_notice(&r->notices, "SIGUSR1 asks for a dump, which only a flight recorder writes "
						       "(--flight-recorder, --keep); the recording continues");
			continue;
		}
		asked = (int)si.ssi_signo;
		/* a terminal's Ctrl-C reaches the whole foreground group, the command included */
		if (r->launch && !again && si.ssi_code != SI_KERNEL)
			kill(kx_launch_pid(r->launch), asked);
	}
	return asked;
}

static bool targets_ended(struct recording *r, const struct pollfd *fds)
{
	size_t alive = 0;

	if (r->follow)
		return kx_follow_all_ended(r->follow);
	for (size_t i = 0; i < r->targets.npids; i++) {
		if (r->targets.pidfds[i] >= 0 && fds[i].revents) {
			close(r->targets.pidfds[i]);
			r->targets.pidfds[i] = -1;
			if (r->flight)
				kx_flight_target_ended(r->flight, r->targets.pids[i]);
		}
		alive += r->targets.pidfds[i] >= 0;
	}
	return !alive;
}

static int check_processes(struct recording *r, struct kx_err *err)
{
	bool dropped;
	char why[512];
	int code;

	if (r->in_process)
		kx_recording_in_process_poll(r);
	if (r->in_process && r->follow)
		kx_recording_children_poll(r);
	if (r->follow)
		return kx_follow_poll(r->follow, err);
	code = kx_recording_translator_poll(r, err);
	if (code)
		return code;
	code = kx_dlopen_watch_check(&r->watch, r->tracer, r->probes.user, &r->sel,
				     r->targets.procs, r->targets.npids, &dropped, why, sizeof(why),
				     err);
	if (dropped)
		kx_notice(&r->notices, "%s", why);
	if (!code && r->late)
		code = kx_recording_late_poll(r, err);
	/* The process has exited: there is nothing left to probe. */
	return code == -ESRCH ? 0 : code;
}

/* The trace could not be written: names the file, and what to do. */
static int trace_failed(const struct recording *r, int code, struct kx_err *err)
{
	if (!code || code == -ENOMEM)
		return code;
	return kx_err_set(
		err, code,
		"'%s' cannot be written: %s; what was written before is whole and readable; "
		"make room, or choose another place with -o",
		r->output.path, strerror(-code));
}

/* How long to wait for events, ms; @left: seconds until the time limit. */
static int wait_of(const struct recording *r, double left, bool idle)
{
	int wait_ms = kx_collector_next_wait_ms(r->collector, idle ? IDLE_PASS_MS : PASS_MS);

	if (r->follow && kx_follow_any_ending(r->follow) && wait_ms > END_PASS_MS)
		wait_ms = END_PASS_MS;
	if (r->follow && kx_follow_table(r->follow)->first_dirty)
		return 0;
	if (r->flight && kx_flight_dump_pending(r->flight))
		return 1;
	if (kx_recording_budget_waits(r) && wait_ms > WAITING_PASS_MS)
		wait_ms = WAITING_PASS_MS;
	wait_ms = kx_recording_live_wait(r, wait_ms);
	return r->o->seconds > 0 && left * 1000 < wait_ms ? (int)(left * 1000) + 1 : wait_ms;
}

/* @fds: room for the targets and four more. */
static void wait_for_events(const struct recording *r, struct pollfd *fds, int wait_ms)
{
	size_t n = r->targets.npids;

	/* With --follow, exits arrive as BPF events; do not poll pidfds. */
	for (size_t i = 0; i < n; i++)
		fds[i] = (struct pollfd){ .fd = r->follow ? -1 : r->targets.pidfds[i], .events = POLLIN };
	fds[n++] = (struct pollfd){ .fd = r->signal_fd, .events = POLLIN };
	fds[n++] = (struct pollfd){ .fd = kx_tracer_doorbell_fd(r->tracer), .events = POLLIN };
	fds[n++] = (struct pollfd){ .fd = kx_tracer_trigger_fd(r->tracer), .events = POLLIN };
	fds[n++] = (struct pollfd){ .fd = r->o->live ? r->o->live->fd : -1, .events = POLLIN };
	poll(fds, n, wait_ms);
}

/* Records until a signal, the time limit, or the end of the last target; *@asked_to_end is set by
 * the first two. */
static int run(struct recording *r, bool *asked_to_end, struct kx_err *err)
{
	double start = kx_monotonic_seconds(), flush_every, flushed = start;
	struct pollfd *fds = calloc(r->targets.npids + 4, sizeof(*fds));
	bool asked = false, ended = false;
	uint64_t heads = UINT64_MAX;
	int code = 0;

	if (!fds)
		return kx_err_set(err, -ENOMEM, "no memory");
	/* the probes of these ends came too late */
	for (size_t i = 0; r->follow && i < r->targets.npids; i++)
		if (kx_target_has_ended(&r->targets, i))
			kx_follow_ended(r->follow, r->targets.pids[i]);
	flush_every = r->o->fdr_version == 1 ? FLUSH_SECONDS_V1 : FLUSH_SECONDS;
	while (!code && !ended) {
		double now = kx_monotonic_seconds(), left = start + r->o->seconds - now;
		uint64_t before = heads;

		if (r->o->seconds > 0 && left <= 0)
			break;
		heads = kx_rings_heads(kx_tracer_rings(r->tracer));
		wait_for_events(r, fds, wait_of(r, left, heads == before));
		kx_tracer_poll_events(r->tracer);
		code = check_processes(r, err);
		if (!code)
			code = kx_recording_budget_poll(r, err);
		kx_cost_watch_poll(r);
		if (!code)
			code = kx_recording_live_poll(r, err);
		if (!code && !r->o->count)
			code = trace_failed(r, kx_collector_pass(r->collector, err), err);
		if (!code && r->flight)
			kx_flight_poll(r->flight);
		if (!code && r->writer &&
		    (now - flushed >= flush_every ||
		     kx_fdr_writer_memory(r->writer) > MAX_BUFFERED)) {
			code = trace_failed(r, kx_fdr_flush(r->writer, err), err);
			flushed = now;
		}
		if (!code && r->writer)
			code = kx_recording_rotate(r, err);
		kx_clock_log_poll(&r->clocks, now);
		if (kx_recording_recalibrate(r, now))
			kx_recording_budget_scale(r);
		kx_recording_status_poll(r, start);
		if (take_signal(r, asked)) {
			/* the command may still write output as it ends; a second signal ends the
			 * recording at once */
			r->result->interrupted = true;
			if (!r->launch || asked)
				break;
			asked = true;
		}
		ended = targets_ended(r, fds);
	}
	*asked_to_end = !ended;
	free(fds);
	return code == -ECANCELED ? 0 : code;
}

/* Stops recording before the probes are removed: calls during detaching are not recorded. */
static void detach(struct recording *r)
{
	double before = kx_monotonic_seconds();

	kx_stop_listen(true);
	/* single probes are removed one by one: the keeper can do it alone */
	if (kx_tracer_prog_mechanism(r->tracer, KX_PROG_ENTRY) != KX_MECHANISM_SINGLE)
		kx_keeper_wait_at_most(DETACH_SECONDS);
	else if (r->result->interrupted)
		kx_stop_keep();
	kx_tracer_ready(r->tracer, false);
	kx_return_leases_stop(r->leases, &r->result->return_gaps);
	if (r->in_process)
		kx_recording_in_process_end(r);
	kx_recording_budget_stop(r);
	if (!r->o->count)
		kx_collector_close(r->collector);
	r->kernel_missed = kx_probe_sets_missed(&r->probes) + kx_sources_missed(r->tracer);
	kx_probes_join(r->probes.user, &r->watch.links);
	kx_probes_join(r->probes.user, &r->calibration);
	if (r->follow)
		kx_follow_detach(r->follow);
	kx_probe_sets_free(&r->probes);
	if (r->probes.waiting && !kx_keeper_is_left()) {
		/* a probe's end waits for all programs that run at probes */
		kx_mechanism_try(kx_tracer_prog_mechanism(r->tracer, KX_PROG_ENTRY));
		kx_targets_note_debuggers(&r->targets, &r->notices);
	}
	kx_sources_detach_all(r->tracer);
	r->result->detach_seconds = kx_monotonic_seconds() - before;
}

/* With --min-duration, calls that are still open are written if they have lasted long enough by
 * now. */
static int flush_pending(struct recording *r, struct kx_err *err)
{
	if (!kx_tracer_delays_entries(r->tracer))
		return 0;
	/* makes room in the rings; an error of the file is reported at the end */
	kx_collector_pass(r->collector, NULL);
	return kx_tracer_flush_pending(r->tracer, err);
}

/* A flight recording ends with its last dump. */
static int finish_flight(struct recording *r, bool asked, int code, struct kx_err *err)
{
	struct kx_err late = { 0 };
	int end = flush_pending(r, &late);

	if (!end)
		end = kx_collector_finish(r->collector, &late);
	if (end && !code) {
		*err = late;
		code = end;
	}
	end = kx_flight_end(r->flight, asked, &late);
	if (end && !code) {
		*err = late;
		code = end;
	}
	kx_flight_finish_hooks(r->flight);
	kx_recording_fill_result(r);
	return code;
}

static int finish_count(struct recording *r, int code, struct kx_err *err)
{
	uint64_t *calls = calloc(r->sel.nfunctions + 1, sizeof(*calls));
	double *out = calloc(r->sel.nfunctions + 1, sizeof(*out));
	struct kx_err late = { 0 };
	int end;

	for (size_t i = 0; out && i < r->sel.nfunctions; i++)
		out[i] = kx_recording_budget_out_seconds(r, i);
	kx_recording_budget_end(r);
	if (calls && out)
		end = kx_tracer_calls(r->tracer, calls, (uint32_t)r->sel.nfunctions, &late);
	else
		end = kx_err_set(&late, -ENOMEM, "no memory for the counted calls");
	if (!end && r->o->on_counts)
		r->o->on_counts(r->o->ctx, &r->sel, calls, out);
	free(calls);
	free(out);
	if (!code && end) {
		*err = late;
		code = end;
	}
	return code;
}

static void release_map_room(struct recording *r)
{
	if (r->map_room >= 0)
		close(r->map_room);
	r->map_room = -1;
}

/* With -a this child would be traced, too: there it is started when the probes are gone. Counting has no map. */
static void start_places(struct recording *r)
{
	if (!r->o->all && !r->o->count)
		r->places = kx_source_places_start(&r->sel, &r->notices);
}

static int finish(struct recording *r, int code, struct kx_err *err)
{
	struct kx_clock *clock = kx_tracer_clock(r->tracer);
	struct kx_err late = { 0 };
	uint64_t hz = 0;
	int end, flushed = flush_pending(r, &late);

	if (flushed && !code) {
		*err = late;
		code = flushed;
	}
	end = trace_failed(r, kx_collector_finish(r->collector, &late), &late);
	/* a frequency measured over the whole recording is more exact than one from its first
	 * moments */
	if (strcmp(clock->hz_origin, "measured") == 0)
		hz = clock->tsc_hz = kx_clock_measured_hz(clock);
	if (!end)
		end = trace_failed(r, kx_fdr_finish(r->writer, hz, &late), &late);
	kx_recording_fill_result(r);
	if (r->o->all)
		r->places = kx_source_places_start(&r->sel, &r->notices);
	kx_source_places_finish(r->places, &r->sel);
	/* on a full disk the counts, that of the lost events above all, need their room */
	release_map_room(r);
	if (end)
		/* The map's counts are useful without a complete trace; it may fail, too. */
		kx_recording_write_map(r, &r->result->counts, true, NULL);
	else
		end = kx_recording_write_map(r, &r->result->counts, true, &late);
	if (!code && end) {
		*err = late;
		code = end;
	}
	return code;
}

static void clean_up(struct recording *r, bool started)
{
	if (r->launch && started) {
		r->result->command = r->launch;
	} else if (r->launch) {
		/* a command that was never started must not stay stopped */
		kx_launch_wait(r->launch, true, &r->result->command_status);
		r->result->command_ended = true;
		kx_launch_free(r->launch);
	}
	kx_links_close(&r->calibration);
	kx_recording_budget_free(r);
	kx_cost_watch_free(r);
	kx_recording_live_free(r);
	kx_recording_status_free(r);
	kx_flight_free(r->flight);
	kx_collector_free(r->collector);
	kx_in_process_free(r->in_process);
	kx_recording_late_free(r);
	kx_recording_children_free(r);
	kx_process_table_free(r->processes);
	kx_fdr_writer_free(r->writer);
	kx_recalibration_free(r);
	kx_tracer_free(r->tracer);
	if (r->selected)
		kx_selection_free(&r->sel);
	kx_follow_free(r->follow);
	kx_targets_free(&r->targets);
	free(r->traits);
	free(r->calls);
	free(r->instruction_exits);
	kx_exit_move_list_free(&r->moves);
	kx_caller_set_free(&r->callers);
	kx_source_places_free(r->places);
	json_decref(r->info);
	json_decref(r->values);
	kx_value_patterns_free(r->value_patterns);
	kx_condition_globs_free(&r->globs);
	free(r->session_note);
	kx_numbered_free(&r->rotation.files);
	kx_output_close(&r->output);
	release_map_room(r);
	if (r->signal_fd >= 0)
		close(r->signal_fd);
}

/* Before anything that takes memory, since the keeper gets a copy. */
static void start_keeper(struct recording *r)
{
	char *path = r->o->output ? kx_recording_first_path(r) : NULL;
	struct kx_err why;

	if (kx_keeper_start(&why))
		kx_notice(&r->notices, "%s; SIGKILL would leave probes behind", why.text);
	else if (path && !r->o->flight && !r->o->count)
		kx_keeper_guard_output(path);
	free(path);
}

static void tell_start(struct recording *r)
{
	struct kx_price price;

	kx_price_calibrated(&r->sel, &r->costs, (double)kx_tracer_clock(r->tracer)->tsc_hz, &price);
	r->o->on_start(r->o->ctx, &r->sel, r->result->functions, kx_probe_sets_probes(&r->probes) + r->result->in_process.sites,
		       r->mechanisms, r->result->attach_seconds, &price);
}

/* *@asked: see run. */
static int start_and_run(struct recording *r, bool *asked, struct kx_err *err)
{
	double start;
	int code = 0;

	r->result->started = true;
	kx_stop_listen(false);
	start = kx_monotonic_seconds();
	kx_tracer_ready(r->tracer, true);
	if (r->in_process)
		kx_recording_in_process_open(r);
	if (r->flight)
		kx_flight_begin(r->flight);
	/* every call from now on is recorded */
	if (r->o->on_start)
		tell_start(r);
	/* before the keeper closes anything: the child would close it last, and wait for the kernel */
	start_places(r);
	if (r->launch)
		code = kx_launch_continue(r->launch, err);
	r->leases = kx_return_leases_start(r->tracer);
	if (!code && r->writer)
		code = kx_recording_begin_rotation(r, err);
	if (!code)
		code = kx_recording_live_begin(r, err);
	if (!code)
		code = run(r, asked, err);
	r->result->seconds = kx_monotonic_seconds() - start;
	return code;
}

int kx_recording_run(const struct kx_recording_options *o, struct kx_recording_result *result,
		     struct kx_err *err)
{
	struct recording r = { .o = o,
			       .result = result,
			       .notices = { .each = o->on_notice, .ctx = o->ctx },
			       .signal_fd = -1,
			       .map_room = -1 };
	bool asked = false;
	int code;

	memset(result, 0, sizeof(*result));
	r.output.fd = -1;
	kx_clock_prepare();
	start_keeper(&r);
	code = o->flight || o->count ? 0 : kx_recording_open_output(&r, err);
	if (!code)
		code = kx_recording_prepare(&r, err);
	/* If a target has exited, that is why the preparation failed. */
	if (code && !r.launch && kx_targets_ended(&r.targets))
		code = kx_err_set(err, -ESRCH, "process %d ended before the recording began",
				  kx_targets_ended(&r.targets));
	if (!code)
		code = start_and_run(&r, &asked, err);
	if (r.probes.user) {
		detach(&r);
	} else {
		if (r.in_process)
			kx_recording_in_process_end(&r);
		if (r.tracer)
			kx_dlopen_watch_stop(&r.watch);
	}
	if (result->started)
		code = o->live	  ? kx_recording_live_end(&r, code, err)
		       : o->count	  ? finish_count(&r, code, err)
		       : r.flight ? finish_flight(&r, asked, code, err)
				  : finish(&r, code, err);
	clean_up(&r, result->started);
	if (kx_keeper_is_left())
		kx_notice(&r.notices,
			  "the kernel is still removing probes, for which it may wait for another tool's: kx-keeper (process %d) "
			  "removes the rest; they record nothing",
			  (int)kx_keeper_pid());
	kx_keeper_stop();
	return code;
}
