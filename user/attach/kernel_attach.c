// SPDX-License-Identifier: BSD-2-Clause
#include "attach/kernel_attach.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/stop_request.h"
#include "base/fd_limit.h"
#include "tracer/uprobe_link.h"
#include "tracer/kernel_link.h"
#include "select/kernel_symbols.h"
#include "bpf/wire.h"

struct kx_kernel_probes {
	struct kx_tracer *tracer;
	const struct kx_symbols *syms;
	const struct kx_kernel_function *functions;
	size_t n;
	unsigned nargs;
	kx_kernel_refusal refused;
	void *ctx;
	struct kx_links links;
	size_t nfunctions, nprobes;
	size_t nsingle; /* functions with kprobes where the others have fentry */
};

/* What one link is created from, and the functions' numbers in p->functions, in the same order. */
struct batch {
	uint64_t *addrs, *cookies;
	uint32_t *numbers;
	uint32_t count;
};

static uint64_t cookie_of(const struct kx_kernel_probes *p, const struct kx_kernel_function *f)
{
	return f->id | (uint64_t)(f->has_values ? KX_NARGS_VALUES : p->nargs) << 28;
}

static void leave_out(struct kx_kernel_probes *p, const struct kx_kernel_function *f,
		      const char *what, int code)
{
	char reason[160];

	snprintf(reason, sizeof(reason), "the kernel refuses %s (%s)", what,
		 strerror(code == -524 ? ENOTSUP : -code));
	p->refused(p->ctx, f, reason);
}

/* Errors that are about one function, not about the whole request. */
static bool is_about_function(int code)
{
	return code != -EPERM && code != -EACCES && code != -EMFILE && code != -ENFILE &&
	       code != -ENOMEM && code != -EINTR;
}

static int batch_new(struct batch *b, size_t n)
{
	memset(b, 0, sizeof(*b));
	b->addrs = calloc(n + 1, sizeof(*b->addrs));
	b->cookies = calloc(n + 1, sizeof(*b->cookies));
	b->numbers = calloc(n + 1, sizeof(*b->numbers));
	return b->addrs && b->cookies && b->numbers ? 0 : -ENOMEM;
}

static void batch_free(struct batch *b)
{
	free(b->addrs);
	free(b->cookies);
	free(b->numbers);
}

struct multi {
	struct kx_kernel_probes *p;
	int prog_fd;
	unsigned attach_type;
	bool is_return;
	struct batch *b;
	bool *out; /* by number: refused */
};

/* One link for the range; where the kernel refuses it, two for its halves, down to the culprits. */
static int link_range(const struct multi *m, uint32_t from, uint32_t count)
{
	int fd = kx_kernel_link_multi(m->prog_fd, m->attach_type, m->is_return,
				      m->b->addrs + from, NULL, m->b->cookies + from, count);
	int code = fd < 0 ? fd : kx_links_add(&m->p->links, fd);

	if (fd >= 0 && code)
		close(fd);
	if (!code) {
		m->p->nprobes += count;
		return 0;
	}
	if (!is_about_function(code))
		return code;
	if (count == 1) {
		const struct kx_kernel_function *f = &m->p->functions[m->b->numbers[from]];

		m->out[m->b->numbers[from]] = true;
		leave_out(m->p, f, "a probe on it", code);
		return 0;
	}
	code = link_range(m, from, count / 2);
	return code ? code : link_range(m, from + count / 2, count - count / 2);
}

static int attach_multi(struct kx_kernel_probes *p, unsigned attach_type)
{
	bool *out = calloc(p->n + 1, sizeof(*out));
	struct batch b;
	int code = batch_new(&b, p->n);
	struct multi m = { .p = p, .attach_type = attach_type, .b = &b, .out = out };

	if (!out)
		code = -ENOMEM;
	/* returns first: a function whose return is refused gets no entry */
	for (int is_return = attach_type == KX_BPF_TRACE_KPROBE_MULTI; is_return >= 0 && !code;
	     is_return--) {
		m.is_return = is_return;
		m.prog_fd = kx_tracer_kernel_prog(p->tracer, is_return);
		b.count = 0;
		for (size_t i = 0; i < p->n; i++) {
			if (out[i])
				continue;
			b.addrs[b.count] = p->functions[i].sym->addr;
			b.cookies[b.count] = cookie_of(p, &p->functions[i]);
			b.numbers[b.count++] = (uint32_t)i;
		}
		if (b.count)
			code = link_range(&m, 0, b.count);
	}
	for (size_t i = 0; i < p->n && out; i++)
		p->nfunctions += !out[i];
	batch_free(&b);
	free(out);
	return code;
}

/* Detaches the links from @before on. */
static void undo(struct kx_kernel_probes *p, size_t before)
{
	while (p->links.count > before)
		close(p->links.fds[--p->links.count]);
}

static int attach_single(struct kx_kernel_probes *p, const struct kx_kernel_function *f)
{
	size_t before = p->links.count;
	int code = kx_kernel_link_single(kx_tracer_kernel_prog(p->tracer, true), f->sym->addr, NULL,
					 true, cookie_of(p, f), &p->links);

	if (!code)
		code = kx_kernel_link_single(kx_tracer_kernel_prog(p->tracer, false), f->sym->addr,
					     NULL, false, cookie_of(p, f), &p->links);
	if (!code) {
		p->nfunctions++;
		p->nprobes += 2;
		return 0;
	}
	undo(p, before);
	if (!is_about_function(code))
		return code;
	leave_out(p, f, "a kprobe on it", code);
	return 0;
}

static int add_tracing(struct kx_kernel_probes *p, const struct kx_kernel_function *f,
		       uint32_t btf_id, bool is_return)
{
	int prog = kx_tracer_kernel_load(p->tracer, is_return, btf_id), link, code;

	if (prog < 0)
		return prog;
	link = kx_kernel_link_tracing(prog, is_return, cookie_of(p, f));
	close(prog); /* the link keeps it */
	code = link < 0 ? link : kx_links_add(&p->links, link);
	if (link >= 0 && code)
		close(link);
	return code;
}

/* Functions sorted by name, for a single pass over the BTF. */
struct name_ref {
	const char *name;
	size_t number;
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct name_ref *)a)->name, ((const struct name_ref *)b)->name);
}

/*
 * The unique names of function number @i: BTF finds functions by name, and may have one under any of its
 * aliases. None for a module's function: modules have BTFs of their own. @refs may be NULL; returns how
 * many.
 */
static size_t name_function(const struct kx_kernel_probes *p, size_t i, struct name_ref *refs)
{
	const struct kx_symbol *sym = p->functions[i].sym;
	const char *const none[] = { NULL };
	const char *const *alias = sym->aliases ? (const char *const *)sym->aliases : none;
	size_t n = 0;

	if (kx_kernel_module(p->syms, sym))
		return 0;
	for (const char *name = sym->name; name; name = *alias++) {
		if (kx_kernel_ambiguous(p->syms, name))
			continue;
		if (refs)
			refs[n] = (struct name_ref){ name, i };
		n++;
	}
	return n;
}

/* The BTF id of each function, 0 where it has none. */
static int find_btf_ids(const struct kx_kernel_probes *p, uint32_t *ids)
{
	struct btf *btf = btf__load_vmlinux_btf();
	struct name_ref *refs;
	size_t nrefs = 0;

	if (!btf)
		return -errno;
	for (size_t i = 0; i < p->n; i++)
		nrefs += name_function(p, i, NULL);
	refs = calloc(nrefs + 1, sizeof(*refs));
	if (!refs) {
		btf__free(btf);
		return -ENOMEM;
	}
	nrefs = 0;
	for (size_t i = 0; i < p->n; i++)
		nrefs += name_function(p, i, refs + nrefs);
	qsort(refs, nrefs, sizeof(*refs), compare_names);
	for (__u32 id = 1; id < btf__type_cnt(btf); id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);
		struct name_ref key, *found;

		if (!btf_is_func(t))
			continue;
		key.name = btf__name_by_offset(btf, t->name_off);
		found = key.name ? bsearch(&key, refs, nrefs, sizeof(*refs), compare_names) : NULL;
		if (found)
			ids[found->number] = id;
	}
	free(refs);
	btf__free(btf);
	return 0;
}

static int attach_tracing(struct kx_kernel_probes *p)
{
	uint32_t *ids = calloc(p->n + 1, sizeof(*ids));
	int code = ids ? find_btf_ids(p, ids) : -ENOMEM;

	for (size_t i = 0; i < p->n && !code; i++) {
		const struct kx_kernel_function *f = &p->functions[i];
		size_t before = p->links.count;

		if (kx_stop_requested()) {
			code = -EINTR;
			break;
		}
		code = -ENOENT;
		if (ids[i])
			code = add_tracing(p, f, ids[i], true);
		if (!code)
			code = add_tracing(p, f, ids[i], false);
		if (!code) {
			p->nfunctions++;
			p->nprobes += 2;
			continue;
		}
		/* too many arguments, structures as arguments, no type, ...: a kprobe needs no types */
		undo(p, before);
		if (is_about_function(code)) {
			before = p->nfunctions;
			code = attach_single(p, f);
			p->nsingle += p->nfunctions - before;
		}
	}
	free(ids);
	return code;
}

static int explain(int code, const struct kx_kernel_probes *p, struct kx_err *err)
{
	const char *how = kx_kernel_mechanism_name(kx_tracer_kernel_mechanism(p->tracer));

	switch (code) {
	case -EPERM:
	case -EACCES:
		return kx_err_set(err, code,
				  "the kernel does not let this user attach to its functions by %s "
				  "(%s); run kxray as root, and see 'kxray doctor'",
				  how, strerror(-code));
	case -EMFILE:
	case -ENFILE:
		return kx_err_set(err, code,
				  "too many open files for the probes of %zu kernel functions by %s; raise "
				  "'ulimit -n' or trace fewer functions",
				  p->n, how);
	case -ENOMEM:
		return kx_err_set(err, code, "no memory for the probes of %zu kernel functions", p->n);
	default:
		return kx_err_set(err, code, "kernel functions cannot be probed by %s: %s", how,
				  strerror(-code));
	}
}

int kx_kernel_attach(struct kx_tracer *tracer, const struct kx_symbols *syms,
		     const struct kx_kernel_function *functions, size_t n, unsigned nargs,
		     kx_kernel_refusal refused, void *ctx, struct kx_kernel_probes **out,
		     struct kx_err *err)
{
	struct kx_kernel_probes *p = calloc(1, sizeof(*p));
	int code = 0;

	if (!p)
		return kx_err_set(err, -ENOMEM, "no memory for the probes of kernel functions");
	*p = (struct kx_kernel_probes){ .tracer = tracer,
					.syms = syms,
					.functions = functions,
					.n = n,
					.nargs = nargs > 6 ? 6 : nargs,
					.refused = refused,
					.ctx = ctx };
	if (kx_tracer_kernel_mechanism(tracer) >= KX_KERNEL_FENTRY)
		kx_fd_limit_raise(4 * n); /* kprobes: two links and two perf events each */
	switch (kx_tracer_kernel_mechanism(tracer)) {
	case KX_KERNEL_SESSION:
		code = attach_multi(p, KX_BPF_TRACE_KPROBE_SESSION);
		break;
	case KX_KERNEL_MULTI:
		code = attach_multi(p, KX_BPF_TRACE_KPROBE_MULTI);
		break;
	case KX_KERNEL_FENTRY:
		code = attach_tracing(p);
		break;
	case KX_KERNEL_SINGLE:
		for (size_t i = 0; i < n && !code; i++)
			code = kx_stop_requested() ? -EINTR : attach_single(p, &functions[i]);
		break;
	default:
		code = -EINVAL;
	}
	if (code)
		explain(code, p, err);
	else if (!p->nfunctions)
		code = kx_err_set(err, -EOPNOTSUPP,
				  "the kernel refuses a probe on every one of the %zu selected kernel "
				  "functions",
				  n);
	if (code) {
		kx_kernel_probes_free(p);
		return code;
	}
	*out = p;
	return 0;
}

size_t kx_kernel_probes_functions(const struct kx_kernel_probes *p)
{
	return p ? p->nfunctions : 0;
}

size_t kx_kernel_probes_count(const struct kx_kernel_probes *p)
{
	return p ? p->nprobes : 0;
}

const char *kx_kernel_probes_mechanism(const struct kx_kernel_probes *p)
{
	enum kx_kernel_mechanism m = kx_tracer_kernel_mechanism(p->tracer);

	if (p->nsingle && p->nsingle == p->nfunctions)
		m = KX_KERNEL_SINGLE;
	else if (p->nsingle)
		return "fentry and kprobe";
	return kx_kernel_mechanism_name(m);
}

uint64_t kx_kernel_probes_missed(const struct kx_kernel_probes *p)
{
	return kx_kernel_links_missed(&p->links);
}

void kx_kernel_probes_free(struct kx_kernel_probes *p)
{
	if (!p)
		return;
	kx_links_close(&p->links);
	free(p);
}
