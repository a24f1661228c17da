// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/permission.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

/* Whether the process has the capability (of <linux/capability.h>) now. */
static bool has_capability(unsigned number)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &header, data))
		return false;
	return data[number / 32].effective >> number % 32 & 1;
}

/*
 * libbpf before 1.3 lists the BTF of kernel modules before it loads a tp_btf program, although the kernel's own has all
 * that these need, and gives up where CAP_SYS_ADMIN, which only this list requires, is missing. libbpf's calls of its
 * function come here: in a search for symbols a program precedes its libraries. No module then has any BTF, as with libbpf 1.3.
 * Weak, for a libbpf that is linked statically: there its own is used.
 */
__attribute__((weak)) int bpf_btf_get_next_id(__u32 start_id, __u32 *next_id)
{
	union bpf_attr attr;

	if (!has_capability(CAP_SYS_ADMIN)) {
		errno = ENOENT; /* no more */
		return -ENOENT;
	}
	memset(&attr, 0, sizeof(attr)); /* all of the union: the kernel refuses other bytes */
	attr.start_id = start_id;
	if (syscall(SYS_bpf, BPF_BTF_GET_NEXT_ID, &attr, sizeof(attr)))
		return -errno;
	*next_id = attr.next_id;
	return 0;
}

const char *kx_needed_capabilities(void)
{
	return "CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE";
}

bool kx_perf_uprobes_need_admin(int code)
{
	return (code == -EACCES || code == -EPERM) && has_capability(CAP_PERFMON) &&
	       !has_capability(CAP_SYS_ADMIN);
}
