#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 5 s
# functions --rate: call rates, and the predicted cost of recording.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

cheap=(-f outer -f middle -f 'tail_*')

start_target counts --repeat=100000000
go_target
run "$KXRAY" functions -p "$PID" "${cheap[@]}" -f inner -f syscall:sched_setaffinity --rate 1.5 --json
assert_eq "status" "$STATUS" 0
cp "$TMP/run.out" "$TMP/rates.json"
wrong=$(python3 - "$TMP/rates.json" <<-'END'
	import json, sys
	d = json.load(open(sys.argv[1]))
	f = {x["name"]: x for x in d["functions"]}
	def near(a, b):
	    return abs(a - b) <= 0.01 * b + 1000
	rate = {n: x["calls_per_second"] for n, x in f.items()}
	if not 1.4 < d["seconds"] < 60:
	    print("seconds", d["seconds"])
	if set(f) != {"outer", "middle", "inner", "tail_first", "tail_last", "sched_setaffinity"}:
	    print("functions", sorted(f))
	if not rate["outer"] > 0 or not near(rate["inner"], 2 * rate["outer"]) or \
	        not near(rate["middle"], rate["outer"]) or not near(rate["tail_first"], rate["tail_last"]):
	    print("rates", rate)
	for n, x in f.items():
	    if abs(x["predicted_cpu_percent"] - x["calls_per_second"] * x["cost_ns"] / 1e7) > 1e-6:
	        print(n, "is no product", x)
	if abs(sum(x["predicted_cpu_percent"] for x in f.values()) - d["predicted_cpu_percent"]) > 1e-6:
	    print("sum", d["predicted_cpu_percent"])
	if not f["inner"]["cost_ns"] > f["middle"]["cost_ns"] > 0 or f["inner"]["cost"] != "stepped":
	    print("costs", f["inner"], f["middle"])
	END
) || wrong="cannot be read: $(head -c 300 "$TMP/rates.json")"
assert_eq "rates and costs" "$wrong" ""

run "$KXRAY" functions -p "$PID" "${cheap[@]}" --rate 0.2
assert_eq "table: status" "$STATUS" 0
assert_contains "table: head" "$OUT" "CALLS/S   NS/CALL       CPU  COST"
assert_contains "table: prediction" "$ERR" "% of one CPU, at the rate"

# Interrupted, it prints no partial table.
"$KXRAY" functions -p "$PID" -f outer --rate 60 >"$TMP/cut.out" 2>"$TMP/cut.err" &
KX_PID=$!
_pids+=("$KX_PID")
wait_for ends_by_signal "$KX_PID"
kill -INT "$KX_PID"
end_kxray
assert_eq "interrupted: status" "$STATUS" 1
assert_eq "interrupted: output" "$(cat "$TMP/cut.out")" ""
assert_contains "interrupted: message" "$(cat "$TMP/cut.err")" "the counting was interrupted"
kill -KILL "$PID"

for bad in 0 -1 x 3601 ''; do
	run "$KXRAY" functions -p $$ --rate "$bad"
	assert_eq "--rate '$bad': status" "$STATUS" 2
	assert_contains "--rate '$bad': message" "$ERR" "--rate takes a time"
done
run "$KXRAY" functions "$TARGETS/counts" --rate 1
assert_eq "--rate of a file: status" "$STATUS" 2
assert_contains "--rate of a file: message" "$ERR" "needs running processes"
