#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 8 s
# What follows a recording on a terminal: five functions with exact calls, the next command, which works as pasted; and
# --open, which exports and opens a page where there is a desktop. Without a terminal nothing follows.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

odd="$TMP/it's a trace.xray"
# on_terminal COLUMNS ARG...: records the target counts; what the terminal saw in $TMP/seen.json
on_terminal() {
	local columns=$1
	shift
	start_target counts
	target=$PID
	run env NO_COLOR=1 TERM=xterm python3 tests/live/terminal.py "$columns" \
		"see kxray: recording; run printf g >$TMP/counts.in" "$KXRAY" record -p "$target" -y "$@"
	cp "$TMP/run.out" "$TMP/seen.json"
	end_target "$target"
	tail -n 1 "$TMP/counts.out" >"$TMP/did.json"
}
seen() { json "$TMP/seen.json" "$1"; }
did() { json "$TMP/did.json" "f'{sum(t[\"calls\"][\"$1\"] for t in d[\"threads\"]):,}'"; }

on_terminal 300 -f 'leaf_*' -f sleep_2ms -f middle -f outer -f inner -o "$odd"
assert_eq "status" "$(seen 'd["status"]')" 0
assert_contains "the heading" "$(seen 'd["screen"]')" "kxray: most time of their own, without what they call:"
assert_eq "five rows" "$(seen 'len([r for r in d["screen"] if " call" in r and " % " in r])')" 5
"$KXRAY" report --json "$odd" >"$TMP/report.json"
want=$(json "$TMP/report.json" '[f["name"] for f in sorted(d["functions"], key=lambda f: -f["self_ns"])][:5]')
assert_eq "the functions of report, by self time" "$(seen '[r.split()[-1] for r in d["screen"] if r.startswith(" ") and " % " in r]')" "$want"
name=$(json "$TMP/report.json" 'sorted(d["functions"], key=lambda f: -f["self_ns"])[0]["name"]')
assert_eq "calls of the first one" "$(seen '[r.split()[-3:] for r in d["screen"] if r.startswith(" ") and " % " in r][0]')" "['$(did "$name")', 'calls', '$name']"
assert_eq "NO_COLOR" "$(seen 'd["raw"].count("\x1b[3")')" 0
next=$(seen '[l for l in d["screen"] if l.startswith("kxray: next: ")][0]')
assert_contains "the next command" "$next" "kxray: next: kxray report '${odd//\'/\'\\\'\'}', or kxray export -f "
first=${next#kxray: next: kxray } first=${first%, or *}
run bash -c "\"\$KXRAY\" $first"
assert_contains "it works as pasted" "$STATUS $OUT" "sleep_2ms"
run bash -c "cd '$TMP' && \"\$KXRAY\" ${next##*, or kxray }"
assert_contains "the other one, too" "$STATUS $ERR" "open it in"

# Narrow: no row wraps. Exits are not recorded: no times.
on_terminal 45 -f 'leaf_*' -f sleep_2ms --exits=none -o "$TRACE"
assert_contains "no times" "$(seen 'd["screen"]')" "kxray: called most, without measured times:"
assert_eq "no times: the first one" "$(seen '[r.split() for r in d["screen"] if " call" in r and r.startswith(" ")][0]')" \
	"['$(did leaf_a)', 'calls', 'leaf_a']"
assert_eq "no row wraps" "$(seen '[r for r in d["screen"] if r.startswith(" ") and len(r) > 45]')" "[]"

# A large trace is not read in passing.
background "$TARGETS/hot" >"$TMP/hot.out" 2>&1
hot=$PID
run env TERM=xterm python3 tests/live/terminal.py 100 "see , (6[89]|[789][0-9]|[0-9]{3}) MB; type ^C" \
	"$KXRAY" record -p "$hot" -y -f '*' --args 6 --callers -o "$TRACE"
cp "$TMP/run.out" "$TMP/seen.json"
kill "$hot"
assert_contains "a large trace: no rows" "$(seen 'd["screen"]')" "kxray: the trace is too large to be read in passing; 'kxray report' shows its functions"
assert_eq "a large trace: the next command" "$(seen 'len([l for l in d["screen"] if l.startswith("kxray: next: kxray report ")])')" 1
rm -f "$TRACE"

# Nothing was recorded: nothing follows.
start_target counts
target=$PID
run env TERM=xterm python3 tests/live/terminal.py 100 "see kxray: recording; type ^C" "$KXRAY" record -p "$target" -y -f leaf_a -o "$TRACE"
cp "$TMP/run.out" "$TMP/seen.json"
assert_eq "nothing recorded" "$(seen '[l for l in d["screen"] if "next:" in l]')" "[]"
go_target
end_target "$target"

# --open, with a desktop that notes what it is to open.
mkdir "$TMP/bin"
printf '#!/bin/sh\nprintf "%%s\\n" "$*" >"%s"\n' "$TMP/opened" >"$TMP/bin/xdg-open"
chmod +x "$TMP/bin/xdg-open"
opens() { # DISPLAY [OPTION...]
	local display=$1
	shift
	rm -f "$TMP"/opened "$TMP"/t.*
	run env -u WAYLAND_DISPLAY -u SUDO_USER DISPLAY="$display" PATH="$TMP/bin:$PATH" "$KXRAY" record -f leaf_a -o "$TMP/t.xray" "$@" -- "$TARGETS/counts" --start=now
}
opens "" --open=folded
assert_contains "--open=folded" "$STATUS $ERR" "calls written to $TMP/t.folded; open it in https://www.speedscope.app"
assert "--open=folded: the file" "it is missing" test -s "$TMP/t.folded"
opens :7 --open=folded
assert "--open=folded: nothing is opened" "it was" test ! -e "$TMP/opened"
opens "" --open=folded --json
assert_eq "--open --json: no text follows" "$STATUS $(grep -c 'open it' "$TMP/run.err")" "0 0"
assert "--open --json: the file" "it is missing" test -s "$TMP/t.folded"
opens "" --open=no-such-format
assert_contains "--open of no format" "$STATUS $ERR" "2 kxray record: there is no format 'no-such-format'"
opens "" --open=folded --count
assert_contains "--open --count" "$STATUS $ERR" "2 kxray record: --count writes no trace, it only counts calls: leave out -"
opens :7 --open
if "$KXRAY" export --list | grep -q '^ *html '; then
	assert "--open: the page is opened" "$ERR" wait_for has_text "$TMP/t.html" "$TMP/opened"
	chmod 711 "$TMP"
	printf '#!/bin/sh\nprintf "%%s of %%s %%s\n" "$(id -u)" "$HOME" "$(grep SigBlk /proc/self/status)" >"%s"\n' "$TMP/by" >"$TMP/bin/xdg-open"
	: >"$TMP/by"
	chmod 666 "$TMP/by"
	run env -u WAYLAND_DISPLAY SUDO_USER=nobody DISPLAY=:7 PATH="$TMP/bin:$PATH" "$KXRAY" record -f leaf_a -o "$TMP/t.xray" --open -- "$TARGETS/counts" --start=now
	assert "--open under sudo: as the user, no signal blocked" "$(cat "$TMP/by")" wait_for has_text \
		"$(id -u nobody) of $(getent passwd nobody | cut -d: -f6) SigBlk:	0000000000000000" "$TMP/by"
	opens "" --open
	assert_contains "--open without a display" "$STATUS $ERR" "calls written to $TMP/t.html"
	assert "--open without a display: nothing is opened" "it was" test ! -e "$TMP/opened"
else
	assert_contains "--open without html" "$STATUS $ERR" "calls written to $TMP/t.pftrace; open it in https://ui.perfetto.dev"
fi
run "$KXRAY" record -f leaf_a -o "$TMP/t.xray" -- "$TARGETS/counts" --start=now
assert_eq "no terminal: nothing follows" "$STATUS $(grep -c 'next:\|most time' "$TMP/run.err")" "0 0"
