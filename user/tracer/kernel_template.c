// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/kernel_template.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of the patterns that were loaded last: where their functions begin and of which types they are. */
static struct func_info {
	void *records;
	uint32_t count, size;
} func_infos[2];

/* The kernel's type information takes long to read, and two programs ask for the same function. */
static uint32_t quiet_function(void)
{
	static uint32_t found;
	struct btf *btf;
	int id;

	if (found)
		return found;
	btf = btf__load_vmlinux_btf();
	id = btf ? btf__find_by_name_kind(btf, KX_KERNEL_QUIET_FUNCTION, BTF_KIND_FUNC) : -1;
	btf__free(btf);
	found = id < 0 ? 0 : (uint32_t)id;
	return found;
}

static int on_load(struct bpf_program *prog, struct bpf_prog_load_opts *opts, long is_return)
{
	struct func_info *info = &func_infos[is_return];
	size_t bytes = (size_t)opts->func_info_cnt * opts->func_info_rec_size;

	(void)prog;
	opts->attach_btf_id = quiet_function();
	free(info->records);
	memset(info, 0, sizeof(*info));
	if (!opts->func_info || !bytes)
		return 0;
	info->records = malloc(bytes);
	if (!info->records)
		return -ENOMEM;
	memcpy(info->records, opts->func_info, bytes);
	info->count = opts->func_info_cnt;
	info->size = opts->func_info_rec_size;
	return 0;
}

int kx_kernel_templates_register(void)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, opts, .prog_prepare_load_fn = on_load);
	static bool done;
	int id;

	if (done)
		return 0;
	id = libbpf_register_prog_handler("kx_fentry", BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY,
					  &opts);
	if (id < 0)
		return id;
	opts.cookie = true;
	id = libbpf_register_prog_handler("kx_fexit", BPF_PROG_TYPE_TRACING, BPF_TRACE_FEXIT, &opts);
	done = id >= 0;
	return id < 0 ? id : 0;
}

int kx_kernel_template_load(const struct bpf_object *obj, const struct bpf_program *prog,
			    bool is_return, uint32_t btf_id)
{
	const struct func_info *info = &func_infos[is_return];
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = is_return ? BPF_TRACE_FEXIT : BPF_TRACE_FENTRY,
		    .attach_btf_id = btf_id);

	if (info->records && bpf_object__btf_fd(obj) >= 0) {
		opts.prog_btf_fd = (uint32_t)bpf_object__btf_fd(obj);
		opts.func_info = info->records;
		opts.func_info_cnt = info->count;
		opts.func_info_rec_size = info->size;
	}
	return bpf_prog_load(BPF_PROG_TYPE_TRACING, is_return ? "kx_fexit" : "kx_fentry",
			     "Dual BSD/GPL", bpf_program__insns(prog), bpf_program__insn_cnt(prog),
			     &opts);
}
