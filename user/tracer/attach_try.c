// SPDX-License-Identifier: BSD-2-Clause
/* Finds out which attach mechanisms work, by attaching to kxray's own code. */
#include "tracer/attach_self.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <link.h>
#include <linux/bpf.h>
#include <string.h>
#include <unistd.h>

/* A function that starts with the 5-byte nop and is never called for anything else. */
__asm__(".pushsection .text\n"
	".type kx_nop5_target, @function\n"
	".balign 16\n"
	"kx_nop5_target:\n"
	"	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
	"	ret\n"
	".size kx_nop5_target, .-kx_nop5_target\n"
	".popsection\n");
void kx_nop5_target(void);

struct find_offset {
	uintptr_t address;
	uint64_t offset;
};

/* The main program is the first object, and the one that holds the target. */
static int find_offset_cb(struct dl_phdr_info *info, size_t size, void *data)
{
	struct find_offset *f = data;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD && f->address >= start &&
		    f->address < start + ph->p_filesz) {
			f->offset = f->address - start + ph->p_offset;
			return 1;
		}
	}
	return 0;
}

static int load_empty_program(unsigned attach_type)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = attach_type);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "kx_try", "GPL", insns,
			     sizeof(insns) / sizeof(insns[0]), &opts);
}

static void note_refusal(void *ctx, const struct kx_probe *probe, int err)
{
	(void)probe;
	*(int *)ctx = err;
}

void kx_self_hit(void)
{
	kx_nop5_target();
}

int kx_self_attach(enum kx_mechanism m, pid_t pid, bool is_return, struct kx_links *links)
{
	struct find_offset f = { .address = (uintptr_t)kx_nop5_target };
	struct kx_probe probe = { 0 };
	int prog_fd, ret, refused = 0;

	if (!dl_iterate_phdr(find_offset_cb, &f))
		return -ENOENT;
	probe.offset = f.offset;
	prog_fd = load_empty_program(kx_mechanism_attach_type(m));
	if (prog_fd < 0)
		return prog_fd;
	ret = kx_uprobe_link(m, prog_fd, "/proc/self/exe", pid, is_return, &probe, 1, links,
			note_refusal, &refused, NULL);
	close(prog_fd);
	return ret ? ret : refused;
}

int kx_mechanism_try(enum kx_mechanism m)
{
	struct kx_links links = { 0 };
	int err = kx_self_attach(m, getpid(), false, &links);

	kx_links_close(&links);
	return err;
}

int kx_mechanism_best(enum kx_mechanism *out, struct kx_err *err)
{
	int errs[KX_MECHANISM_COUNT];

	for (int m = 0; m < KX_MECHANISM_COUNT; m++) {
		errs[m] = kx_mechanism_try((enum kx_mechanism)m);
		if (!errs[m]) {
			*out = (enum kx_mechanism)m;
			return 0;
		}
	}
	if (errs[KX_MECHANISM_SINGLE] == -EPERM || errs[KX_MECHANISM_SINGLE] == -EACCES)
		return kx_err_set(err, -EPERM,
				  "this user may not attach uprobes (%s); run kxray as root, or with "
				  "CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE",
				  strerror(-errs[KX_MECHANISM_SINGLE]));
	return kx_err_set(err, errs[KX_MECHANISM_SINGLE],
			  "this kernel offers no uprobes with cookies (uprobe.session: %s; "
			  "uprobe.multi: %s; uprobe: %s); kxray needs Linux 5.15 or newer with "
			  "CONFIG_UPROBE_EVENTS",
			  strerror(-errs[0]), strerror(-errs[1]), strerror(-errs[2]));
}

bool kx_multi_filters_process(void)
{
	/*
	 * The filter was fixed in 6.10 (46ba0e49b642), which also made a negative pid -EINVAL
	 * before anything else is looked at; before, it was searched for.
	 */
	static int known = -1;
	struct kx_probe probe = { 0 };
	struct kx_links links = { 0 };
	int refused = 0, prog_fd;

	if (known >= 0)
		return known;
	prog_fd = load_empty_program(KX_BPF_TRACE_UPROBE_MULTI);
	if (prog_fd < 0)
		return false;
	kx_uprobe_link(KX_MECHANISM_MULTI, prog_fd, "/", -1, false, &probe, 1, &links, note_refusal,
		  &refused, NULL);
	kx_links_close(&links);
	close(prog_fd);
	known = refused == -EINVAL;
	return known;
}

int kx_probe_nop5_optimized(void)
{
	static int known = -1;
	const volatile unsigned char *code =
		(const volatile unsigned char *)(uintptr_t)kx_nop5_target;
	struct kx_links links = { 0 };
	int err = -ENOTSUP;

	if (known >= 0)
		return known;
	for (int m = 0; m < KX_MECHANISM_COUNT && err; m++)
		err = kx_self_attach((enum kx_mechanism)m, getpid(), false, &links);
	if (!err) {
		for (int i = 0; i < 4; i++)
			kx_self_hit();
		/* int3 if the probe traps, a relative call if the kernel optimized it */
		known = *code == 0xe8;
	}
	kx_links_close(&links);
	return err ? err : known;
}
