#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 3 s, without root
# kxray-json(7) has every field that the commands print for trace files and binaries, with its type.
# ../live/json_fields.sh does the same with recordings.
. "$(dirname "$0")/../lib.sh"
PAGE=$BUILD/man/kxray-json.7
TRACE=$TMP/trace.xray

# printed SECTION COMMAND...: writes its JSON to $TMP/SECTION.N
printed() {
	local section=$1
	shift
	run "$@"
	[ "$STATUS" = 0 ] || fail "$*" "$ERR"
	cp "$TMP/run.out" "$TMP/$section.$((++N))"
}
N=0
"$BUILD/tests/make_trace" write "$TRACE" 4000 5 60 60 || fail "make_trace" "status $?"
name=$("$KXRAY" report --json "$TRACE" | python3 -c 'import json, sys
print(json.load(sys.stdin)["functions"][0]["name"])')
printed REPORT "$KXRAY" report --json "$TRACE"
for key in process thread name cpu module; do
	printed REPORT "$KXRAY" report --json --by $key "$TRACE"
done
printed REPORT "$KXRAY" report --json --tree "$TRACE"
for view in --callers --callees --histogram "--slowest 3"; do
	# shellcheck disable=SC2086
	printed REPORT "$KXRAY" report --json $view "$name" "$TRACE"
done
# B has other functions and more calls.
"$BUILD/tests/make_trace" write "$TMP/b.xray" 40000 5 70 70 || fail "make_trace" "status $?"
printed DIFF "$KXRAY" diff --json "$TRACE" "$TMP/b.xray"
printed FUNCTIONS "$KXRAY" functions --json -f '*' "$TARGETS/counts"
printed FUNCTIONS "$KXRAY" functions --json -f 'usdt:*' "$TARGETS/usdt"
printed FUNCTIONS "$KXRAY" functions --json --in-process -f '*' "$TARGETS/counts"
printed EXPORT "$KXRAY" export --list --json
printed DUMP "$KXRAY" dump --json "$TRACE"
# Two hosts, of which one has calls of each function of a pair
for host in a b; do
	cp "$TRACE" "$TMP/$host.host.xray"
	cp "$TRACE.map" "$TMP/$host.host.xray.map"
	python3 tests/edit_session.py "$TMP/$host.host.xray.map" "s['host'] = {'name': '$host'}" \
		"clocks(s, 2000000000, [(1000, 10**9, 10**18), (1000000000, 2 * 10**9, 10**18 + 10**9)])"
done
printed REPORT "$KXRAY" report --json --by host "$TMP/a.host.xray" "$TMP/b.host.xray"
for host in a b; do
	cp "$TMP/$host.host.xray" "$TMP/$host.again.xray"
	cp "$TMP/$host.host.xray.map" "$TMP/$host.again.xray.map"
done
printed DIFF "$KXRAY" diff --json --by host "$TMP"/{a,b}.host.xray "$TMP"/{b,a}.again.xray
printed MERGE "$KXRAY" merge --json -o "$TMP/merged.tar" "$TMP/a.host.xray" "$TMP/b.host.xray"
for section in REPORT DIFF FUNCTIONS EXPORT MERGE DUMP; do
	assert_eq "$section: fields are as the page says" \
		"$(python3 tests/json_fields.py "$PAGE" $section "$TMP/$section".* 2>&1)" ""
done
assert_eq "EXPORT: the page has no other fields" \
	"$(python3 tests/json_fields.py --seen "$PAGE" EXPORT "$TMP/EXPORT".* 2>&1)" ""

# The check can fail.
sed '/^\.BR shape /s/shape/form/; /^\.BR functions\[\]\.count /s/integer/string/' "$PAGE" >"$TMP/page"
assert_eq "a missing field and a wrong type are found" \
	"$(python3 tests/json_fields.py "$TMP/page" REPORT "$TMP/REPORT".* 2>&1 | sed 's/is [0-9]*,/is N,/' | sort -u)" \
	"REPORT: functions[].count is N, not string
REPORT: groups[].functions[].count is N, not string
REPORT: processes[].functions[].count is N, not string
REPORT: shape is not in the page"
for top in '{"name": "x"}' '[{"schema": 1}, {"schema": 2}]'; do
	echo "$top" >"$TMP/top"
	assert_contains "no schema in $top" "$(python3 tests/json_fields.py "$PAGE" EXPORT "$TMP/top" 2>&1)" 'no "schema": 1'
done
