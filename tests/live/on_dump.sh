#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 15 s
# --on-dump: one run for each dump with its path as one argument; runs that fail, flood their output or hang with
# children are counted and killed, and recording continues.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

mkdir "$TMP/a \$(touch pwned) '{}"
TRACE="$TMP/a \$(touch pwned) '{}/t;r.xray"
cat >"$TMP/hook" <<'EOF'
#!/bin/bash
# "$1" is the test's folder, "$2" the dump
printf '%s\n' "$#" "$2" >>"$1/ran"
case $(<"$1/mode") in
fail) exit 3 ;;
flood) head -c 50000000 /dev/zero && head -c 50000000 /dev/zero >&2 ;;
leave) sleep 1000 & echo $! >"$1/child" ;;
hang) sleep 1000 & echo $! >"$1/child"; trap '' TERM INT; while :; do sleep 1000; done ;;
esac
EOF
chmod +x "$TMP/hook"

gone() { [ ! -e "/proc/$1" ] || grep -q '^State:[[:space:]]*[ZX]' "/proc/$1/status"; }
ran() { [ "$(wc -l <"$TMP/ran")" -ge $(($1 * 2)) ]; }
wrote() { [ "$(grep -c '^kxray: wrote ' "$TMP/rec.err")" -ge "$1" ]; }
dump() { # MODE NUMBER: requests a dump and waits until its run has begun
	echo "$1" >"$TMP/mode"
	kill -USR1 "$KX_PID"
	assert "$1: run begins" "$(cat "$TMP/rec.err")" wait_for ran "$2"
}

: >"$TMP/ran"
start_target flight --threads=1
TARGET_PID=$PID
start_kxray "$TARGET_PID" -f busy --flight-recorder 256K --on-dump "'$TMP/hook' $TMP {}" --on-dump-limit 5s
dump good 1
dump fail 2
assert "failure is reported" "$(cat "$TMP/rec.err")" wait_for has_text 'ended with status 3; recording continues' "$TMP/rec.err"
dump flood 3
dump leave 4
wait_for test -s "$TMP/child"
assert "a child left behind is killed" "$(<"$TMP/child")" wait_for gone "$(<"$TMP/child")"
rm "$TMP/child"
dump hang 5
wait_for test -s "$TMP/child"
kill -USR1 "$KX_PID"
assert "dumps are written while a run hangs" "$(cat "$TMP/rec.err")" wait_for wrote 6
assert "a hanging run is killed" "$(cat "$TMP/rec.err")" wait_for has_text 'was killed after' "$TMP/rec.err"
assert "with its child" "$(<"$TMP/child")" wait_for gone "$(<"$TMP/child")"
# the sixth hangs, too: the end waits for it until it is killed, then runs the last one
assert "the next run begins" "$(cat "$TMP/rec.err")" wait_for ran 6
echo good >"$TMP/mode"
kill -INT "$KX_PID"
end_kxray
assert_eq "status" "$STATUS" 0
assert_eq "runs" "$(json "$TMP/rec.json" '(d["dumps"], *(d["on_dump"][k] for k in ("ran", "failed", "killed", "skipped")))')" \
	"(7, 4, 1, 2, 0)"
want=$(for i in 1 2 3 4 5 6 7; do printf '2\n%s\n' "${TRACE%.xray}.$i.xray"; done)
assert_eq "arguments" "$(<"$TMP/ran")" "$want"
assert_eq "no shell" "$(find . "$TMP" -maxdepth 2 -name pwned)" ""
go_target q
end_target "$TARGET_PID"

# A command that does not exist, and command lines that are refused
for bad in "cmd" "{}" "cmd 'x {}" ""; do
	run "$KXRAY" record -p $$ --keep 1s --on-dump "$bad"
	assert_eq "refused: $bad" "$STATUS ${#OUT}" "2 0"
done
run "$KXRAY" record -p $$ --on-dump 'cmd {}'
assert_eq "without a flight recorder" "$STATUS" 2
