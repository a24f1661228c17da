#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 40 s
# record --compress: the trace holds the same calls, every command reads it, zstd -d makes the trace of it that
# llvm-xray reads; also rotated, dumped by a flight recorder, and interrupted.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# record_compressed NAME [OPTION...]: the target waits, kxray attaches, the target works and ends
record_compressed() {
	local name=$1
	shift
	start_target counts ${TARGET_ARGS:-}
	TARGET_PID=$PID
	start_kxray "$PID" "$@" --compress
	go_target
	end_target "$TARGET_PID"
	end_kxray
	tail -n 1 "$TMP/counts.out" >"$TMP/did.json"
	assert_eq "$name: status" "$STATUS" 0
}
# calls_of FILE: "NAME CALLS" of each function, by the report
calls_of() {
	"$KXRAY" report --json "$1" >"$TMP/calls.json" 2>"$TMP/calls.err" &&
		json "$TMP/calls.json" '"\n".join(sorted(f["name"] + " %d" % f["count"] for f in d["functions"]))'
}
# by_llvm TOOL FILE MAP: the same by llvm-xray
by_llvm() {
	"$1" account -f csv -m "$3" "$2" | python3 -c 'import csv, sys
print("\n".join(sorted(r["function"] + " " + r["count"] for r in csv.DictReader(sys.stdin))))'
}

# The same calls as the target counted, in a file of its own name and rights.
record_compressed "recording" "${COUNTED[@]}"
assert_eq "recording: files" "$(cd "$TMP" && echo trace.*)" "trace.xray.map trace.xray.zst"
assert_eq "recording: only the owner reads it" "$(stat -c %a "$TRACE.zst")" 600
assert_eq "recording: the summary names it" "$(json "$TMP/rec.json" 'd["output"], d["bytes"], d["lost"]')" \
	"('$TRACE.zst', $(stat -c %s "$TRACE.zst"), 0)"
calls_of "$TRACE.zst" >"$TMP/calls"
assert_eq "recording: calls are those that the target counted" \
	"$(while read -r name n; do echo "$name $n"; done <"$TMP/calls")" \
	"$(json "$TMP/did.json" '"\n".join(sorted("%s %d" % c for c in d["calls"].items() if c[1] and
		any(c[0] == f["name"] for f in json.load(open("'"$TMP/calls.json"'"))["functions"])))')"
assert "recording: there are calls" "none" [ "$(wc -l <"$TMP/calls")" -gt 5 ]

# Decompressed it is a trace like any other.
mkdir "$TMP/plain"
run zstd -q -d -o "$TMP/plain/trace.xray" "$TRACE.zst"
assert_eq "zstd -d" "$STATUS $ERR" "0 "
cp "$TRACE.map" "$TMP/plain/trace.xray.map"
while read -r tool; do
	assert_eq "zstd -d: the same calls by $tool" "$(by_llvm "$tool" "$TMP/plain/trace.xray" "$TRACE.map")" \
		"$(cat "$TMP/calls")"
	run "$tool" fdr-dump --verify "$TMP/plain/trace.xray"
	assert_eq "zstd -d: $tool fdr-dump --verify" "$STATUS $ERR" "0 "
done < <(llvm_xrays)
python3 -c 'import sys
sys.path.insert(0, "tests/live")
import fdr
t = fdr.Trace(sys.argv[1])
assert t.threads' "$TMP/plain/trace.xray" && pass "zstd -d: an independent reader accepts it" ||
	fail "zstd -d: an independent reader accepts it" "it does not"

# All commands make of both what is the same, byte for byte.
mkdir "$TMP/packed"
mv "$TRACE.map" "$TMP/packed"
mv "$TRACE.zst" "$TMP/packed/trace.xray" # some exports hold the name
for from in plain packed; do
	(
		cd "$TMP/$from" || exit
		file=trace.xray
		"$KXRAY" report "$file" >report
		"$KXRAY" report -f 'leaf_*' --json "$file" >filtered
		"$KXRAY" dump "$file" >dump
		"$KXRAY" export --list --json | python3 -c 'import json, sys
print("\n".join(f["name"] for f in json.load(sys.stdin)))' | while read -r format; do
			"$KXRAY" export -f "$format" -o "out.$format" "$file" 2>/dev/null
		done
		"$KXRAY" report -m trace.xray.map - <"$file" >stdin
	)
done
rm "$TMP"/plain/trace.* "$TMP"/packed/trace.*
assert "commands: there is output" "only $(find "$TMP/packed" -type f -size +0 | wc -l) files" \
	[ "$(find "$TMP/packed" -type f -size +0 | wc -l)" -gt 12 ]
# the ids in an afperf file are random
sed -Ei 's/[0-9]{15,20}/ID/g' "$TMP"/*/out.afperf
run diff -rq "$TMP/plain" "$TMP/packed"
assert_eq "commands: the same of both" "$OUT" ""

# A suffix instead of the option, and who gets the file.
rm -f "$TMP"/trace.*
SUDO_UID=1 SUDO_GID=1 "$KXRAY" record -q -f 'leaf_*' -o "$TMP/suffix.zst" -- "$TARGETS/counts" --start=now \
	>"$TMP/run.out" 2>&1 </dev/null
assert_eq "suffix: the trace is compressed, and the user's" \
	"$(stat -c '%a %u:%g' "$TMP/suffix.zst"), $(stat -c '%u:%g' "$TMP/suffix.map"), $(head -c 4 "$TMP/suffix.zst" | od -An -tx1)" \
	"600 1:1, 1:1,  28 b5 2f fd"
run "$KXRAY" record --count --compress -p $$
assert_eq "with --count" "$STATUS" 2
assert_contains "with --count" "$ERR" "leave out --compress"

# Rotated: each file by itself, and together all calls.
rm -f "$TMP"/trace.*
TARGET_ARGS=--repeat=10 record_compressed "rotated" "${COUNTED[@]}" --rotate 64K
assert "rotated: there are several files" "$(json "$TMP/rec.json" 'd["files"]')" \
	[ "$(json "$TMP/rec.json" 'd["files"]')" -gt 1 ]
for file in "$TMP"/trace.*.xray.zst; do
	zstd -q -d --rm "$file" || fail "rotated: zstd -d" "$file"
done
export KXRAY
python3 tests/live/rotate.py "$TMP" "rotated" some || fail "rotated" "the checks did not run"

rm -f "$TMP"/trace.*
TARGET_ARGS=--repeat=10 record_compressed "newest files" "${COUNTED[@]}" --rotate 64K --keep-files 2
n=$(json "$TMP/rec.json" 'd["files"]')
assert_eq "newest files" "$(cd "$TMP" && echo trace.*)" \
	"$(for i in $((n - 1)) "$n"; do printf 'trace.%d.xray.map trace.%d.xray.zst\n' "$i" "$i"; done | xargs -n1 | LC_ALL=C sort | xargs)"

# A dump of a flight recorder.
rm -f "$TMP"/trace.*
record_compressed "flight recorder" "${COUNTED[@]}" --flight-recorder 1M
assert_eq "flight recorder: files" "$(cd "$TMP" && echo trace.*)" "trace.1.xray.map trace.1.xray.zst"
run zstd -q -t "$TMP/trace.1.xray.zst"
assert_eq "flight recorder: zstd -t" "$STATUS $ERR" "0 "
run "$KXRAY" report "$TMP/trace.1.xray.zst"
assert_eq "flight recorder: report" "$STATUS" 0

# Killed: what was flushed is there, in whole frames.
rm -f "$TMP"/trace.*
start_target many
TARGET_PID=$PID
start_kxray "$TARGET_PID" -f many_00000 --compress
kill -KILL "$KX_PID"
end_kxray
run zstd -q -t "$TRACE.zst"
assert_eq "killed early: whole frames" "$STATUS $ERR" "0 "
run "$KXRAY" report "$TRACE.zst"
assert_eq "killed early: report" "$STATUS" 0
go_target
end_target "$TARGET_PID"

rm -f "$TMP"/trace.*
start_target counts --repeat=100000000
TARGET_PID=$PID
start_kxray "$TARGET_PID" "${COUNTED[@]}" --compress
go_target
grown() { [ "$(stat -c %s "$TRACE.zst")" -gt 100000 ]; }
wait_for grown
kill -KILL "$KX_PID"
end_kxray
kill -KILL "$TARGET_PID"
cp "$TRACE.zst" "$TMP/killed.zst"
cp "$TRACE.map" "$TMP/killed.map"
# A frame may have been written in part.
run "$KXRAY" report --json "$TMP/killed.zst"
assert "killed: the report shows what was flushed" "status $STATUS, $ERR" \
	[ "$STATUS $(json "$TMP/run.out" 'int(d["calls"] > 1000)')" = "0 1" ]
# Cut anywhere, it is read up to the last whole frame.
head -c -7 "$TMP/killed.zst" >"$TMP/cut.zst"
run "$KXRAY" report -m "$TMP/killed.map" "$TMP/cut.zst"
assert_eq "cut: status" "$STATUS" 0
assert_contains "cut: it is said" "$ERR" "ends inside a buffer"
