// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/tracer.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd_limit.h"
#include "tracer/kernel_template.h"
#include "tracer/tracer_internal.h"

static int silent(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

static int on_process_event(void *ctx, void *data, size_t size)
{
	struct kx_tracer *t = ctx;

	if (size >= sizeof(struct kx_process_event) && t->on_process)
		t->on_process(t->on_process_ctx, data);
	return 0;
}

static int on_doorbell(void *ctx, void *data, size_t size)
{
	(void)ctx;
	(void)data;
	(void)size;
	return 0;
}

static int fill_maps(struct kx_tracer *t, const struct kx_tracer_options *o, struct kx_err *err)
{
	int template_fd = t->template_fd;

	for (size_t i = 0; i < o->npids; i++) {
		struct kx_target target = { .changes = 1 };
		__u32 tgid = (__u32)o->pids[i];
		int code = bpf_map_update_elem(bpf_map__fd(t->skel->maps.kx_targets), &tgid, &target,
					       BPF_ANY);

		if (code)
			return kx_err_set(err, code, "too many processes to trace (%zu)", o->npids);
	}
	t->template_fd = -1;
	return kx_rings_new(bpf_map__fd(t->skel->maps.kx_rings), template_fd, t->cpus.online, t->cpus.n,
			    t->skel->rodata->kx_ring_slots, &t->rings, err);
}

/* Tells the session's program where each CPU has its current task. Without that it asks the kernel at each hit. */
static void find_current_tasks(struct kx_tracer *t)
{
	__u64 args[] = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));

	for (unsigned cpu = 0; t->mechanism == KX_MECHANISM_SESSION && cpu < t->cpus.n; cpu++) {
		args[0] = cpu;
		bpf_prog_test_run_opts(bpf_program__fd(t->skel->progs.kx_find_current), &opts);
	}
}

/* BPF programs use process ids of the initial pid namespace, kxray those of its own. */
static int check_namespace(struct kx_tracer *t, struct kx_err *err)
{
	const volatile struct record_bpf__bss *bss = t->skel->bss;
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	if (bpf_prog_test_run_opts(bpf_program__fd(t->skel->progs.kx_look_at_caller), &opts) == 0 &&
	    bss->kx_caller_tgid == (uint32_t)getpid())
		return 0;
	return kx_err_set(err, -ENOTSUP,
			  "kxray runs in a pid namespace of its own, whose process ids the kernel side "
			  "does not have; run it outside the container, or start the container with the "
			  "host's pid namespace (--pid=host)");
}

static int open_doorbell(struct kx_tracer *t, struct kx_err *err)
{
	t->doorbell = ring_buffer__new(bpf_map__fd(t->skel->maps.kx_doorbell), on_doorbell, NULL, NULL);
	if (t->doorbell && !ring_buffer__add(t->doorbell, bpf_map__fd(t->skel->maps.kx_process_events), on_process_event, t))
		return 0;
	return kx_err_set(err, -errno, "the doorbell ring cannot be mapped: %s", strerror(errno));
}

int kx_tracer_new(const struct kx_tracer_options *o, struct kx_tracer **out, struct kx_err *err)
{
	struct kx_tracer *t = calloc(1, sizeof(*t));
	int code;

	if (!t)
		return kx_err_set(err, -ENOMEM, "no memory");
	kx_fd_limit_raise(0); /* for its maps and programs */
	t->mechanism = o->mechanism;
	t->kernel = o->kernel;
	t->template_fd = -1;
	t->sample_hz = o->sample_hz;
	/* The verifier's log is useful to developers only. */
	if (!getenv("KXRAY_LIBBPF_LOG"))
		libbpf_set_print(silent);
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL & ~LIBBPF_STRICT_AUTO_RLIMIT_MEMLOCK);
	code = kx_cpus_read(&t->cpus, err);
	t->clock = o->borrowed_clock;
	t->borrows_clock = t->clock;
	if (!code && !t->clock)
		code = kx_clock_new(o->clock, &t->clock, err);
	if (code)
		goto fail;
	code = kx_kernel_templates_register();
	if (code) {
		kx_err_set(err, code, "no memory for the BPF programs");
		goto fail;
	}
	t->skel = o->top_functions ? kx_tracer_top_open() : record_bpf__open();
	if (!t->skel) {
		code = kx_err_set(err, -errno, "the recorder's BPF object cannot be opened: %s",
				  strerror(errno));
		goto fail;
	}
	code = kx_tracer_load(t, o, err);
	if (!code)
		code = kx_tracer_budget_map(t, err);
	if (!code)
		code = kx_tracer_top_map(t, err);
	if (!code)
		code = fill_maps(t, o, err);
	if (!code)
		code = check_namespace(t, err);
	if (!code) {
		find_current_tasks(t);
		kx_tracer_top_lines(t);
	}
	if (code)
		goto fail;
	code = open_doorbell(t, err);
	if (!code && o->flight)
		code = kx_tracer_open_triggers(t, err);
	if (code)
		goto fail;
	*out = t;
	return 0;
fail:
	kx_tracer_free(t);
	return code;
}

void kx_tracer_free(struct kx_tracer *t)
{
	if (!t)
		return;
	kx_links_close(&t->samplers);
	ring_buffer__free(t->doorbell);
	ring_buffer__free(t->triggers);
	kx_rings_free(t->rings);
	if (t->template_fd >= 0)
		close(t->template_fd);
	kx_tracer_budget_unmap(t);
	kx_tracer_top_unmap(t);
	record_bpf__destroy(t->skel);
	if (!t->borrows_clock)
		kx_clock_free(t->clock);
	kx_cpus_free(&t->cpus);
	free(t->conditions);
	free(t);
}

int kx_tracer_prog_fd(const struct kx_tracer *t, enum kx_tracer_prog prog)
{
	switch (prog) {
	case KX_PROG_RETURN:
		return bpf_program__fd(t->mechanism == KX_MECHANISM_SESSION
					       ? t->session
					       : t->skel->progs.kx_return);
	case KX_PROG_EXIT:
		return bpf_program__fd(t->skel->progs.kx_exit);
	case KX_PROG_MARK:
		return bpf_program__fd(t->skel->progs.kx_marker);
	case KX_PROG_DLOPEN:
		return bpf_program__fd(t->skel->progs.kx_dlopen);
	case KX_PROG_STOP:
		return bpf_program__fd(t->skel->progs.kx_stop_at_entry);
	default:
		return bpf_program__fd(t->skel->progs.kx_entry);
	}
}

enum kx_mechanism kx_tracer_prog_mechanism(const struct kx_tracer *t, enum kx_tracer_prog prog)
{
	if (t->mechanism == KX_MECHANISM_SESSION && prog != KX_PROG_RETURN)
		return KX_MECHANISM_MULTI;
	return t->mechanism;
}

enum kx_kernel_mechanism kx_tracer_kernel_mechanism(const struct kx_tracer *t)
{
	return t->kernel;
}

int kx_tracer_kernel_prog(const struct kx_tracer *t, bool is_return)
{
	if (t->kernel == KX_KERNEL_SESSION)
		return bpf_program__fd(t->skel->progs.kx_kernel_session);
	return bpf_program__fd(is_return ? t->skel->progs.kx_kernel_return :
					   t->skel->progs.kx_kernel_entry);
}

int kx_tracer_kernel_load(const struct kx_tracer *t, bool is_return, uint32_t btf_id)
{
	return kx_kernel_template_load(t->skel->obj,
				       is_return ? t->skel->progs.kx_kernel_fexit :
						   t->skel->progs.kx_kernel_fentry,
				       is_return, btf_id);
}

uint32_t *kx_tracer_syscalls(struct kx_tracer *t)
{
	return t->skel->bss->kx_syscalls;
}

void kx_tracer_ready(struct kx_tracer *t, bool ready)
{
	__atomic_store_n(&t->skel->bss->kx_ready, ready, __ATOMIC_RELEASE);
}

uint32_t kx_tracer_link_map_generation(const struct kx_tracer *t)
{
	return __atomic_load_n(&t->skel->bss->kx_link_map_generation, __ATOMIC_ACQUIRE);
}

void kx_tracer_link_map_ack(struct kx_tracer *t, uint32_t changes)
{
	__atomic_store_n(&t->skel->bss->kx_link_map_ack, changes, __ATOMIC_RELEASE);
}

int kx_tracer_doorbell_fd(const struct kx_tracer *t)
{
	return ring_buffer__epoll_fd(t->doorbell);
}

void kx_tracer_poll_events(struct kx_tracer *t)
{
	ring_buffer__consume(t->doorbell);
}

bool kx_tracer_process_runs(struct kx_tracer *t, bool wake)
{
	const uint32_t ticks = __atomic_load_n(&t->skel->bss->kx_ticks, __ATOMIC_RELAXED);
	const bool runs = ticks != t->ticks;

	t->ticks = ticks;
	__atomic_store_n(&t->skel->bss->kx_wake_at_tick, wake && !runs, __ATOMIC_RELAXED);
	return runs;
}

struct kx_clock *kx_tracer_clock(struct kx_tracer *t)
{
	return t->clock;
}

const struct kx_cpus *kx_tracer_cpus(const struct kx_tracer *t)
{
	return &t->cpus;
}

struct kx_rings *kx_tracer_rings(struct kx_tracer *t)
{
	return t->rings;
}

bool kx_tracer_delays_entries(const struct kx_tracer *t)
{
	return t->skel->rodata->kx_min_ticks || t->skel->rodata->kx_conditions & KX_CONDITIONS_RESULT;
}

int kx_tracer_flush_pending(struct kx_tracer *t, struct kx_err *err)
{
	struct bpf_link *link;
	char nothing[64];
	int fd, code = 0;

	/* a call that waits for its result and has not ended has none */
	if (!t->skel->rodata->kx_min_ticks)
		return 0;
	link = bpf_program__attach_iter(t->skel->progs.kx_flush_all_pending, NULL);
	if (!link)
		return kx_err_set(err, -errno, "the open calls of all threads cannot be visited: %s",
				  strerror(errno));
	fd = bpf_iter_create(bpf_link__fd(link));
	while (fd >= 0 && read(fd, nothing, sizeof(nothing)) > 0)
		;
	if (fd < 0)
		code = kx_err_set(err, fd, "the open calls of all threads cannot be visited: %s",
				  strerror(-fd));
	else
		close(fd);
	bpf_link__destroy(link);
	return code;
}

void kx_tracer_reduced(const struct kx_tracer *t, uint64_t *calls, uint64_t *too_deep)
{
	uint64_t sums[2] = { 0 };

	kx_tracer_sums(t->skel->maps.kx_reduced, 0, sums, 2);
	*calls = sums[0];
	*too_deep = sums[1];
}

int kx_tracer_calls(const struct kx_tracer *t, uint64_t *calls, uint32_t n, struct kx_err *err)
{
	int code = 0;

	for (uint32_t i = 0; t->budget && i < n; i++)
		calls[i] = kx_tracer_budget_calls(t, i + 1);
	for (uint32_t i = 0; t->top && i < n; i++)
		calls[i] = kx_tracer_top_calls(t, i + 1);
	if (!t->budget && !t->top)
		code = kx_tracer_sums(t->skel->maps.kx_calls, 1, calls, n);
	return code ? kx_err_set(err, code, "the counted calls cannot be read: %s", strerror(-code)) :
		      0;
}

void kx_tracer_losses(const struct kx_tracer *t, uint64_t calls[KX_LOSS_REASONS],
		      uint64_t other[KX_LOSS_REASONS])
{
	memset(calls, 0, KX_LOSS_REASONS * sizeof(*calls));
	memset(other, 0, KX_LOSS_REASONS * sizeof(*other));
	for (unsigned cpu = 0; cpu < t->rings->ncpus; cpu++) {
		const struct kx_ring_header *h = t->rings->items[cpu].header;

		for (int i = 0; h && i < KX_LOSS_REASONS; i++) {
			calls[i] += __atomic_load_n(&h->lost[i], __ATOMIC_RELAXED);
			other[i] += __atomic_load_n(&h->lost_other[i], __ATOMIC_RELAXED);
		}
	}
	calls[KX_LOSS_NO_RING] += __atomic_load_n(&t->skel->bss->kx_lost_no_ring, __ATOMIC_RELAXED);
	other[KX_LOSS_NO_RING] +=
		__atomic_load_n(&t->skel->bss->kx_lost_no_ring_other, __ATOMIC_RELAXED);
}

void kx_tracer_thread_losses(struct kx_tracer *t,
			     void (*each)(void *ctx, uint32_t tid,
					  const struct kx_thread_loss *loss),
			     void *ctx)
{
	int fd = bpf_map__fd(t->skel->maps.kx_thread_losses);
	__u32 tid, *previous = NULL;

	/* Before reading, so that a loss meanwhile starts a new gap. */
	__atomic_add_fetch(&t->skel->bss->kx_loss_epoch, 1, __ATOMIC_ACQ_REL);
	while (bpf_map_get_next_key(fd, previous, &tid) == 0) {
		struct kx_thread_loss loss;

		if (bpf_map_lookup_elem(fd, &tid, &loss) == 0)
			each(ctx, tid, &loss);
		previous = &tid;
	}
}
