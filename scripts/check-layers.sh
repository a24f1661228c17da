#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Checks the order of the rooms (user/README.md): a file includes, and its object uses, only its own room and
# earlier rooms in ROOMS, and no files depend on each other in a circle, not even inside a room.
#     scripts/check-layers.sh        checks the objects in $BUILD (default build); prints a line for each
#                                    fault, and then ends with status 1
set -u
cd "$(dirname "$0")/.." || exit 1
BUILD=${BUILD:-build}
export ROOMS='bpf base binary plan select trace tracer attach collect doctor record calls report live exporters cmd main.c'
# The reading side shares no code with the recorder: these rooms never use those.
export READERS='trace calls report exporters' RECORDERS='tracer attach collect doctor record'

includes=$(find user exporters -name '*.[ch]' -exec grep -HnoE '^#include "[^"]+"' {} + |
	sed -E 's|^([^:]+):[0-9]+:#include "([^"]+)"|\1 \2|; s|^user/||; /\.skel\.h$/d')
# "A B": object A uses a function or variable that object B defines.
objects=$(find user exporters -name '*.c' | sed "s|^|$BUILD/|; s|c$|o|")
calls=$(xargs -r nm -A -g <<<"$objects" 2>/dev/null |
	sed -E "s|^$BUILD/||; s|^user/||; s|\.o:[0-9a-f ]*| |" |
	awk '$2 == "U" { uses[$1 " " $3]; next } NF == 3 { at[$3] = $1 }
		END { for (u in uses) { split(u, p, " "); if (p[2] in at && at[p[2]] != p[1]) print p[1], at[p[2]] } }' | sort -u)
[ -n "$calls" ] || { echo "check-layers: there are no objects in $BUILD: run make first."; exit 1; }

faults=$({
	awk '{ print $0, "includes" }' <<<"$includes"
	awk '{ print $1 ".o", $2 ".o", "uses" }' <<<"$calls"
} | awk '
	function room(path) { sub(/^main\..*/, "main.c", path); sub(/\/.*/, "", path); return path }
	BEGIN {
		n = split(ENVIRON["ROOMS"], r, " "); for (i = 1; i <= n; i++) rank[r[i]] = i
		n = split(ENVIRON["READERS"], r, " "); for (i = 1; i <= n; i++) reader[r[i]]
		n = split(ENVIRON["RECORDERS"], r, " "); for (i = 1; i <= n; i++) recorder[r[i]]
	}
	{ a = room($1); b = room($2) }
	!(a in rank) || !(b in rank) { print "unknown room: " $1, $3, $2; next }
	rank[b] > rank[a] { print "runs up: " $1, $3, $2 }
	(a in reader) && (b in recorder) { print "reader needs recorder: " $1, $3, $2 }')
# One line for each circle that tsort finds among includes and among objects.
circles=$(for graph in "$includes" "$calls"; do
	tsort <<<"$graph" 2>&1 >/dev/null | awk '/input contains a loop:$/ { printf "%scircle:", n++ ? "\n" : ""; next }
		{ printf " %s", $2 } END { if (n) print "" }' | sort -u
done)
if [ -n "$faults$circles" ]; then
	printf '%s\n' ${faults:+"$faults"} ${circles:+"$circles"}
	exit 1
fi
echo "ok layers: $(wc -l <<<"$includes") includes and $(wc -l <<<"$calls") uses between files, 0 up, 0 circles"
