// SPDX-License-Identifier: BSD-2-Clause
#include <asm/hwcap2.h>
#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/recorder_code.h"
#include "base/kernel_files.h"

/* Intel SDM, CPUID; AMD APM, volume 3, appendix E. Simple models of virtual machines lack them. */
#define EXTENDED_LEAF 0x80000001
#define LAHF_ECX      (1u << 0)

/* The kernel takes one of these if it finds the TSC unstable, or different on some CPUs. */
static const char *const other_clocks[] = { "hpet", "acpi_pm", "jiffies" };

/* Of times that a thread may move to another CPU between two looks at its number. */
#define MOVES 1000

/* Whether the segment's limit is the CPU's number (recorder_code.c), as under Linux, but not in all that emulates it. */
static bool has_cpu_segment(void)
{
	for (unsigned i = 0; i < MOVES; i++) {
		uint32_t limit = UINT32_MAX;
		unsigned cpu;

		asm volatile("lsl %1, %0" : "+r"(limit) : "r"(KX_RECORDER_CPU_SEGMENT) : "cc");
		if (!syscall(SYS_getcpu, &cpu, NULL, NULL) && cpu == (limit & KX_RECORDER_CPU_MASK))
			return true;
	}
	return false;
}

enum kx_recorder_tcb_by kx_recorder_tcb_by_here(void)
{
	return getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE ? KX_RECORDER_TCB_BY_FSBASE : KX_RECORDER_TCB_BY_SEGMENT;
}

const char *kx_recorder_cpu_lacks(void)
{
	unsigned a, b, c, d;

	if (!__get_cpuid(EXTENDED_LEAF, &a, &b, &c, &d) || !(c & LAHF_ECX))
		return "this machine has no instruction lahf for 64-bit code";
	if (!has_cpu_segment())
		return "this kernel does not tell programs their CPU's number as Linux does";
	for (unsigned i = 0; i < sizeof(other_clocks) / sizeof(other_clocks[0]); i++)
		if (kx_file_contains(
			    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
			    other_clocks[i]))
			return "the kernel found the time stamp counter of this machine unreliable";
	return NULL;
}
