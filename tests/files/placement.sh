#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 8 s, without root
# Where exits are recorded at jumps that lead to return instructions: each way through these functions, in objdump's
# disassembly, is recorded exactly once, at the depth that the probe makes up for. Entries are in the straight code at the
# beginning, at their depth. And a checker that finds wrong ones.
. "$(dirname "$0")/../lib.sh"

check() { python3 -S tests/files/placement.py "$@" 2>&1; }

# checked FILE LEAST: at least so many functions, without a fault
checked()
{
	"$BUILD/tests/placement" --places "$1" >"$TMP/places"
	check "$1" <"$TMP/places" >"$TMP/out"
	echo "# $1: $(tail -n 1 "$TMP/out")"
	assert_eq "$1: no fault" "$(grep -v ' functions, ' "$TMP/out")" ""
	assert_eq "$1: at least $2 functions" "$(awk -v least="$2" 'END { print ($1 >= least) }' "$TMP/out")" 1
}

# with entries behind what the call's arguments are pushed with
checked "$(ldconfig -p | sed -n 's/.*\blibcrypto\.so\.3 .*x86-64.* => //p' | head -n 1)" 100
assert_eq "entries behind pushes" "$(sed -n 's/.* returns, \([0-9]*\) entries behind pushes$/\1/p' "$TMP/out" | awk '{ print ($1 > 50) }')" 1
libc=$(ldconfig -p | sed -n 's/.*\blibc\.so\.6 .*x86-64.* => //p' | head -n 1)
checked "$libc" 500
checked "$KXRAY" 300

"$BUILD/tests/placement" --places "$libc" >"$TMP/places"
wrong() { sed -E "$2" "$TMP/places" | check "$libc" >"$TMP/out"; assert_contains "$1" "$(cat "$TMP/out")" "$3"; }
wrong "a wrong depth is found" 's/(exit:[0-9a-f]+:emulated):28:/\1:20:/g' "40 bytes deep, not 32"
wrong "a wrong depth of an entry is found" 's/^(([^ ]+ ){4})8 /\1 10 /; s/  / /g' "entry's place is 8 bytes deep, not 16"
wrong "an entry that is not reached straight on" 's/^([^ ]+ [^ ]+) ([^ ]+) [^ ]+/\1 \2 \2/' "the entry's place is behind"
wrong "a wrong condition" 's/(exit:[0-9a-f]+:emulated:[0-9a-f]+):4/\1:5/g' "returns without an exit"
wrong "a missing exit" 's/ exit:[0-9a-f]+:emulated:[0-9a-f]+:- (exit:[0-9a-f]+:emulated)/ \1/' "returns without an exit"
wrong "an exit that comes too early" 's/(exit:[0-9a-f]+:emulated:8):[0-9a-f]/\1:-/g' "more than an epilogue follows an exit"
