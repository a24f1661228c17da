// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/record_arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "cmd/in_process_arguments.h"
#include "cmd/option_values.h"
#include "record/condition_needs.h"
#include "trace/labels.h"
#include "select/provider_usdt.h"

static int check_targets(struct kx_record_arguments *a, struct kx_err *err)
{
	struct kx_recording_options *o = &a->o;

	if (o->command && a->pids)
		return kx_err_set(err, -EINVAL, "either -p or a command after '--', not both");
	if (o->all && (o->command || a->pids))
		return kx_err_set(err, -EINVAL, "-a traces every process: leave out %s",
				  a->pids ? "-p" : "the command, or start it meanwhile");
	if (!o->command && !a->pids && !o->all)
		return kx_err_set(err, -EINVAL, "nothing to trace: give -p PID, -a or -- COMMAND");
	if (a->kill && !(o->command && o->seconds > 0))
		return kx_err_set(err, -EINVAL, "--kill ends a command when a time is over: give -d TIME and -- COMMAND");
	if (o->all && !o->select.ninclude)
		return kx_err_set(err, -EINVAL, "-a needs -f: which functions of which modules, as in "
						"-a -f 'libssl.so*:SSL_*'");
	if (o->all && a->follow < 0)
		return kx_err_set(err, -EINVAL, "-a always includes processes that start later: leave "
						"out --no-follow");
	o->select.match_later = o->all || a->follow > 0;
	o->follow_exact = a->follow > 1;
	o->follow = o->select.match_later || (o->command && !a->follow);
	return 0;
}

/* Options that mean nothing without others; defaults; triggers are traced in any case. */
static int complete_flight(struct kx_record_arguments *a, struct kx_err *err)
{
	struct kx_flight_options *f = &a->flight;
	bool wanted = f->bytes || f->keep > 0;

	if (!wanted && (f->ntriggers || f->dumps || f->interval > 0 || f->on_dump || f->on_dump_seconds > 0))
		return kx_err_set(err, -EINVAL,
				  "--trigger, --dumps, --dump-interval and --on-dump are for a flight "
				  "recorder: "
				  "add --flight-recorder SIZE or --keep TIME");
	if (!wanted)
		return 0;
	a->o.flight = f;
	if (!f->dumps)
		f->dumps = KX_FLIGHT_DUMPS;
	if (!(f->interval > 0))
		f->interval = KX_FLIGHT_INTERVAL;
	if (f->on_dump_seconds > 0 && !f->on_dump)
		return kx_err_set(err, -EINVAL, "--on-dump-limit is for --on-dump COMMAND");
	if (!(f->on_dump_seconds > 0))
		f->on_dump_seconds = KX_DUMP_HOOK_SECONDS;
	f->triggers = a->triggers;
	for (size_t i = 0; i < f->ntriggers; i++)
		if (kx_value_text(a->triggers[i].pattern, &a->include, &a->o.select.ninclude))
			return kx_err_set(err, -ENOMEM, "out of memory");
	return 0;
}

static int check_heat(struct kx_record_arguments *a, struct kx_err *err)
{
	if (a->max_overhead > 0 || !a->o.select.ninclude)
		a->o.max_overhead = a->max_overhead > 0 ? a->max_overhead : KX_DEFAULT_OVERHEAD;
	if (!(a->heat_seconds > 0))
		return 0;
	if (!a->pids)
		return kx_err_set(err, -EINVAL,
				  "--by-heat needs running processes to count calls in: -p PID");
	if (a->o.count)
		return kx_err_set(err, -EINVAL, "either --count or --by-heat, not both");
	return 0;
}

/* Refuses what has no meaning where no trace is written. */
static int check_count(struct kx_record_arguments *a, struct kx_err *err)
{
	struct kx_recording_options *o = &a->o;
	const char *vain = o->output	      ? "-o" :
			   a->open	      ? "--open" :
			   o->flight	      ? "the flight recorder" :
			   o->rotation.bytes || o->rotation.seconds > 0 ? "--rotate" :
			   o->min_duration_ns ? "--min-duration" :
			   o->max_depth	      ? "--depth" :
			   o->nargs || o->automatic_values ? "--args" :
			   o->results	      ? "--results" :
			   o->callers	      ? "--callers" :
			   o->sample_hz	      ? "--sample" :
			   kx_sources_option(o->sources) ? kx_sources_option(o->sources) :
			   o->fdr_version     ? "--fdr-version" :
			   o->compress	      ? "--compress" :
			   o->nlabels	      ? "--label" :
			   o->ring_bytes      ? "--ring-size" :
			   o->select.exits    ? "--exits" :
						NULL;

	if (!o->count)
		return 0;
	if (vain)
		return kx_err_set(err, -EINVAL,
				  "--count writes no trace, it only counts calls: leave out %s", vain);
	o->select.exits = KX_EXITS_NONE;
	return 0;
}

static int check_rotation(const struct kx_recording_options *o, struct kx_err *err)
{
	bool rotated = o->rotation.bytes || o->rotation.seconds > 0;

	if (o->rotation.keep && !rotated)
		return kx_err_set(err, -EINVAL, "--keep-files is for --rotate SIZE|TIME");
	if (rotated && o->flight)
		return kx_err_set(err, -EINVAL,
				  "either --rotate or a flight recorder, whose dumps are files of "
				  "their own (--dumps N keeps the newest)");
	return 0;
}

static int check_labels(const struct kx_record_arguments *a, struct kx_err *err)
{
	json_t *labels = json_object();
	int r = labels ? 0 : kx_err_set(err, -ENOMEM, "out of memory for labels");

	for (size_t i = 0; i < a->o.nlabels && !r; i++)
		r = kx_label_add(labels, a->labels[i], err);
	json_decref(labels);
	return r;
}

/* A compressed trace has its suffix, and the suffix means a compressed trace. */
static int name_compressed(struct kx_record_arguments *a, struct kx_err *err)
{
	struct kx_recording_options *o = &a->o;

	if (o->output[kx_output_stem(o->output)])
		o->compress = true;
	else if (o->compress) {
		if (asprintf(&a->compressed, "%s" KX_COMPRESSED_SUFFIX, o->output) < 0) {
			a->compressed = NULL;
			return kx_err_set(err, -ENOMEM, "out of memory");
		}
		o->output = a->compressed;
	}
	return 0;
}

static int complete_output(struct kx_record_arguments *a, struct kx_err *err)
{
	struct kx_recording_options *o = &a->o;
	int code = check_rotation(o, err);

	if (code)
		return code;
	if (o->min_duration_ns && o->select.exits == KX_EXITS_NONE)
		return kx_err_set(err, -EINVAL,
				  "--min-duration needs exits to be recorded: leave out --exits=none");
	if (o->output && !strcmp(o->output, "-"))
		return kx_err_set(err, -EINVAL,
				  "a recording needs a file to write: its map is written beside it");
	if (!o->output && !o->count)
		o->output = o->compress ? "trace.xray" KX_COMPRESSED_SUFFIX : "trace.xray";
	return o->output ? name_compressed(a, err) : 0;
}

int kx_record_add_rule(struct kx_record_arguments *a, char *pattern, const char *option, const char *text, size_t from,
		       struct kx_err *err)
{
	struct kx_condition_rule *grown = reallocarray(a->rules, a->o.nrules + 1, sizeof(*grown));
	int code;

	if (!grown) {
		free(pattern);
		return kx_err_set(err, -ENOMEM, "out of memory");
	}
	a->rules = grown;
	code = kx_condition_parse(option, text, from, &grown[a->o.nrules].condition, err);
	grown[a->o.nrules].pattern = pattern;
	if (code)
		free(pattern);
	else
		a->o.nrules++;
	return code;
}

/* Conditions stand last in the values of -f, which are then left. */
static int take_rules(struct kx_record_arguments *a, struct kx_err *err)
{
	int code = 0;

	for (size_t i = 0; i < a->o.select.ninclude && !code; i++) {
		const char *text = a->include[i];
		size_t end = kx_condition_find(text);
		char *pattern;

		if (!text[end])
			continue;
		pattern = strndup(text, end);
		if (!pattern)
			return kx_err_set(err, -ENOMEM, "out of memory");
		code = kx_record_add_rule(a, pattern, "-f", text, end + strlen(" if "), err);
		if (!code)
			a->include[i] = pattern;
	}
	return code;
}

/* The rules' patterns, of which a spec has been taken, are what is left of it. */
static int shorten_rule(struct kx_record_arguments *a, const char *was, const char *now, struct kx_err *err)
{
	for (size_t i = 0; i < a->o.nrules; i++) {
		if (a->rules[i].pattern != was)
			continue;
		free(a->rules[i].pattern);
		a->rules[i].pattern = strdup(now);
		return a->rules[i].pattern ? 0 : kx_err_set(err, -ENOMEM, "out of memory");
	}
	return 0;
}

/* What calls carry stands behind the patterns of -f, which are then left. */
static int take_specs(struct kx_record_arguments *a, struct kx_err *err)
{
	struct kx_recording_options *o = &a->o;
	int code = 0;

	a->specs = calloc(o->select.ninclude + 1, sizeof(*a->specs));
	if (!a->specs)
		return kx_err_set(err, -ENOMEM, "out of memory");
	o->specs = a->specs;
	for (size_t i = 0; i < o->select.ninclude && !code; i++) {
		struct kx_value_spec *spec = &a->specs[o->nspecs];

		code = kx_value_spec_parse(a->include[i], spec, err);
		if (!code && spec->n) {
			o->nspecs++;
			code = shorten_rule(a, a->include[i], spec->pattern, err);
			a->include[i] = spec->uncertain ? spec->text : spec->pattern;
		} else {
			kx_value_spec_free(spec);
		}
	}
	return code;
}

/* "f(Foo)" is a function of C++, or else f with a value. */
static int find_otherwise(struct kx_record_arguments *a, struct kx_err *err)
{
	struct kx_recording_options *o = &a->o;

	a->otherwise = calloc(o->select.ninclude + 1, sizeof(*a->otherwise));
	if (!a->otherwise)
		return kx_err_set(err, -ENOMEM, "out of memory");
	o->select.otherwise = a->otherwise;
	for (size_t i = 0; i < o->select.ninclude; i++)
		for (size_t k = 0; k < o->nspecs; k++)
			if (a->include[i] == a->specs[k].text)
				a->otherwise[i] = a->specs[k].pattern;
	return 0;
}

/* Spans are traced, too: their names are patterns. */
static int take_spans(struct kx_record_arguments *a, struct kx_err *err)
{
	struct kx_select_options *select = &a->o.select;
	int code = 0;

	a->span_patterns = calloc(a->nspans + 1, sizeof(*a->span_patterns));
	if (!a->span_patterns)
		return kx_err_set(err, -ENOMEM, "out of memory");
	select->spans = (const char *const *)a->span_patterns;
	for (size_t i = 0; i < a->nspans && !code; i++) {
		code = kx_usdt_span_parse(a->spans[i], &a->span_patterns[i], err);
		if (!code && kx_value_text(a->span_patterns[i], &a->include, &select->ninclude))
			code = kx_err_set(err, -ENOMEM, "out of memory");
		select->nspans += !code;
	}
	if (!code && a->nspans && a->o.count)
		code = kx_err_set(err, -EINVAL, "--count writes no trace, it only counts calls: leave out --span");
	return code;
}

/* What has no duration cannot be chosen by it. */
static int check_markers(const struct kx_recording_options *o, const char *const *include, struct kx_err *err)
{
	if (!o->min_duration_ns || !kx_patterns_in_space(include, o->select.ninclude, KX_PATTERN_USDT))
		return 0;
	return kx_err_set(err, -EINVAL, "--min-duration keeps long calls, and a marker is an instant: leave out one of them");
}

/* Which options do not go with conditions. */
static int check_rules(const struct kx_recording_options *o, struct kx_err *err)
{
	const bool results = kx_condition_needs(o).results;

	if (!o->nrules)
		return 0;
	if (o->kernel_mechanism == KX_KERNEL_FENTRY)
		return kx_err_set(err, -EINVAL,
				  "fentry programs see no registers, which conditions need: leave out --kernel-mechanism=fentry");
	if (results && o->count)
		return kx_err_set(err, -EINVAL, "--count counts calls when they begin, without their results: leave out the conditions about ret");
	if (results && o->select.exits == KX_EXITS_NONE)
		return kx_err_set(err, -EINVAL, "a condition about ret needs exits to be recorded: leave out --exits=none");
	return 0;
}

/* Which options do not go with values. */
static int check_specs(const struct kx_recording_options *o, struct kx_err *err)
{
	if (!o->nspecs && !o->automatic_values)
		return 0;
	if (o->count)
		return kx_err_set(err, -EINVAL, "--count writes no trace, it only counts calls: leave out the values of -f");
	if (o->min_duration_ns)
		return kx_err_set(err, -EINVAL, "--min-duration writes entries when their values are gone: leave out one of them");
	if (o->kernel_mechanism == KX_KERNEL_FENTRY)
		return kx_err_set(err, -EINVAL,
				  "fentry programs see no registers, which the values of -f need: leave out --kernel-mechanism=fentry");
	return 0;
}

int kx_record_parse(const struct kx_command *c, struct kx_record_arguments *a, int argc, char **argv,
		    struct kx_err *err)
{
	int r = kx_options_parse(c, a, argc, argv, err);

	if (!r)
		r = take_rules(a, err);
	if (!r)
		r = take_specs(a, err);
	if (!r)
		r = take_spans(a, err);
	if (!r)
		r = check_targets(a, err);
	if (!r)
		r = complete_flight(a, err);
	if (!r)
		r = check_heat(a, err);
	if (!r)
		r = check_labels(a, err);
	if (!r)
		r = check_count(a, err);
	if (!r)
		r = check_specs(&a->o, err);
	a->o.rules = a->rules;
	if (!r)
		r = check_rules(&a->o, err);
	if (!r)
		r = check_markers(&a->o, a->include, err);
	if (!r)
		r = kx_in_process_check_arguments(a, err);
	if (!r)
		r = complete_output(a, err);
	if (!r)
		r = find_otherwise(a, err);
	a->o.pids = a->pids;
	a->o.labels = a->labels;
	a->o.select.include = a->include;
	a->o.select.exclude = a->exclude;
	return r;
}

void kx_record_arguments_free(const struct kx_command *c, struct kx_record_arguments *a)
{
	kx_counts_free(&a->counts);
	kx_call_rates_free(&a->heat);
	kx_options_free(c, a);
	for (size_t i = 0; i < a->flight.ntriggers; i++)
		kx_trigger_free(&a->triggers[i]);
	free(a->triggers);
	for (size_t i = 0; i < a->o.nspecs; i++)
		kx_value_spec_free(&a->specs[i]);
	free(a->specs);
	free(a->otherwise);
	for (size_t i = 0; i < a->nspans && a->span_patterns; i++)
		free(a->span_patterns[i]);
	free(a->span_patterns);
	for (size_t i = 0; i < a->o.nrules; i++) {
		free(a->rules[i].pattern);
		kx_condition_free(&a->rules[i].condition);
	}
	free(a->rules);
	free(a->compressed);
}
