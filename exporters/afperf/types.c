// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/afperf/types.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/labels.h"

/* Units: "text" goes with strings only, "count" with numbers only. */
static const struct {
	const char *name, *datatype, *units, *summary;
} types[] = {
	[KX_AFPERF_HOST] = { "Execution hostname", "string", "text", "" },
	[KX_AFPERF_OS] = { "Operating System", "string", "text", "" },
	[KX_AFPERF_OS_VERSION] = { "Operating System Version", "string", "text", "" },
	[KX_AFPERF_ARCHITECTURE] = { "Architecture", "string", "text", "" },
	[KX_AFPERF_CPU_MODEL] = { "CPU Model", "string", "text", "" },
	[KX_AFPERF_CORES] = { "Processing Cores", "int32", "count",
			      "CPUs online as the system counts them" },
	[KX_AFPERF_RAM] = { "System Available RAM", "int64", "B", "All memory of the system" },
	[KX_AFPERF_STARTED] = { "Profiling Start", "string", "text", "ISO 8601" },
	[KX_AFPERF_FINISHED] = { "Profiling Finish", "string", "text", "ISO 8601" },
	[KX_AFPERF_COMMAND] = { "Command Line", "string", "text", "Quoted as for a shell" },
	[KX_AFPERF_LOST] = { "Lost Events", "int64", "count",
			     "Function entries and exits missing in a gap that ends here" },
	[KX_AFPERF_EVENT] = { "Event", "string", "text",
			      "Custom and typed events of the program" },
	[KX_AFPERF_CPU] = { "CPU", "int32", "count",
			    "Number of the CPU at the call's start and end" },
	[KX_AFPERF_RETURN] = { "Return Address", "string", "text", "Where the call returns to" },
	[KX_AFPERF_RETURN_MODULE] = { "Return Module", "string", "text",
				      "Module of the return address, if not the function's own" },
	[KX_AFPERF_LEFT] = { "Ended By", "string", "text",
			     "How a call ended, if not by a return: tail, repaired or open" },
	[KX_AFPERF_ARGUMENT] = { "Argument 1", "string", "text", "" },
	{ "Argument 2", "string", "text", "" },
	{ "Argument 3", "string", "text", "" },
	{ "Argument 4", "string", "text", "" },
	{ "Argument 5", "string", "text", "" },
	{ "Argument 6", "string", "text", "" },
	{ "Argument 7", "string", "text", "" },
	{ "Argument 8", "string", "text", "" },
};

_Static_assert(sizeof(types) / sizeof(types[0]) == KX_AFPERF_TYPES, "every type has its text");

static uint64_t define(struct kx_afperf_writer *w, struct kx_afperf_run *run, const char *name,
		       const char *datatype, const char *units, const char *summary,
		       const char *description, uint64_t ns)
{
	uint64_t id = (*run->next_type)++;

	kx_afperf_begin(w, KX_AFPERF_MEASUREMENT_TYPE);
	kx_afperf_number(w, ns);
	kx_afperf_number(w, run->id);
	kx_afperf_number(w, id);
	kx_afperf_text(w, name);
	kx_afperf_text(w, datatype);
	kx_afperf_text(w, units);
	kx_afperf_text(w, summary);
	kx_afperf_text(w, description);
	kx_afperf_end(w);
	return id;
}

uint64_t kx_afperf_type(struct kx_afperf_writer *w, struct kx_afperf_run *run,
			enum kx_afperf_type type, uint64_t ns)
{
	if (!run->types[type])
		run->types[type] = define(w, run, types[type].name, types[type].datatype,
					  types[type].units, types[type].summary, "", ns);
	return run->types[type];
}

uint64_t kx_afperf_new_type(struct kx_afperf_writer *w, struct kx_afperf_run *run, const char *name,
			    bool time, const char *summary, const char *description, uint64_t ns)
{
	return define(w, run, name, time ? "int64" : "int32", time ? "ns" : "count", summary,
		      description, ns);
}

static void begin_point(struct kx_afperf_writer *w, struct kx_afperf_run *run,
			enum kx_afperf_type type, uint64_t ns)
{
	uint64_t id = kx_afperf_type(w, run, type, ns);

	kx_afperf_begin(w, KX_AFPERF_RUN_POINT);
	kx_afperf_number(w, ns);
	kx_afperf_number(w, run->id);
	kx_afperf_number(w, id);
}

static void text_point(struct kx_afperf_writer *w, struct kx_afperf_run *run,
		       enum kx_afperf_type type, uint64_t ns, const char *text)
{
	if (!text || !*text)
		return;
	begin_point(w, run, type, ns);
	kx_afperf_text(w, text);
	kx_afperf_end(w);
}

/* A type of its own for each label. */
static int label_points(struct kx_afperf_writer *w, struct kx_afperf_run *run, const json_t *session)
{
	json_t *labels = kx_session_labels(session), *value;
	const char *key;
	uint64_t id;

	if (!labels)
		return -ENOMEM;
	json_object_del(labels, "host"); /* is "Execution hostname" */
	json_object_foreach (labels, key, value) {
		id = define(w, run, key, "string", "text", "Label of the recording", "", 0);
		kx_afperf_begin(w, KX_AFPERF_RUN_POINT);
		kx_afperf_number(w, 0);
		kx_afperf_number(w, run->id);
		kx_afperf_number(w, id);
		kx_afperf_text(w, json_string_value(value));
		kx_afperf_end(w);
	}
	json_decref(labels);
	return 0;
}

static void number_point(struct kx_afperf_writer *w, struct kx_afperf_run *run,
			 enum kx_afperf_type type, const json_t *value)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return;
	begin_point(w, run, type, 0);
	kx_afperf_number(w, (uint64_t)json_integer_value(value));
	kx_afperf_end(w);
}

static void write_word(FILE *f, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_@%+=:,./-";

	if (*word && !word[strspn(word, plain)]) {
		fputs(word, f);
		return;
	}
	putc('\'', f);
	for (; *word; word++) {
		if (*word == '\'')
			fputs("'\\''", f);
		else
			putc(*word, f);
	}
	putc('\'', f);
}

/* The command line of a process as one would type it; *@text NULL if not known. */
static int command_line(const json_t *process, char **text)
{
	const json_t *command = json_object_get(process, "command"), *word;
	size_t i, size;
	FILE *f;

	*text = NULL;
	if (!json_array_size(command))
		return 0;
	f = open_memstream(text, &size);
	if (!f)
		return -ENOMEM;
	json_array_foreach(command, i, word) {
		if (i)
			putc(' ', f);
		if (json_is_string(word))
			write_word(f, json_string_value(word));
	}
	if (fclose(f)) {
		free(*text);
		*text = NULL;
		return -ENOMEM;
	}
	return 0;
}

int kx_afperf_describe(struct kx_afperf_writer *w, struct kx_afperf_run *run,
		       const json_t *session, const json_t *process)
{
	static const struct {
		const char *key;
		enum kx_afperf_type type;
	} texts[] = {
		{ "name", KX_AFPERF_HOST },
		{ "system", KX_AFPERF_OS },
		{ "release", KX_AFPERF_OS_VERSION },
		{ "architecture", KX_AFPERF_ARCHITECTURE },
		{ "cpu_model", KX_AFPERF_CPU_MODEL },
	};
	const json_t *host = json_object_get(session, "host");
	char *command;
	int r;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		text_point(w, run, texts[i].type, 0,
			   json_string_value(json_object_get(host, texts[i].key)));
	number_point(w, run, KX_AFPERF_CORES, json_object_get(host, "cpus"));
	number_point(w, run, KX_AFPERF_RAM, json_object_get(host, "memory_bytes"));
	text_point(w, run, KX_AFPERF_STARTED, 0,
		   json_string_value(json_object_get(session, "started")));
	r = label_points(w, run, session);
	if (r)
		return r;
	r = command_line(process, &command);
	if (!r)
		text_point(w, run, KX_AFPERF_COMMAND, 0, command);
	free(command);
	return r;
}

void kx_afperf_describe_end(struct kx_afperf_writer *w, struct kx_afperf_run *run,
			    const json_t *session, uint64_t end_ns)
{
	text_point(w, run, KX_AFPERF_FINISHED, end_ns,
		   json_string_value(json_object_get(session, "finished")));
}
