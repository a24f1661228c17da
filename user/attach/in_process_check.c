// SPDX-License-Identifier: BSD-2-Clause
#include "attach/in_process_check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/recorder_code.h"
#include "attach/risky_calls.h"
#include "base/pattern.h"
#include "binary/mappings.h"
#include "binary/translator.h"
#include "binary/unwind_risk.h"
#include "tracer/process_state.h"
#include "tracer/remote_threads.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/*
 * Libraries whose system calls, made through functions for any of them, are known by their sources to be harmless but for
 * those that their callers ask for: glibc, and libcap 2.66 (libcap/cap_proc.c: capset, setuid, setgroups, chroot, and prctl
 * with constants).
 */
static bool is_known(const struct kx_module *m)
{
	static const char *const names[] = { "libc.so.6", "libc-2.*", "libpthread.so.0", "libpthread-2.*", "libcap.so.*" };

	return kx_globs_match(names, COUNT(names), m->name) || kx_is_dynamic_linker(m);
}

static int refuse(struct kx_err *err, const char *clause)
{
	return kx_err_set(err, -EOPNOTSUPP, "%s", clause);
}

/* Whether the process was started with a variable of this name. */
static bool has_variable(pid_t pid, const char *name)
{
	const size_t n = strlen(name);
	char path[32], *line = NULL;
	bool found = false;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	f = fopen(path, "re");
	while (f && !found && getdelim(&line, &size, 0, f) > 0)
		found = !strncmp(line, name, n) && line[n] == '=';
	free(line);
	if (f)
		fclose(f);
	return found;
}

const struct kx_module *kx_in_process_c_library(const struct kx_modules *mods)
{
	static const char *const glibc[] = { "libc.so.6", "libc-2.*" };

	for (size_t i = 0; i < mods->count; i++)
		if (kx_globs_match(glibc, COUNT(glibc), mods->items[i].name))
			return &mods->items[i];
	return NULL;
}

static int check_c_library(const struct kx_modules *mods, struct kx_err *err)
{
	static const char *const musl[] = { "ld-musl-*", "libc.musl-*" };

	for (size_t i = 0; i < mods->count; i++)
		if (kx_globs_match(musl, COUNT(musl), mods->items[i].name))
			return refuse(err, "its C library is musl, not glibc");
	return kx_in_process_c_library(mods) ? 0 : refuse(err, "it is linked statically, or its C library is not glibc");
}

#define READ_IMPLIES_EXEC 0x0400000 /* sys/personality.h */

/* Memory that it can map without us, and how: what is added must not be missing later, nor be other memory than it should be. */
static int check_memory(pid_t pid, struct kx_err *err)
{
	char path[32], line[256];
	const char *why = NULL;
	unsigned personality;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
	f = fopen(path, "re");
	while (f && !why && fgets(line, sizeof(line), f))
		if (!strncmp(line, "Max address space ", 18) && strncmp(line + 26, "unlimited", 9))
			why = "its address space is limited (RLIMIT_AS)";
		else if (!strncmp(line, "Max data size ", 14) && strncmp(line + 26, "unlimited", 9))
			why = "its data are limited (RLIMIT_DATA)";
	if (f)
		fclose(f);
	snprintf(path, sizeof(path), "/proc/%d/personality", (int)pid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%x", &personality) == 1 && personality & READ_IMPLIES_EXEC)
		why = "all its memory is executable (personality READ_IMPLIES_EXEC)";
	if (f)
		fclose(f);
	return why ? refuse(err, why) : 0;
}

/* What the kernel says of it. */
static int check_state(pid_t pid, struct kx_process_state *s, struct kx_err *err)
{
	int code = kx_process_state_read(pid, s, err);
	pid_t sharer;

	if (code)
		return code;
	if (s->tracer)
		return kx_err_set(err, -EOPNOTSUPP, "process %d traces it", (int)s->tracer);
	if (s->seccomp)
		return refuse(err, "it has a seccomp filter");
	if (s->shadow_stack)
		return refuse(err, "it has a shadow stack");
	if (s->namespaced)
		return refuse(err, "it has a PID namespace of its own, so its threads have other numbers there");
	sharer = kx_process_state_sharer(pid);
	return sharer ? kx_err_set(err, -EOPNOTSUPP, "it shares its memory with process %d", (int)sharer) : 0;
}

static bool has_section(const struct kx_elf *elf, const char *name)
{
	struct kx_elf_section section;

	return kx_elf_get_section(elf, name, &section);
}

/* What a module may do later; *@canceller becomes one that may cancel threads at any instruction. */
static int check_code(const struct kx_module *m, const struct kx_module **canceller, struct kx_err *err)
{
	bool cancels = false;
	struct kx_elf *elf;
	int code = kx_module_read(m, &elf, err);

	if (code)
		return code;
	if (has_section(elf, ".gopclntab") || has_section(elf, ".go.buildinfo"))
		code = kx_err_set(err, -EOPNOTSUPP, "%s is written in Go, which moves its stacks", m->name);
	else if (!is_known(m))
		code = kx_risky_calls_of_process(elf, m->name, &cancels, err);
	if (cancels)
		*canceller = m;
	kx_elf_close(elf);
	return code;
}

/*
 * Signals that come at any instruction and whose handler a program may use to switch to another stack: the place where it
 * was interrupted is then in memory that no stack pointer leads to.
 */
static bool handles_asynchronous(uint64_t caught)
{
	static const int signals[] = { SIGALRM, SIGVTALRM, SIGPROF, SIGUSR1, SIGUSR2, SIGURG, SIGIO };
	enum { FIRST_REAL_TIME = 34 }; /* glibc keeps 32 and 33 */

	for (size_t i = 0; i < COUNT(signals); i++)
		if (caught >> (signals[i] - 1) & 1)
			return true;
	return caught >> (FIRST_REAL_TIME - 1);
}

/* Two things of which only both are dangerous: a search of all code, so made only if the first is there. */
static int check_pairs(const struct kx_modules *mods, const struct kx_process_state *s, const struct kx_module *canceller,
		       struct kx_err *err)
{
	const bool asynchronous = handles_asynchronous(s->caught);
	struct kx_unwind_risk risk;

	if (!asynchronous && !canceller)
		return 0;
	kx_unwind_risk_of(mods, &risk);
	if (asynchronous && risk.switches_stacks)
		return kx_err_set(err, -EOPNOTSUPP, "%s, and it has handlers of asynchronous signals", risk.reason);
	if (canceller && !risk.returns_harmless)
		return kx_err_set(err, -EOPNOTSUPP, "%s may cancel threads at any instruction, and %s", canceller->name,
				  risk.reason);
	return 0;
}

static int check_modules(const struct kx_modules *mods, const struct kx_process_state *state, struct kx_err *err)
{
	const struct kx_module *canceller = NULL;
	int code = 0;

	for (size_t i = 0; !code && i < mods->count; i++)
		code = check_code(&mods->items[i], &canceller, err);
	return code ? code : check_pairs(mods, state, canceller, err);
}

int kx_in_process_check_loaded(pid_t pid, const struct kx_modules *mods, struct kx_err *err)
{
	struct kx_process_state state;
	int code = kx_process_state_read(pid, &state, err);

	return code ? code : check_modules(mods, &state, err);
}

int kx_in_process_check(pid_t pid, const struct kx_modules *mods, struct kx_err *err)
{
	const char *translator = kx_modules_translator(mods), *lacks = kx_recorder_cpu_lacks();
	struct kx_process_state state;
	int code;

	if (lacks)
		return refuse(err, lacks);
	if (translator)
		return kx_err_set(err, -EOPNOTSUPP, "it runs under %s", translator);
	if (has_variable(pid, "RUNNING_UNDER_RR"))
		return refuse(err, "it runs under rr");
	code = check_c_library(mods, err);
	if (!code)
		code = check_state(pid, &state, err);
	if (!code)
		code = check_memory(pid, err);
	return code ? code : check_modules(mods, &state, err);
}

/* The file's mapping at the module's place, as the kernel shows it. */
struct places {
	const struct kx_module *module;
	const struct kx_elf *elf;
	uint64_t device, inode; /* 0: it was not seen */
	bool is_elsewhere;
};

static int find_place(void *ctx, const struct kx_mapping *m)
{
	struct places *p = ctx;

	if (m->start != p->module->start || !kx_module_has_mapping(p->module, m))
		return 0;
	p->device = m->device;
	p->inode = m->inode;
	return 1;
}

/* Whether a mapping of the file's code is where the module's bias puts it; what is cut in pieces is there as well. */
static bool is_in_place(const struct places *p, const struct kx_mapping *m)
{
	struct kx_elf_section seg;

	for (size_t i = 0; kx_elf_exec_segment(p->elf, i, &seg); i++)
		if (m->start - m->offset == p->module->load_bias + seg.addr - seg.offset)
			return true;
	return false;
}

static int find_other_place(void *ctx, const struct kx_mapping *m)
{
	struct places *p = ctx;

	p->is_elsewhere = m->executable && m->inode == p->inode && m->device == p->device && !is_in_place(p, m);
	return p->is_elsewhere;
}

int kx_in_process_check_places(pid_t pid, const struct kx_module *m, const struct kx_elf *elf, struct kx_err *err)
{
	struct places p = { .module = m, .elf = elf };

	kx_mappings_each(pid, find_place, &p);
	if (p.inode)
		kx_mappings_each(pid, find_other_place, &p);
	return p.is_elsewhere ? refuse(err, "its code is mapped at several places, of which jumps would be at one") : 0;
}

/* A range of the module's code, as far as its mappings were found to be in order. */
struct text {
	const struct kx_module *module;
	uint64_t at, end;
	const char *fault;
};

static int check_mapping(void *ctx, const struct kx_mapping *m)
{
	struct text *t = ctx;

	if (m->end <= t->at)
		return 0;
	if (m->start > t->at || !kx_module_has_mapping(t->module, m) || !m->executable)
		t->fault = "its code is not where the file was mapped";
	else if (m->shared)
		t->fault = "its code is a shared mapping of the file";
	else if (m->writable)
		t->fault = "its code is writable: it may change itself, or another recording has its jumps there";
	t->at = m->end;
	return t->fault || t->at >= t->end;
}

static int check_text(pid_t pid, const struct kx_module *m, const struct kx_elf *elf, struct kx_err *err)
{
	struct kx_elf_section seg;

	for (size_t i = 0; kx_elf_exec_segment(elf, i, &seg); i++) {
		struct text t = { .module = m, .at = m->load_bias + seg.addr, .end = m->load_bias + seg.addr + seg.size };
		int code = kx_mappings_each(pid, check_mapping, &t);

		if (code < 0)
			return kx_err_set(err, code, "cannot open '/proc/%d/maps': %s", (int)pid,
					  code == -ESRCH ? "the process has ended" : strerror(-code));
		if (!t.fault && t.at < t.end)
			t.fault = "its code is not where the file was mapped";
		if (t.fault)
			return refuse(err, t.fault);
	}
	return 0;
}

int kx_in_process_check_code(const struct kx_module *m, struct kx_elf *elf, struct kx_err *err)
{
	if (has_section(elf, "xray_instr_map"))
		return refuse(err, "it has XRay sleds, which it may patch itself");
	return is_known(m) ? 0 : kx_risky_calls_of_module(elf, err);
}

int kx_in_process_check_module(pid_t pid, const struct kx_module *m, struct kx_err *err)
{
	struct kx_elf *elf;
	int code = kx_module_read(m, &elf, err);

	if (code)
		return code;
	code = check_text(pid, m, elf, err);
	if (!code)
		code = kx_in_process_check_places(pid, m, elf, err);
	if (!code)
		code = kx_in_process_check_code(m, elf, err);
	kx_elf_close(elf);
	return code;
}
