#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 60 s
# kxray top: counts and durations of live calls, exactly those that the target counts itself and that a recording made at the
# same time has; nothing is written, nothing is left behind.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# begin_top FILE [OPTION...]: watches process $PID; its pid is in $TOP_PID, what it prints in FILE, messages in $TMP/top.err
begin_top() {
	local to=$1
	shift
	rm -f "$TMP/top.err"
	"$KXRAY" top "$@" >"$to" 2>"$TMP/top.err" </dev/null &
	TOP_PID=$!
	_pids+=("$TOP_PID")
	wait_for _watches || fail "top $*" "$(cat "$TMP/top.err")"
}
_watches() { has_text 'kxray: watching ' "$TMP/top.err" || _is_over "$TOP_PID"; }
end_top() {
	STATUS=0
	wait_for _is_over "$TOP_PID" || kill -KILL "$TOP_PID"
	wait "$TOP_PID" || STATUS=$?
}

# check_lines LABEL FILE [report]: the lines of JSON are consistent, and count what the target has counted (and what report has)
check_lines() {
	local wrong
	wrong=$(python3 - "$2" "$TMP/did.json" ${3:+"$TMP/report.json"} <<-'END'
	import json, sys
	lines = [json.loads(l) for l in open(sys.argv[1])]
	done = {n: c for n, c in json.load(open(sys.argv[2]))["calls"].items() if c}
	sums, totals = {}, {}
	for i, line in enumerate(lines):
	    if line["schema"] != 1 or line["interval"] != i + 1 or line["last"] != (i + 1 == len(lines)):
	        print("line", i, "is no. ", line["interval"], line["last"])
	    for f in line["functions"]:
	        s = sums.setdefault(f["name"], [0, 0, 0, 0])
	        for k, v in enumerate((f["calls"], f["timed"], f["sum_ns"], sum(b["count"] for b in f["buckets"]))):
	            s[k] += v
	        totals[f["name"]] = [f["total_calls"], f["total_timed"], f["total_sum_ns"], f["total_timed"]]
	        if f["timed"] and not f["p50_ns"] <= f["p99_ns"]:
	            print("quantiles of", f)
	if {n: s[0] for n, s in sums.items()} != done:
	    print("counts", sums, "want", done)
	if sums != totals:
	    print("sums of the lines", sums, "totals", totals)
	if lines[-1]["total_calls"] != sum(done.values()) or lines[-1]["missed"]:
	    print("all", lines[-1]["total_calls"], "missed", lines[-1]["missed"])
	if len(sys.argv) > 3:
	    report = {f["name"]: f["count"] for f in json.load(open(sys.argv[3]))["functions"]}
	    if report != done:
	        print("report", report, "want", done)
	    print("calls without a duration", {n: s for n, s in sums.items() if s[0] != s[1]}) if any(
	        s[0] != s[1] for s in sums.values()) else None
	END
	) || wrong="cannot be compared: $wrong"
	assert_eq "$1" "$wrong" ""
}

# watched LABEL [OPTION...]: with a recording at the same time, by the same probes' places
watched() {
	local label=$1
	shift
	start_target counts --repeat=3
	TARGET_PID=$PID
	start_kxray "$PID" "${COUNTED[@]}" "$@"
	begin_top "$TMP/top.json" -p "$TARGET_PID" --json --interval 0.1 "${COUNTED[@]}" "$@"
	go_target
	end_target "$TARGET_PID"
	TARGET_STATUS=$STATUS
	end_kxray
	assert_eq "$label: record" "$STATUS" 0
	end_top
	assert_eq "$label: statuses $(tail -n 1 "$TMP/top.err")" "$STATUS $TARGET_STATUS" "0 0"
	tail -n 1 "$TMP/counts.out" >"$TMP/did.json"
	"$KXRAY" report --json "$TRACE" >"$TMP/report.json"
	check_lines "$label: counts" "$TMP/top.json" report
}
watched "return probes"
cp "$TMP/top.json" "$TMP/lines.json"
head -n 1 "$TMP/top.json" >"$TMP/first.json"
watched "instruction exits" --exits=instruction
watched "multi" --mechanism multi
watched "single" --mechanism single

# Without exits calls are counted and have no duration.
start_target counts
begin_top "$TMP/top.out" -p "$PID" --exits=none -f leaf_a --interval 60
go_target
end_target "$PID"
end_top
assert_contains "no exits" "$(cat "$TMP/top.err")" "4600 calls of 1 function in "
assert_contains "no exits: none has a duration" "$(cat "$TMP/top.err")" ", 4600 without a measured end"
assert_contains "no exits: table" "$(tr -s ' ' <"$TMP/top.out")" " - - - - leaf_a [counts]"

# timed LABEL TARGET WANT OPTION...: "NAME:CALLS:TIMED ..." of its functions, in alphabetical order
timed() {
	local label=$1 target=$2 want=$3
	shift 3
	start_target "$target"
	begin_top "$TMP/top.json" -p "$PID" --json --interval 60 "$@"
	go_target
	end_target "$PID"
	TARGET_STATUS=$STATUS
	end_top
	assert_eq "$label: statuses" "$STATUS $TARGET_STATUS" "0 0"
	assert_eq "$label" "$(json "$TMP/top.json" '" ".join(sorted("%s:%d:%d" % (f["name"], f["calls"], f["timed"]) for f in d["functions"]))')" \
		"$want"
}

# A longjmp leaves eleven frames: their calls count and have no duration, those around them have. The kernel nests at
# most 64 return probes; at instructions 320 open calls of a thread are timed.
for exits in return instruction; do
	timed "longjmp, --exits=$exits" longjmp "after:250:250 catcher:250:250 dive:2500:0 jump:250:0" \
		-f catcher -f dive -f jump -f after --exits=$exits
done
timed "recursion, --exits=return" deep "bottom:10:0 descend:10000:640" -f descend -f bottom --exits=return
timed "recursion, --exits=instruction" deep "bottom:10:0 descend:10000:3200" -f descend -f bottom --exits=instruction
# 20,000 exceptions through two traced frames
timed "exceptions" throws "catcher(long):20000:20000 passer(long):20000:0 thrower(long):20000:0" \
	-f catcher -f passer -f thrower

# Ctrl-C ends it in order, and the target keeps running. No file was written.
_new_recording
start_target counts
begin_top "$TMP/top.json" -p "$PID" --json --interval 60 -f leaf_a
kill -INT "$TOP_PID"
end_top
assert_eq "Ctrl-C: status" "$STATUS" 0
go_target
end_target "$PID"
assert_eq "Ctrl-C: the target" "$STATUS" 0
assert_eq "Ctrl-C: the last line" "$(json "$TMP/top.json" 'd["last"], d["total_calls"], d["interval"]')" "(True, 0, 1)"
assert_eq "no file is written" "$(cd "$TMP" && ls ./*.xray* 2>/dev/null)" ""

# How long and how much
start_target counts --after=600000
TARGET_PID=$PID
run "$KXRAY" top -p "$PID" -f leaf_a -n 3 -i 0.05 --json
assert_eq "-n 3: lines" "$STATUS $(wc -l <"$TMP/run.out")" "0 3"
run "$KXRAY" top -p "$PID" -f leaf_a -d 0.1 -i 60
assert_eq "-d: one table" "$STATUS $(grep -c CALLS/S "$TMP/run.out")" "0 1"
assert_contains "-d: what it is about" "$OUT" "process $PID (counts): 0 calls/s of 1 function, "
begin_top "$TMP/top.out" -p "$PID" -f 'leaf_*' -f outer --limit 2 --sort calls -i 0.1
go_target
wait_for has_text 'functions were called, 2 shown' "$TMP/top.out"
kill -INT "$TOP_PID"
end_top
assert_eq "--limit: status" "$STATUS" 0
assert_contains "--limit, --sort: the first" "$(grep -A1 '^\[CALLS/S\]' "$TMP/top.out" | grep '\[counts\]' | head -n 1)" "leaf_a [counts]"
"$KXRAY" top -p "$TARGET_PID" -f leaf_a -i 0.02 2>"$TMP/top.err" | head -n 1 >"$TMP/top.out"
assert_eq "a reader that goes away ends it" "${PIPESTATUS[0]}" 0
run "$KXRAY" top -p "$TARGET_PID" -f nosuch -n 1
assert_eq "nothing matches: status" "$STATUS" 1
kill -KILL "$TARGET_PID"; wait "$TARGET_PID" 2>/dev/null

# Without -f calls are counted first.
background "$TARGETS/demo" >"$TMP/demo.out"
run "$KXRAY" top -p "$PID" -n 1 -i 0.1
assert_eq "without -f: status" "$STATUS" 0
assert_contains "without -f: what is chosen" "$ERR" "kxray: counted calls in "
kill -KILL "$PID"; wait "$PID" 2>/dev/null

for wrong in "" "-a" "-a -p 1 -f x" "-p 1 --interval 0" "-p 1 -n 0" "-p 1 --sort nosuch" "-p 1 --prometheus 99999" \
	"-p 1 -f x --max-overhead 3" "-a -f x --no-follow" "-p 1 extra"; do
	# shellcheck disable=SC2086
	run "$KXRAY" top $wrong
	assert_eq "top $wrong: status" "$STATUS" 2
done
run "$KXRAY" top -p 1 -f 'x(arg1:i32) -> ret'
assert_eq "values: status" "$STATUS" 2
assert_contains "values: the sentence" "$ERR" \
	"kxray top: top records no values of calls, as in 'x(arg1:i32) -> ret': give -f 'x'"
run "$KXRAY" top -p 1 -f x --results
assert_eq "--results: status" "$STATUS" 2

# A name that holds anything
symbol=$'qu\e[31m\n\x9b2J\xff'
objcopy --redefine-sym "leaf_a=$symbol" "$TARGETS/counts" "$TMP/counts"
TARGETS=$TMP start_target counts
begin_top "$TMP/top.out" -p "$PID" -f 'qu*' -i 60
go_target
end_target "$PID"
end_top
assert_contains "hostile name" "$(cat "$TMP/top.out")" 'qu\x1b[31m\n\x9b2J\xff [counts]'
assert_eq "hostile name: nothing but printable text" "$(tr -d '[:print:]\n' <"$TMP/top.out")" ""

# kxray is killed: no probe stays.
start_target many
TARGET_PID=$PID
python3 tests/live/killed.py "$KXRAY" "$PID" 15 "$RANDOM" "" 'many_0[0-4]*' >"$TMP/killed.json" || fail "killed" "killed.py failed"
echo "# $(cat "$TMP/killed.json")"
of() { json "$TMP/killed.json" "d['$1']"; }
assert "kxray was killed" "never" test "$(of killed)" -gt 0
assert_eq "killed: changed bytes, leaks" "$(of changed) $(of leaks)" "0 0"
go_target
end_target "$TARGET_PID"
assert_eq "killed: the target" "$STATUS" 0

# kxray-json(7) has every field.
tail -n 1 "$TMP/lines.json" >"$TMP/last.json"
for line in "$TMP/last.json" "$TMP/first.json"; do
	assert_eq "fields of ${line##*/} are as the page says" \
		"$(python3 tests/json_fields.py "$BUILD/man/kxray-json.7" TOP "$line" 2>&1)" ""
done
# An interval of a busy machine may have no call that ended in it.
grep '"from_ns"' "$TMP/lines.json" | tail -n 1 >"$TMP/full.json"
assert_eq "the page has no other fields" \
	"$(python3 tests/json_fields.py --seen "$BUILD/man/kxray-json.7" TOP "$TMP/full.json" "$TMP/last.json" 2>&1)" ""
