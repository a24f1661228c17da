// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "select/kernel_deny.h"
#include "select/kernel_symbols.h"

static const char kallsyms[] = "ffffffff81000000 T _stext\n"
			       "ffffffff81000000 T startup\n"
			       "ffffffff81001000 T __entry_text_start\n"
			       "ffffffff81001000 T entry_SYSCALL_64_after_hwframe\n"
			       "ffffffff81001040 t enter_by_another_gate\n"
			       "ffffffff81002000 T __entry_text_end\n"
			       "ffffffff81002000 T __noinstr_text_start\n"
			       "ffffffff81002000 t quiet_part\n"
			       "ffffffff81003000 T __noinstr_text_end\n"
			       "ffffffff81003000 t __do_sys_getppid\n"
			       "ffffffff81003000 T __ia32_sys_getppid\n"
			       "ffffffff81003000 T __x64_sys_getppid\n"
			       "ffffffff81003030 t __pfx_tcp_sendmsg\n"
			       "ffffffff81003040 T tcp_sendmsg\n"
			       "ffffffff810030c0 t tcp_sendmsg.cold\n"
			       "ffffffff81003100 t show\n"
			       "ffffffff81003140 t show\n"
			       "ffffffff81003180 T bpf_map_update_elem\n"
			       "ffffffff810031c0 t plain_forbidden\n"
			       "ffffffff81003200 t hidden_from_ftrace\n"
			       "ffffffff81003240 W weak_one\n"
			       "ffffffff81003280 T listed_by_alias\n"
			       "ffffffff81003280 t __listed_by_alias\n"
			       "ffffffff81800000 D some_data\n"
			       "ffffffff82000000 T _sinittext\n"
			       "ffffffff82000000 t boot_only\n"
			       "ffffffff82001000 T _einittext\n"
			       "ffffffffc0001000 t nft_do_chain\t[nf_tables]\n"
			       "ffffffffc0002000 t other_module\t[other]\n"
			       "ffffffffc0003000 t bpf_prog_6deef7357e7b4530\t[bpf]\n"
			       "ffffffffc0004000 t ftrace_trampoline\t[__builtin__ftrace]\n";

static const char traceable[] = "__x64_sys_getppid\ntcp_sendmsg\nshow\nbpf_map_update_elem\nweak_one\n"
				"__listed_by_alias\nplain_forbidden\nboot_only\n"
				"nft_do_chain [nf_tables]\nother_module [other]\n";

static const char forbidden[] = "0xffffffff810031c0-0xffffffff81003200\tplain_forbidden\n"
				"0xffffffff81009000-0xffffffff81009010\telsewhere\n";

static FILE *file_of(const char *text)
{
	FILE *f = text ? tmpfile() : NULL;

	if (f) {
		fputs(text, f);
		rewind(f);
	}
	return f;
}

static int read_texts(const char *symbols, const char *list, const char *blacklist,
		      struct kx_symbols *out, struct kx_err *err)
{
	const struct kx_kernel_sources from = { file_of(symbols), file_of(list),
						file_of(blacklist) };
	int code = kx_kernel_symbols_from(&from, out, err);

	fclose(from.kallsyms);
	if (from.traceable)
		fclose(from.traceable);
	if (from.forbidden)
		fclose(from.forbidden);
	return code;
}

static const struct kx_symbol *find(const struct kx_symbols *syms, const char *name)
{
	for (size_t i = 0; i < syms->count; i++)
		if (!strcmp(syms->items[i].name, name))
			return &syms->items[i];
	return NULL;
}

static void test_symbols(void **state)
{
	const struct kx_symbol *s;
	struct kx_symbols syms;
	struct kx_err err;

	(void)state;
	assert_int_equal(read_texts(kallsyms, NULL, NULL, &syms, &err), 0);
	for (size_t i = 1; i < syms.count; i++)
		assert_true(syms.items[i - 1].addr < syms.items[i].addr);
	/* the name of the 64-bit system call comes first, the others are aliases */
	s = find(&syms, "__x64_sys_getppid");
	assert_non_null(s);
	assert_int_equal(s->addr, 0xffffffff81003000);
	assert_int_equal(s->size, 0x30);
	assert_non_null(s->aliases);
	assert_string_equal(s->aliases[0], "__do_sys_getppid");
	assert_string_equal(s->aliases[1], "__ia32_sys_getppid");
	assert_null(s->aliases[2]);
	/* .cold parts and padding end a function and are not functions */
	s = find(&syms, "tcp_sendmsg");
	assert_non_null(s);
	assert_int_equal(s->size, 0x80);
	assert_null(find(&syms, "tcp_sendmsg.cold"));
	assert_null(find(&syms, "__pfx_tcp_sendmsg"));
	assert_null(find(&syms, "some_data"));
	assert_null(find(&syms, "_stext"));
	assert_non_null(find(&syms, "startup"));
	assert_non_null(find(&syms, "weak_one"));
	assert_null(find(&syms, "bpf_prog_6deef7357e7b4530"));
	assert_null(find(&syms, "ftrace_trampoline"));
	assert_null(kx_kernel_module(&syms, s));
	assert_string_equal(kx_kernel_module(&syms, find(&syms, "nft_do_chain")), "nf_tables");
	assert_string_equal(kx_kernel_module(&syms, find(&syms, "other_module")), "other");
	assert_true(kx_kernel_ambiguous(&syms, "show"));
	assert_false(kx_kernel_ambiguous(&syms, "tcp_sendmsg"));
	assert_ptr_equal(kx_symbols_find(&syms, 0xffffffff81003044), s);
	kx_symbols_free(&syms);
}

/* A line out of order, as modules have them, changes nothing else. */
static void test_unsorted(void **state)
{
	static char unsorted[sizeof(kallsyms) + 64];
	struct kx_symbols sorted, syms;
	struct kx_err err;

	(void)state;
	snprintf(unsorted, sizeof(unsorted), "%sffffffffbfff0000 t early\t[last]\n", kallsyms);
	assert_int_equal(read_texts(kallsyms, NULL, NULL, &sorted, &err), 0);
	assert_int_equal(read_texts(unsorted, NULL, NULL, &syms, &err), 0);
	assert_non_null(find(&syms, "early"));
	assert_string_equal(kx_kernel_module(&syms, find(&syms, "early")), "last");
	assert_int_equal(syms.count, sorted.count + 1);
	for (size_t i = 0; i < sorted.count; i++) {
		const struct kx_symbol *s = kx_symbols_find(&syms, sorted.items[i].addr);

		assert_non_null(s);
		assert_string_equal(s->name, sorted.items[i].name);
		assert_int_equal(s->aliases != NULL, sorted.items[i].aliases != NULL);
	}
	kx_symbols_free(&sorted);
	kx_symbols_free(&syms);
}

/* Functions that must not be probed are refused, by each source separately. */
static void test_refused(void **state)
{
	static const struct {
		const char *name, *part; /* of the reason; NULL: may be probed */
	} cases[] = {
		{ "enter_by_another_gate", "entry code" },
		{ "quiet_part", "noinstr" },
		{ "bpf_map_update_elem", "BPF programs" },
		{ "plain_forbidden", "own list" },
		{ "hidden_from_ftrace", "notrace" },
		{ "startup", "notrace" },
		{ "boot_only", "during boot" },
		{ "tcp_sendmsg", NULL },
		{ "__x64_sys_getppid", NULL },
		{ "show", NULL },
		{ "weak_one", NULL },
		{ "listed_by_alias", NULL },
		{ "nft_do_chain", NULL },
	};
	struct kx_symbols syms;
	struct kx_err err;
	char reason[200];

	(void)state;
	assert_int_equal(read_texts(kallsyms, traceable, forbidden, &syms, &err), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct kx_symbol *s = find(&syms, cases[i].name);

		assert_non_null(s);
		reason[0] = 0;
		assert_int_equal(kx_kernel_refused(&syms, s, reason, sizeof(reason)),
				 cases[i].part != NULL);
		if (cases[i].part && !strstr(reason, cases[i].part))
			fail_msg("%s: '%s' has no '%s'", cases[i].name, reason, cases[i].part);
	}
	kx_symbols_free(&syms);

	/* without tracefs and debugfs the rest is still enforced */
	assert_int_equal(read_texts(kallsyms, NULL, NULL, &syms, &err), 0);
	assert_false(kx_kernel_refused(&syms, find(&syms, "hidden_from_ftrace"), reason, sizeof(reason)));
	assert_true(kx_kernel_refused(&syms, find(&syms, "bpf_map_update_elem"), reason, sizeof(reason)));
	assert_true(kx_kernel_refused(&syms, find(&syms, "quiet_part"), reason, sizeof(reason)));
	kx_symbols_free(&syms);

	/* an empty list excludes nothing */
	assert_int_equal(read_texts(kallsyms, "", "", &syms, &err), 0);
	assert_false(kx_kernel_refused(&syms, find(&syms, "tcp_sendmsg"), reason, sizeof(reason)));
	kx_symbols_free(&syms);
}

static void test_hidden(void **state)
{
	struct kx_symbols syms;
	struct kx_err err = { 0 };

	(void)state;
	assert_int_equal(read_texts("0000000000000000 T _stext\n0000000000000000 T tcp_sendmsg\n", NULL,
				    NULL, &syms, &err),
			 -EPERM);
	assert_non_null(strstr(err.text, "kptr_restrict"));
	assert_int_equal(read_texts("", NULL, NULL, &syms, &err), -ENOENT);
	assert_non_null(strstr(err.text, "CONFIG_KALLSYMS"));
	/* malformed lines are skipped */
	assert_int_equal(read_texts("garbage\n\nffffffff81000000\nxyz T bad\n"
				    "ffffffff81000040 T good\nffffffff81000080 T\n",
				    "\n\n", "0x1-0x0\nnonsense\n", &syms, &err),
			 0);
	assert_int_equal(syms.count, 1);
	assert_string_equal(syms.items[0].name, "good");
	kx_symbols_free(&syms);
}

static void test_denied(void **state)
{
	static const char *const never[] = {
		"bpf_ringbuf_output", "bpf_get_current_pid_tgid", "__bpf_prog_enter",
		"htab_map_lookup_elem", "__htab_map_lookup_elem", "array_map_lookup_elem",
		"array_of_map_lookup_elem", "trace_call_bpf", "copy_from_kernel_nofault",
		"perf_event_read_local", "x86_pmu_enable", "irq_work_queue", "ftrace_ops_list_func",
		"arch_ftrace_ops_list_func", "kprobe_ftrace_handler", "aggr_pre_handler_kprobe",
		"rethook_trampoline_handler", "fprobe_handler", "exc_page_fault", "asm_exc_nmi",
		"default_do_nmi", "irqentry_enter", "entry_SYSCALL_64", "syscall_enter_from_user_mode",
		"rcu_read_lock_held", "__rcu_read_lock", "call_rcu", "_raw_spin_lock",
		"_raw_spin_unlock_irqrestore", "queued_spin_lock_slowpath",
		"native_queued_spin_lock_slowpath", "preempt_count_add", "preempt_schedule_notrace",
		"migrate_disable", "ktime_get_mono_fast_ns", "ktime_get", "sched_clock",
		"kvm_sched_clock_read", "native_sched_clock", "memcpy", "memset", "__asan_load8",
		"unwind_next_frame", "__switch_to_asm", "finish_task_switch.isra.0", "text_poke_bp_batch",
		"perf_trace_sched_switch", "__traceiter_sched_switch", "lock_acquire",
		"debug_smp_processor_id", "__warn_printk", "do_int3", "notify_die", "__fentry__",
		"smp_call_function_single", "return_to_handler", "__x86_return_thunk",
	};
	static const char *const fine[] = {
		"tcp_sendmsg", "__x64_sys_getppid", "__x64_sys_write", "vfs_write", "ksys_write",
		"schedule", "do_nanosleep", "hrtimer_nanosleep", "ext4_file_write_iter", "handle_mm_fault",
		"do_sys_openat2", "ip_rcv", "tcp_v4_rcv", "__netif_receive_skb_core", "kmem_cache_alloc",
		"mutex_lock", "futex_wait", "try_to_wake_up", "__x64_sys_bpf", "submit_bio", "do_exit",
		"wake_up_new_task", "copy_process", "do_user_addr_fault", "unix_stream_sendmsg",
		"sock_sendmsg", "pipe_read", "ep_poll", "tcp_rcv_established", "napi_poll",
		"nvme_queue_rq", "blk_mq_submit_bio", "filemap_read", "__alloc_pages",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		if (!kx_kernel_denied(never[i]))
			fail_msg("%s may be probed", never[i]);
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		if (kx_kernel_denied(fine[i]))
			fail_msg("%s may not be probed: %s", fine[i], kx_kernel_denied(fine[i]));
}

/* This kernel's own list, as far as this user may read it. */
static void test_here(void **state)
{
	struct kx_symbols syms;
	struct kx_err err = { 0 };
	int code = kx_kernel_symbols(&syms, &err);

	(void)state;
	if (code) {
		assert_true(err.text[0]);
		print_message("not read here: %s\n", err.text);
		return;
	}
	assert_true(syms.count > 10000);
	assert_non_null(find(&syms, "vfs_write"));
	assert_non_null(find(&syms, "__x64_sys_getppid"));
	kx_symbols_free(&syms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbols), cmocka_unit_test(test_unsorted),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_denied),
		cmocka_unit_test(test_here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
