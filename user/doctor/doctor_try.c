// SPDX-License-Identifier: BSD-2-Clause
/* Tries what the kernel offers, with programs that do nothing. */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "doctor/doctor.h"

/* Loads and attaches a program to the raw tracepoint whose type in the kernel's BTF is @name. */
static int try_tracepoint(const struct btf *btf, const char *name)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF), prog, link;
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_RAW_TP,
		    .attach_btf_id = (__u32)id);

	if (id < 0)
		return -ENOENT;
	prog = bpf_prog_load(BPF_PROG_TYPE_TRACING, "kx_try", "GPL", insns,
			     sizeof(insns) / sizeof(insns[0]), &opts);
	if (prog < 0)
		return prog;
	link = bpf_raw_tracepoint_open(NULL, prog);
	close(prog);
	if (link < 0)
		return link;
	close(link);
	return 0;
}

int kx_try_btf(void)
{
	struct btf *btf = btf__load_vmlinux_btf();

	if (!btf)
		return -errno;
	btf__free(btf);
	return 0;
}

int kx_try_array_mmap(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "kx_try", sizeof(__u32), 8, 1, &opts);
	void *mem;
	int err = 0;

	if (fd < 0)
		return fd;
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED)
		err = -errno;
	else
		munmap(mem, size);
	close(fd);
	return err;
}

int kx_try_scheduler_events(void)
{
	static const char *const events[] = {
		"btf_trace_sched_migrate_task",
		"btf_trace_sched_process_exit",
		"btf_trace_sched_process_exec",
		"btf_trace_task_rename",
	};
	struct btf *btf = btf__load_vmlinux_btf();
	int err = btf ? 0 : -errno;

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]) && !err; i++)
		err = try_tracepoint(btf, events[i]);
	btf__free(btf);
	return err;
}
