#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 3 s, without root
# A report of many functions, which several threads print, is the one that a single thread prints.
. "$(dirname "$0")/../lib.sh"

FUNCTIONS=30000
"$BUILD/tests/make_trace" write "$TMP/trace.xray" 400000 3 $FUNCTIONS || fail "the trace" "it cannot be made"
for options in "" --json "--sort name" --by-process "--limit 12289"; do
	# shellcheck disable=SC2086
	"$KXRAY" report $options "$TMP/trace.xray" >"$TMP/several" 2>"$TMP/err"
	# shellcheck disable=SC2086
	taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')" "$KXRAY" report $options "$TMP/trace.xray" >"$TMP/one"
	assert "report $options: the same with one thread" "$(cmp "$TMP/one" "$TMP/several" 2>&1)" \
		cmp -s "$TMP/one" "$TMP/several"
	assert_between "report $options: rows" "$(grep -c 'bench::container::function<' "$TMP/several")" 12289 $FUNCTIONS
done
# A reader that leaves early is no failure.
"$KXRAY" report "$TMP/trace.xray" 2>"$TMP/err" | head -n 3 >"$TMP/head"
assert_eq "report into head" "${PIPESTATUS[0]} $(wc -l <"$TMP/head") $(cat "$TMP/err")" "0 3 "
