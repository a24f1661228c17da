#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 60 s
# Programs that switch stacks: swapcontext, a switch in assembly, signal handlers on a stack of their own. A
# return address that is replaced on a second stack would make them hang, crash or compute another sum. Every
# way to choose processes and exits; without sessions (kernel 6.13) only what is known before helps.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

notice="exits come from return instructions"

# functions_of TARGET: sets $functions; the switch in assembly is traced as well
functions_of() {
	local name
	functions=()
	for name in next yield leaf step signalled; do functions+=(-f "$TARGETS/$1:$name"); done
	[ "$1" = coro ] || functions+=(-f "$TARGETS/$1:swap")
}

# right LABEL EXITS: the target's answer is the one that it has when it is not traced, all calls are
# recorded, and it is said why exits are taken from instructions
right() {
	assert_eq "$1: the target's answer" "$TARGET_STATUS $(json "$TMP/did.json" 'd["wrong"]')" "0 0"
	assert_eq "$1: kxray's status" "$STATUS" 0
	[ "$STATUS" = 0 ] && expect "$1" fdr account entered
	case $2 in
	auto | return) assert_contains "$1: it says why" "$(cat "$TMP/rec.err")" "$notice" ;;
	esac
}

# system_wide TARGET [OPTION...]
system_wide() {
	local name=$1
	shift
	start_target "$name"
	TARGET_PID=$PID
	_new_recording
	"$KXRAY" record -a -o "$TRACE" --json "$@" >"$TMP/rec.json" 2>"$TMP/rec.err" &
	KX_PID=$!
	_pids+=("$KX_PID")
	wait_for _records || fail "-a: start" "$(cat "$TMP/rec.err")"
	go_target
	end_target "$TARGET_PID"
	TARGET_STATUS=$STATUS
	kill -INT "$KX_PID"
	end_kxray
	tail -n 1 "$TMP/$name.out" >"$TMP/did.json"
}

for name in coro coro-asm; do
	functions_of $name
	for exits in auto return instruction none; do
		trace_target $name "${functions[@]}" --exits=$exits
		right "$name, -p, --exits=$exits" $exits
		trace_target $name "${functions[@]}" --exits=$exits --follow
		right "$name, --follow -p, --exits=$exits" $exits
		trace_command $name "${functions[@]}" --exits=$exits
		TARGET_STATUS=$STATUS right "$name, -- COMMAND, --exits=$exits" $exits
		trace_command $name "${functions[@]}" --exits=$exits --no-follow
		TARGET_STATUS=$STATUS right "$name, --no-follow, --exits=$exits" $exits
	done
	system_wide $name "${functions[@]}"
	right "$name, -a" auto
	# functions without calls alone
	trace_target $name -f leaf
	assert_eq "$name, leaf: the target's answer" "$TARGET_STATUS" 0
	expect "$name, leaf" only=leaf fdr account entered
done
