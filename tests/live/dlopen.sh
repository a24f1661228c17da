#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 31 s
# A C program that loads a C++ plugin while it is traced: return probes are harmless when the recording
# starts, but not when the plugin throws.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# With --follow, return probes are disabled separately in each library.
in_growing="functions of dlopener that make calls lose their return probes"
functions=(-f before_load -f visit -f through -f 'spin_*')
changed="plugin.so has exception tables now: functions that make calls lose their return probes"

# attached MECHANISM [OPTION]: kxray attaches; the target loads the plugin, then works
attached() {
	local changed=$changed
	[ "${2:-}" = --follow ] && changed=$in_growing
	start_target dlopener "$TARGETS/plugin.so"
	TARGET_PID=$PID
	start_kxray "$PID" "${functions[@]}" --mechanism "$1" ${2:+"$2"}
	go_target l
	wait_for has_text loaded "$TMP/dlopener.out" || fail "$*, by PID: load" "not done"
	# Return probes are disabled when the plugin is loaded, or not used at all if the kernel cannot hold
	# them back until kxray has examined a new library.
	if grep -q 'expensive exits' "$TMP/rec.err"; then
		assert "$*, by PID: it takes return probes" "$(cat "$TMP/rec.err")" \
			test "$1" != session
	else
		wait_for grep -qF "$changed" "$TMP/rec.err"
		assert_contains "$*, by PID: it says that the exits changed" \
			"$(cat "$TMP/rec.err")" "$changed"
	fi
	go_target g
	end_target "$TARGET_PID"
	TARGET_STATUS=$STATUS
	end_kxray
	tail -n 1 "$TMP/dlopener.out" >"$TMP/did.json"
	assert_eq "$*, by PID: statuses" "$STATUS $TARGET_STATUS" "0 0"
	expect "$*, by PID" report account fdr entered
}

# at_once MECHANISM: the plugin throws as soon as it is loaded
at_once() {
	TARGET_ARGS=$TARGETS/plugin.so trace_command dlopener "${functions[@]}" --mechanism "$1"
	assert_eq "$1, at once: the target's status" "$STATUS" 0
	if [ "$STATUS" = 0 ]; then expect "$1, at once" report account fdr entered; fi
}

for mechanism in session multi single; do
	run "$KXRAY" record -o "$TRACE" --mechanism "$mechanism" -f main -- "$TARGETS/counts" --start=now
	if [ "$STATUS" != 0 ]; then
		skip "mechanism $mechanism" "$ERR"
		continue
	fi
	attached $mechanism
	attached $mechanism --follow
	for _ in 1 2 3; do
		at_once $mechanism
	done
done
