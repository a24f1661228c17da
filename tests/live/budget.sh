#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 40 s
# --max-overhead while recording: what does not fit is sampled, or its probes are taken out and put back; all calls are
# counted, those in the trace are whole, and without pressure nothing changes.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

BOTH=(-f hot -f seldom)

work() { printf '%s\n' "$1" >&"$TARGET_IN"; }
answers() { grep -c '^{' "$TMP/bursts.out"; }
has_answers() { [ "$(answers)" -ge "$1" ]; }
# work_until PIECES COMMAND...: work until the command succeeds
work_until() {
	local n pieces=$1
	shift
	until "$@"; do
		n=$(answers)
		work "$pieces"
		wait_for has_answers $((n + 1)) || { fail "work until: $*" "no answer to '$pieces'"; return; }
	done
}
# finish: the target and the recording end; its counts are in $TMP/did.json
finish() {
	work 0
	end_target "$TARGET"
	end_kxray
	grep '^{' "$TMP/bursts.out" | tail -n 1 >"$TMP/did.json"
	"$KXRAY" report --json "$TRACE" >"$TMP/report.json"
}
of() { json "$TMP/report.json" "next((f for f in d['functions'] if f['name'] == '$1'), {}).get('$2')"; }
did() { json "$TMP/did.json" "d['$1']"; }
in_note() { has_text "$1" "$TMP/rec.err"; }
strict() { assert_eq "$1: the trace is valid" "$(python3 tests/live/fdr.py "$TRACE" >"$TMP/fdr.out" 2>&1 && echo yes || tail -n 1 "$TMP/fdr.out")" yes; }

put_back() { [ "$("$KXRAY" dump "$TRACE" 2>/dev/null | grep -c 'kxray:budget .*one_in[^0-9]*4096')" -gt 0 ]; }
# until_put_back WHAT: what was taken too much is made up for by the program's own work
until_put_back() { work_until '1000 0 only' put_back || fail "$1: put back" "$("$KXRAY" dump "$TRACE" | grep kxray:budget)"; }

# take_out_and_back WHAT [PID]: too much is called, then little; the program, the other one that is recorded, and the recording end
take_out_and_back() {
	work_until 20 in_note 'hot is called too often for --max-overhead: its probes are taken out'
	until_put_back "$1"
	[ -z "${2:-}" ] || kill -KILL "$2"
	finish
	assert_eq "$1: status" "$STATUS" 0
	strict "$1"
	assert "$1: not all calls were counted" "$(of hot all_calls) of $(did hot)" [ "$(of hot all_calls)" -lt "$(did hot)" ]
	assert_eq "$1: for how long" "$(json "$TMP/report.json" "[f['out_seconds'] > 0 for f in d['functions'] if f['name'] == 'hot']")" "[True]"
	assert_eq "$1: summary" "$(json "$TMP/rec.json" "d['taken_out'] >= 1")" True
	assert_contains "$1: report" "$("$KXRAY" report "$TRACE")" ", without probes for "
}

# The program's file is mapped by another process too, so that its probes are in links of their own for each process: even counting takes too
# much, so they are out, and in again when little is called. With a second process there are no sessions, and exits are at return instructions.
"$TARGETS/bursts" <>"$TMP/.pause" >"$TMP/bystander.out" &
_pids+=($!)
wait_for has_text ready "$TMP/bystander.out"
for how in "session auto 1" "session auto 2" "session instruction 1" "multi instruction 2" "single auto 2"; do
	read -r mechanism exits processes <<<"$how"
	start_target bursts --calls=2000
	TARGET=$PID
	more=
	if [ "$processes" = 2 ]; then
		"$TARGETS/bursts" <>"$TMP/.pause" >"$TMP/idle.out" &
		more=$!
		_pids+=("$more")
		wait_for has_text ready "$TMP/idle.out"
	fi
	start_kxray "$TARGET${more:+,$more}" --follow "${BOTH[@]}" --max-overhead 0.5 --mechanism "$mechanism" --exits "$exits"
	if in_note 'does not offer'; then
		skip "$how" "$(cat "$TMP/rec.err")"
		continue
	fi
	take_out_and_back "$how" "$more"
	assert "$how: fewer are recorded, at least one" "$(of hot count) of $(of hot all_calls)" \
		[ 0 -lt "$(of hot count)" -a "$(of hot count)" -le "$(of hot all_calls)" ]
	assert_eq "$how: what is recorded is in the trace" \
		"$(json "$TMP/report.json" "sum(f['count'] for f in d['functions'])")" \
		"$(json "$TMP/rec.json" "d['entries']")"
	assert_eq "$how: each has its exit or is closed, none is lost" \
		"$(json "$TMP/rec.json" "[d['entries'] - d['exits'] - d['repaired'], d['lost']]")" "[0, 0]"
	assert_contains "$how: the step is in the trace" "$("$KXRAY" dump "$TRACE")" 'kxray:budget {\"function\":'
	assert_eq "$how: how many of them were recorded" "$(of hot recorded_calls)" \
		"$(json "$TMP/report.json" "sum(f['count'] for f in d['functions'] if f['name'] == 'hot')")"
	assert_contains "$how: report of its calls" "$("$KXRAY" report "$TRACE")" \
		"$(json "$TMP/report.json" "next('; recorded {recorded_calls:,} of {all_calls:,} calls'.format(**f) for f in d['functions'] if f['name'] == 'hot')")"
	rm -f "$TRACE" "$TRACE.map"
done

# A dump says what was sampled, too.
start_target bursts --calls=2000
TARGET=$PID
start_kxray "$TARGET" --follow "${BOTH[@]}" --max-overhead 0.001 --flight-recorder 1M
work_until 20 in_note 'hot is called too often'
work 0
end_target "$TARGET"
end_kxray
grep '^{' "$TMP/bursts.out" | tail -n 1 >"$TMP/did.json"
assert_eq "dump: status" "$STATUS" 0
dump=$(json "$TMP/rec.json" "d['newest_dump']")
"$KXRAY" report --json "$dump" >"$TMP/report.json"
assert "dump: not all calls were counted, at least one" "$(of hot all_calls) of $(did hot)" \
	[ 0 -lt "$(of hot all_calls)" -a "$(of hot all_calls)" -lt "$(did hot)" ]
assert "dump: no more are recorded" "$(of hot recorded_calls) of $(of hot all_calls)" \
	[ "$(of hot recorded_calls)" -le "$(of hot all_calls)" ]
kill -KILL "${_pids[0]}"

# Nobody else maps it: even counting takes too much, so the probes are out, and in again when little is called.
start_target bursts --calls=2000
TARGET=$PID
start_kxray "$TARGET" "${BOTH[@]}" --max-overhead 0.5
take_out_and_back out
rm -f "$TRACE" "$TRACE.map"

# As much as it takes.
start_target bursts --calls=100
TARGET=$PID
start_kxray "$TARGET" "${BOTH[@]}" --max-overhead 100000%
work 50
wait_for has_answers 1
finish
assert_eq "no pressure: status" "$STATUS" 0
assert_eq "no pressure: all are recorded" "$(of hot count) $(of seldom count)" "$(did hot) $(did seldom)"
assert_eq "no pressure: nothing is sampled" "$(json "$TMP/rec.json" "[d['sampled'], d['taken_out'], d['lost']]")" "[0, 0, 0]"
assert_eq "no pressure: no note" "$("$KXRAY" dump "$TRACE" | grep -c kxray:budget)" 0

# A command, with system calls: their tracepoints stay.
_new_recording
rm -f "$TMP/bursts.out" # so that nothing is found there before this command is ready
mkfifo "$TMP/in"
"$KXRAY" record -f 'syscall:write' --max-overhead 0.00001 -o "$TRACE" -- "$TARGETS/bursts" \
	<"$TMP/in" >"$TMP/bursts.out" 2>"$TMP/rec.err" &
KX_PID=$!
_pids+=("$KX_PID")
exec {TARGET_IN}>"$TMP/in"
wait_for has_text ready "$TMP/bursts.out"
# many at once: fewer than 16 calls between two looks at a function's rate are no rate
work_until "$(yes 1 | head -n 100)" in_note 'write is called too often'
work 1
work 0
end_kxray
assert_eq "system calls: status" "$STATUS" 0
"$KXRAY" report --json "$TRACE" >"$TMP/report.json"
# one for "ready" and one for each answer
assert_eq "system calls: every call is counted" "$(of write all_calls)" $((1 + $(answers)))
strict "system calls"
