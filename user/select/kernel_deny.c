// SPDX-License-Identifier: BSD-2-Clause
#include "select/kernel_deny.h"

#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

struct group {
	const char *reason;
	const char *const *globs; /* NULL-terminated */
};

#define GLOBS(...) (const char *const[]){ __VA_ARGS__, NULL }

static const struct group groups[] = {
	{ "the recorder's own BPF programs run through it",
	  GLOBS("bpf_*", "__bpf_*", "___bpf_*", "btf_*", "htab_*", "__htab_*", "*array_map_*",
		"array_of_map_*", "fd_array_map_*", "perf_event_fd_array_*", "ringbuf_map_*",
		"*pcpu_freelist_*", "prog_array_map_*", "update_prog_stats", "inc_misses_counter",
		"migrate_enable", "migrate_disable", "trace_call_bpf", "kprobe_multi_link_*",
		"copy_from_kernel_nofault*", "copy_from_user_nofault*", "copy_to_kernel_nofault*",
		"strncpy_from_kernel_nofault*", "strncpy_from_user_nofault*", "copy_from_user_nmi") },
	{ "it belongs to the kernel's perf events, by which probes and samples reach the recorder",
	  GLOBS("perf_*", "__perf_*", "_perf_*", "*_pmu_*", "event_sched_*", "event_function*",
		"msr_event_*", "native_read_pmc", "native_read_msr*", "irq_work_*",
		"__irq_work_*", "arch_irq_work_*", "get_callchain_*") },
	{ "it is a step of the kernel's own on the way to a probe",
	  GLOBS("ftrace_*", "__ftrace_*", "arch_ftrace_*", "*_ftrace_*", "*kprobe*", "*kretprobe*",
		"*rethook*", "fprobe_*", "__fprobe_*", "function_graph_*", "fgraph_*",
		"trace_graph_*", "return_to_handler", "opt_pre_handler", "optimized_callback",
		"trace_event_*", "trace_buffer_*", "trace_clock_*", "trace_function*",
		"__trace_*", "tracing_*", "ring_buffer_*", "rb_*", "perf_trace_*", "__traceiter_*",
		"trace_raw_output_*", "__probestub_*", "tracepoint_*", "text_poke*",
		"smp_text_poke*", "poke_*", "do_sync_core", "sync_core*", "stop_machine*",
		"multi_cpu_stop", "cpu_stop*", "static_key_*", "jump_label_*", "__fentry__",
		"mcount*", "is_ftrace_trampoline", "is_trace_*", "kernel_text_address",
		"__kernel_text_address", "core_kernel_text", "module_address_lookup",
		"is_module_text_address", "__module_address", "__module_text_address") },
	{ "it handles exceptions, interrupts that cannot be masked, or the way into the kernel",
	  GLOBS("exc_*", "asm_*", "*do_int3*", "do_int3*", "do_error_trap", "do_trap*", "*_nmi",
		"nmi_*", "*_nmi_*", "idtentry_*", "irqentry_*", "entry_*", "syscall_enter_*",
		"syscall_exit_*", "error_entry", "error_return", "paranoid_*", "ret_from_fork*",
		"sync_regs", "fixup_bad_iret", "fixup_exception", "ex_handler_*", "search_ex*",
		"search_kernel_exception_table", "search_bpf_extables", "search_module_extables",
		"__switch_to*", "finish_task_switch*", "__x86_*", "__pv_*", "pv_*", "srso_*",
		"retbleed_*", "notify_die", "atomic_notifier_call_chain", "notifier_call_chain",
		"mce_*", "do_machine_check", "machine_check*", "double_fault*", "spurious_*",
		"in_entry_stack", "in_task_stack", "get_stack_info*") },
	{ "it belongs to RCU, which every probe relies on",
	  GLOBS("rcu_*", "__rcu_*", "srcu_*", "__srcu_*", "call_rcu*", "__call_rcu*",
		"synchronize_rcu*", "synchronize_srcu*", "*_rcu_gp_*", "ct_*", "context_tracking_*",
		"__ct_*", "note_gp_*", "dyntick_*") },
	{ "it is a lock that a probe may already hold",
	  GLOBS("_raw_spin_*", "_raw_read_*", "_raw_write_*", "*raw_spin_lock*", "do_raw_*",
		"queued_spin_*", "queued_read_*", "queued_write_*", "native_queued_*",
		"lock_acquire*", "lock_release*", "lock_is_held*", "lockdep_*", "debug_lockdep_*",
		"mcs_*", "osq_*") },
	{ "it switches preemption or interrupts, as every probe does",
	  GLOBS("preempt_*", "__preempt_*", "*preempt_schedule*", "in_lock_functions",
		"trace_hardirqs_*", "trace_preempt_*", "__local_bh_*", "local_bh_*", "irq_enter*",
		"irq_exit*", "*smp_processor_id*", "check_preemption_disabled",
		"get_recursion_context", "smp_call_function*", "__smp_call_*",
		"generic_smp_call_*", "flush_smp_call_*", "native_smp_*", "native_send_call_*") },
	{ "it reads the kernel's clocks, as every record does",
	  GLOBS("ktime_get*", "__ktime_get*", "sched_clock*", "local_clock*", "native_sched_clock*",
		"read_tsc", "pvclock_*", "kvm_clock_*", "kvm_sched_clock_*", "read_hv_*",
		"hv_*clock*", "read_hpet", "acpi_pm_read*", "native_*tsc*", "paravirt_sched_clock",
		"cyc2ns_*", "*_cyc2ns_*") },
	{ "it copies memory for everything else",
	  GLOBS("memcpy*", "memset*", "memmove*", "memcmp", "__memcpy*", "__memset*", "__memmove*",
		"rep_movs*", "rep_stos*", "copy_user_*", "__copy_user_*", "clear_page_*",
		"copy_page*") },
	{ "the compiler inserts calls of it everywhere",
	  GLOBS("__asan_*", "__hwasan_*", "kasan_*", "__kasan_*", "kcsan_*", "__kcsan_*", "__tsan_*",
		"kmsan_*", "__msan_*", "__ubsan_*", "__sanitizer_*", "__stack_chk_fail", "__gcov_*",
		"llvm_gcov_*", "__cyg_profile_*", "__warn*", "warn_slowpath_*") },
	{ "it follows the kernel's stacks, also from inside probes",
	  GLOBS("unwind_*", "__unwind_*", "orc_*", "__orc_*", "arch_stack_walk*", "stack_trace_*",
		"stack_type_name") },
};

const char *kx_kernel_denied(const char *name)
{
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		for (const char *const *glob = groups[i].globs; *glob; glob++)
			if (!fnmatch(*glob, name, 0))
				return groups[i].reason;
	return NULL;
}
