#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 2 s, without root
# `kxray functions --in-process` says the same in its table, in JSON and in its summary, and names the reasons of refused functions and binaries.
. "$(dirname "$0")/../lib.sh"

# 3 functions: the second has nothing behind its first instruction, in the third a branch lands there.
cat >"$TMP/three.s" <<'ASM'
	.macro fn name
	.globl \name
	.type \name,@function
\name:
	.cfi_startproc
	.endm
	.macro end name
	.cfi_endproc
	.size \name,.-\name
	.endm
	.text
fn fits
	mov %edi,%eax
	add $1,%eax
	ret
end fits
	.skip 16,0xcc
fn jumps
	jmp *%rdi
end jumps
	.skip 16,0xcc
fn turns
	xor %eax,%eax
1:	add %edi,%eax
	dec %edi
	jne 1b
	ret
end turns
	.section .note.GNU-stack,"",@progbits
ASM
${CC:-gcc} -shared -nostdlib -o "$TMP/three.so" "$TMP/three.s" || fail "three.so" "status $?"

run "$KXRAY" functions --in-process --json -f 'three.so:*' "$TMP/three.so"
assert_eq "JSON: status" "$STATUS" 0
assert_eq "JSON: the answers" "$(python3 -c 'import json, sys
for f in json.load(sys.stdin): print(f["name"], f["in_process"], sep=": ")' <"$TMP/run.out")" \
	"fits: yes
jumps: it begins with a branch, call or return
turns: a branch lands in the 5 bytes behind its first instruction"
assert_contains "JSON: summary" "$ERR" "three.so: 1 of 3 functions can be recorded in process"

run "$KXRAY" functions --in-process --wide -f 'three.so:*' "$TMP/three.so"
assert_eq "table: the column" "$(awk '{ print $3, $7 }' <<<"$OUT" | sed 1d)" "yes fits
no jumps
no turns"
assert_contains "table: the reason" "$OUT" "jumps [three.so]: it begins with a branch, call or return"
assert_contains "table: summary" "$ERR" "three.so: 1 of 3 functions can be recorded in process"

run "$KXRAY" functions -f 'three.so:*' "$TMP/three.so"
assert_eq "not without the option" "$(grep -ciE 'in.process' <<<"$OUT$ERR")" 0

run "$KXRAY" functions --in-process --json -f '*' tests/fuzz/corpus/elf/xray
assert_eq "a binary that is refused: its functions" "$(python3 -c 'import json, sys
print(*{f["in_process"] for f in json.load(sys.stdin)}, sep="\n")' <"$TMP/run.out")" "it has XRay sleds, which it may patch itself"
assert_contains "a binary that is refused: summary" "$ERR" "functions can be recorded in process: it has XRay sleds, which it may patch itself"

# A table that cannot be written: no reason that is another call's.
"$KXRAY" functions -f '*' "$KXRAY" >/dev/full 2>"$TMP/full.err"
assert_eq "a full disk" "$? $(tail -n 1 "$TMP/full.err")" "1 kxray: cannot write to standard output"
