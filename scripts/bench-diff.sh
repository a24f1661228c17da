#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Measures kxray diff of two traces of 4 million events, of 60 functions and of 200,000:
#     scripts/bench-diff.sh
# Needs a built $BUILD (default build) with its tests, 200 MB in $TMPDIR. About half a minute.
#
# CPU time of ROUNDS runs, user and system together; report of one of the traces beside it.
set -u

cd "$(dirname "$0")/.." || exit 1
. scripts/bench-common.sh
ROUNDS=${ROUNDS:-5}
EVENTS=${EVENTS:-4000000}

MAKE_TRACE=$BUILD/tests/make_trace
[ -x "$MAKE_TRACE" ] || die "$MAKE_TRACE is missing; run 'make tests'"
bench_folder
trap 'rm -rf "$TMP"' EXIT

echo "kxray bench: diff of two traces of $EVENTS events, 4 threads; median of $ROUNDS runs"
echo
printf '%-4s  %-52s %9s %-3s %-11s %s\n' "" "what" "measured" "" "target" "least to greatest; absolute"
for functions in 60 200000; do
	for trace in a b; do
		"$MAKE_TRACE" write "$TMP/$trace.xray" "$EVENTS" 4 "$functions" || die "the trace cannot be made"
	done
	used "$KXRAY" diff "$TMP/a.xray" "$TMP/b.xray" >"$TMP/used"
	used "$KXRAY" report "$TMP/a.xray" >"$TMP/report"
	verdict "diff, $functions functions, CPU time" "$(column 1 | median)" "<=" 1.5 s \
		"$(column 1 | least) to $(column 1 | greatest); report: $(cut -d' ' -f1 "$TMP/report" | median) s"
	verdict "diff, $functions functions, memory" "$(column 2 | median | awk '{ printf "%.0f", $1 / 1024 }')" "<=" 256 MiB \
		"$(column 2 | least) to $(column 2 | greatest) KiB"
done
summary
