#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 6 s
# record --in-process --follow: each process of a family that forks and executes has exactly the calls that it counts itself, also when
# its parent has ended; and none of their codes keeps a byte of kxray, whoever is killed. More: the ways inprocess-follow of tests/hazards.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

LOG=$TMP/family.log
functions=(-f 'fam_*' --in-process --follow)

# say BYTE WORD: the family does it; its line is in $SAID
answers=0
answered() { [ "$(wc -l <"$TMP/family.out")" -gt "$answers" ]; }
say() {
	answers=$(wc -l <"$TMP/family.out")
	go_target "$1"
	wait_for answered
	SAID=$(tail -n 1 "$TMP/family.out")
	[[ $SAID = "$2"* ]] || fail "the family answers to $1" "$SAID"
}
changed() { python3 -S tests/live/process_code.py "$1"; }
has_jumps() { [[ $(cat "/proc/$1/maps") = *"rwxp"* ]]; }
has_probes() { ! has_jumps "$1" && [ "$(changed "$1")" -gt 0 ]; }
# left: bytes that differ from the file, and mappings of kxray, in all of the family
left() {
	local pid bytes=0
	say p pids
	for pid in ${SAID#pids}; do
		bytes=$((bytes + $(changed "$pid") + $(grep -c '/dev/zero' "/proc/$pid/maps")))
	done
	echo "$bytes"
}
begin_family() {
	rm -f "$LOG"
	start_target family "$LOG"
	TARGET_PID=$PID
}
# over NAME: the family's end
over() {
	say q ended
	end_target "$TARGET_PID"
	assert_eq "$1: the target's status" "$STATUS" 0
}

# pass_on: the first process has given over to its heir, and ends. The heir reads what it did, and would end as well at the end of that.
pass_on() {
	local next
	exec {next}>"$TMP/family.in"
	end_target "$TARGET_PID"
	TARGET_IN=$next
}

# Children, grandchildren, orphans, after exec, and one that does not know its id
begin_family
start_kxray "$TARGET_PID" "${functions[@]}"
say r ran
say f forked
say r ran
say e executed
wait_for has_probes "${SAID#executed }" || fail "after exec" "no uprobes"
say r ran
say w raw
wait_for has_probes "${SAID#raw }" || fail "after a raw fork" "it keeps its jumps"
assert "a raw fork is named" "$(cat "$TMP/rec.err")" grep -q "process ${SAID#raw } was forked without the C library" "$TMP/rec.err"
say r ran
say p pids
all=${SAID#pids}
say x heir
pass_on
say r ran
say q ended
end_kxray
assert_eq "a family: status, losses, functions in process" "$STATUS $(json "$TMP/rec.json" '(d["lost"], d["in_process"]["functions"])')" "0 (0, 2)"
assert_eq "a family: processes that have logged" "$(wc -l <"$LOG")" "$(wc -w <<<"$all")"
run python3 tests/live/per_process.py "$TRACE" "$LOG"
assert_eq "a family: calls of each process" "$STATUS $OUT" "0 "
echo "# $ERR"

# kxray ends while they go on.
begin_family
start_kxray "$TARGET_PID" "${functions[@]}"
say f forked
say p pids
for pid in ${SAID#pids}; do has_jumps "$pid" || fail "before the end: jumps of $pid" "there are none"; done
kill -INT "$KX_PID"
end_kxray
assert_eq "the end: status, what is left" "$STATUS $(left)" "0 0"
say r ran

# It is killed, its keeper is not. The parent has ended meanwhile.
start_kxray "$TARGET_PID" "${functions[@]}"
say x heir
pass_on
read -r KEEPER _ <"/proc/$KX_PID/task/$KX_PID/children"
kill -KILL "$KX_PID"
wait_for _is_over "$KEEPER"
end_kxray
assert_eq "kxray is killed: what is left in the children" "$(left)" 0
say r ran
say q ended

# Both are killed: nothing is recorded, and kxray detach takes it out of all, by any of them.
begin_family
start_kxray "$TARGET_PID" "${functions[@]}"
say f forked
say r ran
read -r KEEPER _ <"/proc/$KX_PID/task/$KX_PID/children"
kill -KILL "$KEEPER" "$KX_PID"
end_kxray
say r ran
say p pids
read -r _ _ child _ <<<"$SAID"
detached() {
	run "$KXRAY" detach -p "$child"
	[[ $ERR != *"is recording it"* ]]
}
wait_for detached
assert_contains "kxray detach: all of them" "$OUT" "from 4 processes, all memory unmapped"
assert_eq "kxray detach: what is left" "$STATUS $(left)" "0 0"
say r ran
over "kxray detach"

# Without --follow children record nothing.
begin_family
start_kxray "$TARGET_PID" -f 'fam_*' --in-process
say f forked
say r ran
over "without --follow"
end_kxray
run python3 tests/live/per_process.py "$TRACE" "$LOG" --pid "$TARGET_PID"
assert_eq "without --follow: only the first process" "$STATUS $OUT" "0 "

begin_family
run "$KXRAY" record -p "$TARGET_PID" -f 'fam_*' --in-process --follow=exact
assert_contains "refused, --follow=exact" "$STATUS $ERR" "without =exact"
over "refused"
