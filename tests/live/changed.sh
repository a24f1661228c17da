#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 5 s
# A library that is loaded while its process is traced and has changed the code of a function before kxray looks at it:
# the function is left out, as a probe would put the file's code back.
# Also what the summary says of libraries that are loaded later.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

for mechanism in session multi; do
	run "$KXRAY" record -o "$TRACE" --mechanism $mechanism -f main -- "$TARGETS/counts" --start=now
	if [ "$STATUS" != 0 ]; then
		skip "mechanism $mechanism" "$ERR"
		continue
	fi
	start_target changed "$TARGETS/changeplug.so"
	TARGET_PID=$PID
	start_kxray "$TARGET_PID" --follow -f 'changeplug.so:plug_*' --mechanism=$mechanism
	# so that it looks after the library has changed itself
	kill -STOP "$KX_PID"
	go_target
	wait_for has_text loaded "$TMP/changed.out" || fail "$mechanism: the library" "it was not loaded"
	kill -CONT "$KX_PID"
	wait_for has_text "more function" "$TMP/rec.err" || fail "$mechanism: its functions" "$(cat "$TMP/rec.err")"
	go_target
	end_target "$TARGET_PID"
	TARGET_STATUS=$STATUS
	end_kxray
	assert_eq "$mechanism: statuses" "$STATUS $TARGET_STATUS" "0 0"
	assert_eq "$mechanism: the target's answer" "$(tail -n 1 "$TMP/changed.out" | grep -o '"wrong":[0-9]*')" '"wrong":0'
	assert_contains "$mechanism: why it is left out" "$(cat "$TMP/rec.err")" \
		"left out 1 function of changeplug.so (plug_changed): process $TARGET_PID has changed their code"
	run "$KXRAY" report --json "$TRACE"
	cp "$TMP/run.out" "$TMP/report.json"
	assert_eq "$mechanism: the other function's calls" \
		"$(json "$TMP/report.json" '{f["name"]: f["count"] for f in d["functions"]}')" "{'plug_kept': 1000}"
done

# A process that has changed a function joins when the library's functions are traced elsewhere: only its own is left out.
loaded() { # starts a target, which loads the library and waits
	start_target changed "$TARGETS/changeplug.so"
	go_target
	wait_for has_text loaded "$TMP/changed.out" || fail "the library" "it was not loaded"
}
# The library is mapped by one that nobody asks for, so each process gets probes of its own; what that one has changed does not matter.
loaded
bystander=$PID bystander_in=$TARGET_IN
mv "$TMP/changed.out" "$TMP/bystander.out"
export PLUG_KEEP=1 TARGET_NAME=kx-joins
loaded
first=$PID first_in=$TARGET_IN
printf x >&"$first_in"
wait_for has_text renamed "$TMP/changed.out" || fail "the first process" "it was not renamed"
mv "$TMP/changed.out" "$TMP/first.out"
unset PLUG_KEEP
_new_recording
"$KXRAY" record -a --comm kx-joins -f 'changeplug.so:plug_*' -o "$TRACE" --json >"$TMP/rec.json" 2>"$TMP/rec.err" &
KX_PID=$!
_pids+=("$KX_PID")
wait_for _records || fail "-a --comm" "$(cat "$TMP/rec.err")"
loaded
second=$PID
go_target
wait_for has_text "process $second has changed" "$TMP/rec.err" || fail "joining" "$(cat "$TMP/rec.err")"
go_target
end_target "$second"
assert_eq "joining: the second process's status" "$STATUS" 0
assert_eq "joining: its answer" "$(tail -n 1 "$TMP/changed.out" | grep -o '"wrong":[0-9]*')" '"wrong":0'
printf x >&"$first_in"
end_target "$first"
assert_eq "joining: the first process's status" "$STATUS" 0
printf x >&"$bystander_in"
end_target "$bystander"
assert_eq "joining: the bystander's status" "$STATUS" 0
kill -INT "$KX_PID"
end_kxray
assert_contains "joining: why it is left out" "$(cat "$TMP/rec.err")" \
	"left out 1 function of changeplug.so (plug_changed): process $second has changed their code"
assert_eq "joining: left out nowhere else" "$(grep -c 'left out 1 function' "$TMP/rec.err")" 1
assert_eq "joining: no probe is missing" "$(json "$TMP/rec.json" 'd.get("unprobed")')" None
run "$KXRAY" report --json "$TRACE"
cp "$TMP/run.out" "$TMP/report.json"
assert_eq "joining: the first process's calls" \
	"$(json "$TMP/report.json" '{f["name"]: f["count"] for f in d["functions"]}["plug_changed"]')" 1000

# A summary without events says that a library was loaded, only if one was.
late="a library was loaded meanwhile"
unset TARGET_NAME
start_target changed "$TARGETS/changeplug.so"
start_kxray "$PID" --follow -f 'changeplug.so:plug_never*'
go_target
wait_for has_text loaded "$TMP/changed.out" || fail "loaded later: the library" "it was not loaded"
go_target
end_target "$PID"
end_kxray
assert_contains "loaded later: said" "$(cat "$TMP/rec.err")" "$late"
start_target sleeper
start_kxray "$PID" --follow -f 'changeplug.so:plug_never*'
kill -INT "$KX_PID"
end_kxray
assert_eq "nothing loaded: 0 events, nothing said" "$STATUS $(grep -c " 0 events" "$TMP/rec.err") $(grep -c "$late" "$TMP/rec.err")" "0 1 0"
