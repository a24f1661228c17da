#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 21 s
# How a recording ends: by signals, by kxray's death, by the target's crash, exit and time.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

functions=(-f step_one -f step_two -f obey -f crash)

start_victim() { # [OPTION...]
	start_target victim
	TARGET_PID=$PID
	start_kxray "$TARGET_PID" "${functions[@]}" "$@"
}

# has_events [BYTES]: so much of the trace is written
has_events() { [ "$(stat -c %s "$TRACE")" -gt "${1:-4000}" ]; }

# victim_lives LABEL: it still does what it is told, and does not know of us
victim_lives() {
	go_target e
	end_target "$TARGET_PID"
	assert_eq "$1: the target runs on to its end" "$STATUS" 7
}

for signal in INT TERM HUP; do
	start_victim
	wait_for has_events
	kill -$signal "$KX_PID"
	end_kxray
	assert_eq "SIG$signal: status" "$STATUS" 0
	expect "SIG$signal" tools whole
	victim_lives "SIG$signal"
done

start_victim -d 0.7
end_kxray
assert_eq "--duration: status" "$STATUS" 0
assert "--duration: recorded for so long" "$(cat "$TMP/rec.json")" \
	test "$(json "$TMP/rec.json" 'd["seconds"] >= 0.7')" = True
expect "--duration" tools whole
victim_lives "--duration"

# Nothing is said at the end, and what was flushed can be read.
for version in 5 2; do
	start_victim --fdr-version $version
	wait_for has_events || fail "SIGKILL, version $version" "nothing was flushed"
	kill -KILL "$KX_PID"
	end_kxray
	assert_eq "SIGKILL, version $version: status" "$STATUS" 137
	expect "SIGKILL, version $version" long_tools remains=100
	# The probes went with kxray: what the target does costs nothing any more.
	victim_lives "SIGKILL, version $version"
done

# The same in the midst of writing, and of calls with hijacked return addresses.
for bytes in 200000 1000000; do
	start_target counts --repeat=100
	TARGET_PID=$PID
	start_kxray "$TARGET_PID" "${COUNTED[@]}"
	go_target
	wait_for has_events $bytes
	kill -KILL "$KX_PID"
	end_kxray
	assert_eq "SIGKILL at work: status" "$STATUS" 137
	expect "SIGKILL at work" remains=1000
	end_target "$TARGET_PID"
	assert_eq "SIGKILL at work: the target's answer" "$STATUS" 0
done

# The target's crash is inside of obey() and crash(), which never return.
for how in s:139 a:134 k:137; do
	start_victim
	wait_for has_events
	go_target "${how%:*}"
	end_target "$TARGET_PID"
	assert_eq "crash ${how%:*}: the target's status" "$STATUS" "${how#*:}"
	end_kxray
	assert_eq "crash ${how%:*}: status" "$STATUS" 0
	tail -n 1 "$TMP/victim.out" >"$TMP/did.json"
	expect "crash ${how%:*}" tools whole last=obey,crash
done

# Its own exit is inside of obey(). Before the attach it has made calls that are not counted.
start_victim
wait_for has_events
go_target e
end_target "$TARGET_PID"
assert_eq "exit: the target's status" "$STATUS" 7
end_kxray
assert_eq "exit: status" "$STATUS" 0
tail -n 1 "$TMP/victim.out" >"$TMP/did.json"
expect "exit" tools whole last=obey

# Two targets: the recording ends with the second.
start_target victim
first=$PID first_in=$TARGET_IN
mv "$TMP/victim.in" "$TMP/first.in"
start_target sleeper
start_kxray "$first,$PID" -f step_two -f tick
printf e >&"$first_in"
end_target "$first"
exec {first_in}>&-
assert_eq "two targets: the first one's status" "$STATUS" 7
sleep 0.3
assert "two targets: it records on" "it has ended" kill -0 "$KX_PID"
kill -TERM "$PID"
end_target "$PID"
assert_eq "two targets: the second one's status" "$STATUS" 0
end_kxray
assert_eq "two targets: status" "$STATUS" 0
expect "two targets" whole processes=2 tools

# Signals to kxray reach the command; it ends in its own way, and everything is in the trace.
_new_recording
: >"$TMP/sleeper.out"
"$KXRAY" record -o "$TRACE" --json -f tick -- "$TARGETS/sleeper" >"$TMP/sleeper.out" \
	2>"$TMP/rec.err" &
KX_PID=$!
_pids+=("$KX_PID")
wait_for grep -q ready "$TMP/sleeper.out"
sleep 0.3
kill -TERM "$KX_PID"
end_kxray
assert_eq "command and SIGTERM: status" "$STATUS" 0
tail -n 1 "$TMP/sleeper.out" >"$TMP/rec.json"
tail -n 2 "$TMP/sleeper.out" | head -n 1 >"$TMP/did.json"
expect "command and SIGTERM" report account fdr summary
