#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 15 s
# kxray top on terminals of tmux: 80 columns, keys (sort, filter, pause, Enter's histogram, help, q), another size, NO_COLOR, the
# target's end, Ctrl-C.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh
command -v tmux >/dev/null || { skip top_screen "needs the package tmux"; exit 0; }

tmux() { env -u TMUX tmux -S "$TMP/tmux" -f /dev/null "$@"; }
# without it the server would stay
trap 'tmux kill-server 2>/dev/null; _cleanup' EXIT

# open_screen COLUMNS ROWS OPTION...: kxray top on a new terminal; NAME=VALUE options are its environment
open_screen() {
	local columns=$1 rows=$2 environment=()
	shift 2
	while [[ ${1:-} = *=* ]]; do
		environment+=("$1")
		shift
	done
	tmux kill-server 2>/dev/null
	wait_for gone
	tmux new-session -d -x "$columns" -y "$rows" -- \
		env TERM=screen-256color ${environment[@]+"${environment[@]}"} sh -c 'trap : INT; "$@"; echo "status $?."; read x' sh "$KXRAY" top "$@"
}
gone() { ! tmux list-sessions 2>/dev/null; }
screen() { tmux capture-pane -p "$@"; }
press() { tmux send-keys "$@"; }
# shows PATTERN: the screen has a line that matches
shows() { screen | grep -qE -- "$1"; }
shows_not() { ! shows "$1"; }
# eventually NAME PATTERN: waits for it
eventually() {
	if wait_for shows "$2"; then pass "$1"; else fail "$1" "'$2' is not in: $(screen)"; fi
}
# holds NAME COMMAND...: waits until it succeeds
holds() {
	local name=$1
	shift
	if wait_for "$@"; then pass "$name"; else fail "$name" "$(screen -e)"; fi
}
widest() { screen | LC_ALL=C.UTF-8 wc -L; }
# names: of the functions in the table, in its order
names() { screen | sed -nE 's/^ *[0-9.]+ +([0-9.]+ %|-) .* ([a-z_0-9]+) \[.*/\2/p' | tr '\n' ' '; }
has_names() { [ "$(names)" = "$1" ]; }

work() { printf '%s\n' "$1" >&"$TARGET_IN"; }
start_target bursts --calls=50
TARGET_PID=$PID

# Of all time, so that the numbers are those of the work that was done, whatever an interval saw of it.
open_screen 80 20 -p "$TARGET_PID" -f hot -f seldom -i 0.2
eventually "it begins" '^process [0-9]+ \(bursts\): 0 calls/s of 2 functions'
work 40
press a
eventually "since the start" '^process .*, since the start$'
eventually "a function" ' hot \[bursts\]$'
eventually "the other" ' seldom \[bursts\]$'
eventually "keys" '^q quit  s sort  p pause'
assert_between "80 columns" "$(widest)" 60 80
eventually "sorted by share" '^  CALLS/S  \[SHARE\]'
press c
eventually "sorted by calls" '^\[CALLS/S\]    SHARE'
holds "calls: in order" has_names "hot seldom "
press n
eventually "sorted by name" '  \[FUNCTION\]$'
holds "names: in order" has_names "hot seldom "
press m
eventually "sorted by max" ' \[MAX\]  FUNCTION$'
press s
eventually "the next: name" '  \[FUNCTION\]$'
press S S
eventually "two before: p99" ' \[P99\] '

# Filter
press n / s e l
eventually "filter" '^filter: sel$'
holds "filter: one is left" has_names "seldom "
press Enter
eventually "filter: said" "^filter 'sel': / changes it, Esc ends it"
press Escape
holds "filter: ended" has_names "hot seldom "

# Histogram: sums up to what the target has counted
press Down Enter
eventually "histogram: which function" '^seldom \[bursts\]$'
eventually "histogram" '^      FROM       CALLS    SHARE$'
eventually "histogram: sums" '^40 calls in [0-9.]+ s, p50 .*, p99 .* \(interpolated\), max '
assert_eq "histogram: bars" "$(screen | sed -nE 's/^ +[0-9.]+ (ns|us|ms|s ) +([0-9]+) +[0-9.]+ %.*/\2/p' | awk '{ n += $1 } END { print n }')" 40
press Up
eventually "histogram: another function" '^hot \[bursts\]$'
eventually "histogram: its calls" '^2040 calls in '
press Enter
eventually "back" '^q quit  s sort'

# Pause: the picture stays, counting goes on.
press p
eventually "paused" ' PAUSED $|PAUSED$'
before=$(screen)
work 10
wait_for grep -q '"seldom":50' "$TMP/bursts.out"
press Down Enter
eventually "paused: old numbers" '^40 calls in '
press Enter p
wait_for shows_not PAUSED
press Enter
eventually "goes on: new numbers" '^50 calls in '
press Enter
assert_contains "paused: the picture had a table" "$before" "seldom [bursts]"

press '?'
eventually "help" '^/  +filter'
press x
eventually "help: back" '^q quit  s sort'

# Another size
tmux resize-window -x 120 -y 10
wide() { [ "$(screen | wc -l)" = 10 ] && shows '^q quit' && shows 'hot \[bursts\]'; }
holds "resized: drawn anew" wide
tmux resize-window -x 60 -y 8
narrow() { [ "$(screen | wc -l)" = 8 ] && shows 'FUNCTION|\[FUNC'; }
holds "narrow" narrow
assert_between "narrow: width" "$(widest)" 40 60

# q ends it, and the terminal is as before.
press q
eventually "q" '^status 0\.$'
eventually "q: what was seen" '^kxray: 2600 calls of 2 functions in '

# Colors, and none with NO_COLOR
open_screen 80 20 -p "$TARGET_PID" -f hot -f seldom -i 0.2
eventually "another begins" '^process '
colors() { screen -e | grep -qE $'\e\\[(0;)?(7;)?3[13]m|\e\\[3[13]m'; }
plain() { ! screen -e | grep -qE $'\e\\[[0-9;]*3[0-7]m'; }
press C-c
eventually "Ctrl-C" '^status 0\.$'
open_screen 80 20 NO_COLOR=1 -p "$TARGET_PID" -f hot -f seldom -i 0.2
eventually "NO_COLOR: it begins" '^process '
press a
work 1
eventually "NO_COLOR: a table" ' hot \[bursts\]$'
holds "NO_COLOR: no color" plain

run env TERM=nonsense script -qec "$KXRAY top -p $TARGET_PID -f '*'" /dev/null
assert_contains "a terminal that cannot be drawn on" "$OUT$ERR" "the terminal 'nonsense' (TERM) cannot be drawn on; --batch prints tables"

# The target ends: the table stays, of all time.
work 0
end_target "$TARGET_PID"
assert_eq "the target" "$STATUS" 0
eventually "the target's end" '^status 0\.$'
eventually "the target's end: summary" '^process [0-9]+ \(bursts\): .*, since the start$'
eventually "the target's end: table" ' hot \[bursts\]$'

# A color where a function takes all the time of a CPU
background "$TARGETS/demo" >"$TMP/demo.out"
open_screen 80 20 -p "$PID" -f wait_for_request -i 0.2
eventually "colors: a function" '[0-9] %.* wait_for_request \[demo\]'
holds "colors: something is hot" colors
press q
eventually "colors: end" '^status 0\.$'
