#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 13 s
# A live recording in Perfetto's, Chrome's, speedscope's and pprof's formats: each has the same calls and
# times as the report.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# compare REPORT FUNCTIONS: the functions and counts must be the same; total times may differ by the
# rounding of each call's start and end (half a nanosecond each)
compare() {
	python3 - "$@" <<'PYTHON'
import json, sys
report = {f['name']: f for f in json.load(open(sys.argv[1]))['functions']}
lines = [line.split(' ', 2) for line in open(sys.argv[2])]
got = {json.loads(name): (int(calls), int(total)) for calls, total, name in lines}
wrong = [] if set(got) == set(report) else [f'functions {sorted(set(got) ^ set(report))}']
for name in set(got) & set(report):
    calls, total = got[name]
    want = report[name]
    if calls != want['count'] or abs(total - want['total_ns']) > calls + 1:
        wrong.append(f"{name}: {calls} calls, {total} ns instead of {want['count']}, "
                     f"{want['total_ns']}")
print('; '.join(wrong) or 'the same')
PYTHON
}

# same_calls LABEL: compares all four formats of $TRACE with the report
same_calls() {
	local format
	run "$KXRAY" report "$TRACE" --json --raw
	cp "$TMP/run.out" "$TMP/report.json"
	assert_between "$1: calls in the report" \
		"$(json "$TMP/report.json" "sum(f['count'] for f in d['functions'])")" 1000 1000000
	for format in perfetto chrome speedscope pprof; do
		run "$KXRAY" export --raw -f "$format" -o "$TMP/out.$format" "$TRACE"
		assert_eq "$1: export to $format" "$STATUS" 0
		python3 "tests/readers/$format.py" --functions "$TMP/out.$format" \
			>"$TMP/functions" 2>"$TMP/reader.err" ||
			fail "$1: the reader takes $format" "$(cat "$TMP/reader.err")"
		assert_eq "$1: $format" "$(compare "$TMP/report.json" "$TMP/functions")" "the same"
	done
}

trace_target counts "${COUNTED[@]}"
assert_eq "recording" "$STATUS $TARGET_STATUS" "0 0"
same_calls "recording"

# The readers print the same text except for the marks of gaps and events, and clocks.
python3 tests/readers/perfetto.py "$TMP/out.perfetto" | sed '/^mark/d; /^clocks/d' >"$TMP/perfetto.txt"
python3 tests/readers/chrome.py "$TMP/out.chrome" | sed '/^mark/d' >"$TMP/chrome.txt"
assert "perfetto and chrome have the same calls, threads and CPUs" "their readers differ" \
	cmp -s "$TMP/perfetto.txt" "$TMP/chrome.txt"

# llvm-xray's own conversion of the trace has the same number of begins and ends per function.
for tool in $(llvm_xrays); do
	"$tool" convert -f trace_event -symbolize -instr_map="$TRACE.map" "$TRACE" -o "$TMP/llvm.json"
	assert_eq "chrome against $tool" "$(python3 - "$TMP/llvm.json" "$TMP/out.chrome" <<'PYTHON'
import collections, json, sys
counts = []
for path in sys.argv[1:]:
    events = json.load(open(path))['traceEvents']
    counts.append((collections.Counter(e['name'] for e in events if e['ph'] == 'B'),
                   collections.Counter(str(e['tid']) for e in events if e['ph'] == 'E')))
print('the same' if counts[0] == counts[1] and counts[0][0] else counts)
PYTHON
	)" "the same"
done

# Arguments and return addresses are annotations of the call.
trace_target counts "${COUNTED[@]}" --callers
assert_eq "recording with callers" "$STATUS $TARGET_STATUS" "0 0"
same_calls "with callers"
calls=$(python3 tests/readers/chrome.py "$TMP/out.chrome" | grep -c '^call ')
assert_eq "every call has its caller" \
	"$(python3 tests/readers/chrome.py "$TMP/out.chrome" | grep -c '^call .* caller="0x')" "$calls"

# A pipe gets the same bytes.
"$KXRAY" export --raw -f perfetto -o - "$TRACE" 2>/dev/null | cmp -s - "$TMP/out.perfetto"
assert_eq "perfetto to a pipe" "$?" 0
