#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 14 s
# A process executes one program after the other while kxray attaches to it: the recording begins and ends with status 0.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

cat >"$TMP/chain" <<'END'
#!/bin/bash
# executes itself 20 times and waits for the end of its input
if [ "${1:-0}" -lt 20 ]; then exec "$0" $((${1:-0} + 1)); fi
echo last
read -r _
END
chmod +x "$TMP/chain"

# attach_to_chain LABEL [OPTION...]
attach_to_chain() {
	local label=$1
	shift
	rm -f "$TMP/chain.in"
	mkfifo "$TMP/chain.in"
	exec {TARGET_IN}<>"$TMP/chain.in"
	: >"$TMP/chain.out"
	"$TMP/chain" <"$TMP/chain.in" >"$TMP/chain.out" &
	TARGET_PID=$!
	_pids+=("$TARGET_PID")
	start_kxray "$TARGET_PID" -f 'libc.so*:malloc' "$@"
	wait_for has_text last "$TMP/chain.out"
	echo >&"$TARGET_IN"
	end_target "$TARGET_PID"
	end_kxray
	assert_eq "$label: status" "$STATUS $(grep '^kxray record:' "$TMP/rec.err")" "0 "
}

for i in 1 2 3 4 5 6 7 8; do
	attach_to_chain "attached to a chain of execs, $i"
	attach_to_chain "followed, $i" --follow
done

# Children that are looked at while they execute a program are not taken for programs that run elsewhere than in their files.
cat >"$TMP/children" <<'END'
i=0
while [ $i -lt 300 ]; do
	ls / >/dev/null
	i=$((i + 1))
done
END
TRACE=$TMP/children.xray
run "$KXRAY" record --follow -f 'libc.so*:malloc' -o "$TRACE" -- sh "$TMP/children"
assert_eq "300 children: status" "$STATUS" 0
assert_eq "300 children: none is said to run elsewhere" "$(grep 'does not run its code' <<<"$ERR")" ""
