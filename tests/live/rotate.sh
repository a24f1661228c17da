#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 33 s
# record --rotate: the files together hold every call exactly once, each is readable by itself, older ones
# are removed, and neither memory nor descriptors grow with their number.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh
export KXRAY

files() { (cd "$TMP" && echo trace.*); }
# files_of FIRST LAST: what these files and their maps are called
files_of() {
	local i
	for ((i = $1; i <= $2; i++)); do printf 'trace.%d.xray\ntrace.%d.xray.map\n' "$i" "$i"; done |
		LC_ALL=C sort | paste -sd ' '
}
# calls of sleep_2ms in all files, if all of a file lasted at least 2 ms
slept() {
	local f
	for f in "$TMP"/trace.*.xray; do
		"$KXRAY" report --json "$f" >"$TMP/report.json" || return
		json "$TMP/report.json" 'sum(f["count"] - f["open"] for f in d["functions"] if f["name"] == "sleep_2ms"
			and f["min_ns"] >= 2000000)'
	done | awk '{ n += $1 } END { print n }'
}
reached() { [ -e "$TMP/trace.$1.xray" ]; } # NUMBER

# All calls, by every version of the format that differs in how a file begins.
for version in 5 1; do
	rm -f "$TMP"/trace.*
	TARGET_ARGS=--repeat=10 trace_target counts "${COUNTED[@]}" --rotate 64K --fdr-version $version
	assert_eq "by size, version $version: status" "$STATUS" 0
	assert_eq "by size, version $version: nothing is lost" "$(json "$TMP/rec.json" 'd["lost"], d["repaired"], d["threads"]')" \
		"(0, 0, 4)"
	python3 tests/live/rotate.py "$TMP" "by size, version $version" || fail "by size" "the checks did not run"
done
assert_contains "by size: summary" "$(cat "$TMP/rec.err")" " files, the newest is $TMP/trace."

# By time, with the scheduler's events and arguments.
rm -f "$TMP"/trace.*
TARGET_ARGS=--repeat=10 trace_target counts "${COUNTED[@]}" --rotate 0.05s --sched --args 2
assert_eq "by time: status" "$STATUS" 0
python3 tests/live/rotate.py "$TMP" "by time" || fail "by time" "the checks did not run"

for format in perfetto chrome; do
	"$KXRAY" export -f $format -o "$TMP/part" "$TMP/trace.3.xray"
	run python3 tests/readers/$format.py "$TMP/part"
	assert_eq "by time: an independent reader of $format accepts a file" "$STATUS $ERR" "0 "
done

# Entries that are written late, because --min-duration delays them.
rm -f "$TMP"/trace.*
TARGET_ARGS=--repeat=10 trace_target counts -f sleep_2ms -f 'leaf_*' --min-duration 1ms --rotate 0.05s
assert_eq "--min-duration: status" "$STATUS" 0
assert_eq "--min-duration: every sleep is in one of the files" "$(slept)" "$(json "$TMP/did.json" 'd["calls"]["sleep_2ms"]')"

# The newest three stay; the sixtieth file takes no more memory and descriptors than the tenth.
rm -f "$TMP"/trace.*
start_target counts --repeat=100000000
TARGET_PID=$PID
start_kxray "$TARGET_PID" "${COUNTED[@]}" --rotate 64K --rotate 10min --keep-files 3
go_target
rss() { awk '/^VmRSS/ { print $2 }' "/proc/$KX_PID/status"; }
descriptors() { find "/proc/$KX_PID/fd" -mindepth 1 | wc -l; }
wait_for reached 10
fds=$(descriptors) memory=$(rss)
wait_for reached 60
assert_eq "many files: descriptors" "$(descriptors)" "$fds"
echo "# memory: $memory KiB, then $(rss)"
assert_between "many files: memory (KiB)" "$(rss)" 0 $((memory + 2560))
kill -INT "$KX_PID"
end_kxray
kill -KILL "$TARGET_PID"
assert_eq "many files: status" "$STATUS" 0
last=$(json "$TMP/rec.json" 'd["files"]')
assert_eq "many files: the newest stay" "$(files)" "$(files_of $((last - 2)) "$last")"
assert_eq "many files: kept" "$(json "$TMP/rec.json" 'd["files_kept"]')" 3
assert_contains "many files: message" "$(cat "$TMP/rec.err")" "$((last - 3)) older files were removed"

# A kill leaves files that can be read; a full disk ends the recording, and what was written stays.
rm -f "$TMP"/trace.*
start_target counts --repeat=100000000
TARGET_PID=$PID
start_kxray "$TARGET_PID" "${COUNTED[@]}" --rotate 64K
go_target
wait_for reached 4
kill -KILL "$KX_PID"
wait "$KX_PID" 2>/dev/null
for f in "$TMP"/trace.*.xray; do
	run "$KXRAY" report "$f"
	assert_eq "killed: $(basename "$f")" "$STATUS" 0
done
mkdir "$TMP/disk"
if mount -t tmpfs -o size=300k none "$TMP/disk"; then
	kept=$TRACE
	TRACE=$TMP/disk/trace.xray
	start_kxray "$TARGET_PID" "${COUNTED[@]}" --rotate 64K
	end_kxray
	assert_eq "full disk: status" "$STATUS" 1
	assert_contains "full disk: message" "$(tail -n 1 "$TMP/rec.err")" "No space left"
	assert_eq "full disk: the first file is whole" "$("$KXRAY" report "$TMP/disk/trace.1.xray" 2>&1 >/dev/null)" ""
	umount "$TMP/disk"
	TRACE=$kept
else
	skip "full disk" "no tmpfs can be mounted here"
fi
kill -KILL "$TARGET_PID"
