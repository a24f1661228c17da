#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 11 s
# A live recording as AFPerf, read by a strict reader: the same calls and times as in the report.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# export_afperf [OPTION...]: writes $TMP/out.afperf, and the reader's output to $TMP/afperf.json
export_afperf() {
	run "$KXRAY" export --raw -f afperf -o "$TMP/out.afperf" "$@" "$TRACE"
	[ "$STATUS" = 0 ] || return
	python3 tests/readers/afperf.py "$TMP/out.afperf" >"$TMP/afperf.json" 2>"$TMP/run.err" ||
		STATUS="reader: $(cat "$TMP/run.err")"
}

# compare RUN: compares a run's calls, times and threads with the report and the target's own counts
compare() {
	python3 - "$TMP" "$1" <<'PYTHON'
import json, sys
load = lambda name: json.load(open(f'{sys.argv[1]}/{name}.json'))
report = {f['name']: f for f in load('report')['functions']}
did, run = load('did'), load('afperf')['runs'][int(sys.argv[2])]
functions, totals, wrong = run['functions'], run['totals'], []
if set(functions) != set(report):
    wrong.append(f'functions {sorted(set(functions) ^ set(report))}')
for name in set(functions) & set(report):
    want = report[name]
    got = {'count': totals[f'count of Call time: {name}'],
           'total_ns': totals[f'sum of Total time: {name}'],
           'self_ns': totals[f'sum of Self time: {name}'],
           'min_ns': totals[f'min of Call time: {name}'],
           'max_ns': totals[f'max of Call time: {name}']}
    if functions[name]['count'] != want['count'] or any(got[k] != want[k] for k in got):
        wrong.append(f'{name}: {got} instead of {want}')
    tids = {str(t['tid']): t['calls'][name] for t in did['threads'] if t['calls'].get(name)}
    if functions[name]['tids'] != tids:
        wrong.append(f"{name}: threads {functions[name]['tids']} instead of {tids}")
print('; '.join(wrong) or 'the same')
PYTHON
}

# point NAME: prints the value of the first run's first point of that name
point() { json "$TMP/afperf.json" "[p[2] for p in d['runs'][0]['points'] if p[1] == '$1'][0]"; }

before=$(date +%s)
trace_target counts "${COUNTED[@]}" --callers
after=$(date +%s)
assert_eq "recording" "$STATUS $TARGET_STATUS" "0 0"
# The reader compares totals with intervals, which are as recorded.
"$KXRAY" report --json --raw "$TRACE" >"$TMP/report.json"

export_afperf
assert_eq "export" "$STATUS" 0
assert_eq "calls, times and threads" "$(compare 0)" "the same"
assert_eq "the run is the process" \
	"$(json "$TMP/afperf.json" "[(r['name'], r['tags']['pid'], r['version']) for r in d['runs']]")" \
	"[('counts', '$TARGET_PID', '1.0.0')]"
assert_eq "host name" "$(point 'Execution hostname')" "$(uname -n)"
assert_eq "operating system" "$(point 'Operating System') $(point 'Operating System Version')" \
	"$(uname -sr)"
assert_eq "CPUs" "$(point 'Processing Cores')" "$(getconf _NPROCESSORS_ONLN)"
assert_eq "memory" "$(($(point 'System Available RAM') / 1024))" \
	"$(awk '/^MemTotal/ { print $2 }' /proc/meminfo)"
assert_contains "command line" "$(point 'Command Line')" "$TARGETS/counts"
for name in Start Finish; do
	assert_between "$name is within the recording" "$(date -d "$(point "Profiling $name")" +%s)" \
		"$before" "$after"
done
assert_between "and so is the wallclock" \
	"$(json "$TMP/afperf.json" "int(float(d['runs'][0]['wallclock']))")" "$before" "$after"
assert_eq "every call has its CPU twice and its return address" "$(json "$TMP/afperf.json" "all(
	[p[1] for p in i['points']].count('CPU') == 2 and
	[p[2][:2] for p in i['points'] if p[1] == 'Return Address'] == ['0x']
	for i in d['intervals'])")" True
assert_eq "and the CPUs exist" "$(json "$TMP/afperf.json" "all(0 <= p[2] < $(nproc --all)
	for i in d['intervals'] for p in i['points'] if p[1] == 'CPU')")" True

cp "$TMP/out.afperf" "$TMP/first.afperf"
export_afperf --append --afperf-compact
assert_eq "append" "$STATUS" 0
assert "append keeps the first run" "it changed" cmp -n "$(stat -c %s "$TMP/first.afperf")" \
	"$TMP/first.afperf" "$TMP/out.afperf"
assert_eq "both runs are the same but for their ids" "$(compare 0), $(compare 1)" \
	"the same, the same"

printf '# AFPerf v2     \n' >"$TMP/out.afperf"
run "$KXRAY" export --raw -f afperf --append -o "$TMP/out.afperf" "$TRACE"
assert_eq "another version is refused" "$STATUS" 1
assert_contains "with the reason" "$ERR" "header of AFPerf version 1"
assert_eq "and the file stays" "$(cat "$TMP/out.afperf")" "# AFPerf v2     "

# CPU changes inside calls are points of the run, one type per thread.
if [ "$(nproc)" -ge 2 ]; then
	TARGET_ARGS=--repeat=20 trace_command hops -f work
	export_afperf
	assert_eq "moving: export" "$STATUS" 0
	assert_between "moving: points" "$(json "$TMP/afperf.json" \
		"sum(p[1].startswith('CPU of thread ') for p in d['runs'][0]['points'])")" 10 100000
fi
