#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 9 s, without root
# Traces of several hosts with equal process ids, of known clocks: where each call is after a merge in each form, and the one
# sentence for what cannot be merged. An independent reader of archives and traces (readers/merged.py) says where.
. "$(dirname "$0")/../lib.sh"
HZ=2000000000

# trace NAME STATEMENT...: 400 events of 2 threads of process 1000, in every one of them
trace() {
	"$BUILD/tests/make_trace" write "$TMP/$1.xray" 400 2 5 5 || fail "make_trace" "status $?"
	python3 tests/edit_session.py "$TMP/$1.xray.map" "${@:2}" || fail "edit_session" "status $?"
}
merged() { python3 tests/readers/merged.py "$@"; }
# The trace begins at tick 1000000. web1 and db1 were booted 1000 s and 3000 s after 1.7e18, by clocks that agree.
web1() { trace "$1" "s['host']={'name':'web1','boot_id':'w','machine_id':'m'}; s['labels']={'env':'test'}" "clocks(s, $HZ, [
	(1000000, 5000 * 10**9, (1700000000 + 6000) * 10**9), (2001000000, 5001 * 10**9, (1700000000 + 6001) * 10**9)], 40)" "${@:2}"; }
db1() { trace "$1" "s['host']={'name':'db1','boot_id':'d'}" "clocks(s, $HZ, [
	(1000000, 3000 * 10**9, (1700000000 + 6000) * 10**9 + 7000), (2001000000, 3001 * 10**9, (1700000000 + 6001) * 10**9 + 7000)],
	90)" "${@:2}"; }
web1 web1
db1 db1

alone=$("$KXRAY" report --json "$TMP/web1.xray" | python3 -c 'import json, sys; print(json.load(sys.stdin)["calls"])')
for form in tar pftrace json; do
	run "$KXRAY" merge -o "$TMP/merged.$form" "$TMP/web1.xray" "$TMP/db1.xray"
	assert_eq "$form: status" "$STATUS" 0
	merged "$TMP/merged.$form" >"$TMP/calls.$form" || fail "$form" "the reader refuses it"
	assert_eq "$form: calls of both" "$(awk '{ n[$3]++ } END { print n["web1"], n["db1"] }' "$TMP/calls.$form")" "$alone $alone"
	assert_eq "$form: processes of both" "$(awk '{ print $3, $4 }' "$TMP/calls.$form" | sort -u | tr '\n' ' ')" "db1 1000 web1 1000 "
	# db1's calls are those of web1, 7 us later
	assert_eq "$form: 7 us later" "$(awk '$3 == "web1" { print $1 + 7000, $2 + 7000, $4, $5, $6 }' "$TMP/calls.$form" | sort)" \
		"$(awk '$3 == "db1" { print $1, $2, $4, $5, $6 }' "$TMP/calls.$form" | sort)"
done
assert_eq "archive and file agree" "$(cmp "$TMP/calls.tar" "$TMP/calls.pftrace" 2>&1)" ""
assert_eq "archive and JSON agree" "$(cmp "$TMP/calls.tar" "$TMP/calls.json" 2>&1)" ""
assert_eq "what is said" "$ERR" "kxray merge: 2 traces of 2 hosts written to $TMP/merged.json, aligned by CLOCK_REALTIME (read to within \
0.090 us); open it in https://ui.perfetto.dev or chrome://tracing"
# db1 was booted 2000 s later (less 7 us): the shared time is web1's
assert_eq "machines, offsets, labels" "$(merged --labels "$TMP/merged.tar")" \
	"web1.pftrace web1 0  boot_id=w env=test host=web1 machine_id=m
db1.pftrace db1 2000000007000  boot_id=d host=db1"
assert_eq "labels of one file" "$(merged --labels "$TMP/merged.pftrace" | tr -s ' ')" \
	" 0 db1.boot_id=d db1.host=db1 web1.boot_id=w web1.env=test web1.host=web1 web1.machine_id=m"

# A counter that is 1 % faster than its nominal rate: by clocks the trace takes as long as the other.
trace fast "s['host']={'name':'fast','boot_id':'f'}" "clocks(s, $HZ, [(1000000, 10**9, (1700000000 + 6000) * 10**9),
	(2021000000, 2 * 10**9, (1700000000 + 6001) * 10**9)])"
run "$KXRAY" merge -q -o "$TMP/drift.tar" "$TMP/web1.xray" "$TMP/fast.xray"
assert_eq "drift" "$STATUS $(merged "$TMP/drift.tar" | awk '{ e = $2; if ($3 == "web1") w = e > w ? e : w; else f = e > f ? e : f }
	END { r = w / f; print (r > 1.0099 && r < 1.0101) }')" "0 1"

# The part of the time that both have, counted from the first of all
merged "$TMP/merged.tar" >"$TMP/all"
run "$KXRAY" merge -q --time 8us..12us -o "$TMP/part.pftrace" "$TMP/web1.xray" "$TMP/db1.xray"
assert_eq "--time" "$STATUS $(merged "$TMP/part.pftrace" | awk '{ if ($2 > 4000) bad++; n[$3]++ } END { print bad + 0, (n["web1"] > 0), (n["db1"] > 0) }')" "0 0 1 1"
run "$KXRAY" merge --time ..5us -o "$TMP/part.pftrace" "$TMP/web1.xray" "$TMP/db1.xray"
assert_eq "--time before a trace's start" "$STATUS $(merged "$TMP/part.pftrace" | awk '{ print $3 }' | sort -u)" "0 web1"
assert_contains "--time before a trace's start: said" "$ERR" "db1.xray: no calls left after filtering"

# said LABEL STATUS TEXT COMMAND...: one sentence on standard error (and, of wrong usage, the hint)
said() {
	local label=$1 status=$2 text=$3
	shift 3
	run "$@"
	assert_contains "$label" "$STATUS $ERR" "$status kxray merge: $text"
	[ "$status" = 0 ] || assert_eq "$label: one sentence" "$(grep -vc "kxray merge --help" <<<"$ERR")" 1
}
out=(-o "$TMP/x.tar")
said "no trace" 2 "name two traces or more" "$KXRAY" merge
said "one trace" 2 "name two traces or more" "$KXRAY" merge "$TMP/web1.xray"
said "twice" 1 "'$TMP/web1.xray' and '$TMP/web1.xray' are the same recording" "$KXRAY" merge "${out[@]}" "$TMP/web1.xray" "$TMP/web1.xray"
cp "$TMP/web1.xray" "$TMP/copy.xray"
cp "$TMP/web1.xray.map" "$TMP/copy.xray.map"
said "a copy" 1 "'$TMP/web1.xray' and '$TMP/copy.xray' are the same recording" "$KXRAY" merge "${out[@]}" "$TMP/web1.xray" "$TMP/copy.xray"
trace none "s['host']={'name':'old'}"
said "no snapshots" 1 "$TMP/none.xray: has no snapshots of the host's clocks" "$KXRAY" merge "${out[@]}" "$TMP/web1.xray" "$TMP/none.xray"
rm "$TMP/none.xray.map"
said "no map" 1 "$TMP/none.xray: has no map" "$KXRAY" merge -q "${out[@]}" "$TMP/web1.xray" "$TMP/none.xray"
said "standard input" 2 "a trace from standard input cannot be merged" "$KXRAY" merge "${out[@]}" - "$TMP/web1.xray"
for form in tar json; do
	said "no room, $form" 1 "'$TMP/limit.$form' cannot be written: File too large; choose another place with -o" \
		bash -c 'trap "" XFSZ; ulimit -f 1; exec "$@"' limit "$KXRAY" merge -q -o "$TMP/limit.$form" "$TMP/db1.xray" "$TMP/web1.xray"
done
said "standard output" 2 "the output cannot be standard output" "$KXRAY" merge -o - "$TMP/db1.xray" "$TMP/web1.xray"
said "an input as output" 1 "'$TMP/web1.xray' is one of the traces" "$KXRAY" merge -o "$TMP/web1.xray" "$TMP/db1.xray" "$TMP/web1.xray"
said "no such trace" 1 "$TMP/nothing: cannot be opened" "$KXRAY" merge "${out[@]}" "$TMP/db1.xray" "$TMP/nothing"
said "wrong offset" 1 "--offset takes HOST=TIME" "$KXRAY" merge "${out[@]}" --offset db1 "$TMP/db1.xray" "$TMP/web1.xray"
said "offset of another host" 1 "--offset x=1s: no trace is of a host 'x'" "$KXRAY" merge "${out[@]}" --offset x=1s "$TMP/db1.xray" "$TMP/web1.xray"
said "wrong pair" 1 "--pair takes CLIENT=SERVER" "$KXRAY" merge "${out[@]}" --pair f "$TMP/db1.xray" "$TMP/web1.xray"
said "pair of nothing" 1 "--pair nothing=f: no trace has calls of 'nothing'" "$KXRAY" merge "${out[@]}" --pair nothing=f "$TMP/db1.xray" "$TMP/web1.xray"
said "pair on two hosts" 1 "--pair *<0>*=x: '*<0>*' is called on db1 and on web1" "$KXRAY" merge "${out[@]}" --pair '*<0>*=x' "$TMP/db1.xray" "$TMP/web1.xray"
assert_eq "nothing is left behind" "$(ls "$TMP" | grep -c 'x\.tar')" 0

# Another session of web1, another boot of it, and a clock that was set: said, and merged.
web1 later "s['started']='later'" "s['clock']['snapshots'][0]['realtime_ns'] += 60"
said "the same host twice" 0 "'$TMP/web1.xray' and '$TMP/later.xray' are of the same host and boot, web1: they have one clock" \
	"$KXRAY" merge "${out[@]}" "$TMP/web1.xray" "$TMP/later.xray"
assert_eq "the same host twice: one machine" "$(merged --labels "$TMP/x.tar" | cut -d' ' -f1-3)" "web1.pftrace web1 0
web1.2.pftrace web1 0"
run "$KXRAY" merge -q -o "$TMP/x.pftrace" "$TMP/web1.xray" "$TMP/later.xray"
assert_eq "the same host twice: two groups" "$(merged "$TMP/x.pftrace" | awk '{ print $3, $4 == "[2]" }' | sort | uniq -c | wc -l)" 2
web1 boot2 "s['host']['boot_id']='another'"
said "another boot" 0 "'$TMP/boot2.xray' is of web1, too, but of another boot or machine than '$TMP/web1.xray': it is called 'web1 (boot another)'" \
	"$KXRAY" merge "${out[@]}" "$TMP/web1.xray" "$TMP/boot2.xray"
db1 set "s['clock']['snapshots'][1]['realtime_ns'] += 4000000"
said "a clock that was set" 0 "db1: CLOCK_REALTIME was set by 4.000 ms while it recorded; the middle is taken" \
	"$KXRAY" merge "${out[@]}" "$TMP/web1.xray" "$TMP/set.xray"
db1 killed "del s['clock']['snapshots'][1]"
said "one snapshot" 0 "$TMP/killed.xray: its map has the clocks of the start only" "$KXRAY" merge "${out[@]}" "$TMP/web1.xray" "$TMP/killed.xray"
assert_eq "one snapshot: by the nominal frequency" "$(merged "$TMP/x.tar")" "$(cat "$TMP/calls.tar")"
web1 damaged "s['clock']['snapshots'][0]['tsc'] = 2**62"
said "damaged clocks" 1 "$TMP/damaged.xray: has no snapshots" "$KXRAY" merge "${out[@]}" "$TMP/db1.xray" "$TMP/damaged.xray"

# report and diff of several traces: one table, or object, of each host
run "$KXRAY" report --by host -n 1 "$TMP/web1.xray" "$TMP/db1.xray" "$TMP/later.xray"
assert_eq "report: hosts" "$(grep ^host <<<"$OUT")" "host web1: $TMP/web1.xray
host db1: $TMP/db1.xray
host web1: $TMP/later.xray"
assert_eq "report: tables" "$STATUS $(grep -c '^  COUNT' <<<"$OUT")" "0 3"
"$KXRAY" report --json "$TMP/db1.xray" >"$TMP/one"
"$KXRAY" report --json --by host "$TMP/web1.xray" "$TMP/db1.xray" >"$TMP/both"
assert_eq "report --json" "$(python3 - "$TMP/one" "$TMP/both" <<'END'
import json, sys
one = json.load(open(sys.argv[1]))
decoder, text, objects = json.JSONDecoder(), open(sys.argv[2]).read(), []
while text.strip():
    value, end = decoder.raw_decode(text.lstrip())
    objects.append(value)
    text = text.lstrip()[end:]
path = objects[1].pop("path")
print(len(objects), path.endswith("/db1.xray"), objects[0]["labels"]["env"], objects[1] == one)
END
)" "2 True test True"
wrong() { run "$KXRAY" "${@:2}"; assert_contains "$1" "$STATUS $ERR" "$1"; }
wrong "2 kxray report: --by host is for the table" report --by host --tree "$TMP/web1.xray"
wrong "2 kxray report: -m names the map of one trace" report --by host -m "$TMP/web1.xray.map" "$TMP/web1.xray"
wrong "1 kxray report: $TMP/nothing: " report --by host "$TMP/web1.xray" "$TMP/nothing"
db1 again "s['started']='later'"
run "$KXRAY" diff --by host "$TMP/web1.xray" "$TMP/db1.xray" "$TMP/again.xray" "$TMP/later.xray"
assert_eq "diff: hosts and their traces" "$STATUS $(grep -e ^host -e '^[AB]:' <<<"$OUT" | sed 's|/.*/||' | tr '\n' ';')" \
	"0 host web1;A: web1.xray;B: later.xray;host db1;A: db1.xray;B: again.xray;"
wrong "1 kxray diff: web1 has one trace only, '$TMP/web1.xray'" diff --by host "$TMP/web1.xray" "$TMP/db1.xray" "$TMP/again.xray"
wrong "1 kxray diff: web1 has more than two traces: '$TMP/boot2.xray'" diff --by host "$TMP/web1.xray" "$TMP/later.xray" "$TMP/boot2.xray"
wrong "1 kxray diff: --by host compares two traces of each host" diff --by host "$TMP/web1.xray"
wrong "2 kxray diff: -m names the map of one trace" diff --by host --map-a x "$TMP/web1.xray"
