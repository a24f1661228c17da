// SPDX-License-Identifier: BSD-2-Clause
#include "report/report_head.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/display.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "report/report_format.h"
#include "trace/labels.h"

#define NAMED_PROCESSES 3 /* of many, so many are named */
#define LINE 4096

/* Adds like printf; what does not fit is cut. */
static __attribute__((format(printf, 2, 3))) void add(char line[LINE], const char *format, ...)
{
	size_t used = strlen(line);
	va_list ap;

	va_start(ap, format);
	vsnprintf(line + used, LINE - used, format, ap);
	va_end(ap);
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static long long pid_of(const json_t *process)
{
	return (long long)json_integer_value(json_object_get(process, "pid"));
}

/* "server, PID 12: ./server --port 80" */
static void add_process(char line[LINE], const json_t *process)
{
	const json_t *word;
	size_t i;

	add(line, "%s, PID %lld", text_of(process, "name"), pid_of(process));
	json_array_foreach(json_object_get(process, "command"), i, word)
		add(line, "%s%s", i ? " " : ": ", json_string_value(word) ? json_string_value(word) : "?");
}

/* "5 processes: server (12), worker (13), worker (14) and 2 more" */
static void add_processes(char line[LINE], const json_t *processes)
{
	size_t n = json_array_size(processes);

	add(line, "%zu processes: ", n);
	for (size_t i = 0; i < n && i < NAMED_PROCESSES; i++) {
		const json_t *p = json_array_get(processes, i);

		add(line, "%s%s (%lld)", i ? ", " : "", text_of(p, "name"), pid_of(p));
	}
	if (n > NAMED_PROCESSES)
		add(line, " and %zu more", n - NAMED_PROCESSES);
}

/* " (env=production, unit=nginx.service)": but for host and ids, which tell people little */
static void add_labels(char line[LINE], const json_t *session)
{
	json_t *labels = kx_session_labels(session), *value;
	const char *key, *sep = " (";

	json_object_foreach (labels, key, value) {
		if (!strcmp(key, "host") || !strcmp(key, "boot_id") || !strcmp(key, "machine_id"))
			continue;
		if (!strcmp(key, "container")) /* as its runtime's commands show it */
			add(line, "%s%s=%.12s", sep, key, json_string_value(value));
		else
			add(line, "%s%s=%s", sep, key, json_string_value(value));
		sep = ", ";
	}
	if (*sep == ',')
		add(line, ")");
	json_decref(labels);
}

/* "on HOST (env=production), 2026-11-24 02:14:34 UTC" */
static void add_origin(char line[LINE], const json_t *session)
{
	const char *host = kx_session_host(session);
	const char *started = text_of(session, "started");

	if (*host)
		add(line, "on %s", host);
	if (*host)
		add_labels(line, session);
	if (strlen(started) >= 19 && started[10] == 'T')
		add(line, "%s%.10s %.8s UTC", *host ? ", " : "", started, started + 11);
}

static void put_line(struct kx_text_out *o, const struct kx_screen *screen, enum kx_style style,
		     const char *line)
{
	if (!*line)
		return;
	if (style)
		kx_text_str(o, kx_screen_style(screen, style));
	kx_put_fitted(o, line, screen->columns);
	if (style)
		kx_text_str(o, kx_screen_style(screen, KX_STYLE_PLAIN));
	kx_text_char(o, '\n');
}

static void put_session(struct kx_text_out *o, const struct kx_screen *screen, const json_t *session)
{
	const json_t *processes = json_object_get(session, "processes");
	char line[LINE] = "";

	if (json_array_size(processes) == 1)
		add_process(line, json_array_get(processes, 0));
	else if (json_array_size(processes))
		add_processes(line, processes);
	put_line(o, screen, KX_STYLE_HEAD, line);
	*line = 0;
	add_origin(line, session);
	put_line(o, screen, KX_STYLE_PLAIN, line);
}

void kx_put_pieces(struct kx_text_out *o, const struct kx_screen *screen, const char *const *pieces,
		   size_t n)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		size_t width = kx_display_width(pieces[i], strlen(pieces[i])) + 1;

		if (i && screen->columns && used + 1 + width > screen->columns) {
			kx_text_str(o, ",\n");
			used = 0;
		} else if (i) {
			kx_text_str(o, ", ");
			used += 1;
		}
		kx_text_str(o, pieces[i]);
		used += width;
	}
	kx_text_char(o, '\n');
}

void kx_report_head(struct kx_text_out *o, const struct kx_screen *screen, const json_t *session,
		    const struct kx_report_totals *t, const struct kx_fdr_info *info)
{
	char texts[7][96];
	const char *pieces[7];
	size_t n = 0;

	put_session(o, screen, session);
	for (size_t i = 0; i < 7; i++)
		pieces[i] = texts[i];
	if (info->tsc_hz)
		snprintf(texts[n++], sizeof(texts[0]), "%.6f s",
			 (double)(t->last_tsc - t->first_tsc) / (double)info->tsc_hz);
	else
		snprintf(texts[n++], sizeof(texts[0]),
			 "%" PRIu64 " ticks (the trace does not contain their frequency)",
			 t->last_tsc - t->first_tsc);
	snprintf(texts[n++], sizeof(texts[0]), "%" PRIu64 " thread%s", t->threads,
		 t->threads == 1 ? "" : "s");
	snprintf(texts[n++], sizeof(texts[0]), "%" PRIu64 " events", t->events);
	if (t->ended_early && !t->lost)
		snprintf(texts[n++], sizeof(texts[0]), "losses not known");
	else
		snprintf(texts[n++], sizeof(texts[0]), "%s%" PRIu64 " lost",
			 t->ended_early ? "at least " : "", t->lost);
	if (t->repaired)
		snprintf(texts[n++], sizeof(texts[0]), "%" PRIu64 " repaired", t->repaired);
	if (t->orphans)
		snprintf(texts[n++], sizeof(texts[0]), "%" PRIu64 " exit%s without entry", t->orphans,
			 t->orphans == 1 ? "" : "s");
	snprintf(texts[n++], sizeof(texts[0]), "%s version %u",
		 info->type == KX_FDR_TYPE_FDR ? "FDR" : "Basic mode", info->version);
	kx_put_pieces(o, screen, pieces, n);
}

void kx_totals_json(struct kx_text_out *o, const struct kx_report_totals *t, const struct kx_fdr_info *info)
{
	char text[80];

	kx_text_str(o, KX_JSON_SCHEMA_TEXT ",\"events\":");
	kx_text_u64(o, t->events);
	kx_text_json_u64(o, "lost", t->lost);
	kx_text_json_u64(o, "calls", t->calls);
	kx_text_json_u64(o, "repaired", t->repaired);
	kx_text_json_u64(o, "orphans", t->orphans);
	kx_text_json_u64(o, "open", t->open);
	kx_text_json_u64(o, "threads", t->threads);
	if (info->tsc_hz)
		snprintf(text, sizeof(text), ",\"seconds\":%.9f,\"unit\":\"ns\"",
			 (double)(t->last_tsc - t->first_tsc) / (double)info->tsc_hz);
	else
		snprintf(text, sizeof(text), ",\"seconds\":null,\"unit\":\"ticks\"");
	kx_text_str(o, text);
	kx_text_json_u64(o, "tsc_hz", info->tsc_hz);
	kx_text_json_u64(o, "version", info->version);
	kx_text_str(o, t->has_sched ? ",\"sched\":true" : ",\"sched\":false");
	kx_text_str(o, info->truncated ? ",\"truncated\":true" : ",\"truncated\":false");
	kx_text_str(o, t->ended_early ? ",\"ended_early\":true" : ",\"ended_early\":false");
}

int kx_view_flush(struct kx_text_out *o, struct kx_err *err)
{
	int r = kx_text_flush(o);

	if (r && r != -EPIPE)
		return kx_err_set(err, r, "standard output cannot be written: %s", strerror(-r));
	return 0;
}
