// SPDX-License-Identifier: BSD-2-Clause
#include "doctor/doctor.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/process_limits.h"
#include "select/kernel_symbols.h"
#include "tracer/permission.h"
#include "tracer/ring.h"
#include "tracer/uprobe_try.h"
#include "doctor/in_process_cost.h"

/* Size of each ring while costs are measured; a run fills at most 4000 slots of 32 bytes. */
#define COST_RING_BYTES (1u << 20)

/* What the recorder takes beside its rings; less is no reason for a failure. */
#define RECORDER_FILES 64
#define RECORDER_BYTES (32u << 20)

static const struct kx_check known_checks[KX_CHECK_COUNT] = {
	[KX_CHECK_BTF] = { "btf", "type information of the kernel (BTF)", 0, "" },
	[KX_CHECK_ARRAY_MMAP] = { "array_mmap", "BPF arrays mapped into user space", 0, "" },
	[KX_CHECK_SESSION] = { "uprobe_session", "uprobe.session: entries and exits with one link", 0,
			       "" },
	[KX_CHECK_MULTI] = { "uprobe_multi", "uprobe.multi: many probes with one link", 0, "" },
	[KX_CHECK_SINGLE] = { "uprobe", "uprobe: a perf event for each probe", 0, "" },
	[KX_CHECK_PROCESS_FILTER] = { "uprobe_multi_process_filter",
				      "uprobe.multi: probes of one process only", 0, "" },
	[KX_CHECK_NOP5] = { "nop5_optimized", "a probe on a 5-byte nop is a call, not a trap", 0, "" },
	[KX_CHECK_SCHEDULER] = { "scheduler_events",
				 "scheduler events for threads and their CPUs (tp_btf)", 0, "" },
	[KX_CHECK_RECORDER] = { "recorder", "the recorder itself: programs, rings, clock", 0, "" },
	[KX_CHECK_CLOCK_KFUNC] = { "clock_kfunc", "clock: the kernel's cycle counter kfunc", 0, "" },
	[KX_CHECK_CLOCK_KTIME] = { "clock_ktime", "clock: ktime, converted to TSC ticks", 0, "" },
	[KX_CHECK_KERNEL_SYMBOLS] = { "kernel_symbols", "names and addresses of kernel functions", 0,
				      "" },
	[KX_CHECK_KPROBE_SESSION] = { "kprobe_session",
				      "kprobe.session: entries and exits with one link", 0, "" },
	[KX_CHECK_KPROBE_MULTI] = { "kprobe_multi", "kprobe.multi: many functions with one link", 0,
				    "" },
	[KX_CHECK_FENTRY] = { "fentry", "fentry and fexit: two programs for each function", 0, "" },
	[KX_CHECK_KPROBE] = { "kprobe", "kprobe: two perf events for each function", 0, "" },
};

/* @code: the result of a trial; the text is its reason, used if it failed. */
__attribute__((format(printf, 4, 5))) static void settle(struct kx_doctor *d, enum kx_check_id id,
							  int code, const char *fmt, ...)
{
	struct kx_check *c = &d->checks[id];
	va_list ap;

	c->err = code < 0 ? code : 0;
	if (!c->err)
		return;
	va_start(ap, fmt);
	vsnprintf(c->why, sizeof(c->why), fmt, ap);
	va_end(ap);
}

static void try_check(struct kx_doctor *d, enum kx_check_id id, int code)
{
	switch (code) {
	case -EPERM:
	case -EACCES:
		settle(d, id, code, "refused: %s", strerror(-code));
		break;
	case -ENOENT:
	case -EINVAL:
	case -EOPNOTSUPP:
	case -524: /* the kernel's own ENOTSUPP */
		settle(d, id, code, "this kernel doesn't have it");
		break;
	default:
		settle(d, id, code, "%s", strerror(-code));
	}
}

static void try_mechanisms(struct kx_doctor *d)
{
	int nop5;

	d->mechanism = -1;
	for (int m = 0; m < KX_MECHANISM_COUNT; m++) {
		int code = kx_mechanism_try((enum kx_mechanism)m);

		try_check(d, (enum kx_check_id)(KX_CHECK_SESSION + m), code);
		if (m == KX_MECHANISM_SINGLE && kx_perf_uprobes_need_admin(code))
			settle(d, KX_CHECK_SINGLE, code, "refused: it needs CAP_SYS_ADMIN here");
		if (!code && d->mechanism < 0)
			d->mechanism = m;
	}
	if (d->checks[KX_CHECK_MULTI].err)
		try_check(d, KX_CHECK_PROCESS_FILTER, d->checks[KX_CHECK_MULTI].err);
	else if (!kx_multi_filters_process())
		settle(d, KX_CHECK_PROCESS_FILTER, -EOPNOTSUPP,
		       "this kernel filters by thread, so every process hits the probes");
	d->own_probes = d->mechanism >= 0 && (d->mechanism != KX_MECHANISM_MULTI ||
					      !d->checks[KX_CHECK_PROCESS_FILTER].err);
	d->emulated = kx_probe_emulated();
	nop5 = kx_probe_nop5_optimized();
	if (nop5 < 0)
		try_check(d, KX_CHECK_NOP5, nop5);
	else if (!nop5)
		settle(d, KX_CHECK_NOP5, -EOPNOTSUPP, "this kernel doesn't have it");
	else if (kx_probe_nop5_harms())
		settle(d, KX_CHECK_NOP5, -EOPNOTSUPP, "not used: on this kernel children that a program forks end by SIGSEGV at such a call");
}

static void try_kernel_functions(struct kx_doctor *d)
{
	struct kx_symbols syms;
	struct kx_err err = { 0 };
	int code = kx_kernel_symbols(&syms, &err);

	settle(d, KX_CHECK_KERNEL_SYMBOLS, code, "%s", err.text);
	if (!code)
		kx_symbols_free(&syms);
	for (int m = KX_KERNEL_SESSION; m < KX_KERNEL_MECHANISMS; m++) {
		struct kx_kernel_trial t;

		kx_kernel_mechanism_try((enum kx_kernel_mechanism)m, &t);
		settle(d, (enum kx_check_id)(KX_CHECK_KPROBE_SESSION + m - KX_KERNEL_SESSION), t.err,
		       "%s", t.why);
		if (!t.err && !code && d->kernel_mechanism == KX_KERNEL_NONE)
			d->kernel_mechanism = (enum kx_kernel_mechanism)m;
	}
}

static int new_tracer(int mechanism, struct kx_tracer **out, struct kx_err *err)
{
	pid_t self = getpid();
	struct kx_tracer_options o = {
		.mechanism = mechanism < 0 ? KX_MECHANISM_SINGLE : (enum kx_mechanism)mechanism,
		.ring_bytes = COST_RING_BYTES,
		.pids = &self,
		.npids = 1,
	};

	return kx_tracer_new(&o, out, err);
}

/* The reason without its advice, which the verdict contains. */
static const char *clause(struct kx_err *err)
{
	err->text[strcspn(err->text, ";")] = 0;
	return err->text;
}

static void try_clocks(struct kx_doctor *d)
{
	for (int kind = KX_CLOCK_KFUNC; kind <= KX_CLOCK_KTIME; kind++) {
		enum kx_check_id id = (enum kx_check_id)(KX_CHECK_CLOCK_KFUNC + kind - KX_CLOCK_KFUNC);
		struct kx_clock *c = NULL;
		struct kx_err err = { 0 };
		int code = kx_clock_new((enum kx_wire_clock)kind, &c, &err);

		if (code == -ENODEV && kind == KX_CLOCK_KFUNC)
			settle(d, id, code, "this kernel doesn't have it");
		else
			settle(d, id, code, "%s", clause(&err));
		kx_clock_free(c);
	}
}

/* Sets up what `kxray record` would, for kxray itself, and measures the cost of a recorded call. */
static void try_recorder(struct kx_doctor *d)
{
	struct kx_err err = { 0 };
	int code;

	if (d->mechanism < 0) {
		settle(d, KX_CHECK_RECORDER, d->checks[KX_CHECK_SINGLE].err, "it needs uprobes");
	} else {
		code = new_tracer(d->mechanism, &d->tracer, &err);
		if (!code)
			code = kx_sources_attach_wanted(d->tracer, &err);
		settle(d, KX_CHECK_RECORDER, code, "%s", clause(&err));
		if (!code) {
			/* Records of other sources would be counted as calls. */
			kx_sources_detach_all(d->tracer);
			d->measured = !kx_doctor_costs(d->tracer, false, d->costs, &err);
		}
	}
	if (!d->measured)
		snprintf(d->cost_why, sizeof(d->cost_why), "%s",
			 err.text[0] ? err.text : "recording doesn't work here");
	if (kx_in_process_cost(&d->in_process_ns, NULL))
		d->in_process_ns = 0;
	if (d->tracer)
		d->clock = kx_tracer_clock(d->tracer);
	else if (kx_clock_new(0, &d->clock, &err))
		d->clock = NULL;
}

static bool has_cap(const struct kx_doctor_user *u, const char *name)
{
	for (int i = 0; i < KX_DOCTOR_CAPS; i++)
		if (strcmp(u->caps[i].name, name) == 0)
			return u->caps[i].held;
	return false;
}

/* "CAP_BPF and CAP_PERFMON", or "" */
static void list_missing(const struct kx_doctor_user *u, char *text, size_t size)
{
	text[0] = 0;
	for (int i = 0; i < KX_DOCTOR_CAPS; i++) {
		const struct kx_doctor_cap *c = &u->caps[i];
		size_t used = strlen(text);

		if (c->required && !c->held && !c->covered)
			snprintf(text + used, size - used, "%s%s", used ? " and " : "", c->name);
	}
}

__attribute__((format(printf, 2, 3))) static void verdict(struct kx_doctor *d, const char *fmt, ...)
{
	int n = snprintf(d->verdict, sizeof(d->verdict), "kxray cannot record here: ");
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(d->verdict + n, sizeof(d->verdict) - (size_t)n, fmt, ap);
	va_end(ap);
}

/* Checks that failed under a limit prove nothing. */
static void blame_limit(struct kx_doctor *d, const char *why)
{
	for (int i = 0; i < KX_CHECK_COUNT; i++)
		if (d->checks[i].err)
			settle(d, (enum kx_check_id)i, d->checks[i].err, "not known: %s", why);
	snprintf(d->cost_why, sizeof(d->cost_why), "%s", why);
	verdict(d, "%s", why);
}

/* True if a capability is missing. */
static bool blame_capability(struct kx_doctor *d)
{
	char missing[128];

	list_missing(&d->user, missing, sizeof(missing));
	if (missing[0])
		verdict(d, "this user lacks %s; run kxray as root, or give it these capabilities with "
			   "'setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep'",
			missing);
	else if (d->mechanism < 0 && kx_perf_uprobes_need_admin(d->checks[KX_CHECK_SINGLE].err))
		verdict(d, "this kernel has only uprobes by perf events, and this user lacks "
			   "CAP_SYS_ADMIN, which they need; run kxray as root, or give it the "
			   "capabilities with 'setcap cap_sys_admin,cap_sys_ptrace+ep'");
	else
		return false;
	return true;
}

static void conclude(struct kx_doctor *d)
{
	const struct kx_check *recorder = &d->checks[KX_CHECK_RECORDER];
	bool refused = recorder->err == -EPERM || recorder->err == -EACCES;
	char why[KX_LIMIT_TEXT];

	d->can_record = !recorder->err;
	if (d->can_record)
		snprintf(d->verdict, sizeof(d->verdict), "kxray can record here with %s and the clock %s%s",
			 kx_mechanism_name((enum kx_mechanism)d->mechanism),
			 kx_clock_name(d->clock->kind),
			 has_cap(&d->user, "CAP_SYS_PTRACE") ?
				 "" :
				 ", but only this user's own processes: CAP_SYS_PTRACE is missing");
	else if (kx_limits_try(RECORDER_FILES, RECORDER_BYTES, why))
		blame_limit(d, why);
	else if (blame_capability(d))
		return;
	else if (refused && d->user.in_user_namespace)
		verdict(d, "its capabilities hold only inside a user namespace (a rootless "
			   "container); run it outside");
	else if (refused)
		verdict(d, "this user has the capabilities, but a seccomp filter, kernel lockdown or a "
			   "security module forbids it");
	else if (d->checks[KX_CHECK_BTF].err)
		verdict(d, "this kernel has no type information; it needs a kernel built with "
			   "CONFIG_DEBUG_INFO_BTF");
	else if (d->mechanism < 0)
		verdict(d, "no kind of uprobe works; it needs Linux 5.15 or newer with "
			   "CONFIG_UPROBE_EVENTS");
	else
		verdict(d, "%s", recorder->why);
}

int kx_doctor_examine(struct kx_doctor *d, struct kx_err *err)
{
	struct utsname u;
	int code, possible;

	memset(d, 0, sizeof(*d));
	memcpy(d->checks, known_checks, sizeof(d->checks));
	d->mechanism = -1;
	code = kx_doctor_get_user(&d->user, err);
	if (!code)
		code = kx_doctor_get_files(&d->files, err);
	if (code) {
		kx_doctor_free(d);
		return code;
	}
	if (!uname(&u))
		snprintf(d->kernel, sizeof(d->kernel), "%s %s %s", u.sysname, u.release, u.machine);
	if (!getenv("KXRAY_LIBBPF_LOG"))
		libbpf_set_print(NULL);
	possible = libbpf_num_possible_cpus();
	d->online = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	d->ring_bytes = (uint64_t)kx_ring_slots_for(0, possible > 0 ? (unsigned)possible : 1) *
			KX_RING_SLOT_SIZE;

	try_check(d, KX_CHECK_BTF, kx_try_btf());
	try_check(d, KX_CHECK_ARRAY_MMAP, kx_try_array_mmap());
	try_mechanisms(d);
	try_check(d, KX_CHECK_SCHEDULER, kx_try_scheduler_events());
	try_kernel_functions(d);
	try_clocks(d);
	try_recorder(d);
	conclude(d);
	return 0;
}

void kx_doctor_free(struct kx_doctor *d)
{
	kx_mapped_files_free(&d->files.files);
	if (d->tracer)
		kx_tracer_free(d->tracer);
	else
		kx_clock_free(d->clock);
	memset(d, 0, sizeof(*d));
}
