// SPDX-License-Identifier: BSD-2-Clause
/*
 * The minimum cost of a probe: attaches empty BPF programs to entry and return.
 *
 *   empty PID FUNCTION [OFFSET [entry]]     OFFSET of the probe from the function's start, default 0; entry: at the entry only
 *
 * Uses the same mechanism as kxray, prints "ready MECHANISM" and runs until its stdin ends.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracer/uprobe_try.h"
#include "binary/elf_image.h"
#include "binary/symbols.h"

static void note_refusal(void *ctx, const struct kx_probe *probe, int err)
{
	(void)probe;
	*(int *)ctx = err;
}

/* @result: of a session, 1 keeps its return probe away. */
static int load_empty(enum kx_mechanism m, int result)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = result },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = (enum bpf_attach_type)kx_mechanism_attach_type(m));

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "empty", "GPL", insns,
			     sizeof(insns) / sizeof(insns[0]), &opts);
}

/* File offset of @name in the program's own file. */
static int find_function(const char *path, const char *name, uint64_t *offset, struct kx_err *err)
{
	struct kx_symbols syms = { 0 };
	struct kx_elf *elf = NULL;
	int code = kx_elf_open(path, &elf, err);

	if (code)
		return code;
	code = kx_symbols_read(elf, NULL, &syms, err);
	if (!code)
		code = kx_err_set(err, -ENOENT, "'%s' has no function '%s'", path, name);
	for (size_t i = 0; code == -ENOENT && i < syms.count; i++)
		if (strcmp(syms.items[i].name, name) == 0)
			code = kx_elf_offset(elf, syms.items[i].addr, offset) ? -EINVAL : 0;
	kx_symbols_free(&syms);
	kx_elf_close(elf);
	return code;
}

static int attach(pid_t pid, const char *name, uint64_t shift, bool entry_only, struct kx_links *links,
		  enum kx_mechanism *m, struct kx_err *err)
{
	struct kx_probe probe = { .cookie = 1 };
	char path[64];
	int code = kx_mechanism_best(m, err), prog, refused = 0;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	if (!code)
		code = find_function(path, name, &probe.offset, err);
	if (code)
		return code;
	probe.offset += shift;
	prog = load_empty(*m, entry_only && *m == KX_MECHANISM_SESSION);
	if (prog < 0)
		return kx_err_set(err, prog, "an empty program cannot be loaded: %s",
				  strerror(-prog));
	/* Twice if the mechanism has separate probes for entry and return. */
	for (int is_return = *m == KX_MECHANISM_SESSION; is_return < (entry_only && *m != KX_MECHANISM_SESSION ? 1 : 2) && !code;
	     is_return++)
		code = kx_uprobe_link(*m, prog, path, pid, is_return, &probe, 1, links,
				 note_refusal, &refused, err);
	if (!code && refused)
		code = kx_err_set(err, refused, "the probe is refused: %s", strerror(-refused));
	close(prog);
	return code;
}

int main(int argc, char **argv)
{
	struct kx_links links = { 0 };
	struct kx_err err = { 0 };
	enum kx_mechanism m;
	char c;

	if (argc < 3) {
		fprintf(stderr, "usage: empty PID FUNCTION [OFFSET [entry]]\n");
		return 2;
	}
	if (attach(atoi(argv[1]), argv[2], argc > 3 ? strtoul(argv[3], NULL, 0) : 0,
		   argc > 4 && !strcmp(argv[4], "entry"), &links, &m, &err)) {
		fprintf(stderr, "empty: %s\n", err.text);
		return 1;
	}
	printf("ready %s\n", kx_mechanism_name(m));
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) == 1)
		;
	kx_links_close(&links);
	return 0;
}
