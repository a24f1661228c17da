#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 2 s
# --faults: each page that a target touches first, with its address, access and function.
. "$(dirname "$0")/../lib.sh"

"$KXRAY" record --faults -f '*_pages' -f kernel_writes -o "$TMP/t.xray" -- "$TARGETS/touch" >"$TMP/out" 2>"$TMP/err"
assert_eq recorded $? 0
for format in chrome csv perfetto; do
	"$KXRAY" export -f $format -o "$TMP/t.$format" "$TMP/t.xray" >>"$TMP/log" 2>>"$TMP/err" ||
		fail "export $format" "$(tail -1 "$TMP/err")"
done
# its own format again: the notes stay as they were
"$KXRAY" export -f xray -o "$TMP/again.xray" "$TMP/t.xray" 2>>"$TMP/err"
assert_eq 'export xray' "$("$KXRAY" dump "$TMP/again.xray" | grep -o 'kxray:fault.*' | md5sum)" \
	"$("$KXRAY" dump "$TMP/t.xray" | grep -o 'kxray:fault.*' | md5sum)"
"$KXRAY" dump "$TMP/t.xray" >"$TMP/dump"

python3 tests/live/faults.py "$TMP/out" "$TMP/dump" "$TMP/t"

"$KXRAY" record -f '*_pages' -o "$TMP/without.xray" -- "$TARGETS/touch" >/dev/null 2>&1
assert_eq 'none without --faults' "$("$KXRAY" dump "$TMP/without.xray" | grep -c kxray:fault)" 0
"$KXRAY" record --count --faults -f '*_pages' -- "$TARGETS/touch" >/dev/null 2>"$TMP/err"
assert_eq '--count refuses it' "$? $(grep -c 'leave out --faults' "$TMP/err")" '2 1'
