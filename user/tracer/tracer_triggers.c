// SPDX-License-Identifier: BSD-2-Clause
/* The kernel side of a flight recorder's triggers; see ../bpf/trigger.bpf.h. */
#include "tracer/tracer.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "tracer/tracer_internal.h"

static int on_trigger(void *ctx, void *data, size_t size)
{
	struct kx_tracer *t = ctx;

	if (size >= sizeof(struct kx_trigger_event))
		t->on_trigger(t->on_trigger_ctx, data);
	return 0;
}

int kx_tracer_open_triggers(struct kx_tracer *t, struct kx_err *err)
{
	t->triggers = ring_buffer__new(bpf_map__fd(t->skel->maps.kx_trigger_ring), on_trigger, t,
				       NULL);
	if (!t->triggers)
		return kx_err_set(err, -errno, "the triggers' ring cannot be mapped: %s",
				  strerror(errno));
	return 0;
}

int kx_tracer_add_trigger(struct kx_tracer *t, uint32_t func, bool on_entry, uint64_t over_ns,
			  struct kx_err *err)
{
	int fd = bpf_map__fd(t->skel->maps.kx_trigger_funcs), code;
	struct kx_trigger_func f = { 0 };

	bpf_map_lookup_elem(fd, &func, &f);
	f.on_entry |= on_entry;
	/* of two limits the lower one is always the first to be passed */
	if (over_ns && (!f.over_ns || over_ns < f.over_ns))
		f.over_ns = over_ns;
	code = bpf_map_update_elem(fd, &func, &f, BPF_ANY);
	if (code)
		return kx_err_set(err, code, "too many functions are triggers; narrow their patterns");
	t->any_trigger = true;
	return 0;
}

int kx_tracer_add_trigger_if(struct kx_tracer *t, uint32_t func, uint16_t number, uint64_t over_ns, struct kx_err *err)
{
	int fd = bpf_map__fd(t->skel->maps.kx_trigger_funcs), code;
	struct kx_trigger_func f = { 0 };

	bpf_map_lookup_elem(fd, &func, &f);
	if (f.condition)
		return kx_err_set(err, -EEXIST, "two triggers with a condition");
	f.condition = number;
	f.if_over_ns = over_ns;
	code = bpf_map_update_elem(fd, &func, &f, BPF_ANY);
	if (code)
		return kx_err_set(err, code, "too many functions are triggers; narrow their patterns");
	t->any_trigger = true;
	return 0;
}

bool kx_tracer_trigger(const struct kx_tracer *t, uint32_t func, struct kx_trigger_func *out)
{
	struct kx_trigger_func f;

	return t->any_trigger &&
	       !bpf_map_lookup_elem(bpf_map__fd(t->skel->maps.kx_trigger_funcs), &func,
				    out ? out : &f);
}

void kx_tracer_arm_triggers(struct kx_tracer *t)
{
	__atomic_store_n(&t->skel->bss->kx_triggers_armed, 1, __ATOMIC_RELEASE);
}

uint64_t kx_tracer_triggers_merged(const struct kx_tracer *t, uint64_t *lost)
{
	*lost = __atomic_load_n(&t->skel->bss->kx_triggers_lost, __ATOMIC_RELAXED);
	return __atomic_load_n(&t->skel->bss->kx_triggers_merged, __ATOMIC_RELAXED);
}

int kx_tracer_trigger_fd(const struct kx_tracer *t)
{
	return t->triggers ? ring_buffer__epoll_fd(t->triggers) : -1;
}

void kx_tracer_read_triggers(struct kx_tracer *t,
			     void (*each)(void *ctx, const struct kx_trigger_event *ev), void *ctx)
{
	t->on_trigger = each;
	t->on_trigger_ctx = ctx;
	if (t->triggers)
		ring_buffer__consume(t->triggers);
}
