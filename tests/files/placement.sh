#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 8 s, without root
# Where exits are recorded at jumps that lead to return instructions: each way through these functions, in objdump's
# disassembly, is recorded exactly once, at the depth that the probe makes up for. Entries are in the straight code at the
# beginning, at their depth. And a checker that finds wrong ones.
. "$(dirname "$0")/../lib.sh"

# places BINARY FILE: what the planner chose there
places() { "$BUILD/tests/placement" --places "$1" >"$2"; }
check() { python3 -S tests/files/placement.py "$@" || fail "$1" "the checker ended with status $?"; }

# checked FILE LEAST: at least so many functions, without a fault; the checker's output is in $out
checked()
{
	out=$TMP/$(basename "$1").out
	echo "# $1: $(tail -n 1 "$out")"
	assert_eq "$1: no fault" "$(grep -v ' functions, ' "$out")" ""
	assert_eq "$1: at least $2 functions" "$(awk -v least="$2" 'END { print ($1 >= least) }' "$out")" 1
}

# with entries behind what the call's arguments are pushed with
crypto=$(ldconfig -p | sed -n 's/.*\blibcrypto\.so\.3 .*x86-64.* => //p' | head -n 1)
libc=$(ldconfig -p | sed -n 's/.*\blibc\.so\.6 .*x86-64.* => //p' | head -n 1)
for file in "$crypto" "$KXRAY"; do
	places "$file" "$TMP/$(basename "$file")"
	check "$file" "$TMP/$(basename "$file")"
done
checked "$crypto" 100
assert_eq "entries behind pushes" "$(sed -n 's/.* returns, \([0-9]*\) entries behind pushes$/\1/p' "$out" | awk '{ print ($1 > 50) }')" 1
checked "$KXRAY" 300

# one disassembly for the right places and all wrong ones
places "$libc" "$TMP/$(basename "$libc")"
wrong=(
	"a wrong depth is found" 's/(exit:[0-9a-f]+:emulated):28:/\1:20:/g' "40 bytes deep, not 32"
	"a wrong depth of an entry is found" 's/^(([^ ]+ ){4})8 /\1 10 /; s/  / /g' "entry's place is 8 bytes deep, not 16"
	"an entry that is not reached straight on" 's/^([^ ]+ [^ ]+) ([^ ]+) [^ ]+/\1 \2 \2/' "the entry's place is behind"
	"a wrong condition" 's/(exit:[0-9a-f]+:emulated:[0-9a-f]+):4/\1:5/g' "returns without an exit"
	"a missing exit" 's/ exit:[0-9a-f]+:emulated:[0-9a-f]+:- (exit:[0-9a-f]+:emulated)/ \1/' "returns without an exit"
	"an exit that comes too early" 's/(exit:[0-9a-f]+:emulated:8):[0-9a-f]/\1:-/g' "more than an epilogue follows an exit"
)
for ((i = 0; i < ${#wrong[@]}; i += 3)); do
	sed -E "${wrong[i + 1]}" "$TMP/$(basename "$libc")" >"$TMP/wrong.$i"
done
check "$libc" "$TMP/$(basename "$libc")" "$TMP"/wrong.*[0-9]
checked "$libc" 500
for ((i = 0; i < ${#wrong[@]}; i += 3)); do
	assert_contains "${wrong[i]}" "$(cat "$TMP/wrong.$i.out")" "${wrong[i + 2]}"
done
