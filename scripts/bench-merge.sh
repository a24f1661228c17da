#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Measures kxray merge of ten traces of 4 million events each, and of two of them, in each form:
#     scripts/bench-merge.sh
# Needs a built $BUILD (default build) with its tests, 5 GB in $TMPDIR. About a minute.
#
# CPU time of ROUNDS runs, user and system together, and elapsed time, of which the disk takes its part. Memory is never less
# than that of the python that starts kxray, about 14 MB.
set -u

cd "$(dirname "$0")/.." || exit 1
. scripts/bench-common.sh
ROUNDS=${ROUNDS:-3}
EVENTS=${EVENTS:-4000000}
TRACES=10

MAKE_TRACE=$BUILD/tests/make_trace
[ -x "$MAKE_TRACE" ] || die "$MAKE_TRACE is missing; run 'make tests'"
bench_folder
trap 'rm -rf "$TMP"' EXIT

traces=()
for ((n = 0; n < TRACES; n++)); do
	"$MAKE_TRACE" write "$TMP/$n.xray" "$EVENTS" 5 60 60 || die "the trace cannot be made"
	python3 tests/edit_session.py "$TMP/$n.xray.map" "s['host'] = {'name': 'host$n', 'boot_id': '$n'}" \
		"clocks(s, 2000000000, [(1000000, 10**13 + $n, 17 * 10**17), (2001000000, 10**13 + 10**9 + $n, 17 * 10**17 + 10**9)])" ||
		die "the clocks cannot be set"
	traces+=("$TMP/$n.xray")
done

echo "kxray bench: merge of $TRACES traces of $EVENTS events; median of $ROUNDS runs"
echo
printf '%-4s  %-52s %9s %-3s %-11s %s\n' "" "what" "measured" "" "target" "least to greatest; absolute"
used "$KXRAY" merge -q -o "$TMP/out.pftrace" "${traces[@]::2}" >"$TMP/used"
two=$(column 2 | median)
for form in archive perfetto chrome; do
	used "$KXRAY" merge -q -f $form -o "$TMP/out" "${traces[@]}" >"$TMP/used"
	size=$(stat -c %s "$TMP/out")
	rm "$TMP/out"
	verdict "merge -f $form, CPU time" "$(column 1 | median)" "<=" 10 s \
		"$(column 1 | least) to $(column 1 | greatest); elapsed: $(column 3 | median) s; $((size / 1000000)) MB"
	verdict "merge -f $form, memory" "$(column 2 | median | awk '{ printf "%.1f", $1 / 1024 }')" "<=" 16 MiB \
		"$(column 2 | least) to $(column 2 | greatest) KiB; of two traces: $two KiB"
done
summary
