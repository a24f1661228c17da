#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 15 s
# The status line of a recording on a terminal: what it says, that it fits, and that nothing of it is left, whatever
# happens to the terminal; and that there is none anywhere else.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# on_terminal LABEL COLUMNS STEPS ARG...: kxray record with these arguments; what the terminal saw in $TMP/seen.json
on_terminal() {
	local label=$1 columns=$2 steps=$3
	shift 3
	rm -f "$TRACE"*
	[[ " $* " == *" --count "* ]] || set -- -o "$TRACE" "$@"
	run env -u NO_COLOR TERM=xterm python3 tests/live/terminal.py "$columns" "$steps" "$KXRAY" record "$@"
	cp "$TMP/run.out" "$TMP/seen.json"
	[ "$STATUS $(seen 'd["left"]')" = "0 []" ] || fail "$label: the steps" "$OUT $ERR"
}
seen() { json "$TMP/seen.json" "$1"; }
LINE='kxray: \d+:\d\d( left)?, [\d,]+ events/s, [\d,]+ lost, [\d.]+ (kB|MB)(, hottest \S+ \d+ %)?'
# clean LABEL: the lines left on the screen are messages alone, and no line was ever wider than the terminal
clean() {
	assert_eq "$1: nothing of it is left" "$(seen '[l for l in d["screen"] if "events/s" in l]')" "[]"
	assert_eq "$1: whole messages" "$(seen '[l for l in d["screen"] if l and not l.startswith(("kxray: ", "  "))]')" "[]"
	assert_eq "$1: it fits" "$(seen '[l for l in d["drawn"] if len(l[0]) >= l[1]]')" "[]"
}
WIDE=$((200 + 2 * ${#TRACE})) # the longest message has the trace's path twice
leaf_a() { "$KXRAY" report --json "$TRACE" | python3 -c 'import json, sys
d = json.load(sys.stdin)
print(sum(f["count"] for f in d["functions"] if f["name"] == "leaf_a"), d.get("ended_early", False))'; }

# A target that works until it is ended: what it does shows in the line.
background "$TARGETS/demo" --repeat=25 --limit=1700 >"$TMP/demo.out" 2>&1
demo=$PID
on_terminal "Ctrl-C" "$WIDE" "see events/s, 0 lost.*hottest; see hottest; type ^C" -p "$demo" -y -f parse_request
assert_eq "Ctrl-C: status" "$(seen 'd["status"]')" 0
assert_eq "what it says" "$(seen "[l for l, _ in d['drawn'] if not __import__('re').fullmatch(r'$LINE', l)]")" "[]"
assert_contains "the hottest function" "$(seen 'd["drawn"][-1][0]')" "hottest parse_request 100 %"
assert_contains "the summary follows" "$(seen 'd["screen"]')" "events, 0 lost, 1 function, "
clean "Ctrl-C"
assert_eq "no colors without a loss" "$(seen '[l for l in __import__("re").findall("\r(kxray: [^\r]*events/s[^\r]*)\r", d["raw"]) if "\x1b[3" in l]')" "[]"

on_terminal "resized" 130 "see hottest; resize 30; see events/s\\x1b; resize 10; see \\r\\x1b.J; resize 200; see hottest; type ^C" \
	-p "$demo" -y -f parse_request
assert_eq "resized: each width was used" "$(seen 'sorted({c for _, c in d["drawn"]} | {10})')" "[10, 30, 130, 200]"
assert_eq "resized: it fits" "$(seen '[l for l in d["drawn"] if len(l[0]) >= l[1]]')" "[]"

on_terminal "--count" 130 "see calls/s, hottest parse_request; type ^C" -p "$demo" -f parse_request --count
assert_eq "--count: nothing of it is left" "$(seen '[l for l in d["screen"] if "calls/s" in l]')" "[]"

# Messages while it stands there: a dump on request.
on_terminal "SIGUSR1" "$WIDE" "see 0 dumps of 0.0 kB; run kill -USR1 \$PID; see kxray: wrote; see 1 dump of; type ^C" \
	-p "$demo" -y -f parse_request --flight-recorder 1M
clean "SIGUSR1"
assert_eq "SIGUSR1: its line" "$(seen 'len([l for l in d["screen"] if l.startswith("kxray: wrote ")])')" 2

on_terminal "SIGUSR1 without a flight recorder" "$WIDE" "see events/s; run kill -USR1 \$PID; see SIGUSR1 asks for a dump; see events/s; type ^C" \
	-p "$demo" -y -f parse_request
assert_eq "SIGUSR1 without a flight recorder: status" "$(seen 'd["status"]')" 0
clean "SIGUSR1 without a flight recorder"

# What has no status line: none of these waits for one, a recording of over a second would have shown it.
no_line() { assert_eq "$1" "$(tr -cd '\r\033' <"$2" | wc -c)" 0; }
"$KXRAY" record -p "$demo" -f parse_request -d 1500ms -o "$TRACE" 2>"$TMP/rec.err"
no_line "no terminal" "$TMP/rec.err"
for option in --json --quiet; do
	on_terminal "$option" 130 "" -p "$demo" -y -f parse_request -d 1500ms "$option"
	assert_eq "$option" "$(seen 'd["raw"].count("\x1b")')" 0
done
run env TERM=dumb python3 tests/live/terminal.py 130 "" "$KXRAY" record -o "$TRACE" -p "$demo" -y -f parse_request -d 1500ms
cp "$TMP/run.out" "$TMP/seen.json"
assert_eq "a dumb terminal" "$(seen 'd["raw"].count("\x1b")')" 0
on_terminal "a command on the terminal" 130 "" -f parse_request -d 1500ms --kill -- "$TARGETS/demo"
assert_eq "a command on the terminal" "$(seen 'd["raw"].count("\x1b[J")')" 0
# a job of a shell that is in the background: the terminal belongs to others
run env TERM=xterm python3 tests/live/terminal.py 130 "" bash -mc '"$0" "$@" & wait' "$KXRAY" record -o "$TRACE" -p "$demo" -y -f parse_request -d 1500ms
cp "$TMP/run.out" "$TMP/seen.json"
assert_contains "in the background: it is recorded" "$(seen 'd["screen"]')" " 0 lost, 1 function, "
assert_eq "in the background" "$(seen 'd["raw"].count("\x1b[J")')" 0
kill "$demo"

# A terminal that is stopped, or goes away, stops no recording: all calls are in the trace.
cat >"$TMP/works" <<'END'
printf g >"$TMP/counts.in"
until grep -q '"calls"' "$TMP/counts.out"; do read -rt 0.05 <>"$TMP/.pause" || :; done
END
# 15 passes of the loop, 100 ms at least each: more than a second, after which it draws
cat >"$TMP/passes" <<'END'
switches() { sed -n 's/^voluntary_ctxt_switches:[[:space:]]*//p' "/proc/$PID/status"; }
begin=$(switches)
until [ "$(switches)" -ge $((begin + 15)) ]; do read -rt 0.1 <>"$TMP/.pause" || :; done
END
cat >"$TMP/is_complete" <<'END'
until "$KXRAY" report --json "$1" 2>/dev/null | grep -q '"ended_early":false'; do read -rt 0.1 <>"$TMP/.pause" || :; done
END
start_target counts
target=$PID
on_terminal "Ctrl-S" "$WIDE" "see events/s; type ^S; run bash $TMP/passes; run bash $TMP/works; run bash $TMP/is_complete $TRACE; type ^Q" \
	-p "$target" -y -f leaf_a
end_target "$target"
tail -n 1 "$TMP/counts.out" >"$TMP/did.json"
assert_eq "Ctrl-S: calls" "$(leaf_a)" "$(json "$TMP/did.json" 'sum(t["calls"]["leaf_a"] for t in d["threads"])') False"
clean "Ctrl-S"

start_target counts
target=$PID
on_terminal "a terminal that goes away" 130 "see events/s; run bash $TMP/works; hang up" \
	-p "$target" -y -f leaf_a
assert_eq "a terminal that goes away: status" "$(seen 'd["status"]')" 0
end_target "$target"
tail -n 1 "$TMP/counts.out" >"$TMP/did.json"
assert_eq "a terminal that goes away: the trace is complete" "$(leaf_a)" \
	"$(json "$TMP/did.json" 'sum(t["calls"]["leaf_a"] for t in d["threads"])') False"
