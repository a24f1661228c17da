// SPDX-License-Identifier: BSD-2-Clause
/* kxray dump: every record of a trace, one a line, in the order of the file. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_text.h"
#include "base/printable.h"
#include "base/text_out.h"
#include "cmd/cmd.h"
#include "cmd/commands.h"
#include "cmd/trace_input.h"
#include "trace/address_space.h"
#include "trace/values.h"

#define NAME "dump"

struct arguments {
	struct kx_trace_input trace;
	bool json;
};

static const struct kx_option options[] = {
	KX_TRACE_MAP_OPTION(struct arguments, trace),
	{ .name = "json", .kind = KX_OPTION_FLAG, KX_FIELD(struct arguments, json),
	  .help = "one JSON object a line; data that is not text comes as 'data_hex'" },
	KX_HELP_OPTION,
	{ 0 },
};

static const struct kx_option_group groups[] = { { .options = options }, { 0 } };

static const struct kx_example examples[] = {
	{ "kxray dump trace.xray | less",
	  "read it record by record" },
	{ "kxray dump --json trace.xray | jq 'select(.kind == \"custom\")'",
	  "the notes only" },
	{ 0 },
};

const struct kx_command kx_command_dump = {
	.name = NAME,
	.summary = "print every record of a trace",
	.usage = "Usage: kxray dump [OPTION...] FILE\n"
		 "Prints every record of a trace, one a line, in the order of the file: its offset, thread,\n"
		 "CPU, clock in ticks, time since the trace's start, and its content. FILE is any XRay\n"
		 "trace, '-' standard input.\n",
	.groups = groups,
	.examples = examples,
	.operands = KX_OPERANDS_ONE,
	.operand = offsetof(struct arguments, trace.path),
	.run = kx_cmd_dump,
};

struct dump {
	struct kx_fdr_file *file;
	const struct kx_fdr_info *info;
	int32_t *ns_pids; /* by thread: the process id in its own namespace + 1; 0: not looked up */
	struct kx_symbolizer *names;
	bool has_callers; /* an entry's last argument is its return address */
	struct kx_address_space space; /* then: to look it up in */
	struct kx_text_out *out;
	struct kx_value_map values;
	struct kx_value_payload *pending; /* by thread: values of its next entry or exit */
};

static const char *const kinds[] = {
	[KX_RECORD_ENTRY] = "entry", [KX_RECORD_EXIT] = "exit",
	[KX_RECORD_TAIL_EXIT] = "tail-exit", [KX_RECORD_CUSTOM] = "custom",
	[KX_RECORD_TYPED] = "typed", [KX_RECORD_CPU] = "cpu", [KX_RECORD_WRAP] = "wrap",
	[KX_RECORD_BUFFER] = "buffer", [KX_RECORD_END] = "end",
};

static bool is_function(const struct kx_fdr_record *rec)
{
	return rec->kind <= KX_RECORD_TAIL_EXIT;
}

/* Time since the trace's start with its sign; *@negative for records older than that. */
static uint64_t since_start(const struct dump *d, const struct kx_fdr_record *rec, bool *negative)
{
	uint64_t start = d->info->start_tsc;

	*negative = rec->tsc < start;
	return kx_trace_ns(*negative ? start - rec->tsc : rec->tsc - start, d->info->tsc_hz);
}

/* The id of the record's process in its own pid namespace; 0: the same, or not known. */
static int32_t ns_pid_of(const struct dump *d, const struct kx_fdr_record *rec)
{
	int32_t *known = &d->ns_pids[rec->thread];

	if (!*known) {
		struct kx_note note;

		*known = 1;
		if (kx_trace_first_note(d->file, rec->thread, KX_NOTE_THREAD, &note)) {
			*known = note.thread.ns_pid + 1;
			kx_note_release(&note);
		}
	}
	return *known - 1;
}

/* That in which an instant happened, by its note's "function". */
static void print_function(const struct dump *d, const struct kx_fdr_record *rec)
{
	const uint8_t *body;
	const char *name;
	uint64_t func;
	uint32_t size;
	json_t *note;

	if (kx_note_find(rec, &body, &size) != KX_NOTE_UNKNOWN || !body)
		return;
	note = json_loadb((const char *)body, size, JSON_DISABLE_EOF_CHECK, NULL);
	func = kx_note_number(note, "function");
	json_decref(note);
	if (!func || func > UINT32_MAX)
		return;
	name = kx_trace_name(d->names, (uint32_t)func);
	kx_text_bytes(d->out, " in ", 4);
	kx_text_escaped(d->out, name, strlen(name));
}

/* The function that made this call, from its last argument; NULL if that is not known. */
static const char *caller_of(struct dump *d, const struct kx_fdr_record *rec, const char **module)
{
	uint64_t address;
	uint32_t index;

	if (!d->has_callers || rec->kind != KX_RECORD_ENTRY || !rec->nargs)
		return NULL;
	address = rec->args[rec->nargs - 1];
	index = kx_address_space_find(&d->space, rec->pid, &address);
	*module = index ? d->names->map.modules[index - 1].name : "";
	return kx_trace_caller(d->names, index, address);
}

static void print_caller(struct dump *d, const struct kx_fdr_record *rec)
{
	const char *module, *name = caller_of(d, rec, &module);

	if (!name)
		return;
	kx_text_str(d->out, " called by ");
	kx_text_escaped(d->out, name, strlen(name));
	kx_text_bytes(d->out, " [", 2);
	kx_text_escaped(d->out, module, strlen(module));
	kx_text_char(d->out, ']');
}

/* Keeps the values that @rec, a note, has for the thread's next entry or exit. */
static void keep_values(const struct dump *d, const struct kx_fdr_record *rec)
{
	const uint8_t *body;
	uint32_t size;

	if (d->values.n && kx_note_find(rec, &body, &size) == KX_NOTE_CALL_VALUES)
		d->pending[rec->thread] = (struct kx_value_payload){ body, size & ~7u };
}

/* Values of the entry or exit @rec; returns how many. */
static size_t take_values(const struct dump *d, const struct kx_fdr_record *rec, struct kx_shown_value *v)
{
	const struct kx_function_values *f = d->values.n ? kx_value_map_find(&d->values, rec->func) : NULL;
	const struct kx_value_payload own = d->pending[rec->thread], none = { 0 };
	bool exit = rec->kind == KX_RECORD_EXIT;
	size_t n = 0, all;

	d->pending[rec->thread].size = 0;
	if (!f || rec->kind == KX_RECORD_TAIL_EXIT)
		return 0;
	all = kx_values_read(f, exit ? &none : &own, exit ? &own : &none, exit, v);
	for (size_t i = 0; i < all; i++)
		if (v[i].described->exit == exit)
			v[n++] = v[i];
	return n;
}

static void print_values(const struct dump *d, const struct kx_fdr_record *rec)
{
	struct kx_shown_value v[KX_MAX_VALUES];
	size_t n = take_values(d, rec, v);

	kx_text_str(d->out, n ? " {" : "");
	kx_values_put_text(d->out, v, n);
	kx_text_str(d->out, n ? "}" : "");
}

/* An entry or an exit. */
static void print_call(struct dump *d, const struct kx_fdr_record *rec)
{
	const char *module = kx_trace_module(d->names, rec->func), *name;
	struct kx_text_out *o = d->out;
	char text[24];
	int n;

	name = kx_trace_name(d->names, rec->func);
	kx_text_escaped(o, name, strlen(name));
	for (unsigned i = 0; i < rec->nargs; i++) {
		n = snprintf(text, sizeof(text), "%s0x%" PRIx64, i ? ", " : " (", rec->args[i]);
		kx_text_bytes(o, text, (size_t)n);
	}
	if (rec->nargs)
		kx_text_char(o, ')');
	print_values(d, rec);
	if (*module) {
		kx_text_bytes(o, " [", 2);
		kx_text_escaped(o, module, strlen(module));
		kx_text_char(o, ']');
	}
	print_caller(d, rec);
}

static void print_text(struct dump *d, const struct kx_fdr_record *rec)
{
	struct kx_text_out *o = d->out;
	char text[160], relative[24];
	bool negative;
	uint64_t since = since_start(d, rec, &negative);
	int n;

	snprintf(relative, sizeof(relative), "%c%" PRIu64, negative ? '-' : '+', since);
	if (rec->kind == KX_RECORD_BUFFER)
		n = snprintf(text, sizeof(text), "%10" PRIu64 "  tid %-8d cpu %-5s %20s %21s     ",
			     rec->offset, rec->tid, "-", "-", "-");
	else
		n = snprintf(text, sizeof(text), "%10" PRIu64 "  tid %-8d cpu %-5u %20" PRIu64
			     " %21s %s  ", rec->offset, rec->tid, rec->cpu, rec->tsc, relative,
			     d->info->tsc_hz ? "ns" : "  ");
	kx_text_bytes(o, text, (size_t)n);
	kx_text_field(o, rec->kind == KX_RECORD_CPU || rec->kind == KX_RECORD_WRAP ||
		      rec->kind == KX_RECORD_END ? 0 : -10, kinds[rec->kind],
		      strlen(kinds[rec->kind]));
	if (is_function(rec)) {
		print_call(d, rec);
	} else if (rec->kind == KX_RECORD_BUFFER) {
		int32_t ns_pid = ns_pid_of(d, rec);

		n = snprintf(text, sizeof(text), "pid %d ", rec->pid);
		kx_text_bytes(o, text, (size_t)n);
		n = snprintf(text, sizeof(text), "(%d in its namespace) ", ns_pid);
		kx_text_bytes(o, text, ns_pid ? (size_t)n : 0);
		n = snprintf(text, sizeof(text), "wall %" PRIu64 ".%06" PRIu32, rec->wall_sec,
			     rec->wall_usec);
		kx_text_bytes(o, text, (size_t)n);
	} else if (rec->data) {
		if (rec->kind == KX_RECORD_TYPED)
			n = snprintf(text, sizeof(text), "type %u, %" PRIu32 " bytes \"",
				     rec->event_type, rec->size);
		else
			n = snprintf(text, sizeof(text), "%" PRIu32 " bytes \"", rec->size);
		kx_text_bytes(o, text, (size_t)n);
		keep_values(d, rec);
		kx_text_escaped(o, rec->data, rec->size);
		kx_text_char(o, '"');
		print_function(d, rec);
	}
	kx_text_char(o, '\n');
}

static void json_data(struct kx_text_out *o, const struct kx_fdr_record *rec)
{
	static const char hex[] = "0123456789abcdef";
	json_t *text = json_stringn((const char *)rec->data, rec->size);

	kx_text_json_u64(o, "size", rec->size);
	if (text && !memchr(rec->data, 0, rec->size)) {
		kx_text_str(o, ",\"data\":");
		kx_text_json_string(o, json_string_value(text));
	} else {
		kx_text_str(o, ",\"data_hex\":\"");
		for (uint32_t i = 0; i < rec->size; i++) {
			kx_text_char(o, hex[rec->data[i] >> 4]);
			kx_text_char(o, hex[rec->data[i] & 15]);
		}
		kx_text_char(o, '"');
	}
	json_decref(text);
}

static void json_caller(struct dump *d, const struct kx_fdr_record *rec)
{
	const char *module, *name = caller_of(d, rec, &module);

	if (!name)
		return;
	kx_text_str(d->out, ",\"caller_function\":");
	kx_text_json_string(d->out, name);
	kx_text_str(d->out, ",\"caller_module\":");
	kx_text_json_string(d->out, module);
}

static void print_json(struct dump *d, const struct kx_fdr_record *rec)
{
	struct kx_text_out *o = d->out;
	char text[140];
	bool negative;
	uint64_t since = since_start(d, rec, &negative);
	int n;

	n = snprintf(text, sizeof(text),
		     "{" KX_JSON_SCHEMA_TEXT ",\"offset\":%" PRIu64 ",\"kind\":\"%s\",\"pid\":%d,"
		     "\"tid\":%d",
		     rec->offset, kinds[rec->kind], rec->pid, rec->tid);
	kx_text_bytes(o, text, (size_t)n);
	if (rec->kind == KX_RECORD_BUFFER) {
		int32_t ns_pid = ns_pid_of(d, rec);

		if (ns_pid)
			kx_text_json_u64(o, "ns_pid", (uint64_t)ns_pid);
		kx_text_json_u64(o, "wall_sec", rec->wall_sec);
		kx_text_json_u64(o, "wall_usec", rec->wall_usec);
	} else {
		kx_text_json_u64(o, "cpu", rec->cpu);
		kx_text_json_u64(o, "tsc", rec->tsc);
		n = snprintf(text, sizeof(text), ",\"%s\":%s%" PRIu64,
			     d->info->tsc_hz ? "ns" : "ticks", negative && since ? "-" : "", since);
		kx_text_bytes(o, text, (size_t)n);
	}
	if (is_function(rec)) {
		kx_text_json_u64(o, "id", rec->func);
		kx_text_str(o, ",\"function\":");
		kx_text_json_string(o, kx_trace_name(d->names, rec->func));
		kx_text_str(o, ",\"module\":");
		kx_text_json_string(o, kx_trace_module(d->names, rec->func));
	}
	/* As text: they may be larger than what JSON readers take for a number. */
	for (unsigned i = 0; i < rec->nargs; i++) {
		n = snprintf(text, sizeof(text), "%s\"0x%" PRIx64 "\"%s", i ? "," : ",\"args\":[",
			     rec->args[i], i + 1 == rec->nargs ? "]" : "");
		kx_text_bytes(o, text, (size_t)n);
	}
	json_caller(d, rec);
	if (is_function(rec)) {
		struct kx_shown_value v[KX_MAX_VALUES];
		size_t nvalues = take_values(d, rec, v);

		if (nvalues) {
			kx_text_str(o, ",\"values\":");
			kx_values_put_json(o, v, nvalues);
		}
	}
	if (rec->kind == KX_RECORD_TYPED)
		kx_text_json_u64(o, "type", rec->event_type);
	if (rec->kind == KX_RECORD_CUSTOM)
		keep_values(d, rec);
	if (rec->data)
		json_data(o, rec);
	kx_text_str(o, "}\n");
}

static int dump_records(const struct arguments *a, struct dump *d, struct kx_fdr_file *f,
			struct kx_err *err)
{
	struct kx_fdr_cursor *c;
	struct kx_fdr_record rec;
	int r = kx_fdr_file_cursor(f, &c), e;

	if (r)
		return kx_err_set(err, r, "out of memory");
	while (!d->out->error && (r = kx_fdr_next(c, &rec, err)) > 0) {
		if (a->json)
			print_json(d, &rec);
		else
			print_text(d, &rec);
	}
	kx_fdr_cursor_free(c);
	e = kx_text_flush(d->out);
	if (e == -EPIPE) /* the reader (head, less) closed the pipe */
		return 0;
	if (e)
		return kx_err_set(err, e, "standard output cannot be written: %s", strerror(-e));
	return r < 0 ? r : 0;
}

static int dump_file(struct arguments *a, struct kx_err *err)
{
	struct kx_text_out out;
	struct kx_trace_input *t = &a->trace;
	struct dump d = { .names = &t->names, .out = &out };
	int r = kx_trace_input_open(t, true, err);

	if (!r) {
		d.file = t->file;
		d.info = kx_fdr_get_info(t->file);
		d.ns_pids = calloc(kx_fdr_nthreads(t->file) + 1, sizeof(*d.ns_pids));
		d.has_callers = t->names.has_map &&
				json_is_true(json_object_get(t->names.map.session, "callers"));
		kx_text_init(&out, STDOUT_FILENO);
		d.pending = calloc(kx_fdr_nthreads(t->file) + 1, sizeof(*d.pending));
		r = kx_address_space_init(&d.space, d.has_callers ? &t->names.map : NULL);
		if (r || !d.ns_pids || !d.pending ||
		    kx_value_map_read(&d.values, t->names.has_map ? t->names.map.session : NULL))
			r = kx_err_set(err, -ENOMEM, "out of memory");
		else
			r = dump_records(a, &d, t->file, err);
		kx_value_map_free(&d.values);
		kx_address_space_free(&d.space);
		free(d.pending);
		free(d.ns_pids);
	}
	if (!r && d.info->truncated)
		kx_print(stderr,
			 "kxray " NAME ": %s: the trace ends inside a buffer, as after an "
			 "interrupted recording; nothing from offset %" PRIu64 " on can be read\n",
			 t->path, d.info->truncated_at);
	kx_trace_input_close(t);
	return r;
}

int kx_cmd_dump(int argc, char **argv)
{
	struct arguments a = { 0 };
	struct kx_err err = { 0 };
	int r = kx_options_parse(&kx_command_dump, &a, argc, argv, &err);

	if (!r)
		r = kx_trace_input_check(&a.trace, &err);
	if (r)
		return kx_cmd_end_parse(&kx_command_dump, r, &err);
	signal(SIGPIPE, SIG_IGN);
	return dump_file(&a, &err) ? kx_cmd_fail(NAME, &err) : KX_EXIT_DONE;
}
