#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 47 s
# The flight recorder: each kind of trigger, the contents of each dump, and constant memory.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

functions=(-f busy -f maybe_slow -f rare -f crash)

dump() { echo "${TRACE%.xray}.$1.xray"; }
dumps() { (cd "$TMP" && echo trace.*.xray); }
wrote() { [ "$(grep -c '^kxray: wrote ' "$TMP/rec.err")" -ge "$1" ]; }
check() { # LABEL NUMBER CHECK...
	local label=$1 number=$2
	shift 2
	python3 -S tests/live/flight.py "$TMP" "$label" "$(dump "$number")" "$@" ||
		fail "$label" "the checks did not run"
}

# start_flight "TARGET-OPTION..." OPTION...
start_flight() {
	rm -f "$TMP"/trace.*
	# shellcheck disable=SC2086
	start_target flight $1
	TARGET_PID=$PID
	shift
	start_kxray "$TARGET_PID" "${functions[@]}" "$@"
}

# The target prints its calls after each byte; a byte "n" does nothing else.
answered() { [ "$(grep -c '^did' "$TMP/flight.out")" -ge "$1" ]; } # TIMES
calls() { # prints the calls of maybe_slow so far
	local answers
	answers=$(grep -c '^did' "$TMP/flight.out")
	go_target n
	wait_for answered $((answers + 1))
	tail -n 1 "$TMP/flight.out" | sed 's/.*"maybe_slow":\([0-9]*\).*/\1/'
}
has_called() { [ "$(calls)" -ge "$1" ]; }
worked() { wait_for has_called $(($(calls) + $1)); } # CALLS: waits for that many more, about one per millisecond

stop_flight() {
	kill -INT "$KX_PID"
	end_kxray
}

end_flight_target() {
	go_target q
	end_target "$TARGET_PID"
}

# rearmed: waits until kxray obeys triggers again: the interval of 0.1 s is over, and it has looked since
switches() { awk '/^voluntary/ { print $2 }' "/proc/$KX_PID/status"; }
has_switched() { [ "$(switches)" -ge "$1" ]; }
rearmed() {
	sleep 0.2
	wait_for has_switched $(($(switches) + 3))
}

# A store that is overwritten several times: SIGUSR1, a slow call, an entry, then the end.
start_flight "--threads=2" --flight-recorder 256K --args 2 --trigger 'maybe_slow > 20 ms' \
	--trigger 'rare@entry' --dump-interval 0.1
assert_eq "nothing is written before" "$(dumps)" 'trace.*.xray'
worked 1000
kill -USR1 "$KX_PID"
assert "SIGUSR1" "$(cat "$TMP/rec.err")" wait_for wrote 1
rearmed
go_target l
assert "slow call" "$(cat "$TMP/rec.err")" wait_for wrote 2
rearmed
go_target r
assert "entry" "$(cat "$TMP/rec.err")" wait_for wrote 3
stop_flight
assert_eq "end: status" "$STATUS" 0
assert_eq "dumps of a session" "$(dumps)" \
	"trace.1.xray trace.2.xray trace.3.xray trace.4.xray"
check "SIGUSR1" 1 reads reason=signal fresh cut gapless names=flight seconds=0,10
check "slow call" 2 reads reason=slow fresh cut gapless slow=maybe_slow,20
check "entry" 3 reads reason=entry fresh cut gapless entered=rare
check "end" 4 reads reason=end cut gapless
assert_contains "slow call: message" "$(cat "$TMP/rec.err")" "(slow: maybe_slow took "
assert_contains "slow call: message has the limit" "$(cat "$TMP/rec.err")" " > 20 ms in thread $TARGET_PID (flight))"
assert_eq "summary" \
	"$(json "$TMP/rec.json" 'd["dumps"], d["dumps_kept"], d["dumps_failed"], d["lost"]')" \
	"(4, 4, 0, 0)"
assert_eq "nothing else is left" "$(cd "$TMP" && echo trace.*)" \
	"$(printf 'trace.%d.xray trace.%d.xray.map ' 1 1 2 2 3 3 4 4 | sed 's/ $//')"
end_flight_target
assert_eq "the target keeps running" "$STATUS" 0

# Each kind of process end: one dump, with the last calls of all of its threads.
for how in s:139:crash:SIGSEGV a:134:crash:SIGABRT k:137:exit:SIGKILL e:7:exit:'status 7'; do
	IFS=: read -r byte status reason says <<<"$how"
	start_flight "--threads=3" --flight-recorder 64M
	worked 200
	go_target "$byte"
	end_target "$TARGET_PID"
	assert_eq "$says: the target's status" "$STATUS" "$status"
	end_kxray
	assert_eq "$says: status" "$STATUS" 0
	assert_eq "$says: one dump" "$(dumps)" trace.1.xray
	check "$says" 1 reads reason="$reason" says="$says" fresh uncut ended=4 names=flight
	[ "$byte" = e ] || check "$says" 1 crashing=crash
done

# A command is recorded from its first instruction: the dump at its end has all of its calls.
_new_recording
rm -f "$TMP"/trace.*
STATUS=0
: >"$TMP/flight.out"
: >"$TMP/rec.err"
(
	wait_for grep -q '^kxray: recording ' "$TMP/rec.err"
	# by then all threads work
	until grep -q '"maybe_slow":[0-9]\{3,\}' "$TMP/flight.out"; do
		printf n
		sleep 0.05
	done
	printf re
) | "$KXRAY" record -o "$TRACE" --json "${functions[@]}" --flight-recorder 64M -- \
	"$TARGETS/flight" --threads=2 >"$TMP/flight.out" 2>"$TMP/rec.err" || STATUS=$?
assert_eq "command: its status" "$STATUS" 7
assert_eq "command: one dump" "$(dumps)" trace.1.xray
check "command" 1 reads reason=exit says='status 7' uncut all_calls ended=3

# --keep: older records are left out, even if the store has room for them.
start_flight "--threads=2" --keep 0.5 --args 2
sleep 1 # longer than it keeps
worked 10
kill -USR1 "$KX_PID"
assert "--keep: SIGUSR1" "$(cat "$TMP/rec.err")" wait_for wrote 1
check "--keep" 1 reads fresh uncut gapless seconds=0.45,0.55
stop_flight
end_flight_target

# The crash of a child causes a dump, its normal end does not.
start_flight "--threads=1" --follow --flight-recorder 16M
worked 100
number=$(grep -c '^did' "$TMP/flight.out")
go_target C
assert "child's end" "the target has not replied" wait_for answered $((number + 1))
go_target c
assert "child's crash" "$(cat "$TMP/rec.err")" wait_for wrote 1
go_target s
end_target "$TARGET_PID"
end_kxray
assert_eq "child's crash: status" "$STATUS" 0
assert_eq "child's crash: dumps" "$(dumps)" "trace.1.xray trace.2.xray"
check "child's crash" 1 reads reason=crash says=SIGSEGV fresh
check "crash after it" 2 reads reason=crash says="process $TARGET_PID (flight)" fresh

# A burst of triggers: one dump at a time, the other triggers are counted; the newest two dumps are kept.
start_flight "--threads=2" --flight-recorder 256K --trigger busy@entry --dump-interval 0.2 --dumps 2
# until the store has been overwritten, then two more dumps
wait_for used_cpu "$TARGET_PID" $(($(cpu_ticks "$TARGET_PID") + 150))
number=$(grep -c '^kxray: wrote ' "$TMP/rec.err")
assert "storm: dumps continue" "$(cat "$TMP/rec.err")" wait_for wrote $((number + 3))
stop_flight
number=$(json "$TMP/rec.json" 'd["dumps"]')
# the dump at the end may have no trigger, and then it evicts none
caught=$number
case $(grep '^kxray: wrote ' "$TMP/rec.err" | tail -n 1) in
*"(end: "*) caught=$((number - 1)) ;;
esac
assert_eq "storm: the newest stay" "$(dumps)" \
	"$(for i in $((caught - 1)) $(seq "$caught" "$number"); do echo "trace.$i.xray"; done | sort | paste -sd ' ')"
assert_eq "storm: kept" "$(json "$TMP/rec.json" 'd["dumps_kept"]')" $((number - caught + 2))
assert "storm: merged" "$(cat "$TMP/rec.json")" [ "$(json "$TMP/rec.json" 'd["triggers_merged"]')" -gt 1000 ]
check "storm" "$((caught - 1))" reads reason=entry fresh cut
end_flight_target

# What a trigger caught is not evicted by dumps on request, nor by the one at the end.
start_flight "--threads=1" --flight-recorder 1M --trigger rare@entry --dump-interval 0.1 --dumps 1
go_target r
assert "eviction: entry" "$(cat "$TMP/rec.err")" wait_for wrote 1
for i in 2 3; do
	kill -USR1 "$KX_PID"
	assert "eviction: SIGUSR1 $i" "$(cat "$TMP/rec.err")" wait_for wrote $i
done
stop_flight
assert_eq "eviction: the trigger's and the newest other dump stay" "$(dumps)" "trace.1.xray trace.4.xray"
assert_eq "eviction: kept" "$(json "$TMP/rec.json" 'd["dumps"], d["dumps_kept"]')" "(4, 2)"
check "eviction" 1 reads reason=entry entered=rare
end_flight_target

# Constant memory under load: all of it is allocated at the start.
start_flight "--threads=2 --load=0" --flight-recorder 1M
rss() { awk '/^VmRSS/ { print $2 }' "/proc/$KX_PID/status"; }
wait_for used_cpu "$TARGET_PID" $(($(cpu_ticks "$TARGET_PID") + 150))
before=$(rss)
kill -USR1 "$KX_PID"
assert "load: SIGUSR1" "$(cat "$TMP/rec.err")" wait_for wrote 1
wait_for used_cpu "$TARGET_PID" $(($(cpu_ticks "$TARGET_PID") + 200))
kill -USR1 "$KX_PID"
assert "load: SIGUSR1 again" "$(cat "$TMP/rec.err")" wait_for wrote 2
assert_between "load: memory is constant (KiB)" "$(rss)" $((before / 2)) $((before + 4096))
stop_flight
assert "load: the store was overwritten" "$(cat "$TMP/rec.json")" \
	[ "$(json "$TMP/rec.json" 'd["events"] * 32 > 2 * d["store_bytes"]')" = True ]
check "load" 1 reads fresh cut
check "load, again" 2 reads fresh cut
end_flight_target

# On a full disk the dump fails, recording continues, and the failure is reported at the end.
mkdir "$TMP/disk"
if mount -t tmpfs -o size=256k none "$TMP/disk"; then
	kept=$TRACE
	TRACE=$TMP/disk/trace.xray
	start_flight "--threads=2" --flight-recorder 2M
	worked 500
	kill -USR1 "$KX_PID"
	failed() { grep -q '^kxray: dump 1 (signal: SIGUSR1) could not be written: .*No space left on device; nothing of it is kept$' "$TMP/rec.err"; }
	assert "full disk: message" "$(cat "$TMP/rec.err")" wait_for failed
	assert_eq "full disk: nothing is left" "$(ls "$TMP/disk")" ''
	mount -o remount,size=64m "$TMP/disk"
	kill -USR1 "$KX_PID"
	assert "full disk: the next one" "$(cat "$TMP/rec.err")" wait_for wrote 1
	stop_flight
	assert_eq "full disk: status" "$STATUS" 1
	assert_contains "full disk: message at the end" "$(tail -n 1 "$TMP/rec.err")" "No space left on device; nothing of it is kept"
	check "full disk: the next one" 2 reads reason=signal
	end_flight_target
	umount "$TMP/disk"
	TRACE=$kept
else
	skip "full disk" "no tmpfs can be mounted here"
fi

# Usage errors: one sentence, status 2, no file.
rm -f "$TMP"/trace.*
wrong() { # LABEL PART OPTION...
	local label=$1 part=$2
	shift 2
	run "$KXRAY" record -o "$TRACE" -p $$ "$@"
	assert_eq "$label: status" "$STATUS" 2
	assert_contains "$label" "$ERR" "$part"
}
wrong "no condition" "has no condition" --flight-recorder 1M --trigger f
wrong "no unit" "needs a unit" --flight-recorder 1M --trigger 'f>10'
wrong "no function" "names no function" --flight-recorder 1M --trigger '>10ms'
wrong "no time at all" "is not between" --flight-recorder 1M --trigger 'f>0ms'
wrong "kernel function" "of the kernel" --flight-recorder 1M --trigger 'kernel:tcp_*>1ms'
wrong "trigger without recorder" "add --flight-recorder" --trigger 'f>10ms'
wrong "dumps without recorder" "add --flight-recorder" --dumps 3
wrong "no size" "takes bytes" --flight-recorder much
wrong "small size" "64K at least" --flight-recorder 1K
wrong "no dumps" "takes 1 to" --flight-recorder 1M --dumps 0
wrong "no seconds" "takes a time" --keep 0
wrong "no interval" "takes a time" --keep 1 --dump-interval -1

start_target flight
TARGET_PID=$PID
failing() { # LABEL PART OPTION...
	local label=$1 part=$2
	shift 2
	run "$KXRAY" record -o "$TRACE" -p "$TARGET_PID" "$@"
	assert_eq "$label: status" "$STATUS" 1
	assert_contains "$label" "$ERR" "$part"
	assert_eq "$label: nothing is left" "$(cd "$TMP" && echo trace.*)" 'trace.*'
}
failing "unknown function" "maybe_slow" -f busy --flight-recorder 1M --trigger 'maybe_slo>1ms'
failing "left out" "no function that is traced" -f '*' -x rare --flight-recorder 1M \
	--trigger 'rare@entry'
failing "no exits" "fires when a call ends" -f busy --exits=none --flight-recorder 1M \
	--trigger 'busy>1ms'
failing "too large" "smaller --flight-recorder" -f busy --flight-recorder 16G
failing "no such folder" "No such file" -f busy --flight-recorder 1M -o "$TMP/no/where.xray"
end_flight_target
