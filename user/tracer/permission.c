// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/permission.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

bool kx_has_capability(unsigned number)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &header, data))
		return false;
	return data[number / 32].effective >> number % 32 & 1;
}

bool kx_libbpf_lists_btf(void)
{
	return libbpf_major_version() < 1 ||
	       (libbpf_major_version() == 1 && libbpf_minor_version() < 3);
}

const char *kx_needed_capabilities(void)
{
	return kx_libbpf_lists_btf() ? "CAP_SYS_ADMIN and CAP_SYS_PTRACE (CAP_BPF and CAP_PERFMON are "
				       "not enough for libbpf before 1.3)"
				     : "CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE";
}

bool kx_perf_uprobes_need_admin(int code)
{
	return (code == -EACCES || code == -EPERM) && kx_has_capability(CAP_PERFMON) &&
	       !kx_has_capability(CAP_SYS_ADMIN);
}
