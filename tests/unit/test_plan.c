// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "plan/plan.h"
#include "assembled.h"
#include "plan_rig.h"

static void entry_is(const char *name, uint64_t offset, enum kx_cost cost, unsigned args)
{
	struct kx_plan p = plan(&lib, name, &automatic);

	if (p.entry.addr - symbol_named(&lib.syms, name)->addr != offset || p.entry.cost != cost ||
	    p.args != args || p.entry.kind != KX_SLED_ENTRY)
		fail_msg("%s: entry +%d %s args %u", name,
			 (int)(p.entry.addr - symbol_named(&lib.syms, name)->addr), kx_cost_name(p.entry.cost),
			 p.args);
	kx_plan_free(&p);
}

static void test_entries(void **state)
{
	struct kx_plan p;

	(void)state;
	entry_is("endbr_push", 4, KX_COST_EMULATED, 6);
	entry_is("push_r12", 0, KX_COST_EMULATED, 6);
	entry_is("mov_xor_push", 5, KX_COST_EMULATED, 1);
	entry_is("cond_tail", 2, KX_COST_EMULATED, 6);
	entry_is("sub_first", 4, KX_COST_EMULATED, 6);
	entry_is("just_ret", 0, KX_COST_STEPPED, 6);
	entry_is("just_jmp", 0, KX_COST_EMULATED, 6);
	entry_is("cpuid_first", 0, KX_COST_STEPPED, 6);
	entry_is("padded", 0, KX_COST_EMULATED, 6);
	/* a branch lands between the entry and the cheap instruction */
	entry_is("loop_behind", 0, KX_COST_STEPPED, 6);
	entry_is("entered_sideways", 0, KX_COST_STEPPED, 6);
	entry_is("entered_by_jump", 0, KX_COST_STEPPED, 6);
	entry_is("entered_by_jcc", 0, KX_COST_STEPPED, 6);
	entry_is("entered_by_call", 0, KX_COST_STEPPED, 6);
	entry_is("entered_by_loop", 0, KX_COST_STEPPED, 6);
	/* in a function with a switch, only a prologue's push is certainly not in a loop */
	entry_is("table", 0, KX_COST_STEPPED, 6);
	entry_is("table_push", 2, KX_COST_EMULATED, 6);

	p = plan(&lib, "loop_behind", &automatic);
	assert_true(p.has_loop);
	assert_false(p.makes_calls);
	assert_int_equal(p.instructions, 4);
	kx_plan_free(&p);
	p = plan(&lib, "padded", &automatic);
	assert_false(p.has_loop);
	assert_int_equal(p.instructions, 3);
	kx_plan_free(&p);
}

/* @frame: by which the stack pointer has moved at the probe. */
static void frame_is(const char *name, const struct kx_plan_options *options, uint64_t offset,
		     enum kx_cost cost, unsigned args, unsigned frame)
{
	struct kx_plan p = plan(&lib, name, options);

	if (p.entry.addr - symbol_named(&lib.syms, name)->addr != offset || p.entry.cost != cost ||
	    p.args != args || p.frame != frame)
		fail_msg("%s: entry +%d %s args %u frame %u", name,
			 (int)(p.entry.addr - symbol_named(&lib.syms, name)->addr), kx_cost_name(p.entry.cost),
			 p.args, p.frame);
	kx_plan_free(&p);
}

static void test_frames(void **state)
{
	const struct kx_plan_options none = { .exits = KX_EXITS_NONE };
	static const char *const refused[] = { "sub_large", "sub_odd", "sub_negative", "sub_register",
					       "sub_loop", "sub_then_lock", "push_call_large",
					       "push_flags", "push_word", "push_loop", "push_table" };

	(void)state;
	frame_is("sub_first", &none, 4, KX_COST_EMULATED, 6, 8);
	frame_is("sub_first", &instruction, 4, KX_COST_EMULATED, 6, 8);
	frame_is("sub_first", &risky, 4, KX_COST_EMULATED, 6, 8);
	frame_is("sub_two", &none, 10, KX_COST_EMULATED, 1, 24);
	frame_is("sub_jcc", &none, 11, KX_COST_EMULATED, 6, 128);
	frame_is("sub_most", &none, 7, KX_COST_EMULATED, 6, 248);
	frame_is("sub_push_call", &none, 15, KX_COST_EMULATED, 1, 24);
	frame_is("push_call", &none, 2, KX_COST_EMULATED, 6, 8);
	frame_is("push_call_most", &none, 9, KX_COST_EMULATED, 6, 248);
	frame_is("push_call", &returns, 0, KX_COST_STEPPED, 6, 0);
	/* a return probe takes what the stack pointer points at for the return address */
	frame_is("sub_first", &returns, 0, KX_COST_STEPPED, 6, 0);
	frame_is("sub_first", &automatic, 4, KX_COST_EMULATED, 6, 8);
	frame_is("sub_jcc", &returns, 4, KX_COST_STEPPED, 6, 0);
	/* nor is anything gained where the first instruction is cheap */
	frame_is("push_r12", &none, 0, KX_COST_EMULATED, 6, 0);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		frame_is(refused[i], &none, 0, KX_COST_STEPPED, 6, 0);
	/* a table's jump may land at the compare, behind the frame's instruction */
	frame_is("sub_table", &none, 0, KX_COST_STEPPED, 6, 0);
	frame_is("far_push", &none, 64, KX_COST_EMULATED, 6, 0);
	frame_is("too_far_push", &none, 0, KX_COST_STEPPED, 6, 0);
}

/* After a rest a planner finds the same. */
static void test_rest(void **state)
{
	(void)state;
	kx_planner_rest(lib.planner);
	entry_is("mov_xor_push", 5, KX_COST_EMULATED, 1);
	kx_planner_rest(lib.planner);
	kx_planner_rest(lib.planner);
	/* a branch of another function lands in it */
	entry_is("entered_sideways", 0, KX_COST_STEPPED, 6);
}

/* What the kernel emulates is what the caller found. */
static void test_emulated(void **state)
{
	const struct kx_plan_options all = { .emulated = (1u << KX_INSN_KINDS) - 1 };
	const struct kx_plan_options no_push = { .emulated = KX_EMULATED_ALWAYS & ~(1u << KX_INSN_PUSH) };

	(void)state;
	frame_is("long_nop", &returns, 0, KX_COST_STEPPED, 6, 0);
	frame_is("frame_pointer", &returns, 0, KX_COST_STEPPED, 6, 0);
	frame_is("long_nop", &all, 0, KX_COST_EMULATED, 6, 0);
	frame_is("frame_pointer", &all, 0, KX_COST_EMULATED, 6, 0);
	frame_is("sub_first", &all, 0, KX_COST_EMULATED, 6, 0);
	frame_is("sub_large", &all, 0, KX_COST_EMULATED, 6, 0);
	frame_is("nop5_crosses", &all, 0, KX_COST_EMULATED, 6, 0);
	frame_is("push_r12", &no_push, 0, KX_COST_STEPPED, 6, 0);
}

static void test_nop5(void **state)
{
	const struct kx_plan_options old = { .returns_harmless = true };
	const struct kx_plan_options dispatched = { .nop5_optimized = true, .nop5_forbidden = true };
	struct kx_plan p;

	(void)state;
	entry_is("nop5", 0, KX_COST_NOP5, 6);
	entry_is("endbr_nop5", 4, KX_COST_NOP5, 6);
	entry_is("nop5_crosses", 0, KX_COST_STEPPED, 6);
	entry_is("nop5_red_zone", 0, KX_COST_STEPPED, 6);
	p = plan(&lib, "endbr_nop5", &dispatched);
	assert_int_equal(p.entry.cost, KX_COST_STEPPED);
	kx_plan_free(&p);
	p = plan(&lib, "nop5", &old);
	assert_int_equal(p.entry.cost, KX_COST_STEPPED);
	kx_plan_free(&p);
}

static void test_left_out(void **state)
{
	(void)state;
	refuses("undecodable", &automatic, -ENOEXEC, "cannot be decoded at +0x1");
	refuses("lock_first", &automatic, -EOPNOTSUPP,
		"the kernel takes no probe on its first instructions at +0x0");
	refuses("restarts", &automatic, -EOPNOTSUPP,
		"a loop starts at its first instruction, so that each turn would look like a call");
	refuses("unclear", &instruction, -EOPNOTSUPP,
		"the jump at +0x4 may be a tail call or a switch");
	refuses("loop_out", &instruction, -EOPNOTSUPP, "it leaves by a loop instruction at +0x2");
	/* with harmless return probes, these functions need no instruction exits */
	assert_int_equal(plan(&lib, "unclear", &automatic).exit_kind, KX_EXITS_RETURN);
	assert_int_equal(plan(&lib, "loop_out", &automatic).exit_kind, KX_EXITS_RETURN);
	refuses("unclear", &risky, -EOPNOTSUPP, "the jump at +0x4 may be a tail call or a switch");
}

/* Share of all functions whose entry isn't single-stepped, in percent. */
static void share_is(const char *path, unsigned least)
{
	size_t cheap = 0;
	struct binary b;

	if (access(path, R_OK)) {
		print_message("%s is not here\n", path);
		return;
	}
	open_binary(&b, path);
	assert_true(b.syms.count > 1000);
	for (size_t i = 0; i < b.syms.count; i++) {
		struct kx_plan p;

		if (kx_plan_function(b.planner, &b.syms.items[i], &automatic, &p, NULL))
			continue;
		cheap += p.entry.cost != KX_COST_STEPPED;
		kx_plan_free(&p);
	}
	print_message("%s: %zu of %zu functions have a cheap entry, %.1f %%\n", path, cheap,
		      b.syms.count, 100.0 * (double)cheap / (double)b.syms.count);
	if (cheap * 100 < b.syms.count * least)
		fail_msg("under %u %%", least);
	close_binary(&b);
}

static void test_shares(void **state)
{
	(void)state;
	share_is("/lib/x86_64-linux-gnu/libc.so.6", 65);
	share_is("/usr/bin/python3.11", 80);
	share_is("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 65);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(kx_cost_name(KX_COST_NOP5), "nop5");
	assert_string_equal(kx_cost_name(KX_COST_EMULATED), "emulated");
	assert_string_equal(kx_cost_name(KX_COST_STEPPED), "stepped");
	assert_string_equal(kx_exits_name(KX_EXITS_AUTO), "auto");
	assert_string_equal(kx_exits_name(KX_EXITS_RETURN), "return");
	assert_string_equal(kx_exits_name(KX_EXITS_INSTRUCTION), "instruction");
	assert_string_equal(kx_exits_name(KX_EXITS_NONE), "none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entries),
		cmocka_unit_test(test_nop5),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_emulated),
		cmocka_unit_test(test_rest),
		cmocka_unit_test(test_left_out),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, build, cleanup);
}
