#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 45 s
# --follow: a tree of 50 processes that fork, exec, dlopen, start threads and end. Each process counts its
# own calls, and the trace must have exactly these for each process.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

LOG=$TMP/tree.log
# Patterns with a path: programs and libraries have their probes before a process maps them.
functions=(-f "$TARGETS/tree:tree_*" -f "$TARGETS/tree-child:child_*"
	-f "$TARGETS/treeplug.so:plug_*")

# same LABEL [OPTION...]: checks that the trace has exactly the calls of the log
same() {
	local label=$1
	shift
	run python3 tests/live/per_process.py "$TRACE" "$LOG" "$@"
	assert_eq "$label: calls of each process" "$STATUS $(head -n 5 "$TMP/run.out")" "0 "
	echo "# $label: $ERR"
}

# whole LABEL: checks that both programs ended with status 0 and nothing is lost
whole() {
	assert_eq "$1: statuses" "$STATUS $TARGET_STATUS" "0 0"
	run json "$TMP/rec.json" 'd["lost"]'
	assert_eq "$1: lost" "$OUT$ERR" 0
	assert_eq "$1: processes in the log" "$(wc -l <"$LOG")" 50
}

# by_command LABEL OPTION...
by_command() {
	local label=$1
	shift
	rm -f "$LOG"
	_new_recording
	STATUS=0 TARGET_STATUS=0
	"$KXRAY" record -o "$TRACE" --json "${functions[@]}" "$@" -- "$TARGETS/tree" --start=now "$LOG" \
		>"$TMP/tree.out" 2>"$TMP/rec.err" </dev/null || STATUS=$?
	tail -n 1 "$TMP/tree.out" >"$TMP/rec.json"
	whole "$label"
}

# by_pid LABEL OPTION...
by_pid() {
	local label=$1
	shift
	rm -f "$LOG"
	start_target tree "$LOG"
	TARGET_PID=$PID
	start_kxray "$PID" "${functions[@]}" "$@"
	go_target
	end_target "$TARGET_PID"
	TARGET_STATUS=$STATUS
	end_kxray
	whole "$label"
}

for mechanism in session multi single; do
	by_command "command, $mechanism" --mechanism "$mechanism"
	if grep -q 'does not offer' "$TMP/rec.err"; then
		skip "mechanism $mechanism" "$(cat "$TMP/rec.err")"
		continue
	fi
	same "command, $mechanism"
	by_pid "--follow -p, $mechanism" --follow --mechanism "$mechanism"
	same "--follow -p, $mechanism"
done
for n in 1 2 3; do
	by_command "command again, $n"
	same "command again, $n"
done
for exits in instruction none; do
	by_command "--exits=$exits" --exits=$exits
	same "--exits=$exits"
done

# Sums over all processes, by kxray report and by llvm-xray.
by_command "totals"
python3 - "$LOG" >"$TMP/did.json" <<'END'
import collections, json, sys
total = collections.Counter()
for line in open(sys.argv[1]):
    total.update(json.loads(line)["calls"])
print(json.dumps({"calls": total}))
END
expect "totals" report account

# Without --follow: only the first process is recorded, with -p and with -- COMMAND.
functions=(-f 'tree_*')
by_pid "-p"
same "-p" --pid "$TARGET_PID" --only tree_leaf,tree_outer,tree_inner,tree_fork
by_command "--no-follow" --no-follow
same "--no-follow" --pid "$(sed -n 's/.*"pid":\([0-9]*\),"index":0,.*/\1/p' "$LOG")"

functions+=(-f "$TARGETS/tree-child:child_*")

# Names: each process has the name that it had while it ran.
by_command "names"
cat >"$TMP/names.py" <<'END'
import json, sys
sys.path.insert(0, "tests/live")
import fdr
trace = fdr.Trace(sys.argv[1])
did = {d["pid"]: d for d in map(json.loads, open(sys.argv[2]))}
names = {}
for t in trace.threads.values():
    if t.tid == t.pid:
        names.setdefault(t.pid, set()).update(note["name"] for note in t.notes("thread"))
wrong = []
for pid, process in did.items():
    want = "tree-child" if "child_work" in process["calls"] else "tree"
    if want not in names.get(pid, ()):
        wrong.append((pid, sorted(names.get(pid, ())), want))
print(wrong or "right")
END
run python3 "$TMP/names.py" "$TRACE" "$LOG"
assert_eq "names of threads" "$OUT$ERR" right

# Code that is mapped later and selected without a path: recorded after a short delay, then completely.
cat >"$TMP/late.py" <<'END'
import json, sys
sys.path.insert(0, "tests/live")
import fdr
trace, names = fdr.Trace(sys.argv[1]), fdr.map_names(sys.argv[1] + ".map")
did = json.load(open(sys.argv[2]))
args = [r.args[0] for t in trace.threads.values() for r in t.records
        if r.kind == "entry" and names[r.func] == sys.argv[3]]
if not args:
    print("not one call was recorded")
elif args[-1] != did["last"]:
    print("the last call is missing")
elif len(args) > did["calls"][sys.argv[3]]:
    print("more calls than were made")
else:
    print("traced")
    print(f"# first recorded call {args[0] / 1e6:.3f} ms after it began,"
          f" {len(args)} of {did['calls'][sys.argv[3]]} calls", file=sys.stderr)
END
# late LABEL FUNCTION PATTERN ARGUMENT...
late() {
	local label=$1 function=$2 pattern=$3
	shift 3
	start_target late "$@" 3000
	TARGET_PID=$PID
	start_kxray "$PID" --follow -f late_work -f "$pattern" --args 1
	go_target
	end_target "$TARGET_PID"
	assert_eq "$label: target" "$STATUS" 0
	end_kxray
	assert_eq "$label: status" "$STATUS" 0
	tail -n 1 "$TMP/late.out" >"$TMP/did.json"
	run python3 "$TMP/late.py" "$TRACE" "$TMP/did.json" "$function"
	assert_eq "$label: from some call to the last" "$OUT" traced
	echo "$ERR"
}
late "dlopen without path" plug_work 'treeplug.so:plug_*' "$TARGETS/treeplug.so"
late "exec without path" late_work 'late-child:late_*' --exec "$TARGETS/late-child"
