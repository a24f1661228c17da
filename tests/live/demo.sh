#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 12 s
# `make demo`: it shows a trace of its server, which then ends, or with KEEP=1 keeps running until it is ended as the demo says.
. "$(dirname "$0")/../lib.sh"
export TMPDIR=$TMP

server_of() { sed -n 's/^A small server runs as process \([0-9]*\):.*/\1/p' <<<"$OUT"; }

run scripts/demo.sh
assert_eq "the demo" "$STATUS" 0
assert_contains "its report has the server's functions" "$OUT" parse_request
assert "the server has ended" "process '$(server_of)' is there" test -n "$(server_of)" -a ! -e "/proc/$(server_of)"

run env KEEP=1 scripts/demo.sh
server=$(server_of)
_pids+=("$server")
assert_eq "the demo with KEEP=1" "$STATUS" 0
assert_eq "its server runs" "$(cat "/proc/$server/comm")" demo
assert_eq "in a session of its own" "$(awk '{ print $6 }' "/proc/$server/stat")" "$server"
eval "$(sed -n 's/^and end it with: \(kill [0-9]*\)$/\1/p' <<<"$OUT")"
gone() { [ ! -e "/proc/$server" ]; }
wait_for gone
assert "the command that the demo names ends it" "process $server is there" gone
assert_eq "the trace stays" "$("$KXRAY" report "$(sed -n 's/^The trace stays in \([^ ]*\) .*/\1/p' <<<"$OUT")" | grep -c parse_request)" 1
