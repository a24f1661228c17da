#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 4 s
# A trace that is there is kept as FILE.old, with its map, plain or compressed; one that cannot be kept is not
# overwritten. Numbered files replace an earlier session's.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

cd "$TMP" || exit 1
# records FUNCTION [OPTION...]: a recording of that function
records() {
	local function=$1
	shift
	run "$KXRAY" record -f "$function" "$@" -- "$TARGETS/counts" --start=now
	[ "$STATUS" = 0 ] || fail "a recording of $function" "$ERR"
}
# of FILE: the functions in it, by its map
of() { "$KXRAY" report --json "$1" | python3 -c 'import json, sys
print(*(f["name"] for f in json.load(sys.stdin)["functions"]))'; }
says_old() { grep -cx "kxray: the earlier trace is kept as '$1'" <<<"$ERR"; }

records leaf_a
assert_eq "the first one: no word of an old one" "$(grep -c "earlier trace" <<<"$ERR")" 0
records leaf_b
assert_eq "it is said" "$(says_old trace.xray.old)" 1
assert_eq "the new one" "$(of trace.xray)" leaf_b
assert_eq "the old one has its map" "$(of trace.xray.old)" leaf_a
records leaf_a --json
tail -n 1 "$TMP/run.out" >"$TMP/rec.json"
assert_eq "in JSON" "$(json "$TMP/rec.json" 'd["old_trace"]')" trace.xray.old
assert_eq "one generation: the new one" "$(of trace.xray)" leaf_a
assert_eq "one generation: the old one" "$(of trace.xray.old)" leaf_b
assert_eq "one generation: files" "$(echo trace.*)" "trace.xray trace.xray.map trace.xray.old trace.xray.old.map"

# The same name with .zst has the same map.
records leaf_b --compress
assert_eq "compressed: it is said" "$(says_old trace.xray.old)" 1
assert_eq "compressed: the new one" "$(of trace.xray.zst)" leaf_b
assert_eq "compressed: the old one" "$(of trace.xray.old)" leaf_a
records leaf_a --compress
assert_eq "compressed twice: the new one" "$(of trace.xray.zst)" leaf_a
assert_eq "compressed twice: the old one" "$(of trace.xray.old.zst)" leaf_b
assert_eq "compressed twice: files" "$(echo trace.*)" "trace.xray.map trace.xray.old.map trace.xray.old.zst trace.xray.zst"

# A recording that does not begin leaves everything as it was.
run "$KXRAY" record -f no_such_function --compress -- "$TARGETS/counts" --start=now
assert_eq "no recording: status" "$STATUS" 1
assert_eq "no recording: the trace" "$(of trace.xray.zst)" leaf_a
assert_eq "no recording: the old one" "$(of trace.xray.old.zst)" leaf_b

# What is in the way is not removed, and the trace not overwritten.
mkdir folder
records leaf_a -o folder/t
mkdir folder/t.old
run "$KXRAY" record -f leaf_b -o folder/t -- "$TARGETS/counts" --start=now
assert_contains "in the way" "$STATUS $ERR" "1 kxray record: 'folder/t' exists and cannot be kept as 'folder/t.old': Is a directory; move"
assert_eq "in the way: the trace" "$(of folder/t)" leaf_a

# Numbered files.
records leaf_a -o n.xray --rotate 1h
records leaf_b -o n.xray --rotate 1h
assert_eq "--rotate: replaced" "$(of n.1.xray)" leaf_b
records leaf_a -o n.xray --flight-recorder 1M
assert_eq "a dump: replaced" "$(of n.1.xray)" leaf_a
assert_eq "numbered files: none is kept" "$(echo n.*)" "n.1.xray n.1.xray.map"
