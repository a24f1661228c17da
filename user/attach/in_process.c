// SPDX-License-Identifier: BSD-2-Clause
/* Which functions are recorded in process, and the life of their jumps. */
#include "attach/in_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/in_process_check.h"
#include "attach/in_process_children.h"
#include "attach/in_process_internal.h"
#include "attach/memory_room.h"
#include "attach/other_kxray.h"
#include "attach/thread_layout.h"
#include "base/array.h"
#include "base/usable_cpus.h"
#include "select/provider_usdt.h"
#include "tracer/clock.h"
#include "tracer/cpus.h"
#include "tracer/keeper.h"
#include "tracer/process_state.h"
#include "tracer/remote_calls.h"

#define CALLS_WAIT_MS 2000
/* A page table of 4096 bytes maps 512 pages. The pages of rings and trampolines themselves count as kxray's. */
#define PAGE_TABLE_PART 512

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
/* A recorder that finds a full ring and the reader silent for so many TSC ticks (5 to 25 s) switches itself off. */
#define PATIENCE_TICKS 25000000000ull
/* A reader of the rings that has not been seen for so long is gone. */
#define OTHER_SECONDS 2.0

static int plan_function(struct kx_in_process *p, struct kx_patched_module *m, const struct kx_function *f, struct kx_process_code *memory)
{
	struct kx_patched_function planned = { .id = f->id };
	enum kx_window_refusal why;
	bool probed = false;

	if (p->o.is_for_uprobes(p->o.ctx, f)) {
		kx_in_process_refuse(p, f, "its calls carry values, or have a condition or a trigger");
		return 0;
	}
	why = kx_windows_plan(m->planner, f->sym, &planned.windows);
	if (why || (memory && !kx_in_process_is_unchanged(memory, m, &planned.windows, &probed))) {
		p->nprobed += probed;
		kx_in_process_refuse(p, f, why ? kx_window_refusal_text(why) : "its code in the process is not the file's");
		return 0;
	}
	if (KX_ARRAY_RESERVE(m->functions, m->room, m->nfunctions))
		return -ENOMEM;
	m->functions[m->nfunctions++] = planned;
	m->nwindows += planned.windows.n;
	p->has[f->id - 1] = true;
	p->nhas++;
	return 0;
}

static void refuse_module(struct kx_in_process *p, uint32_t module, const char *reason)
{
	for (size_t i = 0; i < p->o.sel->nfunctions; i++)
		if (p->o.sel->functions[i].traced && p->o.sel->functions[i].module == module)
			kx_in_process_refuse(p, &p->o.sel->functions[i], reason);
}

int kx_in_process_plan_module(struct kx_in_process *p, uint32_t module, const struct kx_module *now,
			      struct kx_process_code *memory, struct kx_err *err)
{
	const struct kx_select_module *s = &p->o.sel->modules[module];
	struct kx_patched_module *m = &p->modules[module];
	struct kx_err why = { 0 };
	int code;

	*m = (struct kx_patched_module){ .m = s, .now = now, .planned = true, .bias = now->load_bias, .text = now->start, .text_end = now->end };
	if (s->provider->probe != KX_PROBE_UPROBE || !s->elf || s->provider == &kx_provider_usdt)
		return 0;
	if (kx_in_process_is_guarded(p, now)) {
		refuse_module(p, module, "other functions of it have jumps already");
		return 0;
	}
	code = memory ? kx_in_process_check_module(p->o.pid, now, &why) : kx_in_process_check_places(p->o.pid, now, s->elf, &why);
	if (!code && !memory)
		code = kx_in_process_check_code(now, s->elf, &why);
	if (!code)
		code = kx_window_planner_new(s->elf, &s->syms, kx_usable_cpus(8), &m->planner, &why);
	if (code == -EOPNOTSUPP) {
		refuse_module(p, module, why.text);
		return 0;
	}
	if (code) {
		*err = why;
		return code;
	}
	if (p->handles_faults)
		kx_window_planner_keep_faults(m->planner);
	for (size_t i = 0; i < p->o.sel->nfunctions && !code; i++)
		if (p->o.sel->functions[i].traced && p->o.sel->functions[i].module == module)
			code = plan_function(p, m, &p->o.sel->functions[i], memory);
	return code ? kx_err_set(err, code, "no memory for the windows of functions") : 0;
}

int kx_in_process_look_for_handlers(struct kx_in_process *p, struct kx_err *err)
{
	struct kx_process_state state;
	int code = kx_process_state_read(p->o.pid, &state, err);

	if (!code)
		p->handles_faults = kx_process_handles_faults(&state);
	return code;
}

int kx_in_process_make_room(struct kx_in_process *p, struct kx_err *err)
{
	const size_t nfunctions = p->o.sel->nfunctions + 1, nmodules = p->o.sel->nmodules;
	struct kx_patched_module *modules;
	bool *has;

	if (p->has_room < nfunctions) {
		has = realloc(p->has, nfunctions * sizeof(*has));
		if (!has)
			return kx_err_set(err, -ENOMEM, "no memory");
		memset(has + p->has_room, 0, (nfunctions - p->has_room) * sizeof(*has));
		p->has = has;
		p->has_room = nfunctions;
	}
	if (p->nmodules < nmodules) {
		modules = reallocarray(p->modules, nmodules, sizeof(*modules));
		if (!modules)
			return kx_err_set(err, -ENOMEM, "no memory");
		memset(modules + p->nmodules, 0, (nmodules - p->nmodules) * sizeof(*modules));
		p->modules = modules;
		p->nmodules = nmodules;
	}
	return 0;
}

static int plan(struct kx_in_process *p, struct kx_err *err)
{
	struct kx_process_code memory;
	int code = kx_in_process_look_for_handlers(p, err);

	if (code)
		return code;
	code = kx_process_code_open(p->o.pid, &memory);
	if (code)
		return kx_err_set(err, code, "the memory of process %d cannot be read: %s", p->o.pid, strerror(-code));
	for (uint32_t i = 0; i < p->o.sel->nmodules && !code; i++)
		/* with --follow there are files that only other processes may map */
		if (kx_modules_find(p->o.mods, p->o.sel->modules[i].module))
			code = kx_in_process_plan_module(p, i, p->o.sel->modules[i].module, &memory, err);
	if (!code)
		kx_in_process_plan_guards(p, &memory);
	kx_process_code_close(&memory);
	return code ? code : kx_in_process_check_any(p, err);
}

/*
 * The process's first writes to the rings need no page faults then (older kernels than 5.14 cannot do it: no error), and its core dump is as large as
 * without them.
 */
static void advise(const struct kx_in_process *p)
{
	const long at = (long)p->rings_at, size = (long)p->rings_size;
	struct kx_remote_call calls[] = { { .number = SYS_madvise, .args = { at, size, MADV_DONTDUMP } },
					  { .number = SYS_madvise, .args = { at, size, MADV_POPULATE_WRITE } } };

	kx_remote_calls(p->o.pid, calls, 2, CALLS_WAIT_MS, NULL);
}

static int map_rings(struct kx_in_process *p, uint64_t ring_bytes, struct kx_err *err)
{
	struct kx_remote_call call = { .number = SYS_mmap };
	struct kx_cpus cpus;
	struct kx_thread_layout layout;
	uint32_t nslots;
	int code = kx_thread_layout_read(p->o.pid, &layout, err);

	if (code)
		return code;
	code = kx_cpus_read(&cpus, err);
	if (code)
		return code;
	p->tid_offset = layout.tid;
	nslots = kx_ring_slots_for(ring_bytes, cpus.n);
	p->rings_size = kx_target_rings_size(nslots, cpus.n);
	code = kx_memory_room_check(p->o.pid, kx_changed_pages(p->o.sel) + p->rings_size / PAGE_TABLE_PART, err);
	call.args[1] = (long)p->rings_size;
	call.args[2] = PROT_READ | PROT_WRITE;
	call.args[3] = MAP_SHARED | MAP_ANONYMOUS;
	call.args[4] = -1;
	if (!code)
		code = kx_remote_calls(p->o.pid, &call, 1, CALLS_WAIT_MS, err);
	if (!code && call.result < 0)
		code = kx_in_process_unmapped(p->o.pid, (int)call.result, p->rings_size, "for the rings", err);
	if (!code) {
		p->rings_at = (uint64_t)call.result;
		p->memory = kx_in_process_share(p->o.pid, p->rings_at, p->rings_size, err);
		code = p->memory ? 0 : err->code;
	}
	if (!code) {
		/* first of all: from now on kx_patch_remove finds them */
		kx_target_rings_init(p->memory, nslots, cpus.n, &layout, PATIENCE_TICKS);
		/* the kernel gives the pages now, and counts them as kxray's */
		memset(p->memory->losses, 0, p->rings_size - offsetof(struct kx_target_rings, losses));
		p->memory->heartbeat = kx_tsc_read();
		code = kx_target_rings_open(p->memory, nslots, cpus.n, &p->rings, err);
		advise(p);
	}
	kx_cpus_free(&cpus);
	return code;
}

int kx_in_process_clear_rest(pid_t pid, struct kx_err *err)
{
	struct kx_patch_removal removal;
	struct kx_patch_family_removal all;
	struct kx_patch_family family;
	char who[64];

	if (kx_patch_is_read(pid, OTHER_SECONDS))
		return kx_err_set(err, -EBUSY, "%s records process %d in process, or was killed just now: end it, or try again",
				  kx_other_kxray_name(pid, "another kxray", who, sizeof(who)), pid);
	if (!kx_patch_family_find(pid, &family))
		kx_patch_family_remove(&family, CALLS_WAIT_MS, &all, NULL);
	kx_patch_remove_soon(pid, &removal, NULL);
	return 0;
}

/* The areas of all modules. One that gets none is left to uprobes; its reason is the error if none remains. */
static int map_modules(struct kx_in_process *p, struct kx_err *err)
{
	struct kx_err why = { 0 };
	int code = 0;

	for (size_t i = 0; i < p->nmodules && !code; i++) {
		struct kx_patched_module *m = &p->modules[i];

		if (!m->nwindows)
			continue;
		code = kx_patched_module_map(p, m, err);
		if (code != -ESTALE && code != -EOPNOTSUPP)
			continue;
		kx_patched_module_remove(p, m); /* -ESTALE: the program has unloaded it meanwhile */
		if (code == -EOPNOTSUPP) {
			why = *err;
			kx_patched_module_refuse(p, m, why.text);
			for (size_t g = 0; g < KX_GUARDS; g++)
				if (m->guards[g].length)
					kx_in_process_note_unguarded(p, kx_guards[g].function, why.text);
		}
		code = 0;
	}
	if (!code)
		code = kx_in_process_check_any(p, err);
	if (code == -EOPNOTSUPP && why.code)
		*err = why;
	return code;
}

static int begin(struct kx_in_process *p, uint64_t ring_bytes, struct kx_err *err)
{
	char path[32];
	int code;

	snprintf(path, sizeof(path), "/proc/%d/mem", p->o.pid);
	p->mem = open(path, O_RDWR | O_CLOEXEC);
	if (p->mem < 0)
		return kx_err_set(err, -errno, "the memory of process %d cannot be written: %s", p->o.pid, strerror(errno));
	code = kx_in_process_clear_rest(p->o.pid, err);
	if (!code)
		code = plan(p, err);
	if (code)
		return code;
	p->counts.unguarded = kx_keeper_guard_patches(p->o.pid) != 0;
	code = map_rings(p, ring_bytes, err);
	if (!code && p->o.follow)
		code = kx_in_process_share_family(p, err);
	if (!code)
		kx_in_process_map_guards(p);
	return code ? code : map_modules(p, err);
}

/* @err has a clause about why. */
static int refuse_process(pid_t pid, struct kx_err *err)
{
	return kx_err_prefix(err, "process %d cannot be recorded in process (leave out --in-process)", pid);
}

int kx_in_process_new(const struct kx_in_process_options *o, struct kx_in_process **out, struct kx_err *err)
{
	struct kx_in_process *p;
	int code = kx_in_process_check(o->pid, o->mods, err);

	if (code == -EOPNOTSUPP)
		return refuse_process(o->pid, err);
	if (code)
		return code;
	p = calloc(1, sizeof(*p));
	if (!p)
		return kx_err_set(err, -ENOMEM, "no memory");
	*p = (struct kx_in_process){ .o = *o, .mem = -1 };
	code = kx_in_process_make_room(p, err);
	if (!code)
		code = begin(p, o->ring_bytes, err);
	if (code) {
		if (p->family.inode)
			kx_in_process_remove_family(p, NULL, NULL);
		else
			kx_in_process_remove(p, NULL, NULL);
		kx_in_process_free(p);
		return code;
	}
	*out = p;
	return 0;
}

bool kx_in_process_has(const struct kx_in_process *p, uint32_t id)
{
	return id < p->has_room && p->has[id - 1];
}

/* What it has loaded since it was looked at, and before there were guards, may have forbidden the clock already. */
static int check_again(const struct kx_in_process *p, struct kx_err *err)
{
	struct kx_modules now;
	bool any = false;
	int code = kx_modules_of_process(p->o.pid, &now, err);

	if (code)
		return code;
	for (size_t i = 0; i < now.count && !any; i++)
		any = !kx_modules_find(p->o.mods, &now.items[i]);
	code = any ? kx_in_process_check_loaded(p->o.pid, &now, err) : 0;
	kx_modules_free(&now);
	return code == -EOPNOTSUPP ? refuse_process(p->o.pid, err) : code;
}

int kx_in_process_install(struct kx_in_process *p, struct kx_err *err)
{
	int code;

	/* first: nothing is recorded before */
	kx_in_process_install_guards(p);
	code = check_again(p, err);
	if (!code)
		code = kx_patched_modules_install(p, p->modules, p->nmodules, err);
	p->counts.functions = p->nhas;
	return code;
}

int kx_in_process_enable(struct kx_in_process *p, bool enabled)
{
	int code = 0;

	p->enabled = enabled;
	for (size_t i = 0; i < p->nmodules && !code; i++)
		if (p->modules[i].area.table)
			code = kx_patch_enable(&p->modules[i].area, enabled);
	return code;
}

bool kx_in_process_is_forbidden(const struct kx_in_process *p)
{
	return __atomic_load_n(&p->memory->cpu_by, __ATOMIC_RELAXED) == KX_TARGET_FORBIDDEN;
}

struct kx_rings *kx_in_process_rings(struct kx_in_process *p)
{
	return p->rings;
}

struct kx_target_rings *kx_in_process_memory(struct kx_in_process *p)
{
	return p->memory;
}

void kx_in_process_get_counts(const struct kx_in_process *p, struct kx_in_process_counts *out)
{
	*out = p->counts;
}

static bool any_table(const struct kx_in_process *p)
{
	if (p->nleaving || p->guarded.module.area.table)
		return true;
	for (size_t i = 0; i < p->nmodules; i++)
		if (p->modules[i].area.table)
			return true;
	return false;
}

/* Rings that no table names. */
static int unmap_rings(const struct kx_in_process *p, struct kx_err *err)
{
	struct kx_remote_call call = { .number = SYS_munmap, .args = { (long)p->rings_at, (long)p->rings_size } };
	const int code = kx_remote_calls(p->o.pid, &call, 1, CALLS_WAIT_MS, err);

	if (code != -EBUSY)
		kx_keeper_release_patches(p->o.pid);
	return code;
}

int kx_in_process_remove(struct kx_in_process *p, struct kx_patch_removal *out, struct kx_err *err)
{
	struct kx_patch_removal removal = { 0 };
	int code;

	if (!p->rings_at)
		return 0;
	if (!any_table(p))
		return unmap_rings(p, err);
	code = kx_patch_remove_soon(p->o.pid, &removal, err);
	kx_in_process_note_stop(p, removal.stopped_ms);
	if (out)
		*out = removal;
	if (code != -EBUSY && code != -EPERM && !removal.frozen) {
		kx_keeper_release_patches(p->o.pid);
		/* another may map something there: nothing is written into it any more */
		for (size_t i = 0; i < p->nmodules; i++)
			kx_patched_module_forget(&p->modules[i]);
		kx_patched_module_forget(&p->guarded.module);
		p->rings_at = 0;
	}
	return code == -ESRCH ? 0 : code;
}

void kx_in_process_free(struct kx_in_process *p)
{
	if (!p)
		return;
	kx_target_rings_close(p->rings);
	if (p->memory)
		munmap(p->memory, p->rings_size);
	for (size_t i = 0; i < p->nmodules; i++)
		kx_patched_module_free(&p->modules[i]);
	kx_in_process_free_guards(p);
	if (p->mem >= 0)
		close(p->mem);
	free(p->modules);
	free(p->leaving);
	free(p->has);
	free(p);
}
