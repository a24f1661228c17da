// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/merge_traces.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/text_out.h"
#include "cmd/trace_input.h"
#include "exporters/merge/pairs.h"

#define NAME "merge"

struct opened {
	struct kx_trace_input input;
	struct kx_calls *calls;
	const json_t *session;
};

static void close_trace(struct opened *o)
{
	kx_calls_free(o->calls);
	kx_trace_input_close(&o->input);
}

static int open_trace(struct opened *o, const char *path, const struct kx_call_filter *filter,
		      struct kx_err *err)
{
	int r;

	*o = (struct opened){ .input.path = path };
	r = kx_trace_input_open(&o->input, false, err);
	if (!r)
		r = kx_calls_new(o->input.file, &o->input.names, filter, &o->calls, err);
	if (r) {
		if (!strstr(err->text, path))
			kx_err_prefix(err, "%s", path);
		close_trace(o);
		return r;
	}
	o->session = o->input.names.has_map ? o->input.names.map.session : NULL;
	return 0;
}

static int read_trace(struct kx_merge_traces *t, size_t i, struct kx_err *err)
{
	struct kx_merge_host *h = &t->hosts[i];
	const struct kx_calls_totals *totals;
	struct opened o;
	int r = open_trace(&o, h->path, NULL, err);

	if (r)
		return r;
	if (!t->quiet)
		kx_trace_input_warn(&o.input, NAME, "merged");
	totals = kx_calls_get_totals(o.calls);
	r = kx_merge_host_read(h, o.session, kx_fdr_get_info(o.input.file), totals->first_tsc,
			       totals->last_tsc, err);
	close_trace(&o);
	return r;
}

int kx_merge_traces_read(struct kx_merge_traces *t, char *const *paths, struct kx_err *err)
{
	int r = 0;

	for (t->n = 0; paths[t->n];)
		t->n++;
	t->hosts = calloc(t->n + 1, sizeof(*t->hosts));
	t->calls = calloc(t->n + 1, sizeof(*t->calls));
	if (!t->hosts || !t->calls)
		return kx_err_set(err, -ENOMEM, "out of memory for the traces");
	for (size_t i = 0; i < t->n && !r; i++) {
		t->hosts[i].path = paths[i];
		r = read_trace(t, i, err);
	}
	return r ? r : kx_merge_hosts_align(t->hosts, t->n, err);
}

void kx_merge_traces_free(struct kx_merge_traces *t)
{
	free(t->hosts);
	free(t->calls);
}

int kx_merge_traces_place(struct kx_merge_traces *t, struct kx_err *err)
{
	int r = kx_merge_hosts_lines(t->hosts, t->n, false, err);

	t->zero = UINT64_MAX;
	for (size_t i = 0; i < t->n && !r; i++) {
		uint64_t ns = kx_time_line_ns(&t->hosts[i].line, t->hosts[i].first_tsc);

		t->zero = ns < t->zero ? ns : t->zero;
	}
	return r;
}

/* The filter's times for trace @i, which begins @later than the first of all. */
static struct kx_call_filter filter_of(const struct kx_merge_traces *t, size_t i)
{
	struct kx_call_filter f = *t->filter;
	struct kx_merge_host own = t->hosts[i];
	int64_t shift = kx_merge_hosts_shift(t->hosts, t->n, i);
	uint64_t later = 0;

	if ((f.from_ns || f.to_ns) && kx_time_line_init(&own.line, &own.snapshots, own.tsc_hz,
							shift, own.first_tsc, own.last_tsc))
		later = kx_time_line_ns(&own.line, own.first_tsc) - t->zero;
	f.from_ns = f.from_ns > later ? f.from_ns - later : 0;
	if (f.to_ns)
		f.to_ns = f.to_ns > later ? f.to_ns - later : 1; /* nothing of it: 0 would be all */
	return f;
}

/* Pairs of calls */

struct collect {
	struct kx_merge_calls *calls;
	struct kx_time_line *line;
	bool is_client;
	struct kx_err *err;
};

static int on_leave(void *ctx, struct kx_call_thread *thread, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	struct collect *c = ctx;
	uint64_t leave = kx_time_line_ns(c->line, tsc);

	(void)thread;
	if (!call->outermost)
		return 0;
	/* an end that is not known bounds nothing */
	if (!kx_leave_is_measured(how))
		leave = c->is_client ? INT64_MAX / 2 : 0;
	if (kx_merge_calls_add(c->calls, kx_time_line_ns(c->line, call->enter), leave))
		return kx_err_set(c->err, -ENOMEM, "out of memory for the calls of --pair");
	return 0;
}

/* All calls that @pattern names; *@machine: the first trace of the one whose they are. */
static int collect(struct kx_merge_traces *t, const char *pattern, bool is_client,
		   struct kx_merge_calls *calls, size_t *machine, struct kx_err *err)
{
	struct collect c = { .calls = calls, .is_client = is_client, .err = err };
	const struct kx_call_visitor visitor = { .leave = on_leave, .ctx = &c };
	int r = 0;

	*machine = t->n;
	for (size_t i = 0; i < t->n && !r; i++) {
		struct kx_call_filter filter = filter_of(t, i);
		size_t before = calls->n;
		struct opened o;

		filter.include = &pattern;
		filter.ninclude = 1;
		r = open_trace(&o, t->hosts[i].path, &filter, err);
		if (r)
			break;
		c.line = &t->hosts[i].line;
		r = kx_calls_walk(o.calls, KX_ORDER_THREAD, &visitor, NULL, NULL, err);
		close_trace(&o);
		if (r || calls->n == before)
			continue;
		if (*machine < t->n && *machine != t->hosts[i].same)
			return kx_err_set(
				err, -EINVAL,
				"'%s' is called on %s and on %s; a side of a pair is one host",
				pattern, t->hosts[*machine].machine, t->hosts[i].machine);
		*machine = t->hosts[i].same;
	}
	if (!r && *machine == t->n)
		r = kx_err_set(err, -EINVAL, "no trace has calls of '%s'", pattern);
	return r;
}

static int bound(struct kx_merge_traces *t, const char *client, const char *server,
		 struct kx_merge_bound *out, struct kx_err *err)
{
	struct kx_merge_calls of_client = { 0 }, of_server = { 0 };
	int r = collect(t, client, true, &of_client, &out->client, err);

	if (!r)
		r = collect(t, server, false, &of_server, &out->server, err);
	if (!r && out->client == out->server)
		r = kx_err_set(err, -EINVAL,
			       "'%s' and '%s' are both called on %s, which has one clock", client,
			       server, t->hosts[out->client].machine);
	if (!r)
		r = kx_merge_pair(&of_client, &of_server, &out->least, &out->most, err);
	out->calls = of_client.n;
	kx_merge_calls_free(&of_client);
	kx_merge_calls_free(&of_server);
	return r;
}

int kx_merge_traces_pair(struct kx_merge_traces *t, const char *text, struct kx_merge_bound *out,
			 struct kx_err *err)
{
	const char *equals = strchr(text, '=');
	char *client;
	int r;

	if (!equals || equals == text || !equals[1])
		return kx_err_set(err, -EINVAL,
				  "--pair takes CLIENT=SERVER, a function that waits for an answer "
				  "and the one that makes it, not '%s'",
				  text);
	client = strndup(text, (size_t)(equals - text));
	if (!client)
		return kx_err_set(err, -ENOMEM, "out of memory");
	r = kx_merge_traces_place(t, err);
	if (!r)
		r = bound(t, client, equals + 1, out, err);
	free(client);
	if (r)
		return r == -ENOMEM ? r : kx_err_prefix(err, "--pair %s", text);
	out->offset = kx_merge_pair_offset(out->least, out->most);
	kx_merge_hosts_move(t->hosts, t->n, out->server, out->offset);
	return 0;
}

/* Writing */

static void print_notice(const struct kx_export *x, const char *text)
{
	const struct kx_merge_traces *t = x->options_ctx;

	if (!t->quiet)
		kx_print(stderr, "kxray " NAME ": %s\n", text);
}

static const char *no_option(const struct kx_export *x, const char *name)
{
	(void)x;
	(void)name;
	return NULL;
}

int kx_merge_traces_write(void *ctx, size_t which, const struct kx_exporter *format,
			  const struct kx_export_place *place, int fd, uint32_t *threads,
			  struct kx_err *err)
{
	static struct kx_text_out out;
	struct kx_merge_traces *t = ctx;
	struct kx_call_filter filter = filter_of(t, which);
	struct kx_export x = { .out = &out,
			       .option = no_option,
			       .options_ctx = t,
			       .notice = print_notice,
			       .place = place,
			       .raw = filter.raw };
	struct opened o;
	int r = open_trace(&o, t->hosts[which].path, &filter, err), written;

	if (r)
		return r;
	x.file = o.input.file;
	x.info = kx_fdr_get_info(o.input.file);
	x.names = &o.input.names;
	x.calls = o.calls;
	x.session = o.input.names.has_map ? o.input.names.map.session : NULL;
	x.tsc_hz = t->hosts[which].tsc_hz;
	*threads = (uint32_t)kx_calls_nthreads(o.calls);
	kx_text_init(&out, fd);
	r = format->run(&x, err);
	written = kx_text_flush(&out);
	if (written)
		r = kx_err_set(err, written, "the output cannot be written: %s",
			       strerror(-written));
	t->calls[which] = kx_calls_get_totals(o.calls)->calls;
	close_trace(&o);
	return r;
}
