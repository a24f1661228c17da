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

/* Whether BPF programs may read the count that tells whether a CPU is in an interrupt. */
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

void kx_sched_programs_choose(struct record_bpf *s, bool wanted)
{
	struct btf *btf = wanted ? btf__load_vmlinux_btf() : NULL;
	const struct btf_type *on_switch = find_tracepoint(btf, "sched_switch");
	bool counted = wanted && has_preempt_count();
	bool timers = wanted && !counted && find_tracepoint(btf, "local_timer_entry") &&
		      find_tracepoint(btf, "local_timer_exit");

	/* beside its own arguments a tracepoint's function takes a pointer to its data */
	if (on_switch)
		s->rodata->kx_switch_has_state = btf_vlen(on_switch) > 4;
	bpf_program__set_autoload(s->progs.kx_sched_switch, wanted);
	bpf_program__set_autoload(s->progs.kx_sched_wakeup_new, wanted);
	bpf_program__set_autoload(s->progs.kx_sched_waking, counted);
	bpf_program__set_autoload(s->progs.kx_sched_waking_timer, wanted && !counted);
	bpf_program__set_autoload(s->progs.kx_timer_entry, timers);
	bpf_program__set_autoload(s->progs.kx_timer_exit, timers);
	btf__free(btf);
}

struct watcher {
	struct bpf_program *prog;
	struct bpf_link **link;
};

#define NWATCHERS 6

static void list(struct record_bpf *s, struct watcher out[NWATCHERS])
{
	const struct watcher all[NWATCHERS] = {
		{ s->progs.kx_timer_entry, &s->links.kx_timer_entry },
		{ s->progs.kx_timer_exit, &s->links.kx_timer_exit },
		{ s->progs.kx_sched_waking, &s->links.kx_sched_waking },
		{ s->progs.kx_sched_waking_timer, &s->links.kx_sched_waking_timer },
		{ s->progs.kx_sched_wakeup_new, &s->links.kx_sched_wakeup_new },
		{ s->progs.kx_sched_switch, &s->links.kx_sched_switch },
	};

	memcpy(out, all, sizeof(all));
}

int kx_sched_programs_attach(struct record_bpf *s, struct kx_err *err)
{
	struct watcher all[NWATCHERS];

	list(s, all);
	for (size_t i = 0; i < NWATCHERS; i++) {
		if (bpf_program__fd(all[i].prog) < 0) /* not loaded */
			continue;
		*all[i].link = bpf_program__attach(all[i].prog);
		if (!*all[i].link)
			return kx_err_set(err, -errno,
					  "the kernel's scheduler cannot be watched (%s): %s; leave out "
					  "--sched", bpf_program__name(all[i].prog), strerror(errno));
	}
	return 0;
}

void kx_sched_programs_detach(struct record_bpf *s)
{
	struct watcher all[NWATCHERS];

	list(s, all);
	for (size_t i = 0; i < NWATCHERS; i++) {
		bpf_link__destroy(*all[i].link);
		*all[i].link = NULL;
	}
}
