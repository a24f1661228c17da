// SPDX-License-Identifier: BSD-2-Clause
/*
 * Triggers that come while a dump waits, is written, or was just written join it or the next one.
 * A dump starts when the collector's watermark has passed its trigger: everything older is out of
 * the rings then. The store, the functions' names and all else are the child's own by fork(2): what
 * we overwrite meanwhile is copied by the kernel, page by page.
 */
#include "record/flight.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/flight_dump.h"
#include "record/dump_cause.h"
#include "select/pattern_matches.h"
#include "record/recording_state.h"
#include "record/session_info.h"

/* A program that was stopped in the middle of a record may keep the watermark from moving. */
#define MAX_WAIT_SECONDS 2.0
/* Ends of processes that are remembered: that of one may be told more than once. */
#define MAX_ENDED 256

struct ended {
	uint32_t tgid;
	uint64_t start;
};

/* What the child tells us. */
struct outcome {
	int code; /* -EINPROGRESS until it is done */
	struct kx_err err;
	struct kx_flight_dump_counts counts;
	double seconds;
};

struct kx_flight {
	struct recording *r;
	struct kx_flight_options o;
	struct kx_pattern *patterns; /* of o.triggers */
	bool *matched;		     /* by trigger: it names some function */
	struct kx_flight_store *store;
	struct kx_fdr_options fdr;

	bool waiting; /* a dump is due */
	struct kx_reason why;
	uint64_t newest; /* TSC of its newest trigger */
	double since;
	bool ending; /* it is a process' end, and some of its threads may not have come to it */

	pid_t child;	/* writes number o.dumps + 1; 0: none */
	unsigned number; /* of the newest dump */
	char *path;	/* of the one that the child writes */
	char text[512]; /* its reason */
	double begun;	/* when the newest one was */
	struct outcome *outcome; /* shared with the child */

	struct ended ended[MAX_ENDED];
	unsigned nended;
	bool uncovered_end; /* of some process, since the newest dump */
	bool *target_ended; /* by index in the recording's pids */

	unsigned dumps, failed, first_kept;
	uint64_t merged, bytes;
	char last[256];
	struct kx_err last_err;
};

/* "trace.xray" -> "trace.3.xray" */
static char *dump_path(const char *output, unsigned number)
{
	const char *slash = strrchr(output, '/'), *dot = strrchr(output, '.');
	char *path;
	int n;

	if (!dot || dot == output || (slash && dot <= slash + 1))
		n = asprintf(&path, "%s.%u", output, number);
	else
		n = asprintf(&path, "%.*s.%u%s", (int)(dot - output), output, number, dot);
	return n < 0 ? NULL : path;
}

/* Before anything is attached: a place that cannot be written should not show only after days. */
static int try_output(const struct kx_flight *f, struct kx_err *err)
{
	char *path = dump_path(f->r->o->output, 1);
	struct kx_output output;
	int code = path ? kx_output_open(&output, path, err) : kx_err_set(err, -ENOMEM, "no memory");

	if (path)
		kx_output_close(&output);
	free(path);
	return code;
}

static int parse_patterns(struct kx_flight *f, struct kx_err *err)
{
	int code = 0;

	f->patterns = calloc(f->o.ntriggers + 1, sizeof(*f->patterns));
	f->matched = calloc(f->o.ntriggers + 1, sizeof(*f->matched));
	f->target_ended = calloc(f->r->npids + 1, sizeof(*f->target_ended));
	if (!f->patterns || !f->matched || !f->target_ended)
		return kx_err_set(err, -ENOMEM, "no memory");
	for (size_t i = 0; i < f->o.ntriggers && !code; i++)
		code = kx_pattern_parse(f->o.triggers[i].pattern, &f->patterns[i], err);
	return code;
}

static int make_store(struct kx_flight *f, struct kx_err *err)
{
	const struct kx_clock *clock = kx_tracer_clock(f->r->tracer);
	unsigned char *online = calloc(clock->ncpus, 1);
	int code;

	if (!online)
		return kx_err_set(err, -ENOMEM, "no memory");
	for (unsigned i = 0; i < clock->ncpus; i++)
		online[i] = clock->cpus[i].present;
	code = kx_flight_store_new(online, clock->ncpus,
				   f->o.bytes ? f->o.bytes
					      : kx_flight_store_default_bytes(clock->ncpus),
				   &f->store, err);
	free(online);
	return code;
}

int kx_flight_new(struct recording *r, struct kx_flight **out, struct kx_err *err)
{
	struct kx_flight *f = calloc(1, sizeof(*f));
	int code;

	if (!f)
		return kx_err_set(err, -ENOMEM, "no memory");
	*out = f;
	f->r = r;
	f->o = *r->o->flight;
	f->first_kept = 1;
	f->fdr = r->fdr;
	code = try_output(f, err);
	if (!code)
		code = parse_patterns(f, err);
	if (!code)
		code = make_store(f, err);
	if (code)
		return code;
	f->outcome = mmap(NULL, sizeof(*f->outcome), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (f->outcome == MAP_FAILED) {
		f->outcome = NULL;
		return kx_err_set(err, -ENOMEM, "no memory");
	}
	kx_collector_keep_in(r->collector, f->store);
	kx_process_table_keep_ended(r->processes);
	return 0;
}

/* Functions */

static int add_function(struct kx_flight *f, const struct kx_function *fn, size_t *blind,
			struct kx_err *err)
{
	const struct kx_module *module = f->r->sel.modules[fn->module].module;
	int code = 0;

	for (size_t i = 0; i < f->o.ntriggers && !code; i++) {
		const struct kx_trigger *t = &f->o.triggers[i];

		if (!kx_pattern_matches_module(&f->patterns[i], module) ||
		    !kx_pattern_matches_symbol(&f->patterns[i], fn->sym))
			continue;
		if (!t->on_entry && fn->plan.exit_kind == KX_EXITS_NONE) {
			++*blind;
			continue;
		}
		f->matched[i] = true;
		code = kx_tracer_add_trigger(f->r->tracer, fn->id, t->on_entry, t->over_ns, err);
	}
	return code;
}

int kx_flight_add_functions(struct kx_flight *f, size_t first, struct kx_err *err)
{
	const struct kx_selection *sel = &f->r->sel;
	size_t blind = 0;
	int code = 0;

	for (size_t i = first; i < sel->nfunctions && !code; i++)
		if (sel->functions[i].traced)
			code = add_function(f, &sel->functions[i], &blind, err);
	for (size_t i = 0; i < f->o.ntriggers && !code && !first && !f->r->follow; i++) {
		if (f->matched[i])
			continue;
		if (blind)
			return kx_err_set(err, -EOPNOTSUPP,
					  "the trigger '%s' waits for ends of calls, but the exits of its "
					  "functions are not traced; use '%s@entry', or another --exits",
					  f->o.triggers[i].text, f->o.triggers[i].pattern);
		return kx_err_set(err, -ENOENT,
				  "the trigger '%s' names no function that is traced: -x leaves it out, "
				  "or it cannot be traced ('kxray functions --left-out' says why)",
				  f->o.triggers[i].text);
	}
	return code;
}

void kx_flight_begin(struct kx_flight *f)
{
	struct kx_flight_stats stats;

	kx_flight_store_stats(f->store, &stats);
	kx_recording_notice(f->r,
			    "flight recorder: the newest %llu KiB of each CPU stay in memory (%llu KiB in "
			    "all); 'kill -USR1 %d' writes them",
			    (unsigned long long)(stats.bytes_per_cpu >> 10),
			    (unsigned long long)(stats.bytes >> 10), (int)getpid());
	f->begun = -1e9;
	kx_tracer_arm_triggers(f->r->tracer);
}

/* Triggers */

static void want(struct kx_flight *f, const struct kx_reason *why)
{
	if (f->waiting)
		f->merged++;
	if (!f->waiting || why->kind > f->why.kind)
		f->why = *why;
	if (!f->waiting)
		f->since = kx_recording_now();
	if (!f->waiting || why->tsc > f->newest)
		f->newest = why->tsc;
	f->ending = f->why.kind == KX_REASON_EXIT || f->why.kind == KX_REASON_CRASH;
	f->waiting = true;
}

/* The index of a process that was named, or -1. */
static long target_index(const struct kx_flight *f, uint32_t pid)
{
	for (size_t i = 0; i < f->r->npids; i++)
		if ((uint32_t)f->r->pids[i] == pid && !f->target_ended[i])
			return (long)i;
	return -1;
}

/* Of a process' last threads each may have said that it is the last. */
static bool already_ended(struct kx_flight *f, const struct kx_trigger_event *ev)
{
	for (unsigned i = 0; i < f->nended && i < MAX_ENDED; i++)
		if (f->ended[i].tgid == ev->tgid && f->ended[i].start == ev->value)
			return true;
	f->ended[f->nended++ % MAX_ENDED] = (struct ended){ ev->tgid, ev->value };
	return false;
}

static void on_end(struct kx_flight *f, struct kx_reason *why)
{
	long target = target_index(f, why->event.tgid);
	bool crash = kx_reason_is_crash(why->event.status);

	if (already_ended(f, &why->event))
		return;
	f->uncovered_end = true;
	if (target >= 0)
		f->target_ended[target] = true;
	why->kind = crash ? KX_REASON_CRASH : KX_REASON_EXIT;
	why->status_known = true;
	/* with --follow and -a many processes come and go, as they should */
	if (crash || target >= 0)
		want(f, why);
}

static void on_trigger(void *ctx, const struct kx_trigger_event *ev)
{
	struct kx_flight *f = ctx;
	struct kx_reason why = { .event = *ev };
	struct kx_trigger_func limits = { 0 };

	why.tsc = ev->clock ? kx_clock_to_tsc(kx_tracer_clock(f->r->tracer), (uint16_t)ev->cpu,
					      ev->clock)
			    : kx_rdtscp();
	if (ev->kind == KX_TRIGGER_END) {
		on_end(f, &why);
		return;
	}
	why.kind = ev->kind == KX_TRIGGER_SLOW ? KX_REASON_SLOW : KX_REASON_ENTRY;
	if (kx_tracer_trigger(f->r->tracer, ev->func, &limits))
		why.limit_ns = limits.over_ns;
	want(f, &why);
}

void kx_flight_request_dump(struct kx_flight *f)
{
	const struct kx_reason why = { .kind = KX_REASON_SIGNAL, .tsc = kx_rdtscp() };

	want(f, &why);
}

void kx_flight_target_ended(struct kx_flight *f, pid_t pid)
{
	struct kx_reason why = { .kind = KX_REASON_EXIT, .event = { .tgid = (uint32_t)pid } };
	long target;

	/* its own event is there before its end can be seen */
	kx_tracer_read_triggers(f->r->tracer, on_trigger, f);
	target = target_index(f, (uint32_t)pid);
	if (target < 0)
		return;
	f->target_ended[target] = true;
	f->uncovered_end = true;
	why.tsc = kx_rdtscp();
	want(f, &why);
}

/* Dumps */

/* What the window is: from where no CPU lacks anything, or as long ago as was asked for. */
static uint64_t window_start(const struct kx_flight *f, uint64_t to, uint64_t hz, bool *cut)
{
	uint64_t complete = kx_flight_store_complete_from(f->store), from = f->r->start_tsc;
	uint64_t keep = (uint64_t)(f->o.keep * (double)hz);

	if (f->o.keep > 0 && to > keep && to - keep > from)
		from = to - keep;
	*cut = complete > from;
	return *cut ? complete : from;
}

static json_t *flight_json(const struct kx_flight *f, const struct kx_flight_dump *dump, bool cut)
{
	struct kx_flight_stats stats;
	json_t *j;

	kx_flight_store_stats(f->store, &stats);
	j = json_pack("{s:I,s:I,s:I,s:f,s:I,s:I,s:b,s:I}", "dump", (json_int_t)f->number,
		      "bytes_per_cpu", (json_int_t)stats.bytes_per_cpu, "merged_triggers",
		      (json_int_t)f->merged, "seconds",
		      dump->to > dump->from ? (double)(dump->to - dump->from) / (double)dump->tsc_hz : 0.0,
		      "from_tsc", (json_int_t)dump->from, "to_tsc", (json_int_t)dump->to, "cut", cut,
		      "overwritten_records", (json_int_t)stats.overwritten);
	if (j && f->o.keep > 0)
		json_object_set_new(j, "keep_seconds", json_real(f->o.keep));
	return j;
}

/* In the child: what the recording knows of itself is about this dump from here on. */
static void make_session(struct kx_flight *f, const struct kx_flight_dump *dump, bool cut)
{
	struct recording *r = f->r;
	const struct kx_flight_dump_counts *n = &f->outcome->counts;
	struct kx_collector_counts *c = &r->result->counts;

	memset(c, 0, sizeof(*c));
	c->events = n->events;
	c->entries = n->entries;
	c->exits = n->exits;
	c->repaired = n->repaired;
	c->orphans = n->orphans;
	c->migrations = n->migrations;
	c->threads = n->threads;
	c->lost = n->lost;
	c->lost_by[KX_LOSS_RING_FULL] = n->lost;
	r->result->seconds = (double)(dump->to - dump->from) / (double)dump->tsc_hz;
	kx_session_info_processes(r->info, r->processes, r->start_tsc, dump->tsc_hz);
	kx_session_info_end(r->info, r->result);
	json_object_set_new(r->info, "trigger", kx_reason_json(&f->why, &r->sel));
	json_object_set_new(r->info, "flight", flight_json(f, dump, cut));
}

static int write_dump(struct kx_flight *f, bool final, struct kx_err *err)
{
	struct recording *r = f->r;
	struct kx_clock *clock = kx_tracer_clock(r->tracer);
	struct kx_flight_dump dump = { .store = f->store,
				       .final = final,
				       .threads = kx_collector_dump_options(r->collector),
				       .fdr = f->fdr,
				       .tsc_hz = clock->tsc_hz };
	bool cut, mapped = false;
	int code;

	if (strcmp(clock->hz_origin, "measured") == 0)
		dump.tsc_hz = clock->tsc_hz = kx_clock_measured_hz(clock);
	dump.to = final ? kx_rdtscp() : kx_collector_watermark(r->collector);
	dump.from = window_start(f, dump.to, dump.tsc_hz, &cut);
	if (dump.to < dump.from)
		dump.to = dump.from;
	f->outcome->seconds = (double)(dump.to - dump.from) / (double)dump.tsc_hz;
	/* the recording has no output of its own */
	code = kx_output_open(&r->output, f->path, err);
	if (!code)
		code = kx_flight_dump_write(r->output.fd, &dump, &f->outcome->counts, err);
	if (!code) {
		make_session(f, &dump, cut);
		code = kx_recording_write_map(r, err);
		mapped = !code;
	}
	if (!code)
		code = kx_output_keep(&r->output, err);
	if (code && mapped)
		unlink(r->output.map_path);
	kx_output_close(&r->output);
	return code;
}

static void start_dump(struct kx_flight *f, bool final)
{
	struct kx_err err = { 0 };

	f->waiting = false;
	f->uncovered_end = false;
	f->begun = kx_recording_now();
	f->number++;
	f->path = dump_path(f->r->o->output, f->number);
	kx_reason_text(&f->why, &f->r->sel, f->text, sizeof(f->text));
	*f->outcome = (struct outcome){ .code = -EINPROGRESS };
	f->child = f->path ? fork() : -1;
	if (f->child == 0) {
		/* no program or probe of ours may outlive us by a descriptor of the child's */
		close_range(STDERR_FILENO + 1, ~0u, 0);
		f->outcome->code = write_dump(f, final, &err);
		f->outcome->err = err;
		_exit(0);
	}
	if (f->child < 0) {
		f->child = 0;
		f->failed++;
		kx_err_set(&f->last_err, -errno, "dump %u (%s) could not be written: no process can be "
			   "made for it: %s", f->number, f->text, strerror(errno));
		kx_recording_notice(f->r, "%s", f->last_err.text);
		free(f->path);
		f->path = NULL;
	}
}

static void remove_files(const char *path)
{
	char *map = NULL;

	unlink(path);
	if (asprintf(&map, "%s.map", path) >= 0) {
		unlink(map);
		free(map);
	}
}

/* Only the newest stay. */
static void remove_old(struct kx_flight *f)
{
	while (f->number - f->first_kept >= f->o.dumps) {
		char *path = dump_path(f->r->o->output, f->first_kept++);

		if (path)
			remove_files(path);
		free(path);
	}
}

/* What a child that died left behind. */
static void remove_temporary(const struct kx_flight *f)
{
	char *path = NULL;

	if (asprintf(&path, "%s.%d.tmp", f->path, (int)f->child) >= 0) {
		unlink(path);
		free(path);
	}
	if (asprintf(&path, "%s.map.%d.tmp", f->path, (int)f->child) >= 0) {
		unlink(path);
		free(path);
	}
}

static void dump_ended(struct kx_flight *f, int status)
{
	const struct outcome *o = f->outcome;

	if (!WIFEXITED(status) || o->code == -EINPROGRESS) {
		remove_temporary(f);
		kx_err_set(&f->last_err, -EIO, "dump %u (%s) could not be written: its process was killed",
			   f->number, f->text);
	} else if (o->code) {
		kx_err_set(&f->last_err, o->code, "dump %u (%s) could not be written: %s", f->number,
			   f->text, o->err.text);
	} else {
		f->dumps++;
		f->bytes += o->counts.bytes;
		snprintf(f->last, sizeof(f->last), "%s", f->path);
		remove_old(f);
		kx_recording_notice(f->r, "wrote %s (%s): %llu events of %.3f s", f->path, f->text,
				    (unsigned long long)o->counts.events, o->seconds);
		goto out;
	}
	f->failed++;
	kx_recording_notice(f->r, "%s", f->last_err.text);
out:
	free(f->path);
	f->path = NULL;
	f->child = 0;
}

static void reap(struct kx_flight *f, bool wait)
{
	int status;
	pid_t pid;

	if (!f->child)
		return;
	do
		pid = waitpid(f->child, &status, wait ? 0 : WNOHANG);
	while (pid < 0 && errno == EINTR);
	if (pid == f->child)
		dump_ended(f, status);
}

/* Whether nothing of the process is left, but perhaps a zombie. */
static bool is_over(uint32_t pid)
{
	struct dirent *entry;
	char path[64], line[512], *state;
	bool others = false;
	DIR *tasks;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	tasks = opendir(path);
	if (!tasks)
		return true;
	while (!others && (entry = readdir(tasks)))
		others = entry->d_name[0] != '.' && strtoul(entry->d_name, NULL, 10) != pid;
	closedir(tasks);
	if (others)
		return false;
	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return true;
	line[fread(line, 1, sizeof(line) - 1, f)] = 0;
	fclose(f);
	/* "PID (NAME) STATE ...": a name may hold a bracket too */
	state = strrchr(line, ')');
	if (!state || strlen(state) < 3)
		return true;
	return state[2] == 'Z' || state[2] == 'X';
}

/*
 * The last thread to begin its end is not always the last to reach it: on the way there others are
 * preempted, and the records of their ends come later.
 */
static bool still_ending(struct kx_flight *f)
{
	if (!f->ending)
		return false;
	if (!is_over(f->why.event.tgid))
		return true;
	f->ending = false;
	f->newest = kx_rdtscp();
	return false;
}

void kx_flight_poll(struct kx_flight *f)
{
	double now;

	kx_tracer_read_triggers(f->r->tracer, on_trigger, f);
	reap(f, false);
	now = kx_recording_now();
	if (f->waiting && !f->child &&
	    (now - f->since > MAX_WAIT_SECONDS ||
	     (!still_ending(f) && kx_collector_watermark(f->r->collector) > f->newest)))
		start_dump(f, false);
	if (!f->waiting && now - f->begun >= f->o.interval)
		kx_tracer_arm_triggers(f->r->tracer);
}

bool kx_flight_dump_pending(const struct kx_flight *f)
{
	return f->waiting && !f->child;
}

int kx_flight_end(struct kx_flight *f, bool asked, struct kx_err *err)
{
	struct kx_reason end = { .kind = KX_REASON_END, .tsc = kx_rdtscp() };

	kx_tracer_read_triggers(f->r->tracer, on_trigger, f);
	/* without any dump yet, the end of the last process was not heard of */
	if (!f->waiting && (asked || f->uncovered_end || !f->number))
		want(f, &end);
	reap(f, true);
	if (f->waiting)
		start_dump(f, true);
	reap(f, true);
	if (!f->failed)
		return 0;
	*err = f->last_err;
	return err->code;
}

void kx_flight_get_result(const struct kx_flight *f, struct kx_flight_result *out)
{
	struct kx_flight_stats stats;
	uint64_t lost;

	kx_flight_store_stats(f->store, &stats);
	*out = (struct kx_flight_result){ .dumps = f->dumps,
					  .failed = f->failed,
					  .kept = f->dumps < f->o.dumps ? f->dumps : f->o.dumps,
					  .merged = f->merged +
						    kx_tracer_triggers_merged(f->r->tracer, &lost),
					  .bytes = f->bytes,
					  .memory = stats.bytes };
	out->merged += lost;
	snprintf(out->last, sizeof(out->last), "%s", f->last);
}

void kx_flight_free(struct kx_flight *f)
{
	if (!f)
		return;
	reap(f, true);
	for (size_t i = 0; f->patterns && i < f->o.ntriggers; i++)
		kx_pattern_free(&f->patterns[i]);
	free(f->patterns);
	free(f->matched);
	free(f->target_ended);
	kx_flight_store_free(f->store);
	if (f->outcome)
		munmap(f->outcome, sizeof(*f->outcome));
	free(f);
}
