// SPDX-License-Identifier: BSD-2-Clause
#include "collect/flight_dump.h"

#include <errno.h>
#include <string.h>

#include "collect/record_sink.h"

/* Bytes in all open buffers together; above this, all are written. */
#define MAX_BUFFERED (16u << 20)

struct dumper {
	struct kx_fdr_writer *writer;
	struct kx_thread_table *threads;
	struct kx_callstack_counts calls;
	struct kx_flight_dump_counts *out;
};

static int on_gap(struct dumper *d, const struct kx_wire_record *rec, const uint64_t *payload)
{
	struct kx_thread *thread = kx_thread_table_get(d->threads, rec->tid);

	if (!thread)
		return -ENOMEM;
	d->out->lost += payload[1] + payload[2];
	return kx_thread_push_gap(thread, payload[1], payload[2], payload[0], rec->clock, rec->cpu);
}

static int on_record(void *ctx, const struct kx_wire_record *rec, const uint64_t *payload)
{
	struct dumper *d = ctx;
	int code;

	if (rec->kind == KX_EVENT_LOSS)
		return on_gap(d, rec, payload);
	if (KX_EVENT_IS_CALL(rec->kind)) {
		if (!d->out->first || rec->clock < d->out->first)
			d->out->first = rec->clock;
		if (rec->clock > d->out->last)
			d->out->last = rec->clock;
	}
	code = kx_collect_record(d->threads, rec, rec->clock, payload);
	return code < 0 ? code : 0;
}

static int release(struct dumper *d, uint64_t watermark)
{
	size_t released = 0;

	return kx_thread_table_release(d->threads, watermark, &d->calls, &d->out->migrations,
				       &released);
}

static int on_watermark(void *ctx, uint64_t tsc)
{
	struct dumper *d = ctx;
	int code = release(d, tsc);

	if (!code && kx_fdr_writer_memory(d->writer) > MAX_BUFFERED)
		code = kx_fdr_flush(d->writer, NULL);
	return code;
}

static int write_all(struct dumper *d, const struct kx_flight_dump *dump, struct kx_err *err)
{
	const struct kx_flight_reader reader = { .record = on_record,
						 .watermark = on_watermark,
						 .ctx = d };
	int code = kx_flight_store_replay(dump->store, dump->from, dump->to, &reader);

	if (!code)
		code = release(d, UINT64_MAX);
	/* in a dump that is not final, such threads may have ended after dump->to */
	if (!code && dump->final)
		code = kx_thread_table_end_gone(d->threads);
	if (!code)
		code = release(d, UINT64_MAX);
	if (!code)
		code = kx_thread_table_end_sched(d->threads, dump->to);
	if (code == -ENOMEM)
		return kx_err_set(err, code, "no memory to put the dump in order");
	/* also reports an earlier error of the file */
	return kx_fdr_finish(d->writer, 0, err);
}

int kx_flight_dump_write(int fd, const struct kx_flight_dump *dump,
			 struct kx_flight_dump_counts *out, struct kx_err *err)
{
	struct kx_fdr_options options = dump->fdr;
	struct kx_thread_options threads = dump->threads;
	struct dumper d = { .out = out };
	int code;

	memset(out, 0, sizeof(*out));
	options.tsc_hz = dump->tsc_hz;
	options = kx_fdr_options_at(&options, dump->from);
	code = kx_fdr_writer_new(fd, &options, &d.writer, err);
	if (code)
		return code;
	threads.writer = d.writer;
	d.threads = kx_thread_table_new(&threads);
	code = d.threads ? write_all(&d, dump, err) : kx_err_set(err, -ENOMEM, "no memory for the dump");
	out->events = kx_fdr_writer_hits(d.writer);
	out->entries = d.calls.entries;
	out->exits = d.calls.exits;
	out->repaired = d.calls.repaired;
	out->orphans = d.calls.orphans;
	out->lost += d.calls.orphans_of_loss;
	out->threads = kx_fdr_writer_threads(d.writer);
	out->bytes = kx_fdr_writer_bytes(d.writer);
	kx_thread_table_free(d.threads);
	kx_fdr_writer_free(d.writer);
	return code;
}
