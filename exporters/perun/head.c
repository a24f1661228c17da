// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/perun/head.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"

static json_t *command_of(const struct kx_export *x)
{
	json_t *process = json_array_get(json_object_get(x->session, "processes"), 0);

	return json_object_get(process, "command");
}

char *kx_perun_workload(const struct kx_export *x)
{
	json_t *command = command_of(x);
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	for (size_t i = 1; i < json_array_size(command); i++) {
		const char *word = json_string_value(json_array_get(command, i));

		fprintf(f, "%s%s", i > 1 ? " " : "", word ? word : "");
	}
	return fclose(f) ? NULL : text;
}

static json_t *header_of(const struct kx_export *x, const char *workload)
{
	const char *cmd = json_string_value(json_array_get(command_of(x), 0));

	if (!cmd && kx_calls_nthreads(x->calls))
		cmd = kx_calls_thread(x->calls, 0)->process;
	/* Two keys in units: Perun's views look up header.type, its tables type(subtype). */
	return json_pack("{s:s, s:o, s:s, s:s, s:{s:s, s:s}}", "type", "mixed", "cmd",
			 kx_json_text(cmd, SIZE_MAX), "args", "", "workload", workload, "units",
			 "mixed(time delta)", "ns", "mixed", "ns");
}

static const char *host_text(const json_t *host, const char *name)
{
	const char *text = json_string_value(json_object_get(host, name));

	return text ? text : "unknown";
}

/* Perun requires all keys; the recording does not note the number of cores and the swap. */
static json_t *machine_of(const struct kx_export *x)
{
	const json_t *host = json_object_get(x->session, "host");
	json_int_t cpus = json_integer_value(json_object_get(host, "cpus"));
	json_int_t memory = json_integer_value(json_object_get(host, "memory_bytes"));
	char ram[32], frequency[32];

	snprintf(ram, sizeof(ram), "%.1f GiB", (double)memory / (1 << 30));
	snprintf(frequency, sizeof(frequency), "%.0fMhz", (double)x->info->tsc_hz / 1e6);
	return json_pack("{s:s, s:s, s:s, s:s, s:{s:I, s:I, s:s, s:s}, s:{s:s, s:s}}",
			 "architecture", host_text(host, "architecture"), "system",
			 host_text(host, "system"), "release", host_text(host, "release"), "host",
			 host_text(host, "name"), "cpu", "physical", cpus, "total", cpus,
			 "frequency", frequency, "model", host_text(host, "cpu_model"), "memory",
			 "total_ram", ram, "swap", "0");
}

/* "name" must be a collector of Perun's own, or its postprocessors fail. */
static json_t *collector_of(const struct kx_export *x)
{
	json_t *params = json_object(), *pids = json_array(), *processes, *p;
	size_t i;

	processes = json_object_get(x->session, "processes");
	json_array_foreach(processes, i, p)
		json_array_append(pids, json_object_get(p, "pid"));
	if (json_array_size(pids) == 1)
		json_object_set(params, "pid", json_array_get(pids, 0));
	json_object_set_new(params, "pids", pids);
	json_object_set_new(params, "tracer", json_string("kxray"));
	p = json_object_get(x->session, "kxray_command");
	if (p)
		json_object_set(params, "kxray_command", p);
	return json_pack("{s:s, s:o}", "name", "trace", "params", params);
}

static int put_object(struct kx_text_out *o, const char *name, json_t *value)
{
	char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;

	json_decref(value);
	if (!text)
		return -ENOMEM;
	kx_text_char(o, '"');
	kx_text_str(o, name);
	kx_text_str(o, "\":");
	kx_text_str(o, text);
	kx_text_str(o, ",\n");
	free(text);
	return o->error;
}

int kx_perun_head(const struct kx_export *x, const char *workload)
{
	const char *origin = x->option(x, "perun-origin");
	int r;

	kx_text_char(x->out, '{');
	if (origin) {
		kx_text_str(x->out, "\"origin\":\"");
		kx_text_str(x->out, origin);
		kx_text_str(x->out, "\",\n");
	}
	r = put_object(x->out, "header", header_of(x, workload));
	if (!r)
		r = put_object(x->out, "machine", machine_of(x));
	if (!r)
		r = put_object(x->out, "collector_info", collector_of(x));
	if (!r)
		kx_text_str(x->out, "\"postprocessors\":[],\n");
	return r;
}
