#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Writes tests/screens/top-*.txt: kxray top on tmux's terminals of 80 and 200 columns, watching the demo server.
#     sudo scripts/screens-top.sh
# Needs a built $BUILD with its tests (default build) and tmux.
set -eu
cd "$(dirname "$0")/.."
BUILD=$(realpath "${BUILD:-build}")
dir=$(mktemp -d)
"$BUILD/tests/targets/demo" >"$dir/out" 2>&1 &
demo=$!
tmux() { env -u TMUX tmux -S "$dir/tmux" -f /dev/null "$@"; }
cleanup()
{
	tmux kill-server 2>/dev/null || :
	kill "$demo" 2>/dev/null || :
	rm -rf "$dir"
}
trap cleanup EXIT

# shows PATTERN: waits until the screen has it
shows()
{
	local end=$((SECONDS + 60))
	until tmux capture-pane -p | grep -qE -- "$1"; do
		[ $SECONDS -lt $end ] || { echo "screens-top: no '$1' on the screen" >&2 && exit 1; }
		sleep 0.1
	done
}
picture() { tmux capture-pane -p >"tests/screens/top-$1.txt"; }

for columns in 80 200; do
	tmux kill-server 2>/dev/null || :
	tmux new-session -d -x $columns -y 24 env TERM=screen-256color "$BUILD/kxray" top -p "$demo" -f '*' -i 500ms
	shows 'handle_request'
	tmux send-keys 5
	shows '\[P50\]'
	picture "table-$columns"
done
tmux resize-window -x 80 -y 24
tmux send-keys / h a n d Enter a Enter
shows ' calls in .* p50 '
picture histogram-80
tmux send-keys Enter '?'
shows 'any key: back'
picture help-80
