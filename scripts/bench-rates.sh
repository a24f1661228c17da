#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The CPU time that recording adds to a program, divided by the prediction of `kxray functions --rate`
# for the same functions. Prints one line; called by scripts/bench.sh.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../tests/lib.sh"
. tests/live/tracing.sh

cheap=(-f outer -f middle -f 'tail_*')

end() {
	kill -KILL "$1"
	wait "$1" 2>/dev/null
}
cpu_ms() { # PID: user and system time
	awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print int(($12 + $13) * 1000 / hz) }' "/proc/$1/stat"
}
work() { # OPTION...: puts the CPU time of the target's work into $MS; records it if there are options
	start_target counts --repeat=100 --after=60000
	[ $# -eq 0 ] || start_kxray "$PID" "$@"
	go_target
	wait_for grep -q '^{' "$TMP/counts.out"
	tail -n 1 "$TMP/counts.out" >"$TMP/did.json"
	MS=$(cpu_ms "$PID")
	end "$PID"
	[ $# -eq 0 ] || end_kxray
}

start_target counts --repeat=100000000
go_target
sleep 0.5 # for its threads
"$KXRAY" functions -p "$PID" "${cheap[@]}" --rate 1 --json >"$TMP/rates.json" 2>/dev/null
end "$PID"
work
plain=$MS
work "${cheap[@]}"
json "$TMP/did.json" "'CPU time that recording added / predicted: %.2f' % (($MS - $plain) / sum(
	c * $(json "$TMP/rates.json" '{f["name"]: f["cost_ns"] for f in d["functions"]}').get(n, 0) / 1e6
	for n, c in d['calls'].items()))"
