#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 25 s
# Conditions of calls (--if, -f 'NAME if ...'): exactly the calls that met them are recorded, and the counts are those of the target.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# check NAME COUNTS EXPRESSION "FUNCTION..." OPTION...: see conditions.py
check() {
	local name=$1 counts=$2 expression=$3 functions=$4 got
	shift 4
	trace_command conditions "$@"
	assert_eq "$name: status, lost, exits without entry: $(tail -n 1 "$TMP/rec.err")" \
		"$STATUS $(json "$TMP/rec.json" '[d["lost"], d["orphans"]]')" "0 [0, 0]"
	"$KXRAY" dump --json "$TRACE" >"$TMP/dump.json"
	# shellcheck disable=SC2086
	got=$(python3 tests/live/conditions.py "$TMP/did.json" "$TMP/rec.json" "$TMP/dump.json" "$expression" $functions 2>&1)
	assert_eq "$name" "$got" "$counts"
}

check "numbers" "compared 126, met 42, unknown 0, undecided 0" 'a < -4 or a >= 5 or a == 2 or c > 40 and c <= 60 and b != 4096 or a == -7' \
	cond_leaf -f cond_leaf --args 3 --callers \
	--if 'arg1:i32 < -4 || arg1:i32 >= 5 || arg1:i32 == 2 || arg3:i8 > 40 && arg3:i8 <= 0x3c && arg2 != 4096 || arg1:i32==-7'
check "bits, not, each of several" "compared 126, met 27, unknown 0, undecided 0" 'b & 1 and not (a < 0 or c == 0) and a <= 5 and b & 0x8000000000000000 == 0' \
	cond_leaf -f 'cond_leaf(arg1:i32, arg2:u64, arg3:i8) if !(arg1 < 0 || arg3 == 0) && arg2 & 1' --if '!(arg2 & 0x8000000000000000)' --if 'arg1 <= 5'
check "texts" "compared 36, met 21, unknown 12, undecided 0" \
	'matches("/api/*") or same("/apx") or not matches("*[/mq]*") or same("quoted \"text\" \\ *") or same("/api") or matches("*m")' cond_text \
	-f 'cond_text(arg1:str)' \
	--if 'arg1 =~ "/api/*" || arg1 == "/apx" || arg1 !~ "*[/mq]*" || arg1 == "quoted \"text\" \\ \x2a" || !(arg1 != "/api") || arg1 =~ "*m"'
check "counted texts, early" "compared 36, met 12, unknown 0, undecided 0" 'n == 4 or n == 250 and matches("m*") or n == 299 and matches("m*")' cond_text \
	-f 'cond_text(arg1:str[arg2], arg2:i64) if arg2 == 4 || arg2 >= 250 && arg1 =~ "m*"' --max-overhead 99
for how in auto instruction; do
	check "results, $how" "compared 126, met 33, unknown 0, undecided 0" 'ret < 0 and a > -3' cond_leaf --exits $how \
		-f 'cond_leaf(arg1:i32, arg3:i8) -> r:i32 if r < 0 && arg1 > -3' -f cond_nest
	check "results with --min-duration, $how" "compared 21, met 12, unknown 0, undecided 3" 'ret < 0' 'cond_nest cond_jump' --exits $how \
		-f cond_nest -f cond_jump --if 'ret < 0' --min-duration 1ns --callers --args 3
done
check "depth and thread" "compared 147, met 5, unknown 0, undecided 1" 'thread == "worker/0" and (depth == 3 or ret == 5)' 'cond_nest cond_leaf cond_jump' \
	-f cond_nest -f cond_leaf -f cond_jump --if 'thread =~ "work*" && (depth == 3 || ret:i32 == 5)'

# the calls of one thread, and what bpftrace counts with the same filter on the same run
start_target conditions
if command -v bpftrace >/dev/null; then
	bpftrace -e "uprobe:$TARGETS/conditions:cond_leaf /arg1 > 4096/ { @ = count(); }" -p "$PID" >"$TMP/bpftrace" 2>&1 &
	BPFTRACE=$!
	_pids+=("$BPFTRACE")
	# it prints that before it attaches, and waits for events by epoll_wait after that
	attached() { has_text Attach "$TMP/bpftrace" && grep -qE '^(232|281) ' "/proc/$BPFTRACE/syscall"; }
	wait_for attached
fi
TARGET_PID=$PID
start_kxray "$PID" -f 'cond_leaf if arg2:u64 > 4096' -f "cond_nest if tid == $PID"
go_target
end_target "$TARGET_PID"
end_kxray
tail -n 1 "$TMP/conditions.out" >"$TMP/did.json"
"$KXRAY" dump --json "$TRACE" >"$TMP/dump.json"
assert_eq "-p: conditions of two functions" \
	"$(python3 tests/live/conditions.py "$TMP/did.json" "$TMP/rec.json" "$TMP/dump.json" "b > 4096 if function == 'cond_leaf' else tid == $TARGET_PID" \
		cond_leaf cond_nest)" "compared 141, met 71, unknown 0, undecided 0"
if [ -n "${BPFTRACE:-}" ]; then
	wait_for _is_over "$BPFTRACE"
	assert_eq "bpftrace counts as many" "$(sed -n 's/^@: //p' "$TMP/bpftrace")" "$(grep -c '"kind":"entry".*"function":"cond_leaf"' "$TMP/dump.json")"
else
	skip "bpftrace" "it is not installed"
fi

# triggers: one dump for the end of the process, and those that the calls caused, or that they joined
trace_command conditions -f cond_leaf --flight-recorder 1M --trigger 'cond_jump if ret:i32 < 0 && arg1 == 0' --trigger 'cond_text if arg2 == 250'
assert_eq "triggers: $(tail -n 1 "$TMP/rec.err")" "$STATUS $(json "$TMP/rec.json" 'd["triggers_merged"] + d["dumps"] - 1')" "0 6"

refused() { # SENTENCE OPTION...
	local sentence=$1
	shift
	trace_command conditions "$@"
	assert_eq "refused: $sentence" "$STATUS $(grep -c "^kxray record: $sentence" "$TMP/rec.err")" "1 1"
}
refused "--if 'fd > 3': cond_leaf has no value fd (.*): .*, at character 1" -f cond_leaf --if 'fd > 3'
refused "--if 'arg1:str < 3': arg1 of cond_leaf is a text, .*, at character 1" -f cond_leaf --if 'arg1:str < 3'
refused "--if 'arg1:u8 > 256': 256 is beyond the range of arg1, an unsigned number of 8 bits, at character 11" -f cond_leaf --if 'arg1:u8 > 256'

# Only a condition about an argument may need a more expensive entry, where the registers are unchanged.
entries() { "$KXRAY" record -f 'libc.so*:str*' -f 'libc.so*:mem*' "$@" -o "$TMP/entries.xray" -- /bin/true 2>&1 | grep -o '[0-9]* of [0-9]* functions have an expensive entry'; }
assert_eq "a condition without arguments leaves entries where they are" "$(entries --if 'depth < 100 && thread != "x"')" "$(entries)"
