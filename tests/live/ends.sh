#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 36 s
# Ends of a recording: signals, SIGKILL to kxray, the target's crash or exit, --duration.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

functions=(-f step_one -f step_two -f obey -f crash)

start_victim() { # [OPTION...]
	start_target victim
	TARGET_PID=$PID
	start_kxray "$TARGET_PID" "${functions[@]}" "$@"
}

# has_events [BYTES]: succeeds if at least BYTES of the trace are written
has_events() { [ "$(stat -c %s "$TRACE")" -gt "${1:-4000}" ]; }

# victim_lives LABEL: the target still obeys commands, and ends with its own status
victim_lives() {
	go_target e
	end_target "$TARGET_PID"
	assert_eq "$1: the target's status" "$STATUS" 7
}

for signal in INT TERM HUP QUIT; do
	start_victim
	wait_for has_events
	kill -$signal "$KX_PID"
	end_kxray
	assert_eq "SIG$signal: status" "$STATUS" 0
	expect "SIG$signal" tools whole=2
	victim_lives "SIG$signal"
done

# A signal that comes before the recording has begun ends kxray, too. It is pending when kxray starts.
start_target victim
_new_recording
run python3 -c 'import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
os.kill(os.getpid(), signal.SIGINT)
os.execv(sys.argv[1], sys.argv[1:])' "$KXRAY" record -p "$PID" -o "$TRACE" -f step_one
assert_eq "interrupted start: status" "$STATUS" 1
assert_contains "interrupted start: message" "$ERR" "interrupted before the recording began"
assert_eq "interrupted start: files" "$(ls "$TRACE"* 2>/dev/null)" ""
go_target e
end_target "$PID"
assert_eq "interrupted start: the target's status" "$STATUS" 7

start_victim -d 0.7
end_kxray
assert_eq "--duration: status" "$STATUS" 0
assert "--duration: recorded time" "$(cat "$TMP/rec.json")" \
	test "$(json "$TMP/rec.json" 'd["seconds"] >= 0.7')" = True
expect "--duration" tools whole=2
victim_lives "--duration"

# No message is printed, and the flushed part of the trace can be read.
for version in 5 2; do
	start_victim --fdr-version $version
	wait_for has_events || fail "SIGKILL, version $version" "nothing was flushed"
	kill -KILL "$KX_PID"
	end_kxray
	assert_eq "SIGKILL, version $version: status" "$STATUS" 137
	expect "SIGKILL, version $version" long_tools remains=100
	# The kernel removed the probes when kxray died.
	victim_lives "SIGKILL, version $version"
done

# The same while kxray writes and calls with replaced return addresses are open.
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

# The target crashes inside obey() and crash(), which never return.
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

# The target exits inside obey(). Its calls before the attach are not in the trace.
start_victim
wait_for has_events
go_target e
end_target "$TARGET_PID"
assert_eq "exit: the target's status" "$STATUS" 7
end_kxray
assert_eq "exit: status" "$STATUS" 0
tail -n 1 "$TMP/victim.out" >"$TMP/did.json"
expect "exit" tools whole last=obey

# Two targets: the recording ends with the second. The first one is recorded before it ends: it calls step_two
# after each wait.
switches() { awk '/^voluntary/ { print $2 }' "/proc/$1/status"; } # PID
has_switched() { [ "$(switches "$1")" -ge "$2" ]; }
start_target victim
first=$PID first_in=$TARGET_IN
mv "$TMP/victim.in" "$TMP/first.in"
start_target sleeper
start_kxray "$first,$PID" -f step_two -f tick
wait_for has_switched "$first" $(($(switches "$first") + 3))
printf e >&"$first_in"
end_target "$first"
exec {first_in}>&-
assert_eq "two targets: the first one's status" "$STATUS" 7
sleep 0.3
assert "two targets: recording continues" "it has ended" kill -0 "$KX_PID"
kill -TERM "$PID"
end_target "$PID"
assert_eq "two targets: the second one's status" "$STATUS" 0
end_kxray
assert_eq "two targets: status" "$STATUS" 0
expect "two targets" whole processes=2 tools

# kxray passes signals on to the command; the command ends as it chooses, and the trace has all of its calls.
_new_recording
: >"$TMP/sleeper.out"
"$KXRAY" record -o "$TRACE" --json -f tick -- "$TARGETS/sleeper" >"$TMP/sleeper.out" \
	2>"$TMP/rec.err" &
KX_PID=$!
_pids+=("$KX_PID")
wait_for has_text ready "$TMP/sleeper.out"
sleep 0.3
kill -TERM "$KX_PID"
end_kxray
assert_eq "command and SIGTERM: status" "$STATUS" 0
tail -n 1 "$TMP/sleeper.out" >"$TMP/rec.json"
tail -n 2 "$TMP/sleeper.out" | head -n 1 >"$TMP/did.json"
expect "command and SIGTERM" report account fdr summary
