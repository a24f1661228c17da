#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 10 s
# USDT markers: each one is in the trace as often and with the values as the target passed it, by every mechanism; semaphores are up
# while kxray records and down again afterwards, also when it was killed; spans between two markers.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

values=(-f 'usdt:kxt:integers(arg1, arg2, arg3, arg4, arg5, arg6)' -f 'usdt:kxt:longs(arg1, arg2, arg3:ptr)'
	-f 'usdt:kxt:text(arg1:str[arg2], arg2)' -f 'usdt:kxt:memory(arg1, arg2, arg3, arg4)'
	-f 'usdt:kxt:constants(arg1, arg2, arg5, arg9, arg10, arg12)' -f 'usdt:kxp:*(arg1)' -f 'usdt:kxt:guarded')
names=(usdt:kxt:integers usdt:kxt:longs usdt:kxt:text usdt:kxt:memory usdt:kxt:constants usdt:kxp:twice usdt:kxp:none)

# counts: NAME COUNT of each marker in the report
counts() {
	"$KXRAY" report --json "$TRACE" | python3 -c 'import json, sys
print(*sorted(f["name"] + "=" + str(f["count"]) for f in json.load(sys.stdin)["functions"]))'
}

compare() { # NAME
	assert_eq "$1: statuses, lost, exits without entry: $(tail -n 1 "$TMP/rec.err")" \
		"$STATUS $TARGET_STATUS $(json "$TMP/rec.json" '[d["lost"], d["orphans"], d["repaired"]]')" "0 0 [0, 0, 0]"
	"$KXRAY" export -f csv -o "$TMP/calls.csv" "$TRACE" 2>"$TMP/export.err" || fail "$1: csv" "$(cat "$TMP/export.err")"
	assert_eq "$1: values" "$(python3 tests/live/values.py csv "$TMP/calls.csv" "$TMP/did.json" "${names[@]}" 2>&1)" "compared 702"
	assert_eq "$1: guarded by the semaphore" "$(counts | grep -o 'guarded=[0-9]*') $(json "$TMP/did.json" 'd["guarded"]')" "guarded=50 50"
}

trace_target usdt "${values[@]}"
compare "by default"
"$KXRAY" dump --json "$TRACE" >"$TMP/dump.json"
assert_eq "dump --json" "$(python3 tests/live/values.py dump "$TMP/dump.json" "$TMP/did.json" "${names[@]}" 2>&1)" "compared 702"
"$KXRAY" export -f chrome -o "$TMP/chrome.json" "$TRACE" 2>/dev/null
assert_eq "chrome" "$(python3 tests/live/values.py chrome "$TMP/chrome.json" "$TMP/did.json" "${names[@]}" 2>&1)" "compared 702"
"$KXRAY" export -f perfetto -o "$TMP/trace.pftrace" "$TRACE" 2>/dev/null
assert_eq "perfetto: instants" "$(python3 tests/readers/perfetto.py "$TMP/trace.pftrace" | grep -c '^mark .*"usdt:kxt:longs"')" 10
for mechanism in multi single; do
	trace_target usdt "${values[@]}" --mechanism $mechanism --callers
	compare "$mechanism, callers"
done
trace_target usdt "${values[@]}" --max-overhead 99 --follow
compare "--max-overhead, --follow"
trace_command usdt "${values[@]}" --fdr-version 1 --args 2
TARGET_STATUS=0
compare "a command, FDR version 1, --args"

# Among functions: each marker is inside the function that passes it, and no call is closed early.
trace_target usdt -f 'usdt:kxt:*' -f 'pass_*' -f 'begin_request' -f 'end_request' -f 'main'
assert_eq "markers beside functions" "$(counts)" "begin_request=51 end_request=51 pass_constants=1 pass_guarded=50 pass_integers=100 pass_longs=10 pass_memory=10 pass_text=3 usdt:kxt:begin=51 usdt:kxt:constants=1 usdt:kxt:end=51 usdt:kxt:guarded=50 usdt:kxt:integers=100 usdt:kxt:longs=10 usdt:kxt:memory=10 usdt:kxt:text=3"
assert_eq "repaired, orphans" "$(json "$TMP/rec.json" '[d["repaired"], d["orphans"], d["lost"]]')" "[0, 0, 0]"
"$KXRAY" report --callers 'usdt:kxt:integers' "$TRACE" >"$TMP/callers"
assert_contains "the caller of a marker" "$(cat "$TMP/callers")" pass_integers

# Spans: the first marker is passed 51 times, the second too, once without a begin and once there is no end.
trace_target usdt --span 'usdt:kxt:begin ~ end' -f 'usdt:kxt:guarded'
assert_eq "spans" "$(counts)" "usdt:kxt:begin ~ end=51 usdt:kxt:guarded=50"
assert_eq "of these without an end, ends without a begin, lost" "$(json "$TMP/rec.json" '[d["repaired"], d["orphans"], d["lost"]]')" "[1, 1, 0]"
assert_eq "what was between the markers" "$("$KXRAY" export -f csv "$TRACE" -o - | python3 -c 'import csv, sys
rows = list(csv.DictReader(sys.stdin))
print(sum(r["function"] == "usdt:kxt:guarded" and r["depth"] == "2" for r in rows))')" 50

# Counted only.
start_target usdt
TARGET_PID=$PID
"$KXRAY" record --count --json -p "$TARGET_PID" -f 'usdt:kx?:*' >"$TMP/count.json" 2>"$TMP/count.err" &
KX_PID=$!
_pids+=("$KX_PID")
wait_for has_text 'kxray: counting ' "$TMP/count.err"
go_target
end_target "$TARGET_PID"
end_kxray
assert_eq "--count" "$STATUS $(json "$TMP/count.json" '" ".join(sorted(f["name"] + "=" + str(f["count"]) for f in d["functions"]))')" \
	"0 usdt:kxp:none=10 usdt:kxp:twice=20 usdt:kxt:begin=51 usdt:kxt:constants=1 usdt:kxt:end=51 usdt:kxt:guarded=50 usdt:kxt:integers=100 usdt:kxt:longs=10 usdt:kxt:memory=10 usdt:kxt:text=3"

# A marker's semaphore is up while a recording has it, and goes down also when kxray is killed.
semaphore() { # PID: of kxt:guarded
	python3 -c 'import subprocess, sys
pid, file = sys.argv[1:]
address = next(int(l.split()[0], 16) for l in subprocess.check_output(["nm", file], text=True).splitlines() if l.endswith(" kxt_guarded_semaphore"))
with open(f"/proc/{pid}/maps") as f:
    base = int(f.readline().split("-")[0], 16)
with open(f"/proc/{pid}/mem", "rb") as f:
    f.seek(base + address)
    print(int.from_bytes(f.read(2), "little"))' "$1" "$TARGETS/usdt"
}
semaphore_is() { [ "$(semaphore "$TARGET_PID")" = "$1" ]; }
start_target usdt
TARGET_PID=$PID
assert_eq "semaphore before" "$(semaphore "$TARGET_PID")" 0
start_kxray "$TARGET_PID" -f 'usdt:kxt:guarded'
assert_eq "semaphore while it records" "$(semaphore "$TARGET_PID")" 1
"$KXRAY" record -p "$TARGET_PID" -f 'usdt:kxt:guarded' -d 0.1 -o "$TMP/second.xray" 2>"$TMP/second.err" || fail "a second recording" "$(cat "$TMP/second.err")"
assert_eq "semaphore after a second recording" "$(semaphore "$TARGET_PID")" 1
kill -KILL "$KX_PID"
wait "$KX_PID" 2>/dev/null
wait_for semaphore_is 0
assert_eq "semaphore after SIGKILL" "$(semaphore "$TARGET_PID")" 0
go_target
end_target "$TARGET_PID"
assert_eq "the target" "$STATUS" 0

# What cannot be.
start_target usdt
TARGET_PID=$PID
refused() { # SENTENCE OPTION...
	local sentence=$1
	shift
	run "$KXRAY" record -o "$TRACE" -p "$TARGET_PID" "$@"
	assert_contains "refused: $*" "$STATUS $ERR" "$sentence"
}
refused "no USDT marker matches 'usdt:kxt:long'; did you mean usdt:kxt:longs?" -f 'usdt:kxt:long'
refused "it has 3 arguments, and no arg4" -f 'usdt:kxt:longs(arg4)'
refused "a marker has no result" -f 'usdt:kxt:longs(arg1) -> ret'
refused "the arguments of a marker are arg1 to arg12" -f 'usdt:kxt:longs(arg1->x)'
refused "there is no marker 'usdt:kxt:done', with which the span" --span 'usdt:kxt:begin ~ done'
refused "is not a span" --span 'usdt:kxt:begin'
refused "--min-duration keeps long calls" -f 'usdt:kxt:*' --min-duration 1us
go_target
end_target "$TARGET_PID"
