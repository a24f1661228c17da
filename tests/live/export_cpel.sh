#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 3 s
# A live recording as CPEL, read by a strict reader: the same calls and times as in the report.
# VPP's own tools read it, too, if they are installed.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# export_cpel [OPTION...]: writes $TMP/out.cpel, and the reader's output to $TMP/cpel.json
export_cpel() {
	run "$KXRAY" export --raw -f cpel -o "$TMP/out.cpel" "$@" "$TRACE"
	[ "$STATUS" = 0 ] || return
	case "$*" in
	*--cpel-document*) set -- --document ;;
	*) set -- ;;
	esac
	python3 tests/readers/cpel.py "$@" "$TMP/out.cpel" >"$TMP/cpel.json" 2>"$TMP/run.err" ||
		STATUS="reader: $(cat "$TMP/run.err")"
}

# compare SLACK: compares functions, calls and times of cpel.json with the report; the times may differ
# by SLACK nanoseconds per call
compare() {
	python3 - "$TMP/report.json" "$TMP/cpel.json" "$1" <<'PYTHON'
import json, sys
report = {f['name']: f for f in json.load(open(sys.argv[1]))['functions']}
cpel = json.load(open(sys.argv[2]))['functions']
slack = int(sys.argv[3])
wrong = [] if set(cpel) == set(report) else [f'functions {sorted(set(cpel) ^ set(report))}']
for name in set(cpel) & set(report):
    got, want = cpel[name], report[name]
    if got['count'] != want['count'] or any(
            abs(got[key] - want[key]) > slack * want['count'] for key in ('total_ns', 'self_ns')):
        wrong.append(f'{name}: {got} instead of {want}')
print('; '.join(wrong) or 'the same')
PYTHON
}

trace_target counts "${COUNTED[@]}"
assert_eq "recording" "$STATUS $TARGET_STATUS" "0 0"
"$KXRAY" report --json --raw "$TRACE" >"$TMP/report.json"

export_cpel
assert_eq "export" "$STATUS" 0
# Times are clock ticks as in the trace, so nothing is rounded.
assert_eq "calls, total and self times are the report's" "$(compare 0)" "the same"
assert_eq "calls per thread are the target's own counts" "$(python3 - "$TMP" <<'PYTHON'
import json, sys
did = json.load(open(sys.argv[1] + '/did.json'))
tracks = json.load(open(sys.argv[1] + '/cpel.json'))['tracks']
want = {f"{t['name']} t{t['tid']}({did['pid']})": t['calls'] for t in did['threads']}
print('the same' if tracks == want else f'{tracks} instead of {want}')
PYTHON
)" "the same"
assert_eq "the symbol table names every function" \
	"$(json "$TMP/cpel.json" "sorted(s[1] for s in d['symbols']) == sorted(d['functions'])")" True
[ "$(nproc)" -lt 2 ] || assert_between "moves make a thread ready, then running" \
	"$(json "$TMP/cpel.json" "d['codes'].get('THREAD/THREADY', 0)")" 10 1000
[ "$(nproc)" -lt 2 ] || assert "and running follows" "fewer or more than ready and first" [ \
	"$(json "$TMP/cpel.json" "0 <= d['codes']['THREAD/THRUNNING'] - d['codes']['THREAD/THREADY'] <= 4")" \
	= True ]

"$KXRAY" export --raw -f cpel -o - "$TRACE" >"$TMP/stream.cpel" 2>"$TMP/err"
assert "standard output gets the same bytes" "they differ" cmp "$TMP/out.cpel" "$TMP/stream.cpel"

for options in --cpel-document "--cpel-document --cpel-little"; do
	# shellcheck disable=SC2086
	export_cpel $options
	assert_eq "export $options" "$STATUS" 0
	assert_eq "$options: in nanoseconds the same" "$(compare 1)" "the same"
	assert_eq "$options: 1000 ticks a microsecond" "$(json "$TMP/cpel.json" "d['clock']")" 1000
done
assert_eq "little-endian" "$(json "$TMP/cpel.json" "d['little']")" True

export_cpel -f inner --time 1ms..
assert_eq "filters apply" "$STATUS $(json "$TMP/cpel.json" "list(d['functions'])")" "0 ['inner']"

rm -f "$TMP/out.cpel"
run "$KXRAY" export --raw -f cpel --cpel-little -o "$TMP/out.cpel" "$TRACE"
assert "little-endian alone is refused" "status $STATUS" [ "$STATUS" != 0 ]
assert_contains "with the reason" "$ERR" --cpel-document
assert "and leaves no file" "there is one" [ ! -e "$TMP/out.cpel" ]

if ! command -v cpeldump >/dev/null; then
	skip "cpeldump" "VPP's performance tools are not installed"
	exit
fi
export_cpel
for name in inner outer recursive leaf_a; do
	assert_eq "cpeldump: calls of $name" "$(cpeldump --input-file "$TMP/out.cpel" |
		grep -c " FUNC/ENTER  *$name\$")" \
		"$(json "$TMP/report.json" "[f['count'] for f in d['functions'] if f['name'] == '$name'][0]")"
done
