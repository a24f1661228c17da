#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Makes pictures of the page of `kxray export -f html` in tests/screens: the timeline of the demo server, recorded with its
# system calls and the scheduler, and the table of a million events of make_trace, dark.
#     scripts/screens-html.sh [FOLDER]      default: tests/screens
# Needs root, chromium, and built tests (`make tests`) in $BUILD (default build).
set -eu
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-tests/screens}")
build=$(realpath "${BUILD:-build}")
tmp=$(mktemp -d)
server=
finish() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || :
	rm -rf "$tmp"
}
trap finish EXIT
mkdir -p "$out"

# picture NAME PAGE HASH [OPTION...]: the page as a browser with a window of 1,360 x 640 shows it
picture() {
	local name=$1 page=$2 hash=$3
	shift 3
	chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
		--disable-component-update --disable-sync --user-data-dir="$tmp/chromium" --hide-scrollbars \
		--window-size=1360,640 --virtual-time-budget=20000 "$@" --screenshot="$out/$name.png" \
		"file://$page#$hash" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
}

cp "$build/tests/targets/demo" "$tmp"
cd "$tmp"
./demo >"$tmp/demo.out" &
server=$!
until grep -q ready "$tmp/demo.out"; do
	kill -0 "$server" && sleep 0.05
done
"$build/kxray" record -p "$server" -f '*' -f 'syscall:*' --sched -d 3 -o "$tmp/demo.xray"
"$build/kxray" export -f html -o "$tmp/demo.html" "$tmp/demo.xray"
picture page-timeline "$tmp/demo.html" 'timeline&function=handle_request&range=1500000000-1512000000'

"$build/tests/make_trace" write "$tmp/million.xray" 1000000 8 200 150
"$build/kxray" export -f html -o "$tmp/million.html" "$tmp/million.xray"
picture page-flame "$tmp/million.html" 'flame&search=function<1' --blink-settings=preferredColorScheme=0
ls -l "$out"/page-*.png
