// SPDX-License-Identifier: BSD-2-Clause
/* Traces of any version, exported as another. Include it after cmocka's headers. */
#ifndef KX_TEST_EXPORT_XRAY_RIG_H
#define KX_TEST_EXPORT_XRAY_RIG_H

#include <inttypes.h>

#include "export_run.h"
#include "fdr_bytes.h"
#include "llvm_xray.h"

extern const struct kx_exporter kx_exporter_xray;

/* All calls of a visitor for a trace, as text; process ids only with @pids. */
struct dump {
	FILE *to;
	bool pids;
};

static inline int dump_thread(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	const struct dump *s = ctx;

	return fprintf(s->to, "%" PRIu64 " thread %d/%d %s %s\n", tsc, s->pids ? t->pid : 0, t->tid,
		       t->name, t->process) < 0;
}

static inline int dump_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	const struct dump *s = ctx;

	fprintf(s->to, "%" PRIu64 " %d>%u cpu %u", call->enter, t->tid, call->func, call->cpu);
	for (unsigned i = 0; i < call->nargs; i++)
		fprintf(s->to, " %" PRIx64, call->args[i]);
	if (call->has_caller)
		fprintf(s->to, " from %" PRIx64, call->caller);
	return fputc('\n', s->to) < 0;
}

static inline int dump_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
			     enum kx_leave how)
{
	const struct dump *s = ctx;

	fprintf(s->to, "%" PRIu64 " %d<%u %d", tsc, t->tid, call->func, how);
	if (call->has_result)
		fprintf(s->to, " = %" PRId64, call->result);
	return fputc('\n', s->to) < 0;
}

static inline int dump_cpu(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t cpu)
{
	const struct dump *s = ctx;

	return fprintf(s->to, "%" PRIu64 " %d cpu %u\n", tsc, t->tid, cpu) < 0;
}

static inline int dump_loss(void *ctx, struct kx_call_thread *t, uint64_t from, uint64_t to,
			    uint64_t entries, uint64_t exits)
{
	const struct dump *s = ctx;

	return fprintf(s->to, "%d lost %" PRIu64 "..%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", t->tid,
		       from, to, entries, exits) < 0;
}

/* Without the blanks with which version 1 pads payloads. */
static inline int dump_event(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t type,
			     const uint8_t *data, uint32_t size)
{
	const struct dump *s = ctx;

	(void)type;
	while (size && data[size - 1] == ' ')
		size--;
	return fprintf(s->to, "%" PRIu64 " %d event %.*s\n", tsc, t->tid, (int)size, data) < 0;
}

static inline int dump_sample(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint64_t ip)
{
	const struct dump *s = ctx;

	return fprintf(s->to, "%" PRIu64 " %d at %" PRIx64 "\n", tsc, t->tid, ip) < 0;
}

static inline char *dump_of(const char *path, const char *map, const struct kx_call_filter *filter,
			    bool pids, struct kx_calls_totals *totals)
{
	struct dump s = { .pids = pids };
	const struct kx_call_visitor v = {
		.thread = dump_thread, .enter = dump_enter, .leave = dump_leave, .cpu = dump_cpu,
		.loss = dump_loss, .event = dump_event, .sample = dump_sample, .ctx = &s,
	};
	struct kx_symbolizer names;
	struct kx_fdr_file *f = NULL;
	struct kx_calls *calls = NULL;
	struct kx_err err = { 0 };
	char *text = NULL;
	size_t size;

	s.to = open_memstream(&text, &size);
	assert_non_null(s.to);
	if (kx_fdr_open(path, &f, &err) || kx_symbolizer_open(path, map, &names, &err) ||
	    kx_calls_new(f, &names, filter, &calls, &err) ||
	    kx_calls_walk(calls, KX_ORDER_THREAD, &v, NULL, NULL, &err))
		fail_msg("%s", err.text);
	if (totals)
		*totals = *kx_calls_get_totals(calls);
	kx_calls_free(calls);
	kx_symbolizer_free(&names);
	kx_fdr_close(f);
	fclose(s.to);
	return text;
}

/* Exports the trace in @version; the text must stay the same. */
static inline void check_export(const char *version, const char *text, bool pids, bool run_llvm)
{
	char option[32], *again;
	const char *const options[] = { option, NULL };
	struct exported e;

	sprintf(option, "xray-version=%s", version);
	run_export(&kx_exporter_xray, options, NULL, false, &e);
	assert_int_equal(e.result, 0);
	assert_int_equal(e.data[0], version[0] - '0');
	again = dump_of(output_path, NULL, NULL, pids && version[0] >= '3', NULL);
	if (strcmp(text, again))
		fail_msg("version %s:\n%.1500s\nbecame\n%.1500s", version, text, again);
	if (run_llvm)
		llvm_xray_accepts(output_path, NULL, 1);
	free(again);
	free_export(&e);
}

static inline void check_all_versions(bool run_llvm)
{
	char *with = dump_of(trace_path, NULL, NULL, true, NULL);
	char *without = dump_of(trace_path, NULL, NULL, false, NULL);

	check_export("1", without, false, run_llvm);
	check_export("2", without, false, run_llvm);
	check_export("3", with, true, run_llvm);
	check_export("4", with, true, run_llvm);
	check_export("5", with, true, run_llvm);
	free(with);
	free(without);
}

/* Every kind of record that is kept, limits included, from one version to any other. */
static inline void put_everything(struct bytes *b, unsigned version)
{
	header(b, version, 1, 3000000000u, 4096);
	preamble(b, version, 12, 70001, 65535, 5000);
	custom(b, version, version < 5 ? 5000 : 0, 0, "kxray:thread {\"tid\":70001,\"pid\":12,"
	       "\"name\":\"\\u00e4 \\\"x\\\"\",\"process\":\"p,;q\"}    ");
	function(b, ENTRY, (1u << 28) - 1, 4294967295u);
	tsc_wrap(b, 9000000000u);
	function(b, ENTRY_ARGS, 2, 10);
	for (uint64_t i = 1; i <= 7; i++)
		call_argument(b, i << 60);
	function(b, TAIL_EXIT, 2, 20);
	custom(b, version, version < 5 ? 9000000030 : 0, 65535, "mine 16 bytes...");
	new_cpu(b, 0, 9000000060u);
	custom(b, version, version < 5 ? 9000000060 : 0, 0, "kxray:loss {\"entries\":1,\"exits\":2,"
	       "\"from\":9000000040,\"to\":9000000060}    ");
	custom(b, version, version < 5 ? 9000000060 : 0, 0, "kxray:sample {\"ip\":\"0x7fff12345678"
	       "9abc\"}     ");
	function(b, ENTRY, 3, 1);
	function(b, ENTRY, 4, 1);
	custom(b, version, version < 5 ? 9000000062 : 0, 0, "kxray:repaired {\"exits\":2}    ");
	function(b, EXIT, 4, 8);
	function(b, EXIT, 3, 0);
	custom(b, version, version < 5 ? 9000000070 : 0, 0, "kxray:result {\"value\":-2}       ");
	function(b, EXIT, (1u << 28) - 1, 30);
	function(b, ENTRY, 5, 30); /* stays open */
	end_block(b, version);
}

#endif
