// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/kernel_mechanism.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tracer/kernel_link.h"
#include "tracer/kernel_template.h"

static const char *const names[KX_KERNEL_MECHANISMS] = {
	[KX_KERNEL_NONE] = "none",
	[KX_KERNEL_SESSION] = "kprobe.session",
	[KX_KERNEL_MULTI] = "kprobe.multi",
	[KX_KERNEL_FENTRY] = "fentry",
	[KX_KERNEL_SINGLE] = "kprobe",
};

const char *kx_kernel_mechanism_name(enum kx_kernel_mechanism m)
{
	return m < KX_KERNEL_MECHANISMS ? names[m] : "?";
}

__attribute__((format(printf, 3, 4))) static int refuse(struct kx_kernel_trial *t, int code,
							const char *fmt, ...)
{
	va_list ap;

	t->err = code;
	va_start(ap, fmt);
	vsnprintf(t->why, sizeof(t->why), fmt, ap);
	va_end(ap);
	return code;
}

static int load_empty(unsigned attach_type)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = (enum bpf_attach_type)attach_type);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "kx_try", "GPL", insns,
			     sizeof(insns) / sizeof(insns[0]), &opts);
}

/* The reason for @code from loading or attaching a kind of program that exists since @since. */
static int refuse_code(struct kx_kernel_trial *t, int code, const char *what, const char *since)
{
	switch (code) {
	case -EPERM:
	case -EACCES:
		return refuse(t, code, "%s is refused (%s)", what, strerror(-code));
	case -EINVAL:
		return refuse(t, code, "this kernel doesn't have it (Linux %s does)", since);
	case -EOPNOTSUPP:
	case -524: /* the kernel's own ENOTSUPP */
		return refuse(t, code, "this kernel was built without it");
	case -ENOENT:
		return refuse(t, code, "this kernel was built without what it needs (%s)", what);
	default:
		return refuse(t, code, "%s fails: %s", what, strerror(-code));
	}
}

static int try_multi(struct kx_kernel_trial *t, unsigned attach_type, const char *since,
		     const char *config)
{
	const char *symbol = KX_KERNEL_QUIET_FUNCTION;
	uint64_t cookie = 1;
	int prog = load_empty(attach_type), link;

	if (prog < 0)
		return refuse_code(t, prog, "loading its program", since);
	link = kx_kernel_link_multi(prog, attach_type, false, NULL, &symbol, &cookie, 1);
	close(prog);
	if (link == -EOPNOTSUPP)
		return refuse(t, link, "this kernel was built without it (%s)", config);
	if (link < 0)
		return refuse_code(t, link, "attaching a program", since);
	close(link);
	return 0;
}

static int try_tracing(struct kx_kernel_trial *t, __u32 btf_id, bool is_return)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = is_return ? BPF_TRACE_FEXIT : BPF_TRACE_FENTRY,
		    .attach_btf_id = btf_id);
	int prog, link;

	prog = bpf_prog_load(BPF_PROG_TYPE_TRACING, "kx_try", "GPL", insns,
			     sizeof(insns) / sizeof(insns[0]), &opts);
	if (prog < 0)
		return refuse_code(t, prog, "loading its program", "5.19");
	link = kx_kernel_link_tracing(prog, is_return, 1);
	close(prog);
	if (link < 0)
		return refuse_code(t, link, "attaching a program", "5.19");
	close(link);
	return 0;
}

static int try_fentry(struct kx_kernel_trial *t)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int id;

	if (!btf)
		return refuse(t, -errno,
			      "this kernel has no type information (/sys/kernel/btf/vmlinux)");
	id = btf__find_by_name_kind(btf, KX_KERNEL_QUIET_FUNCTION, BTF_KIND_FUNC);
	btf__free(btf);
	if (id < 0)
		return refuse(t, -ENOENT, "the kernel's type information has no functions");
	if (try_tracing(t, (__u32)id, false))
		return t->err;
	return try_tracing(t, (__u32)id, true);
}

static int try_single(struct kx_kernel_trial *t)
{
	struct kx_links links = { 0 };
	int prog = load_empty(0), code;

	if (prog < 0)
		return refuse_code(t, prog, "loading its program", "5.15");
	code = kx_kernel_link_single(prog, 0, KX_KERNEL_QUIET_FUNCTION, true, 1, &links);
	close(prog);
	kx_links_close(&links);
	if (code == -ENOENT)
		return refuse(t, code, "this kernel was built without kprobes (CONFIG_KPROBE_EVENTS)");
	return code ? refuse_code(t, code, "attaching a program", "5.15") : 0;
}

void kx_kernel_mechanism_try(enum kx_kernel_mechanism m, struct kx_kernel_trial *out)
{
	memset(out, 0, sizeof(*out));
	switch (m) {
	case KX_KERNEL_SESSION:
		try_multi(out, KX_BPF_TRACE_KPROBE_SESSION, "6.10", "CONFIG_FPROBE");
		break;
	case KX_KERNEL_MULTI:
		try_multi(out, KX_BPF_TRACE_KPROBE_MULTI, "5.18", "CONFIG_FPROBE");
		break;
	case KX_KERNEL_FENTRY:
		try_fentry(out);
		break;
	case KX_KERNEL_SINGLE:
		try_single(out);
		break;
	default:
		refuse(out, -EINVAL, "there is no such mechanism");
	}
}

/* Appends "NAME: WHY" of each mechanism but @but until one works, which is returned; 0 if none does. */
static enum kx_kernel_mechanism first_working(enum kx_kernel_mechanism but, char *all, size_t size,
					      bool *denied)
{
	for (int m = KX_KERNEL_SESSION; m < KX_KERNEL_MECHANISMS; m++) {
		size_t used = strlen(all);
		struct kx_kernel_trial t;

		if (m == (int)but)
			continue;
		kx_kernel_mechanism_try((enum kx_kernel_mechanism)m, &t);
		if (!t.err)
			return (enum kx_kernel_mechanism)m;
		*denied |= t.err == -EPERM || t.err == -EACCES;
		snprintf(all + used, size - used, "%s%s: %s", used ? "; " : "", names[m], t.why);
	}
	return 0;
}

/* The requested mechanism does not work: the message lists others that do. */
static int no_choice(const struct kx_kernel_trial *t, enum kx_kernel_mechanism wanted,
		     struct kx_err *err)
{
	char all[700] = "";
	bool denied = false;
	enum kx_kernel_mechanism other = first_working(wanted, all, sizeof(all), &denied);

	if (other)
		return kx_err_set(err, t->err,
				  "kernel functions cannot be traced by %s here: %s; %s works: leave the "
				  "choice to kxray (--kernel-mechanism=auto)",
				  names[wanted], t->why, names[other]);
	return kx_err_set(err, t->err,
			  "kernel functions cannot be traced by %s here: %s; nor by the others: %s",
			  names[wanted], t->why, all);
}

int kx_kernel_mechanism_best(enum kx_kernel_mechanism wanted, enum kx_kernel_mechanism *out,
			     struct kx_err *err)
{
	struct kx_kernel_trial t;
	char all[800] = "";
	bool denied = false;

	if (wanted) {
		kx_kernel_mechanism_try(wanted, &t);
		*out = wanted;
		return t.err ? no_choice(&t, wanted, err) : 0;
	}
	*out = first_working(0, all, sizeof(all), &denied);
	if (*out)
		return 0;
	return kx_err_set(err, denied ? -EPERM : -EOPNOTSUPP,
			  "kernel functions cannot be traced here; all mechanisms were tried: %s%s", all,
			  denied && geteuid() ? "; run kxray as root" : "");
}
