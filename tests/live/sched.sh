#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 9 s
# record --sched: times when threads run, wait and are woken, compared with the target's and the kernel's counts.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

WAITS=(-f nap -f take -f give -f spin -f pass_on -f mark -f work_sleeper -f work_reader)

# waited LABEL CHECK...: see sched.py
waited() {
	local label=$1 check
	shift
	assert_eq "$label: statuses" "$STATUS $TARGET_STATUS" "0 0"
	assert_eq "$label: lost" "$(json "$TMP/rec.json" 'd["lost"]')" 0
	# the times of the events are as recorded
	"$KXRAY" report --json --raw "$TRACE" >"$TMP/report.json" || fail "$label: report" "status $?"
	for check in "$@"; do
		run python3 tests/live/sched.py "$check" "$TRACE" "$TMP/did.json" "$TMP/report.json"
		assert_eq "$label: $check" "$OUT$(tail -n 1 <<<"$ERR")" ''
	done
}

all=(switches times naps wakers spins waits)
trace_target waits "${WAITS[@]}" --sched
waited "by PID" "${all[@]}"
cp "$TMP/report.json" "$TMP/whole.json"

# The report and the exports of the same recording.
assert_eq "the trace says that it has scheduler events" \
	"$(json "$TMP/whole.json" 'd["sched"]')" True
run "$KXRAY" report "$TRACE"
assert_contains "the table has the columns" "$OUT" "ON-CPU   OFF-CPU      WAIT"
assert_eq "sorted by time off the CPU" \
	"$("$KXRAY" report --json --sort off-cpu "$TRACE" | python3 -c 'import json, sys
offs = [f["off_cpu_ns"] for f in json.load(sys.stdin)["functions"]]
print(offs == sorted(offs, reverse=True) and offs[0] > 0)')" True
for tid in $(json "$TMP/did.json" '" ".join(str(t["tid"]) for t in d["threads"])'); do
	"$KXRAY" report --json --raw --tid "$tid" "$TRACE"
done >"$TMP/parts.json"
assert_eq "the threads' reports add up to the whole" "$(python3 -c 'import collections, json, sys
parts = collections.Counter()
text, at, decoder = open(sys.argv[1]).read(), 0, json.JSONDecoder()
while at < len(text):
    d, at = decoder.raw_decode(text, at)
    at += 1
    for f in d["functions"]:
        parts[f["name"]] += f["off_cpu_ns"]
whole = {f["name"]: f["off_cpu_ns"] for f in json.load(open(sys.argv[2]))["functions"]}
print({n: (parts[n], whole[n]) for n in whole if abs(parts[n] - whole[n]) > 6})' \
	"$TMP/parts.json" "$TMP/whole.json")" '{}'
# Each call taken apart: its parts add up, all calls together were off the CPU as the table says, and threads of the target
# woke each other.
for f in nap take give; do
	"$KXRAY" report --json --raw --slowest 10000 "$f" "$TRACE" >"$TMP/slowest.json"
	assert_eq "slowest $f: parts" "$(python3 -c 'import json, re, sys
calls = json.load(open(sys.argv[1]))["slowest"]
f = next(f for f in json.load(open(sys.argv[2]))["functions"] if f["name"] == sys.argv[3])
off = sum(c["runnable_ns"] + c["asleep_ns"] for c in calls)
parts = ("self_ns", "callees_ns", "syscalls_ns", "runnable_ns", "asleep_ns")
tids = {t["tid"] for t in json.load(open(sys.argv[4]))["threads"]}
woken = {int(w) for c in calls for n in c["nodes"] for w in re.findall(r"woken by (\d+)", n["name"])}
print(len(calls) == f["count"], all(c["total_ns"] == sum(c[p] for p in parts) for c in calls),
      abs(off - f["off_cpu_ns"]) <= f["count"], sys.argv[3] != "take" or bool(woken & tids))' \
		"$TMP/slowest.json" "$TMP/whole.json" "$f" "$TMP/did.json")" "True True True True"
done
run "$KXRAY" export -f csv -o "$TMP/calls.csv" "$TRACE"
"$KXRAY" report --json "$TRACE" >"$TMP/corrected.json" # as csv: without the probes' own time
assert_eq "csv has the same times off the CPU" "$(python3 -c 'import collections, csv, json, sys
off = collections.Counter()
for r in csv.DictReader(open(sys.argv[1], newline="")):
    off[r["function"]] += int(r["off_cpu_ns"])
whole = {f["name"]: f for f in json.load(open(sys.argv[2]))["functions"]}
print({n: off[n] for n, f in whole.items() if abs(off[n] - f["off_cpu_ns"]) > f["count"]})' \
	"$TMP/calls.csv" "$TMP/corrected.json")" '{}'
for format in chrome perfetto; do
	"$KXRAY" export -f "$format" -o "$TMP/timeline" "$TRACE" 2>/dev/null
	python3 "tests/readers/$format.py" "$TMP/timeline" >"$TMP/$format.txt"
	assert "$format: the rows of the scheduler" "none" grep -q '^sched ' "$TMP/$format.txt"
done
# Perfetto's times count from the machine's start if the trace has it; the reader subtracts that.
assert_eq "chrome and perfetto show the same states" \
	"$(diff <(grep '^sched' "$TMP/chrome.txt" | sort) <(grep '^sched' "$TMP/perfetto.txt" | sort) |
		head -n 4)" ''
# The CPUs' tracks: perfetto.py has compared each switch with the threads' states. Switches before and after a thread's work are
# not in its own counts. A timer wakes the sleeper, the writer the reader. A wake-up that no BPF program
# saw has no waker (sched.py: at most half of them), and threads of the process may wake others that wait for memory ("D"): so the sleeper's and the
# reader's wakers are compared with those of the trace, and these, of the reader in its sleep, with its own count.
"$KXRAY" dump "$TRACE" >"$TMP/dump.txt"
assert_eq "perfetto: who ran on the CPU, who woke whom, and where" "$(python3 -c 'import collections, json, re, sys
d = json.load(open(sys.argv[1]))
tids = {t["name"]: t["tid"] for t in d["threads"]}
rows = [line.split() for line in open(sys.argv[2])]
notes = [re.search(r" tid (\d+) .*kxray:sched .*\"state.\":.\"(\w).\".*.\"by.\":(\d+)", line) for line in open(sys.argv[3])]
woken = collections.Counter((n[1], n[2], n[3] if n[3] != "0" else "interrupt") for n in notes if n)
onto = collections.Counter(r[3] for r in rows if r[0] == "switch")
wrong = [t for t in d["threads"] if onto[str(t["tid"])] < t["voluntary"] + t["involuntary"]]
wakers = collections.Counter((r[3], r[5]) for r in rows if r[0] == "waking")
flows = collections.Counter((r[2], r[4]) for r in rows if r[0] == "flow")
writer, reader, sleeper = (str(tids[n]) for n in ("writer", "reader", "sleeper"))
of = collections.Counter()
for (tid, state, by), n in woken.items():
    of[tid, by] += n if state != "N" else 0
for tid, by in {*wakers, *of}:
    if tid == sleeper and wakers[tid, by] != of[tid, by]:
        wrong.append((by, wakers[tid, by], of[tid, by]))
print(wrong, wakers[reader, writer] - of[reader, writer], flows[writer, reader] - of[reader, writer],
      woken[reader, "S", writer] - d["rounds"])' "$TMP/did.json" "$TMP/perfetto.txt" "$TMP/dump.txt")" "[] 0 0 0"
assert_eq "perfetto: snapshots of the clocks, in order, taken before the map was written" "$(python3 -c 'import os, sys
rows = [[int(n) for n in line.split()[1:]] for line in open(sys.argv[2]) if line.startswith("clocks ")]
made = os.stat(sys.argv[1]).st_mtime_ns
print(len(rows) >= 2, all(a < b for x, y in zip(rows, rows[1:]) for a, b in zip(x, y)),
      made - 600 * 10**9 < rows[0][2] and rows[-1][2] <= made + 10**8)' \
	"$TRACE.map" "$TMP/perfetto.txt")" "True True True"
"$KXRAY" export -f xray -o "$TMP/again.xray" "$TRACE" 2>/dev/null
assert_eq "exported as XRay it reports the same" \
	"$("$KXRAY" report --json --raw "$TMP/again.xray" | sed 1d)" "$(sed 1d "$TMP/whole.json")"
assert "dump shows them" "no event" grep -q 'kxray:sched .*\\"state\\":\\"S\\"' \
	<("$KXRAY" dump "$TRACE")

# In every FDR version, llvm-xray reads the trace, and its calls are exact.
for version in 1 2 3 4 5; do
	trace_target counts "${COUNTED[@]}" --sched --fdr-version "$version"
	assert_eq "version $version: statuses" "$STATUS $TARGET_STATUS" "0 0"
	expect "version $version" report account fdr sleep
done

trace_command waits "${WAITS[@]}" --sched
TARGET_STATUS=0 waited "as a command" switches times naps wakers

# Without the option there are no scheduler events.
trace_target waits "${WAITS[@]}"
assert_eq "without --sched: no events" "$("$KXRAY" dump "$TRACE" | grep -c 'kxray:sched')" 0
assert_eq "without --sched: no columns" "$("$KXRAY" report "$TRACE" | grep -c CPU)" 0
run "$KXRAY" report --sort off-cpu "$TRACE"
assert_eq "without --sched: sorting by it fails" "$STATUS" 1
assert_contains "without --sched: and says why" "$ERR" "record with --sched"
