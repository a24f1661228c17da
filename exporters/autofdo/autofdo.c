// SPDX-License-Identifier: BSD-2-Clause
/*
 * AutoFDO profiles, for a compiler's profile-guided optimization. gcc 12 to 15 read version 2 with
 * -fauto-profile=FILE, gcc 16 reads version 3; version 4 is a proposal (see write.h).
 *
 *     collect   calls of the trace, counted by address
 *     modules   the binaries of these addresses, and their call instructions
 *     lines     DWARF: source lines and inlined functions
 *     build     combines these into
 *     model     functions, places, counts, targets; and the summary
 *     gcov, gcov_v4, text   the file forms
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/autofdo/build.h"
#include "exporters/autofdo/write.h"

static const char *value_of(const struct kx_export *x, const char *name)
{
	return x->option(x, name);
}

static int parse(const struct kx_export *x, struct kx_afdo_options *o, struct kx_err *err)
{
	const char *version = value_of(x, "afdo-version"), *form = value_of(x, "afdo-form");
	const char *fill = value_of(x, "afdo-fill");

	*o = (struct kx_afdo_options){
		.version = form && !version ? 4 : 2,
		.discriminators = !value_of(x, "afdo-no-discriminators"),
		.binary = value_of(x, "afdo-binary"),
	};
	if (version && (strlen(version) != 1 || *version < '2' || *version > '4'))
		return kx_err_set(err, -EINVAL, "--afdo-version takes 2 (gcc 12 to 15), 3 (gcc 16) "
				  "or 4, not '%s'", version);
	if (version)
		o->version = *version - '0';
	if (form) {
		o->compact = !strcmp(form, "compact");
		o->text = !strcmp(form, "text");
		if (!o->compact && !o->text && strcmp(form, "normal"))
			return kx_err_set(err, -EINVAL, "--afdo-form takes normal, compact or text, "
					  "not '%s'", form);
		if (o->version != 4)
			return kx_err_set(err, -EINVAL, "--afdo-form goes with --afdo-version 4, "
					  "not %d", o->version);
	}
	/* gcc must not treat unmeasured code as cold; see build.c. */
	o->fill = o->version < 4;
	if (fill) {
		o->fill = !strcmp(fill, "entry");
		if (!o->fill && strcmp(fill, "none"))
			return kx_err_set(err, -EINVAL, "--afdo-fill takes entry or none, not '%s'",
					  fill);
	}
	return 0;
}

static void notice(const struct kx_export *x, const char *format, uint64_t n, const char *text)
	__attribute__((format(printf, 2, 0)));

static void notice(const struct kx_export *x, const char *format, uint64_t n, const char *text)
{
	char line[1400];

	if (!x->notice || !n)
		return;
	snprintf(line, sizeof(line), format, (unsigned long long)n, text);
	x->notice(x, line);
}

static void notify(const struct kx_export *x, const struct kx_afdo_options *o,
		const struct kx_afdo_trace *trace, const struct kx_afdo_modules *modules,
		const struct kx_afdo_losses *l, uint64_t dropped)
{
	size_t missed;
	const char *problem = kx_afdo_modules_problem(modules, &missed);

	if (problem)
		notice(x, "autofdo: %llu binaries without lines; first: %s", missed, problem);
	notice(x, "autofdo: %llu hits were lost when recording: all counts are lower bounds",
	       kx_calls_get_totals(x->calls)->lost, "");
	notice(x, "autofdo: %llu functions have calls but no %s and are left out", l->functions,
	       o->fill ? "lines" : "call sites");
	notice(x, "autofdo: calls from %llu addresses outside of the traced binaries have no call site",
	       l->unknown_code, "");
	notice(x, "autofdo: %llu pairs of caller and callee are tail calls and have no call site",
	       l->tail_calls, "");
	notice(x, "autofdo: %llu call instructions have no source line in their function",
	       l->no_line, "");
	notice(x, "autofdo: %llu names or lines cannot be written in this form", dropped, "");
	if (!trace->callers.used && !trace->samples.used && trace->functions.used)
		notice(x, "autofdo: the trace has calls of %llu functions but no call sites; record "
			  "with --callers%s", trace->functions.used,
		       " (and --sample for lines)");
}

static bool is_empty(const struct kx_afdo *a)
{
	for (size_t i = 0; i < a->nsymbols; i++)
		if (a->symbols[i].top)
			return false;
	return true;
}

/* gcc takes a profile without functions silently, and then optimizes as without one. */
static int refuse_empty(const struct kx_afdo_options *o, const struct kx_afdo_trace *trace,
			const struct kx_afdo_modules *modules, struct kx_err *err)
{
	size_t missed, calls = trace->functions.used;
	const char *problem = kx_afdo_modules_problem(modules, &missed);

	if (!trace->callers.used && !trace->samples.used && !o->fill)
		return kx_err_set(
			err, -ENODATA,
			"autofdo: the profile would be empty, because the trace "
			"has calls of %zu functions but neither call sites nor samples; record "
			"with --callers, better also with --sample 1000",
			calls);
	if (problem)
		return kx_err_set(
			err, -ENODATA,
			"autofdo: the profile would be empty, because none of the %zu called "
			"functions has source lines: %s; --afdo-binary names another file",
			calls, problem);
	return kx_err_set(
		err, -ENODATA,
		"autofdo: the profile would be empty, because none of the %zu "
		"called functions has %s; trace functions that have source lines and call "
		"others",
		calls, o->fill ? "source lines" : "a call site in a source line");
}

static int write_form(const struct kx_afdo *a, const struct kx_afdo_options *o,
		      struct kx_text_out *out, uint64_t *dropped)
{
	struct kx_bytes bytes = { 0 };
	int r;

	if (o->version < 4)
		r = kx_afdo_write_gcov(a, o->version, &bytes, dropped);
	else if (o->text)
		r = kx_afdo_write_text(a, &bytes, dropped);
	else
		r = kx_afdo_write_v4(a, o->compact, &bytes);
	if (!r)
		kx_text_bytes(out, (const char *)bytes.data, bytes.size);
	kx_bytes_free(&bytes);
	return r;
}

static int run(const struct kx_export *x, struct kx_err *err)
{
	const struct kx_map *map = x->names->has_map ? &x->names->map : NULL;
	struct kx_afdo_modules *modules = NULL;
	struct kx_afdo_trace trace = { 0 };
	struct kx_afdo_losses losses = { 0 };
	struct kx_afdo_options o;
	struct kx_afdo a = { 0 };
	uint64_t dropped = 0;
	int r = parse(x, &o, err);

	if (r)
		return r;
	if (!map && o.version < 4)
		return kx_err_set(err, -EINVAL, "autofdo: the trace has no map and so no function "
				  "names, which gcc needs; name the map with -m");
	r = kx_afdo_modules_open(map, o.binary, &modules, err);
	if (!r)
		r = kx_afdo_collect(x, &trace, err);
	if (!r) {
		r = kx_afdo_build(x, &o, modules, &trace, &a, &losses);
		if (!r && trace.functions.used && is_empty(&a))
			r = refuse_empty(&o, &trace, modules, err);
		else if (!r)
			r = write_form(&a, &o, x->out, &dropped);
		if (r == -ENOMEM)
			kx_err_set(err, r, "autofdo: out of memory");
	}
	if (!r)
		notify(x, &o, &trace, modules, &losses, dropped);
	kx_afdo_free(&a);
	kx_afdo_trace_free(&trace);
	kx_afdo_modules_close(modules);
	return r;
}

static const struct kx_export_option options[] = {
	{ "afdo-version", "N",
	  "2 for gcc 12 to 15 (default), 3 for gcc 16, 4 for the proposal of 2026" },
	{ "afdo-form", "FORM", "of version 4: normal (default), compact or text" },
	{ "afdo-fill", "WHAT",
	  "lines without a count: entry gives them the function's number of calls, so that gcc "
	  "does not treat them as cold (default of versions 2 and 3); none leaves them out "
	  "(default of 4)" },
	{ "afdo-binary", "PATH", "take lines from this file instead of the one the map names" },
	{ "afdo-no-discriminators", NULL, "one count per line; gcc 12 then finds all inlined calls" },
	{ NULL, NULL, NULL },
};

const struct kx_exporter kx_exporter_autofdo = {
	.name = "autofdo",
	.suffix = ".afdo",
	.summary = "profile for gcc -fauto-profile (AutoFDO)",
	.options = options,
	.open_hint = "build with it: gcc -O2 -fauto-profile=FILE",
	.run = run,
};
