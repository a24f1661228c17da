#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 74 s
# Programs that switch stacks: swapcontext, a switch in assembly, signal handlers on a stack of their own. A
# return address that is replaced on a second stack would make them hang, crash or compute another sum. Every
# way to choose processes and exits. The switch of coro-hidden is recognized only by what it does; the others
# are known before, without which kernels before 6.13 (no sessions) could not trace them.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

noticed="exits come from return instructions"
declare -A known=([coro]="coro uses swapcontext, so it switches stacks"
	[coro-asm]="coro-asm has code that switches stacks" [coro-hidden]=$noticed)

# functions_of TARGET: sets $functions; the switch in assembly is traced as well
functions_of() {
	local name
	functions=()
	for name in next yield leaf step signalled; do functions+=(-f "$TARGETS/$1:$name"); done
	[ "$1" = coro ] || functions+=(-f "$TARGETS/$1:swap")
}

# right LABEL NAME EXITS: the target's answer is the one that it has when it is not traced, all calls are
# recorded, and it is said why exits are taken from instructions
right() {
	assert_eq "$1: the target's answer" "$TARGET_STATUS $(json "$TMP/did.json" 'd["wrong"]')" "0 0"
	assert_eq "$1: kxray's status" "$STATUS" 0
	[ "$STATUS" = 0 ] && expect "$1" fdr account entered
	case $3 in
	auto) assert_contains "$1: it says why" "$(cat "$TMP/rec.err")" "${known[$2]}" ;;
	return) assert_contains "$1: it says why" "$(cat "$TMP/rec.err")" "$noticed" ;;
	esac
}

# system_wide TARGET [OPTION...]
system_wide() {
	local name=$1
	shift
	beside_translators shared
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

# stopped TARGET [OPTION...]: kxray stands still while the target runs, so it cannot look at it before it ends
stopped() {
	local name=$1
	shift
	start_target "$name"
	TARGET_PID=$PID
	start_kxray "$TARGET_PID" "$@"
	kill -STOP "$KX_PID"
	go_target
	end_target "$TARGET_PID"
	kill -CONT "$KX_PID"
	end_kxray
	assert_eq "$name, stopped, $*: kxray's status" "$STATUS" 0
	assert_eq "$name, stopped, $*: it says why once" "$(grep -c "$noticed" "$TMP/rec.err")" 1
}

functions_of coro-hidden
for follow in --follow --no-follow; do
	stopped coro-hidden "${functions[@]}" $follow
done

for name in coro coro-asm coro-hidden; do
	functions_of $name
	for exits in auto return instruction none; do
		trace_target $name "${functions[@]}" --exits=$exits
		right "$name, -p, --exits=$exits" $name $exits
		trace_command $name "${functions[@]}" --exits=$exits
		TARGET_STATUS=$STATUS right "$name, -- COMMAND, --exits=$exits" $name $exits
		# without return probes, the ways to follow make no difference
		[[ $exits = auto || $exits = return ]] || continue
		trace_target $name "${functions[@]}" --exits=$exits --follow
		right "$name, --follow -p, --exits=$exits" $name $exits
		trace_command $name "${functions[@]}" --exits=$exits --no-follow
		TARGET_STATUS=$STATUS right "$name, --no-follow, --exits=$exits" $name $exits
	done
	system_wide $name "${functions[@]}"
	right "$name, -a" $name any
	# functions without calls alone
	trace_target $name -f leaf
	assert_eq "$name, leaf: the target's answer" "$TARGET_STATUS" 0
	expect "$name, leaf" only=leaf fdr account entered
done

# Mechanisms that cannot decide for each call.
for mechanism in multi single; do
	run "$KXRAY" record -o "$TRACE" --mechanism $mechanism -f main -- "$TARGETS/counts" --start=now
	if [ "$STATUS" != 0 ]; then
		skip "mechanism $mechanism" "$ERR"
		continue
	fi
	for name in coro coro-asm; do
		functions_of $name
		trace_target $name "${functions[@]}" --mechanism $mechanism
		right "$name, -p, $mechanism" $name auto
		trace_command $name "${functions[@]}" --mechanism $mechanism
		TARGET_STATUS=$STATUS right "$name, -- COMMAND, $mechanism" $name any
		run "$KXRAY" record -o "$TRACE" "${functions[@]}" --mechanism $mechanism --exits=return \
			-- "$TARGETS/$name" --start=now
		assert_eq "$name, $mechanism, --exits=return: status" "$STATUS" 1
		assert_contains "$name, $mechanism, --exits=return: why" "$ERR" "${known[$name]}"
	done
done
