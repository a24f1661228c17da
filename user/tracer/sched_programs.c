// SPDX-License-Identifier: BSD-2-Clause
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "record.skel.h"
#include "tracer/sched_programs.h"

/* The function type of a tracepoint, or NULL. */
static const struct btf_type *find_tracepoint(const struct btf *btf, const char *name)
{
	const struct btf_type *type;
	char text[64];
	int id;

	snprintf(text, sizeof(text), "btf_trace_%s", name);
	id = btf ? btf__find_by_name_kind(btf, text, BTF_KIND_TYPEDEF) : -ENOENT;
	if (id < 0)
		return NULL;
	type = btf__type_by_id(btf, btf__type_by_id(btf, (__u32)id)->type);
	if (type && btf_is_ptr(type))
		type = btf__type_by_id(btf, type->type);
	return type && btf_is_func_proto(type) ? type : NULL;
}

/* Whether BPF programs may read the count that shows whether a CPU is in an interrupt. */
static bool has_preempt_count(void)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[512], name[64];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%*s %*s %63s", name) == 1 &&
			(!strcmp(name, "__preempt_count") || !strcmp(name, "pcpu_hot"));
	if (f)
		fclose(f);
	return found;
}

void kx_sched_programs_choose(struct record_bpf *s)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_type *on_switch = find_tracepoint(btf, "sched_switch");
	bool counted = has_preempt_count();
	bool timers = !counted && find_tracepoint(btf, "local_timer_entry") &&
		      find_tracepoint(btf, "local_timer_exit");

	/* beside its own arguments a tracepoint's function takes a pointer to its data */
	if (on_switch)
		s->rodata->kx_switch_has_state = btf_vlen(on_switch) > 4;
	bpf_program__set_autoload(s->progs.kx_sched_waking, counted);
	bpf_program__set_autoload(s->progs.kx_sched_waking_timer, !counted);
	bpf_program__set_autoload(s->progs.kx_timer_entry, timers);
	bpf_program__set_autoload(s->progs.kx_timer_exit, timers);
	btf__free(btf);
}
