#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 49 s
# Functions whose probes the kernel does not set, although it accepts them, are named and counted; where all
# are set nothing is said. Programs that join are checked, too.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

for how in "" "--mechanism=multi" "--mechanism=single" "--exits=instruction"; do
	# shellcheck disable=SC2086
	trace_target writable -f plain -f patched $how
	assert_eq "writable code ${how:-by default}: statuses" "$STATUS $TARGET_STATUS" "0 0"
	run "$KXRAY" report --json "$TRACE"
	cp "$TMP/run.out" "$TMP/report.json"
	assert_eq "writable code ${how:-by default}: the other function's calls" \
		"$(json "$TMP/report.json" '{f["name"]: f["count"] for f in d["functions"]}')" "{'plain': 1000}"
	assert_eq "writable code ${how:-by default}: functions without a probe" \
		"$(json "$TMP/rec.json" 'd.get("unprobed")')" 1
	message=$(grep 'no probe in process' "$TMP/rec.err")
	assert_contains "writable code ${how:-by default}: it is named" "$message" \
		"1 of 2 functions of writable have no probe in process $TARGET_PID"
	assert_contains "writable code ${how:-by default}: the reason" "$message" "(patched): the code is mapped writable"
	assert_contains "writable code ${how:-by default}: the summary" "$(cat "$TMP/rec.err")" \
		"1 function had no probe in the code of a traced process"
done

# A program that joins, with all its code mapped writable. It works when it has been named.
python3 - "$TARGETS/writable" "$TMP/joins" <<'END'
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
at, = struct.unpack_from("<Q", data, 32)
size, count = struct.unpack_from("<HH", data, 54)
for header in range(at, at + size * count, size):
    kind, flags = struct.unpack_from("<II", data, header)
    if kind == 1 and flags & 1:  # PT_LOAD, PF_X
        struct.pack_into("<I", data, header + 4, flags | 2)
open(sys.argv[2], "wb").write(data)
END
chmod +x "$TMP/joins"
joined() {
	start_target writable "$TMP/joins"
	TARGET_PID=$PID
	if [ "$1" = -a ]; then
		beside_translators shared
		_new_recording
		"$KXRAY" record -o "$TRACE" --json -f "$TMP/joins:plain" -f "$TMP/joins:patched" "$@" \
			>"$TMP/rec.json" 2>"$TMP/rec.err" &
		KX_PID=$!
		_pids+=("$KX_PID")
		wait_for _records || fail "$*: start" "$(cat "$TMP/rec.err")"
	else
		start_kxray "$TARGET_PID" -f "$TMP/joins:plain" -f "$TMP/joins:patched" "$@"
	fi
	go_target
	wait_for _both_ready || fail "a program that joins, $*" "it did not start"
	child=$(sed -n '2s/^ready //p' "$TMP/writable.out")
	wait_for has_text "no probe in process $child" "$TMP/rec.err" ||
		fail "a program that joins, $*: it is named" "$(cat "$TMP/rec.err")"
	go_target
	end_target "$TARGET_PID"
	TARGET_STATUS=$STATUS
	[ "$1" != -a ] || kill -INT "$KX_PID"
	end_kxray
	assert_eq "a program that joins, $*: statuses" "$STATUS $TARGET_STATUS" "0 0"
	assert_contains "a program that joins, $*: its name" "$(grep 'no probe in process' "$TMP/rec.err")" \
		"2 of 2 functions of joins have no probe in process $child, so their calls there are not recorded"
	assert_eq "a program that joins, $*: named once" "$(grep -c 'no probe in process' "$TMP/rec.err")" 1
	assert_eq "a program that joins, $*: counted" "$(json "$TMP/rec.json" 'd.get("unprobed")')" 2
}
_both_ready() { [ "$(grep -c '^ready' "$TMP/writable.out")" = 2 ]; }
joined --follow
joined --follow --mechanism=multi
joined -a

# Every kind of entry and exit, in the program and a library, is found.
for how in "" "--mechanism=multi" "--mechanism=single" "--exits=instruction" "--args 6"; do
	for target in counts counts-cet counts-nopie; do
		# shellcheck disable=SC2086
		trace_target $target "${COUNTED[@]}" -f 'libc.so*:mem*' $how
		assert_eq "$target ${how:-by default}: all probes are found" \
			"$STATUS $(json "$TMP/rec.json" 'd.get("unprobed")') $(grep -c 'no probe' "$TMP/rec.err")" "0 None 0"
	done
done
