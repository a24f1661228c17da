// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/commands.h"
#include "doctor/doctor.h"
#include "plan/plan.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/screen.h"
#include "base/wrap.h"
#include "tracer/keeper.h"

#define NAME "doctor"
#define TEXT_MAX 1024
#define FILES_SHOWN 5

struct arguments {
	bool json;
};

static const struct kx_option options[] = {
	{ .name = "json", .kind = KX_OPTION_FLAG, KX_FIELD(struct arguments, json),
	  .help = "the same as one JSON object on standard output" },
	KX_HELP_OPTION,
	{ 0 },
};

static const struct kx_option_group groups[] = { { .options = options }, { 0 } };

static const struct kx_example examples[] = {
	{ "sudo kxray doctor",
	  "what works here, and the cost of a traced call" },
	{ "kxray doctor --json | jq .clock",
	  "one part of it for a script" },
	{ 0 },
};

const struct kx_command kx_command_doctor = {
	.name = NAME,
	.summary = "show what this kernel and your privileges allow, and what a traced call costs",
	.usage = "Usage: kxray doctor [--json]\n"
		 "Shows what this kernel supports and what your privileges allow, by trying it instead of\n"
		 "comparing versions; which files several processes have mapped, so that tracing one of\n"
		 "them concerns the others; which clock is used and how exact it is; and what a recorded\n"
		 "call costs here, measured on small functions of kxray itself. It also works without\n"
		 "privileges, and then shows which ones are missing.\n",
	.groups = groups,
	.notes = "Exit status: 0 kxray can record here, 1 it cannot, 2 wrong usage.\n",
	.examples = examples,
	.run = kx_cmd_doctor,
};

/* "yes", or "no" and the reason, in a column. */
static void print_checks(FILE *to, const struct kx_doctor *d, enum kx_check_id from, enum kx_check_id last)
{
	for (int i = from; i <= (int)last; i++) {
		const struct kx_check *c = &d->checks[i];

		fprintf(to, "  %-3s  %s%s%s\n", c->err ? "no" : "yes", c->about, c->err ? ": " : "", c->why);
	}
}

static void print_user(FILE *to, const struct kx_doctor_user *u)
{
	fprintf(to, "\nThis user (uid %u%s%s)\n", u->uid,
	       u->in_user_namespace ? ", in a user namespace: capabilities do not count for BPF" : "",
	       u->seccomp ? ", under a seccomp filter" : "");
	for (int i = 0; i < KX_DOCTOR_CAPS; i++) {
		const struct kx_doctor_cap *c = &u->caps[i];

		fprintf(to, "  %-3s  %s: %s%s\n", c->held || c->covered ? "yes" : "no", c->name, c->purpose,
		       c->covered ? " (by CAP_SYS_ADMIN)" :
		       c->required && !c->held ? " (needed)" :
						 "");
	}
	fprintf(to, "  settings:");
	for (int i = 0; i < KX_DOCTOR_SETTINGS; i++)
		fprintf(to, "%s %s %s", i ? "," : "", u->settings[i].key,
		       u->settings[i].value[0] ? u->settings[i].value : "absent");
	fprintf(to, "\n");
}

static void print_files(FILE *to, const struct kx_doctor *d)
{
	const struct kx_doctor_files *f = &d->files;
	size_t shown = f->shared < FILES_SHOWN ? f->shared : FILES_SHOWN;

	fprintf(to, "\nFiles that several processes have mapped (%zu", f->shared);
	if (f->unreadable)
		fprintf(to, "; this user may not look at %zu process%s", f->unreadable,
		       f->unreadable == 1 ? "" : "es");
	fprintf(to, ")\n");
	for (size_t i = 0; i < shown; i++)
		kx_print(to, "  %4zu processes  %s\n", f->files.items[i].processes,
			 f->files.items[i].path);
	if (!f->shared)
		return;
	if (d->own_probes)
		fprintf(to, "  only traced processes get probes in them, each its own, so a child that --follow "
		       "traces has them some ms after its fork; with --follow=exact and -a alone all of "
		       "these processes run into them and become slower\n");
	else if (d->mechanism >= 0)
		fprintf(to, "  this kernel cannot limit probes to single processes: tracing functions of such a "
		       "file makes all of these processes slower\n");
}

static void print_clock(FILE *to, const struct kx_doctor *d)
{
	const struct kx_clock *c = d->clock;

	fprintf(to, "\nClock\n");
	print_checks(to, d, KX_CHECK_CLOCK_KFUNC, KX_CHECK_CLOCK_KTIME);
	if (!c)
		return;
	fprintf(to, "  used: %s%s; TSC %.6f GHz (%s), %s, %s\n", kx_clock_name(c->kind),
	       d->can_record ? "" : " (if kxray could record)", (double)c->tsc_hz * 1e-9,
	       c->hz_origin, c->constant_tsc ? "constant" : "not constant",
	       c->nonstop_tsc ? "nonstop" : "not nonstop");
	fprintf(to, "  the kernel's clock source is %s%s\n", c->source[0] ? c->source : "unknown",
	       kx_clock_is_tsc(c) ? "" : ", not tsc: reading it takes longer and is less exact");
	if (c->error)
		fprintf(to, "  converted times are off by at most %.0f ns against rdtsc\n",
		       kx_clock_error_ns(c));
}

static void print_costs(FILE *to, const struct kx_doctor *d)
{
	fprintf(to, "\nCost of a recorded call\n");
	if (!d->measured) {
		fprintf(to, "  not measured: %s\n", d->cost_why);
		return;
	}
	fprintf(to, "  %-36s %8s %9s %12s %9s\n", "the function starts with", "no probe", "entry",
	       "entry+return", "cold");
	for (int i = 0; i < KX_DOCTOR_COSTS; i++)
		fprintf(to, "  %-36s %5.1f ns %6.0f ns %9.0f ns %6.0f ns\n", d->costs[i].about, d->costs[i].plain_ns,
		       d->costs[i].entry_ns, d->costs[i].entry_return_ns,
		       d->costs[i].entry_return_ns + d->costs[i].cold_ns);
	fprintf(to, "  cold: when the program has used the first-level caches since the last call\n");
	if (d->in_process_ns > 0)
		fprintf(to, "  in process (record --in-process): the recorder takes %.1f ns for an entry, and as long for an exit\n",
			d->in_process_ns);
}

/* The instructions that are emulated under a probe, or the others. */
static void print_kinds(FILE *to, const char *what, unsigned kinds)
{
	const char *separator = " ";

	fprintf(to, "  %s:", what);
	for (int i = 0; i < KX_INSN_KINDS; i++) {
		if (!(kinds >> i & 1))
			continue;
		fprintf(to, "%s%s", separator, kx_insn_kind_name((enum kx_insn_kind)i));
		separator = ", ";
	}
	fprintf(to, "\n");
}

static void print_all(FILE *to, const struct kx_doctor *d)
{
	fprintf(to, "%s, %u CPUs\n\nRecording\n", d->kernel, d->online);
	print_checks(to, d, KX_CHECK_BTF, KX_CHECK_RECORDER);
	print_kinds(to, "emulated under a probe", d->emulated);
	print_kinds(to, "single-stepped, as all others", ~d->emulated);
	fprintf(to, "\nKernel functions (record -f 'kernel:GLOB')\n");
	print_checks(to, d, KX_CHECK_KERNEL_SYMBOLS, KX_CHECK_KPROBE);
	fprintf(to, "  used: %s\n", d->kernel_mechanism ? kx_kernel_mechanism_name(d->kernel_mechanism) :
						     "none, they cannot be traced here");
	print_user(to, &d->user);
	print_files(to, d);
	print_clock(to, d);
	print_costs(to, d);
	fprintf(to, "\nMemory: %u rings of %llu KiB by default\n\n%s.\n", d->online,
	       (unsigned long long)d->ring_bytes >> 10, d->verdict);
}

/* Lines fit the terminal; pipes and files get them whole. */
static int print_text(const struct kx_doctor *d, struct kx_err *err)
{
	const struct kx_screen screen = kx_screen_of(STDOUT_FILENO, KX_COLOR_NEVER, false);
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);

	if (to)
		print_all(to, d);
	if (!to || fclose(to)) {
		free(text);
		return kx_err_set(err, -ENOMEM, "no memory for the text");
	}
	kx_wrap(stdout, text, size, screen.columns);
	free(text);
	return fflush(stdout) ? kx_err_set(err, -EIO, "cannot write to standard output") : 0;
}

static json_t *checks_json(const struct kx_doctor *d)
{
	json_t *all = json_object();

	for (int i = 0; i < KX_CHECK_COUNT; i++) {
		const struct kx_check *c = &d->checks[i];

		json_object_set_new(all, c->key,
				    json_pack("{s:b,s:o,s:i}", "works", !c->err, "why",
					      kx_json_text(c->why, TEXT_MAX), "errno", -c->err));
	}
	return all;
}

static json_t *user_json(const struct kx_doctor_user *u)
{
	json_t *caps = json_object(), *settings = json_object(), *missing = json_array();

	for (int i = 0; i < KX_DOCTOR_CAPS; i++) {
		const struct kx_doctor_cap *c = &u->caps[i];

		json_object_set_new(caps, c->name,
				    json_pack("{s:b,s:b,s:b,s:s}", "held", c->held, "covered",
					      c->covered, "required", c->required, "purpose",
					      c->purpose));
		if (c->required && !c->held && !c->covered)
			json_array_append_new(missing, json_string(c->name));
	}
	for (int i = 0; i < KX_DOCTOR_SETTINGS; i++)
		json_object_set_new(settings, u->settings[i].key,
				    u->settings[i].value[0] ?
					    kx_json_text(u->settings[i].value, TEXT_MAX) :
					    json_null());
	return json_pack("{s:I,s:b,s:b,s:o,s:o,s:o}", "uid", (json_int_t)u->uid, "user_namespace",
			 u->in_user_namespace, "seccomp", u->seccomp, "capabilities", caps,
			 "missing", missing, "settings", settings);
}

static json_t *files_json(const struct kx_doctor *d)
{
	const struct kx_doctor_files *f = &d->files;
	json_t *all = json_array();

	for (size_t i = 0; i < f->shared; i++)
		json_array_append_new(all,
				      json_pack("{s:o,s:I}", "path",
						kx_json_text(f->files.items[i].path, TEXT_MAX),
						"processes",
						(json_int_t)f->files.items[i].processes));
	return json_pack("{s:I,s:b,s:o}", "unreadable_processes", (json_int_t)f->unreadable,
			 "own_probes", d->own_probes, "files", all);
}

static json_t *clock_json(const struct kx_doctor *d)
{
	const struct kx_clock *c = d->clock;

	if (!c)
		return json_null();
	return json_pack("{s:s,s:o,s:I,s:s,s:b,s:b,s:f}", "kind", kx_clock_name(c->kind), "source",
			 kx_json_text(c->source, TEXT_MAX), "tsc_hz", (json_int_t)c->tsc_hz,
			 "hz_origin", c->hz_origin, "constant_tsc", c->constant_tsc, "nonstop_tsc",
			 c->nonstop_tsc, "error_ns", kx_clock_error_ns(c));
}

static json_t *costs_json(const struct kx_doctor *d)
{
	json_t *all = json_array();

	for (int i = 0; d->measured && i < KX_DOCTOR_COSTS; i++) {
		const struct kx_doctor_cost *c = &d->costs[i];

		json_array_append_new(all,
				      json_pack("{s:s,s:s,s:i,s:f,s:f,s:f,s:f}", "start", c->key,
						"about", c->about, "probe_offset",
						(int)c->probe_offset, "plain_ns", c->plain_ns,
						"entry_ns", c->entry_ns, "entry_return_ns",
						c->entry_return_ns, "cold_ns", c->cold_ns));
	}
	return all;
}

static json_t *emulated_json(const struct kx_doctor *d)
{
	json_t *all = json_array();

	for (int i = 0; i < KX_INSN_KINDS; i++)
		if (d->emulated >> i & 1)
			json_array_append_new(all, json_string(kx_insn_kind_name((enum kx_insn_kind)i)));
	return all;
}

static int print_json(const struct kx_doctor *d, struct kx_err *err)
{
	json_t *j = json_pack(
		"{s:i,s:o,s:I,s:o,s:o,s:o,s:o,s:o,s:s?,s:s?,s:I,s:o,s:o,s:f,s:b,s:o}", "schema",
		KX_JSON_SCHEMA, "kernel", kx_json_text(d->kernel, TEXT_MAX), "cpus",
		(json_int_t)d->online, "checks", checks_json(d), "emulated", emulated_json(d),
		"user", user_json(&d->user), "shared_files", files_json(d), "clock", clock_json(d),
		"mechanism",
		d->mechanism < 0 ? NULL : kx_mechanism_name((enum kx_mechanism)d->mechanism),
		"kernel_mechanism",
		d->kernel_mechanism ? kx_kernel_mechanism_name(d->kernel_mechanism) : NULL,
		"ring_bytes", (json_int_t)d->ring_bytes, "costs", costs_json(d), "costs_why",
		kx_json_text(d->measured ? "" : d->cost_why, TEXT_MAX), "in_process_ns", d->in_process_ns, "can_record", d->can_record,
		"verdict", kx_json_text(d->verdict, TEXT_MAX));
	int code = 0;

	if (!j)
		code = kx_err_set(err, -ENOMEM, "no memory for the JSON document");
	else if (json_dumpf(j, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) ||
		 putchar('\n') == EOF)
		code = kx_err_set(err, -EIO, "cannot write to standard output");
	json_decref(j);
	return code;
}

int kx_cmd_doctor(int argc, char **argv)
{
	struct arguments a = { 0 };
	struct kx_doctor d;
	struct kx_err err = { 0 };
	int status, r = kx_options_parse(&kx_command_doctor, &a, argc, argv, &err);

	if (r)
		return kx_cmd_end_parse(&kx_command_doctor, r, &err);
	kx_keeper_start(NULL); /* for what is tried and measured */
	r = kx_doctor_examine(&d, &err);
	kx_keeper_stop();
	if (r)
		return kx_cmd_fail(NAME, &err);
	status = d.can_record ? KX_EXIT_DONE : KX_EXIT_FAILED;
	if (a.json ? print_json(&d, &err) : print_text(&d, &err))
		status = kx_cmd_fail(NAME, &err);
	kx_doctor_free(&d);
	return status;
}
