#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 1 s, without root
# kxray-cost(7): the commands beside its figures exist, and it has all kinds of entries and exits.
. "$(dirname "$0")/../lib.sh"
PAGE=$BUILD/man/kxray-cost.7

plain=$(sed 's/\\f[BIR]//g' "$PAGE" | tr -d '\\' | tr '\n' ' ')
scripts=$(grep -oE 'scripts/[a-z-]+\.sh' <<<"$plain" | sort -u)
assert_between "scripts named" "$(wc -l <<<"$scripts")" 7 30
for script in $scripts; do
	assert "$script exists" "it does not" [ -x "$script" ]
done
parts=$(sed -n 's/^#     scripts\/bench.sh//p; s/^#  *\(\[bystander\].*\)/\1/p' scripts/bench.sh | tr -d '[]')
for part in $(grep -oE 'scripts/bench\.sh [a-z]+' <<<"$plain" | cut -d' ' -f2 | sort -u); do
	assert_contains "scripts/bench.sh $part" " $(tr '\n' ' ' <<<"$parts") " " $part "
done
# The kinds that `kxray functions` prints, as its help has them
for kind in nop5 emulated stepped kernel return instruction none; do
	assert "the page has the kind $kind" "it has not" grep -qxF ".B $kind" "$PAGE"
done
assert_eq "and the help has no other costs" \
	"$("$KXRAY" functions --help | grep -oE "'(nop5|emulated|stepped|kernel)'" | sort -u | wc -l)" 4
