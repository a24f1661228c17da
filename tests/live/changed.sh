#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 2 s
# A library that is loaded while its process is traced and has changed the code of a function before kxray looks at it:
# the function is left out, as a probe would put the file's code back.
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
