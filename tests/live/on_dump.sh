#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 18 s
# --on-dump: one run for each dump with its path as one argument; runs that fail, flood their output or hang with
# children are counted and killed, dumps beyond a full queue are skipped, a second signal ends the wait for runs, and
# recording continues. Under sudo, runs are the user's that called it.
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

# A run that hangs: 16 dumps wait for it, the others are skipped. At the end a second signal kills it and skips the 16.
: >"$TMP/ran"
rm -f "$TMP/child"
TRACE=$TMP/full.xray
echo hang >"$TMP/mode"
start_target flight --threads=1
TARGET_PID=$PID
start_kxray "$TARGET_PID" -f busy --flight-recorder 64K --dumps 100 --on-dump "'$TMP/hook' $TMP {}" --on-dump-limit 600s
for i in {1..18}; do
	kill -USR1 "$KX_PID"
	wait_for wrote "$i" || break
	# its run takes it out of the queue before the others come
	[ "$i" != 1 ] || wait_for test -s "$TMP/child"
done
assert "a full queue is reported" "$(cat "$TMP/rec.err")" \
	wait_for has_text "is not run for ${TRACE%.xray}.18.xray: 16 dumps are waiting for it" "$TMP/rec.err"
kill -INT "$KX_PID"
wait_for wrote 19 # the end's own
assert "kxray waits for the run" "$(cat "$TMP/rec.err")" [ -e "/proc/$KX_PID" ]
kill -TERM "$KX_PID"
end_kxray
assert_eq "second signal: status" "$STATUS" 0
assert_eq "second signal: runs" "$(json "$TMP/rec.json" '(d["dumps"], *(d["on_dump"][k] for k in ("ran", "failed", "killed", "skipped")))')" \
	"(19, 0, 0, 1, 18)"
assert "second signal: its child is killed" "$(<"$TMP/child")" wait_for gone "$(<"$TMP/child")"
assert_eq "second signal: dumps stay" "$(find "$TMP" -maxdepth 1 -name 'full.*.xray' | wc -l)" 19

# As the user that called sudo: without root's groups, capabilities and descriptors, and able to read the dump, its own.
cat >"$TMP/who" <<'EOF'
#!/bin/bash
exec >"$1/who.out"
echo "$(id -u) $(id -g) $(id -G)"
grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status | cut -f 2 | sort -u
stat -c '%u %g %a' "$2"
head -c 4 "$2" | wc -c
readlink /proc/$$/fd/{0,2}
# 255 is the script, which bash opens; no pipe here, which would be another
others=0
for fd in {3..254}; do [ ! -e "/proc/$$/fd/$fd" ] || others=$((others + 1)); done
echo $others
EOF
chmod 755 "$TMP/who"
chmod 711 "$TMP"
: >"$TMP/who.out"
chown 65534:65533 "$TMP/who.out"
TRACE=$TMP/sudo.xray
SUDO_UID=65534 SUDO_GID=65533 start_kxray "$TARGET_PID" -f busy --flight-recorder 64K --on-dump "$TMP/who $TMP {}"
kill -INT "$KX_PID"
end_kxray
assert_eq "sudo: status and runs" "$STATUS $(json "$TMP/rec.json" 'd["on_dump"]["ran"]')" "0 1"
assert_eq "sudo: the run's user, capabilities, files" "$(tr '\n' ';' <"$TMP/who.out")" \
	"65534 65533 65533;0000000000000000;65534 65533 600;4;/dev/null;/dev/null;0;"
# One that this user may not run
mkdir -m 700 "$TMP/roots"
cp "$TMP/who" "$TMP/roots/who"
SUDO_UID=65534 SUDO_GID=65533 start_kxray "$TARGET_PID" -f busy --flight-recorder 64K --on-dump "$TMP/roots/who $TMP {}"
kill -INT "$KX_PID"
end_kxray
assert_eq "sudo, not permitted: status and failed runs" "$STATUS $(json "$TMP/rec.json" 'd["on_dump"]["failed"]')" "0 1"
assert "sudo, not permitted: why" "$(cat "$TMP/rec.err")" \
	has_text "could not be run: Permission denied; recording continues" "$TMP/rec.err"

# A command that does not exist is found before anything is traced
for bad in "no-such-program-of-kxray {}" "$TMP/none {}" "$TMP {}" "$TMP/who.out {}"; do
	run "$KXRAY" record -p "$TARGET_PID" -f busy --keep 1s -o "$TMP/none.xray" --on-dump "$bad"
	assert_eq "refused: $bad" "$STATUS $(wc -l <"$TMP/run.err") $OUT" "1 1 "
	assert_contains "refused: why: $bad" "$ERR" "--on-dump: '${bad% *}' cannot be run: "
	assert_eq "nothing written: $bad" "$(find "$TMP" -name 'none.*')" ""
done
go_target q
end_target "$TARGET_PID"

# Command lines that are refused
for bad in "cmd" "{}" "cmd 'x {}" ""; do
	run "$KXRAY" record -p $$ --keep 1s --on-dump "$bad"
	assert_eq "refused: $bad" "$STATUS ${#OUT}" "2 0"
done
run "$KXRAY" record -p $$ --on-dump 'cmd {}'
assert_eq "without a flight recorder" "$STATUS" 2
