#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 1 s, without root
# The order of the source tree: no room uses a higher one, no circles, no file of 500 lines or more, no function of 60.
. "$(dirname "$0")/../lib.sh"

run scripts/check-layers.sh
assert_eq "rooms use only lower rooms" "$STATUS $(sed 's/:.*//' <<<"$OUT")" "0 ok layers"
[ "$STATUS" = 0 ] || printf '%s\n' "$OUT"

# An include of a higher room, and two files that include each other, must be found.
tree=$TMP/tree
mkdir -p "$tree/scripts" "$tree/user/base" "$tree/user/trace" "$tree/exporters" "$tree/build/user/base"
cp scripts/check-layers.sh "$tree/scripts/"
echo '#include "trace/high.h"' >"$tree/user/base/low.h"
echo '#include "trace/other.h"' >"$tree/user/trace/high.h"
echo '#include "trace/high.h"' >"$tree/user/trace/other.h"
printf 'int b(void);\nint a(void) { return b(); }\n' >"$tree/user/base/a.c"
printf 'int b(void) { return 0; }\n' >"$tree/user/base/b.c"
for f in a b; do ${CC:-gcc} -c -o "$tree/build/user/base/$f.o" "$tree/user/base/$f.c"; done
run env BUILD=build "$tree/scripts/check-layers.sh"
assert_eq "a wrong tree is refused" "$STATUS" 1
assert_contains "an include that runs up" "$OUT" "runs up: base/low.h includes trace/high.h"
assert_contains "a circle" "$OUT" "circle: trace/high.h trace/other.h"

of_tree() { find bpf user exporters tests scripts -name "$1" ! -path 'tests/fuzz/corpus/*' -print0; }
long=$(for kind in '*.[ch]' '*.cpp' '*.sh' '*.py'; do of_tree "$kind"; done | xargs -0 wc -l | awk '$2 != "total" && $1 >= 500 { print $2 ": " $1 }')
assert_eq "files have fewer than 500 lines" "$long" ''
long=$(of_tree '*.[ch]' | xargs -0 awk '/^{$/ { start = FNR } /^}/ && start { if (FNR - start > 60) print FILENAME ":" start ": " FNR - start - 1; start = 0 }')
assert_eq "functions have fewer than 60 lines" "$long" ''
