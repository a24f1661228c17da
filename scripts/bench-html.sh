#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Measures export -f html on generated traces: megabytes of trace a second, size of the page, and how much longer Chromium
# takes to start, read and draw it than an empty page.
#     scripts/bench-html.sh
# Needs a built $BUILD (default build) with tests, chromium, python3. A minute; no root.
set -u

cd "$(dirname "$0")/.." || exit 1
. scripts/bench-common.sh
ROUNDS=${ROUNDS:-5}
[ -x "$BUILD/tests/make_trace" ] || die "$BUILD/tests/make_trace is missing; run 'make tests'"
command -v chromium >/dev/null || die "chromium is missing; run 'scripts/setup.sh test'"
bench_folder
trap 'rm -rf "$TMP"' EXIT

# seconds COMMAND...: the median time of ROUNDS runs
seconds()
{
	local i
	for ((i = 0; i < ROUNDS; i++)); do
		python3 -c 'import subprocess, sys, time
start = time.monotonic()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
print("%.4f" % (time.monotonic() - start))' "$@"
	done | median
}
open_page()
{
	seconds chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
		--disable-component-update --disable-sync --user-data-dir="$TMP/chromium" --virtual-time-budget=20000 \
		--window-size=1440,900 --screenshot="$TMP/shot.png" "$1"
}

echo '<!doctype html><title>empty</title>' >"$TMP/empty.html"
empty=$(open_page "file://$TMP/empty.html")
printf '%-44s %9s %9s %9s %9s\n' trace 'trace MB' 'MB/s' 'page MB' 'opens in s'
# measure NAME EVENTS THREADS FUNCTIONS [STACKS]
measure()
{
	local name=$1 export_seconds page
	shift
	"$BUILD/tests/make_trace" write "$TMP/trace.xray" "$@" || die "make_trace failed"
	export_seconds=$(seconds "$KXRAY" export -f html -o "$TMP/page.html" "$TMP/trace.xray")
	page=$(open_page "file://$TMP/page.html#timeline")
	awk -v name="$name" -v trace="$(stat -c %s "$TMP/trace.xray")" -v html="$(stat -c %s "$TMP/page.html")" \
		-v s="$export_seconds" -v page="$page" -v empty="$empty" 'BEGIN {
		printf "%-44s %9.1f %9.0f %9.1f %9.2f\n", name, trace / 1e6, trace / 1e6 / s, html / 1e6, page - empty }'
}
measure "1 million events, 150 stacks" 1000000 8 200 150
measure "1 million events, unique stacks" 1000000 8 200
measure "4 million events, 1,000 stacks" 4000000 4 1000 1000
measure "4 million events, unique stacks" 4000000 4 200
measure "16 million events, 1,000 stacks" 16000000 4 1000 1000
