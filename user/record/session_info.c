// SPDX-License-Identifier: BSD-2-Clause
#include "record/session_info.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "trace/labels.h"
#include "trace/notes.h"

/* Bytes; an FDR custom event of ours holds 4096. */
#define MAX_NOTE 3900

static void set_time(json_t *info, const char *key)
{
	struct timespec ts;
	struct tm tm;
	char text[64];
	size_t n;

	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, sizeof(text) - n, ".%09ldZ", ts.tv_nsec);
	json_object_set_new(info, key, json_string(text));
}

/* The first line of a /proc file that starts with @key, or all of a short file without key. */
static json_t *proc_text(const char *path, const char *key)
{
	char line[512];
	size_t keylen = strlen(key);
	json_t *value = NULL;
	FILE *f = fopen(path, "re");

	if (!f)
		return json_null();
	while (!value && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (strncmp(line, key, keylen) == 0)
			value = json_string(line + keylen + strspn(line + keylen, "\t :"));
	}
	fclose(f);
	return value ? value : json_null();
}

/* The first word of a file; empty: left out. */
static void set_word(json_t *object, const char *key, const char *path)
{
	char word[64] = "";
	FILE *f = fopen(path, "re");

	if (!f)
		return;
	if (fscanf(f, "%63s", word) == 1)
		json_object_set_new(object, key, json_string(word));
	fclose(f);
}

static json_t *describe_host(void)
{
	struct utsname u;
	struct sysinfo si;
	json_t *host = json_object();

	if (uname(&u) == 0) {
		json_object_set_new(host, "name", json_string(u.nodename));
		json_object_set_new(host, "system", json_string(u.sysname));
		json_object_set_new(host, "release", json_string(u.release));
		json_object_set_new(host, "architecture", json_string(u.machine));
	}
	set_word(host, "boot_id", "/proc/sys/kernel/random/boot_id");
	set_word(host, "machine_id", "/etc/machine-id");
	if (sysinfo(&si) == 0)
		json_object_set_new(host, "memory_bytes",
				    json_integer((json_int_t)(si.totalram * si.mem_unit)));
	json_object_set_new(host, "cpus", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
	json_object_set_new(host, "cpu_model", proc_text("/proc/cpuinfo", "model name"));
	return host;
}

static json_t *address(uint64_t value)
{
	char text[32];

	/* as text: JSON readers round numbers over 53 bits */
	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)value);
	return json_string(text);
}

json_t *kx_session_mappings(const struct kx_modules *mods)
{
	json_t *list = json_array();

	for (size_t i = 0; i < mods->count; i++) {
		const struct kx_module *m = &mods->items[i];
		json_t *j = json_object();

		json_object_set_new(j, "path", json_string(m->path));
		json_object_set_new(j, "start", address(m->start));
		json_object_set_new(j, "end", address(m->end));
		json_object_set_new(j, "load_bias", address(m->load_bias));
		json_object_set_new(j, "inode", address(m->inode));
		json_array_append_new(list, j);
	}
	return list;
}

int kx_session_info_processes(json_t *info, const struct kx_process_table *table,
			      uint64_t start_tsc, uint64_t tsc_hz)
{
	json_t *all = kx_process_table_json(table, start_tsc, tsc_hz);
	uint64_t forgotten = kx_process_table_forgotten(table);

	if (!all)
		return -ENOMEM;
	json_object_set_new(info, "processes", all);
	if (forgotten)
		json_object_set_new(info, "processes_left_out", json_integer((json_int_t)forgotten));
	return 0;
}

static json_t *describe_clock(const struct kx_clock *clock, uint64_t start_tsc, const struct kx_clock_log *log)
{
	json_t *c = json_object();

	json_object_set_new(c, "kind", json_string(kx_clock_name(clock->kind)));
	json_object_set_new(c, "source", json_string(clock->source));
	json_object_set_new(c, "tsc_hz", json_integer((json_int_t)clock->tsc_hz));
	json_object_set_new(c, "hz_origin", json_string(clock->hz_origin));
	json_object_set_new(c, "constant_tsc", json_boolean(clock->constant_tsc));
	json_object_set_new(c, "nonstop_tsc", json_boolean(clock->nonstop_tsc));
	json_object_set_new(c, "start_tsc", json_integer((json_int_t)start_tsc));
	/* (CLOCK_MONOTONIC ns, ticks) at one moment: what ties the trace to other logs */
	json_object_set_new(c, "monotonic_ns", json_integer((json_int_t)clock->first_ns));
	json_object_set_new(c, "monotonic_ticks", json_integer((json_int_t)clock->first_ticks));
	json_object_set_new(c, "snapshots", kx_clock_log_json(log, NULL, clock->tsc_hz));
	return c;
}

/* Those of --label, which are checked. */
static int describe_labels(const struct kx_recording_options *o, json_t *info)
{
	json_t *labels = o->nlabels ? json_object() : NULL;

	for (size_t i = 0; i < o->nlabels; i++) {
		struct kx_err err;
		int code = labels ? kx_label_add(labels, o->labels[i], &err) : -ENOMEM;

		if (code) {
			json_decref(labels);
			return code;
		}
	}
	return labels ? json_object_set_new(info, "labels", labels) : 0;
}

json_t *kx_session_info(const struct kx_recording_options *o, const struct kx_selection *sel,
			const struct kx_clock *clock, const char *mechanism, uint64_t start_tsc,
			const struct kx_clock_log *log)
{
	json_t *info = json_object(), *args = json_array();

	if (!info || !args) {
		json_decref(info);
		json_decref(args);
		return NULL;
	}
	for (int i = 0; i < o->argc; i++)
		json_array_append_new(args, json_string(o->argv[i]));
	json_object_set_new(info, "kxray_command", args);
	json_object_set_new(info, "host", describe_host());
	json_object_set_new(info, "clock", describe_clock(clock, start_tsc, log));
	if (describe_labels(o, info)) {
		json_decref(info);
		return NULL;
	}
	json_object_set_new(info, "callers", json_boolean(o->callers));
	json_object_set_new(info, "sample_hz", json_integer(o->sample_hz));
	json_object_set_new(info, "sched", json_boolean(o->sources[KX_SOURCE_SCHED]));
	json_object_set_new(info, "mechanism", json_string(mechanism));
	json_object_set_new(info, "returns_harmless", json_boolean(sel->risk.returns_harmless));
	json_object_set_new(info, "exits_reason", json_string(sel->risk.reason));
	set_time(info, "started");
	return info;
}

char *kx_session_note(const json_t *info)
{
	static const char *const keys[] = { "started", "mechanism", "sched", "processes", "clock" };
	json_t *brief = json_object(), *process;
	char *body, *note = NULL;
	size_t at;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		json_object_set_new(brief, keys[i],
				    json_deep_copy(json_object_get(info, keys[i])));
	json_array_foreach(json_object_get(brief, "processes"), at, process)
		json_object_del(process, "mappings");
	body = json_dumps(brief, JSON_COMPACT);
	/* long command lines stay in the map alone */
	if (body && strlen(body) > MAX_NOTE) {
		free(body);
		json_object_del(brief, "processes");
		body = json_dumps(brief, JSON_COMPACT);
	}
	if (body)
		note = kx_note_text(&(struct kx_note){ .kind = KX_NOTE_SESSION,
						       .session = { body, strlen(body) } });
	free(body);
	json_decref(brief);
	return note;
}

void kx_session_info_end(json_t *info, double seconds, const struct kx_clock *clock, const struct kx_clock_log *log,
			 const struct kx_collector_counts *counts)
{
	static const char *const reasons[KX_LOSS_REASONS] = { "ring_full", "ring_busy", "no_ring" };
	json_t *lost = json_object(), *c = json_object_get(info, "clock");
	struct kx_clock_snapshot end;

	/* the largest estimate of the recording, and a measured frequency is better known by now */
	json_object_set_new(c, "error_ticks", json_integer((json_int_t)clock->error));
	json_object_set_new(c, "tsc_hz", json_integer((json_int_t)clock->tsc_hz));

	kx_clock_take_snapshot(&end);
	json_object_set_new(c, "snapshots", kx_clock_log_json(log, &end, clock->tsc_hz));

	set_time(info, "finished");
	json_object_set_new(info, "seconds", json_real(seconds));
	json_object_set_new(info, "events", json_integer((json_int_t)counts->events));
	json_object_set_new(info, "lost", json_integer((json_int_t)counts->lost));
	for (int i = 0; i < KX_LOSS_REASONS; i++)
		json_object_set_new(lost, reasons[i],
				    json_integer((json_int_t)counts->lost_by[i]));
	json_object_set_new(lost, "unwritten",
			    json_integer((json_int_t)counts->lost_unwritten));
	json_object_set_new(lost, "partner_lost", json_integer((json_int_t)counts->lost_partner));
	json_object_set_new(lost, "invalid", json_integer((json_int_t)counts->lost_invalid));
	json_object_set_new(lost, "kernel_missed", json_integer((json_int_t)counts->lost_missed));
	json_object_set_new(info, "lost_by", lost);
	json_object_set_new(info, "damaged_rings", json_integer((json_int_t)counts->target_damaged));
	json_object_set_new(info, "repaired", json_integer((json_int_t)counts->repaired));
	json_object_set_new(info, "reduced", json_integer((json_int_t)counts->reduced));
	if (counts->conditions[KX_CONDITION_MET] || counts->conditions[KX_CONDITION_REJECTED] ||
	    counts->conditions[KX_CONDITION_UNKNOWN] || counts->conditions[KX_CONDITION_UNDECIDED])
		json_object_set_new(info, "conditions", kx_condition_counts_json(counts->conditions));
	json_object_set_new(info, "orphans", json_integer((json_int_t)counts->orphans));
	json_object_set_new(info, "threads", json_integer((json_int_t)counts->threads));
	json_object_set_new(info, "unnamed", json_integer((json_int_t)counts->unnamed));
	json_object_set_new(info, "migrations", json_integer((json_int_t)counts->migrations));
}

json_t *kx_condition_counts_json(const uint64_t counts[KX_CONDITION_COUNTS])
{
	return json_pack("{s:I,s:I,s:I,s:I}", "met", (json_int_t)counts[KX_CONDITION_MET], "rejected",
			 (json_int_t)counts[KX_CONDITION_REJECTED], "unknown", (json_int_t)counts[KX_CONDITION_UNKNOWN], "undecided",
			 (json_int_t)counts[KX_CONDITION_UNDECIDED]);
}
