#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 31 s
# Filters: two processes run the same program at once; the trace has exactly the calls of the process,
# the threads or the CPUs that the filter selects.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# A process's comm is the name of its file, hence copies; user nobody must be able to execute them.
chmod 711 "$TMP"
install -m 755 "$TARGETS/counts" "$TMP/alpha"
ln "$TMP/alpha" "$TMP/beta"
# These functions make no calls, so their returns are recorded from a process's first instruction on.
functions=(-f "$TMP/alpha:leaf_*" -f "$TMP/alpha:inner")
moving=(-f "$TMP/alpha:on_cpu" -x "$TMP/alpha:leaf_*" -x "$TMP/alpha:inner")

cat >"$TMP/check.py" <<'END'
"""check.py TRACE WHAT...: prints differences between the trace and the calls of WHAT: alpha, beta, a thread
of one (alpha/worker-1), "cpu0" for all calls of on_cpu on CPU 0, or "balanced"."""
import collections, json, os, sys
sys.path.insert(0, "tests/live")
import fdr
trace, names = fdr.Trace(sys.argv[1]), fdr.map_names(sys.argv[1] + ".map")
traced = set(names.values())
want, got = collections.Counter(), collections.Counter()
did = {name: json.loads(open(f"{os.environ['TMP']}/{name}.out").read().splitlines()[-1])
        for name in ("alpha", "beta")}
for what in sys.argv[2:]:
    if what == "balanced":
        if trace.repaired():
            print(trace.repaired(), "exits are missing")
    elif what == "cpu0":
        for d in did.values():
            for t in d["threads"]:
                want[d["pid"], t["tid"], "on_cpu"] = t["cpus"].count(0)
    else:
        process, _, thread = what.partition("/")
        for t in did[process]["threads"]:
            if thread in ("", t["name"]):
                for name in traced & set(t["calls"]):
                    want[did[process]["pid"], t["tid"], name] = t["calls"][name]
for t in trace.threads.values():
    for r in t.records:
        if r.kind == "entry" and ("cpu0" not in sys.argv or names[r.func] == "on_cpu"):
            got[t.pid, t.tid, names[r.func]] += 1
            if "cpu0" in sys.argv and r.cpu:
                print("an entry on CPU", r.cpu)
for key in sorted(want | got):
    if want[key] != got[key]:
        print(*key, "called", want[key], "seen", got[key])
print(f"{sum(got.values())} calls of {len({k[1] for k in got})} threads", file=sys.stderr)
END

# filtered LABEL OPTION... -- [ALPHA-PREFIX...] -- [BETA-PREFIX...] -- WHAT...
filtered() {
	local label=$1 options=() alpha=() beta=()
	shift
	while [ "$1" != -- ]; do options+=("$1") && shift; done
	shift
	while [ "$1" != -- ]; do alpha+=("$1") && shift; done
	shift
	while [ "$1" != -- ]; do beta+=("$1") && shift; done
	shift
	_new_recording
	"$KXRAY" record -a -o "$TRACE" --json "${functions[@]}" "${options[@]}" \
		>"$TMP/rec.json" 2>"$TMP/rec.err" &
	KX_PID=$!
	_pids+=("$KX_PID")
	wait_for _records
	"${beta[@]}" "$TMP/beta" --start=now >"$TMP/beta.out" &
	local other=$!
	STATUS=0
	"${alpha[@]}" "$TMP/alpha" --start=now >"$TMP/alpha.out" || STATUS=$?
	wait $other || STATUS=$?
	assert_eq "$label: targets" "$STATUS" 0
	kill -INT "$KX_PID" 2>/dev/null
	end_kxray
	assert_eq "$label: status" "$STATUS $(grep -v '^kxray: ' "$TMP/rec.err")" "0 "
	run json "$TMP/rec.json" 'd["lost"]'
	assert_eq "$label: lost" "$OUT$ERR" 0
	run python3 "$TMP/check.py" "$TRACE" "$@"
	assert_eq "$label: calls" "$STATUS $(head -n 5 "$TMP/run.out")" "0 "
	echo "# $label: $ERR"
}

beside_translators shared
filtered "no filter" -- -- -- alpha beta balanced
for mechanism in session multi single; do
	if ! "$KXRAY" record -o "$TRACE" --mechanism "$mechanism" -f main -- "$TARGETS/counts" \
		--start=now >/dev/null 2>"$TMP/why"; then
		skip "mechanism $mechanism" "$(tail -n 1 "$TMP/why")"
		continue
	fi
	m=(--mechanism "$mechanism")
	filtered "--comm, $mechanism" "${m[@]}" --comm alpha -- -- -- alpha balanced
	# Calls that begin on CPU 0, wherever they end.
	filtered "--cpu, $mechanism" "${m[@]}" "${moving[@]}" --cpu 0 -- -- -- cpu0
done
filtered "--comm of threads" --comm '*ker-[13]' -- -- -- \
	alpha/worker-1 alpha/worker-3 beta/worker-1 beta/worker-3 balanced
filtered "--uid by name" --uid nobody -- setpriv --reuid nobody -- -- alpha balanced
filtered "--uid by number" --uid 65533 -- setpriv --reuid 65533 -- -- alpha balanced
filtered "--exits=instruction" --exits=instruction --comm beta -- -- -- beta balanced
last=$(($(nproc --all) - 1))
if [ "$last" -gt 0 ] && taskset -c "$last" true 2>/dev/null; then
	filtered "--cpu, --exits=instruction" --exits=instruction "${moving[@]}" --cpu 0 -- -- -- cpu0 balanced
filtered "--cpu of one process" --cpu "1-$last" -- taskset -c "$last" -- taskset -c 0 -- \
		alpha balanced
else
	skip "--cpu of one process" "there is one CPU only"
fi

mount=$(awk '{ for (i = 7; i < NF; i++) if ($i == "-" && $(i + 1) == "cgroup2") print $5 }' \
	/proc/self/mountinfo | head -n 1)
group=kxray-test-$$
if [ -z "$mount" ]; then
	skip "--cgroup" "cgroup v2 is not mounted"
elif ! mkdir "$mount/$group" "$mount/$group/inner" 2>"$TMP/why"; then
	skip "--cgroup" "no control group can be made: $(cat "$TMP/why")"
else
	cat >"$TMP/in_group" <<-'END'
	#!/bin/sh
	echo $$ >"$1/cgroup.procs" && shift && exec "$@"
	END
	chmod 755 "$TMP/in_group"
	filtered "--cgroup" --cgroup "$group" -- "$TMP/in_group" "$mount/$group" -- -- alpha balanced
	filtered "--cgroup by path" --cgroup "$mount/$group/inner" -- \
		"$TMP/in_group" "$mount/$group/inner" -- "$TMP/in_group" "$mount/$group" -- alpha balanced
	filtered "--cgroup includes nested groups" --cgroup "/$group" -- \
		"$TMP/in_group" "$mount/$group/inner" -- "$TMP/in_group" "$mount/$group" -- \
		alpha beta balanced
	filtered "all filters" --cgroup "$group" --comm 'alp*' --uid 0 --cpu "0-$last" -- \
		"$TMP/in_group" "$mount/$group" -- "$TMP/in_group" "$mount/$group" -- alpha balanced
	filtered "filters that leave one thread" --cgroup "$group" --comm worker-2 -- \
		"$TMP/in_group" "$mount/$group" -- -- alpha/worker-2 balanced
	wait_for rmdir "$mount/$group/inner" "$mount/$group"
fi

# With -p and a filter, a call must match both.
TARGET_ARGS='' trace_target counts -f 'leaf_*' --comm 'worker-2'
run json "$TMP/did.json" '[t["calls"]["leaf_a"] for t in d["threads"] if t["name"] == "worker-2"][0]'
want=$OUT
run sh -c '"$KXRAY" report --json "$1" >"$TMP/report.json"' - "$TRACE"
run json "$TMP/report.json" '[f["count"] for f in d["functions"] if f["name"] == "leaf_a"][0]'
assert_eq "-p and --comm" "$OUT" "$want"

# Exits of calls that a filter left out are no calls from before the recording.
TARGET_ARGS='' trace_target counts -f on_cpu --cpu 0 --exits=instruction
others=$(json "$TMP/did.json" 'sum(cpu != 0 for t in d["threads"] for cpu in t["cpus"])')
assert_eq "filtered calls: exits left out" "$(json "$TMP/rec.json" 'd["orphans"]')" "$others"
if [ "$others" -gt 0 ]; then
	assert_contains "filtered calls: what the summary says" "$(cat "$TMP/rec.err")" \
		"$others exits left out, of calls that began before the recording or did not match --cpu"
fi

# refused STATUS PART OPTION...: kxray ends with STATUS and a message with PART, and writes nothing
refused() {
	local status=$1 part=$2
	shift 2
	rm -f "$TRACE"
	run "$KXRAY" record -o "$TRACE" -f main "$@" -- "$TARGETS/counts" --start=now
	assert_eq "$*: status" "$STATUS $(ls "$TRACE" 2>/dev/null)" "$status "
	assert_contains "$*: message" "$ERR" "$part"
}
refused 1 'CPU 4000 is not online' --cpu 4000
refused 2 'as in 0,2-3' --cpu 0-
refused 1 "there is no user 'nobody-at-all'" --uid nobody-at-all
refused 2 'number or name' --uid 12x
refused 2 'keeps 15 bytes of a name' --comm a-name-that-is-too-long
refused 2 '--comm is given twice' --comm a --comm b
[ -z "$mount" ] || refused 1 "there is no control group 'no-such-group'" --cgroup no-such-group
refused 1 'control group' --cgroup /etc
