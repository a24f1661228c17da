// SPDX-License-Identifier: BSD-2-Clause
#include <asm/hwcap2.h>
#include <cpuid.h>
#include <sys/auxv.h>

#include "attach/recorder_code.h"
#include "base/kernel_files.h"

/* Intel SDM, CPUID; AMD APM, volume 3, appendix E. Simple models of virtual machines lack them. */
#define EXTENDED_LEAF 0x80000001
#define LAHF_ECX      (1u << 0)
#define RDTSCP_EDX    (1u << 27)

/* The kernel takes one of these if it finds the TSC unstable, or different on some CPUs. */
static const char *const other_clocks[] = { "hpet", "acpi_pm", "jiffies" };

const char *kx_recorder_cpu_lacks(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(EXTENDED_LEAF, &a, &b, &c, &d) || !(d & RDTSCP_EDX))
		return "this machine has no instruction rdtscp";
	if (!(c & LAHF_ECX))
		return "this machine has no instruction lahf for 64-bit code";
	if (!(getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE))
		return "programs cannot read their thread pointer here (rdfsbase, Linux 5.9)";
	for (unsigned i = 0; i < sizeof(other_clocks) / sizeof(other_clocks[0]); i++)
		if (kx_file_contains(
			    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
			    other_clocks[i]))
			return "the kernel found the time stamp counter of this machine unreliable";
	return NULL;
}
