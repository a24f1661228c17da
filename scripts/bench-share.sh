#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What part of the functions of some libraries have a cheap entry, one that is not single-stepped, with return probes and without, and why
# the others have none.
# Called by scripts/bench.sh; needs root and a built $BUILD with its tests. Prints a table, then lines "bench ...".
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/bench-common.sh
[ -x "$KXRAY" ] || die "$KXRAY is missing; run 'make'"
bench_folder
trap 'rm -rf "$TMP"' EXIT

# most PATH EXITS: what part of its functions can have a cheap entry at all, by the table in $TMP/placement
most()
{
	awk -v path="$1:" -v column="$([ "$2" = return ] && echo 1 || echo 2)" '
		/^[^ ]/ { here = $1 == path }
		here && /at most, as this kernel emulates/ { sub(/.*emulates: /, ""); split($0, p, / % /)
			match(p[column], /[0-9.]+$/); share = substr(p[column], RSTART)
			match($0, /[0-9]+ of [0-9]+ functions/); none = substr($0, RSTART); sub(/ .*/, "", none); getline
			match($0, /[0-9]+ more/); frame = substr($0, RSTART); sub(/ .*/, "", frame)
			printf "; at most %s %%: %d have no emulated instruction in the straight code at their beginning", share, none
			if (column == 1) printf ", %d none before their frame is taken", frame }' "$TMP/placement"
}

# share NAME LIMIT PATH EXITS: the percentage of functions whose entry is not single-stepped
share()
{
	local all cheap
	if [ -z "$3" ] || ! "$KXRAY" functions -f '*' --max-functions 1000000 --exits="$4" --json "$3" \
		>"$TMP/functions" 2>"$TMP/tool.err"; then
		cannot "cheap entries, $1, --exits=$4" "${3:-not installed} $(tail -n 1 "$TMP/tool.err" 2>/dev/null)"
		return
	fi
	all=$(grep -c '"cost":' "$TMP/functions")
	cheap=$(grep -cE '"cost": "(nop5|emulated)"' "$TMP/functions")
	verdict "functions with a cheap entry, $1, --exits=$4" \
		"$(awk -v a="$cheap" -v b="$all" 'BEGIN { printf "%.1f", 100 * a / b }')" ">=" "$2" % \
		"$cheap of $all in $3$(most "$3" "$4")"
}

library() { ldconfig -p | sed -n "s/.*\b$1 .*x86-64.* => //p" | head -n 1; }

printf '%-4s  %-52s %9s %-3s %-11s %s\n' "" "what" "measured" "" "target" "least to greatest; absolute"
python=$(library 'libpython3[0-9.]*\.so\.1\.0')
if [ -z "$python" ]; then
	python=$(readlink -f "$(command -v python3)")
fi
: >"$TMP/placement"
[ ! -x "$BUILD/tests/placement" ] ||
	"$BUILD/tests/placement" "$(library 'libc\.so\.6')" "$python" "$(library 'libstdc++\.so\.6')" \
		"$(library 'libcrypto\.so\.3')" >"$TMP/placement"
# Return probes need the stack pointer as it was at entry; without them the probe may be behind `sub $n,%rsp`. auto, in
# a program without exceptions, gives them up where that pays.
for exits in return auto none; do
	share libc 80 "$(library 'libc\.so\.6')" $exits
	share "$(basename "${python:-python3}")" 86 "$python" $exits
	share libstdc++ 85 "$(library 'libstdc++\.so\.6')" $exits
	share libcrypto 75 "$(library 'libcrypto\.so\.3')" $exits
done
if [ -s "$TMP/placement" ]; then
	sed 's/^/# /' "$TMP/placement"
else
	cannot "why entries and exits are single-stepped" "$BUILD/tests/placement is not built (make tests)"
fi
summary
