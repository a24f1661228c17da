#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 2 s, without root
# kxray-flight@.service: systemd accepts each line, its exposure as systemd rates it is bounded, its example and default
# are valid options of record; the script that it starts.
. "$(dirname "$0")/../lib.sh"

# Of its own: other tests install with another PREFIX.
unit=$TMP/kxray-flight@.service
sed 's,@LIBEXECDIR@,/usr/local/lib/kxray,' exporters/fleet/kxray-flight@.service.in >"$unit"
for shell in dash bash; do
	if command -v $shell >/dev/null; then
		for script in exporters/fleet/flight exporters/fleet/push; do
			run $shell -n "$script"
			assert_eq "$script is a script of $shell" "$STATUS $ERR" "0 "
		done
	fi
done
run exporters/fleet/flight
assert_eq "flight without a name" "$STATUS $(wc -l <"$TMP/run.err")" "2 1"

# The options in the unit and in its comment, as kxray parses them
grep -oE 'KXRAY_OPTIONS="?=?[^"]*"?' "$unit" | sed -E 's/^KXRAY_OPTIONS=?"?=?//; s/"$//' | grep -v '^$' |
	sed 's/^/kxray record -p 1 /' >"$TMP/lines"
assert_eq "options in the unit" "$(wc -l <"$TMP/lines")" 2
run python3 tests/files/command_lines.py "$KXRAY" "$TMP/lines"
assert_eq "they are valid" "$STATUS $ERR" "0 "

if ! command -v systemd-analyze >/dev/null; then
	skip "systemd" "systemd-analyze is not installed"
	exit
fi
# verify wants the program to be there
mkdir "$TMP/unit"
sed "s,^ExecStart=[^ ]*,ExecStart=$PWD/exporters/fleet/flight," "$unit" >"$TMP/unit/kxray-flight@.service"
export SYSTEMD_LOG_LEVEL=warning SYSTEMD_UNIT_PATH="$TMP/unit:"
run systemd-analyze verify --man=no "$TMP/unit/kxray-flight@redis-server.service"
assert_eq "systemd accepts it" "$STATUS $OUT$ERR" "0 "
sed 's/^ProtectHostname=/&may/; s/^Restart=/&some/' "$unit" >"$TMP/unit/kxray-flight@.service"
run systemd-analyze verify --man=no "$TMP/unit/kxray-flight@redis-server.service"
assert_contains "and finds a wrong line" "$OUT$ERR" "Failed to parse boolean value, ignoring: mayyes"
cp "$unit" "$TMP/unit/kxray-flight@x.service"
# 10 is the most exposed; of its 2.4 points most are for the network, of --on-dump, and for CAP_SYS_PTRACE
run systemd-analyze security --offline=yes --threshold=25 --no-pager "$TMP/unit/kxray-flight@x.service"
assert_contains "its exposure is rated" "$OUT" "Overall exposure level"
assert_eq "its exposure is at most 2.5" "$STATUS" 0
