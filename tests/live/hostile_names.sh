#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 8 s
# Names of a target that hold escape sequences, line breaks and invalid UTF-8 (function, program, thread)
# reach no terminal as they are: tables, messages and errors print them escaped.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

symbol=$'qu\e[31mick\n\x9b2J\xff'
program=$'=p\e]0;x\a\n\x9b'
objcopy --redefine-sym "quick=$symbol" --redefine-sym "settle==settle" "$TARGETS/pauses" "$TMP/$program"

# clean LABEL TEXT-FILE: it is not empty, and every line is printable
clean() {
	python3 - "$2" >"$TMP/clean.out" <<'END' && pass "$1: nothing but printable text" || fail "$1" "$(cat "$TMP/clean.out")"
import sys, unicodedata
data = open(sys.argv[1], "rb").read()
text = data.decode()
bad = [c for c in text if c != "\n" and unicodedata.category(c) == "Cc"]
print(repr(text[:500]) if bad or not text else "")
sys.exit(bool(bad) or not text)
END
}
shown='qu\x1b[31mick\n\x9b2J\xff'

run "$KXRAY" functions "$TMP/$program" -f 'qu*'
clean "functions" "$TMP/run.out"
clean "functions, messages" "$TMP/run.err"
assert_contains "functions: the name" "$OUT" "$shown"
assert_eq "functions: lines" "$(wc -l <<<"$OUT")" 2
run "$KXRAY" functions "$TMP/$program" -f 'quick'
clean "functions: suggestions" "$TMP/run.err"

record() { # OUTPUT OPTION...
	local to=$1
	shift
	run "$KXRAY" record "$@" -f 'qu*' -f '*settle' -f pauses -- "$TMP/$program" --start=now
	grep -v -e '^ready' -e '^{' "$TMP/run.out" >"$to"
	cp "$TMP/run.err" "$TMP/rec.err"
}
record "$TMP/counts" --count
clean "--count" "$TMP/counts"
clean "--count: messages" "$TMP/rec.err"
assert_contains "--count: the name" "$(cat "$TMP/counts")" "$shown"

record "$TMP/none" --flight-recorder 1M --trigger 'qu*@entry' -o "$TRACE"
clean "flight recorder: messages" "$TMP/rec.err"
assert_contains "flight recorder: the name" "$(grep ': wrote ' "$TMP/rec.err")" "$shown"

record "$TMP/none" -o "$TRACE"
assert_eq "record: status" "$STATUS" 0
clean "record: messages" "$TMP/rec.err"
shown_trace='qu\x1b[31mick\n?2J?' # the map is JSON and ELF: what is no UTF-8 becomes a question mark
for what in report "report --by-process" dump; do
	# shellcheck disable=SC2086
	run "$KXRAY" $what "$TRACE"
	clean "$what" "$TMP/run.out"
	assert_contains "$what: the name" "$OUT" "$shown_trace"
done
run "$KXRAY" report -f nothing "$TRACE"
run "$KXRAY" report "$TMP/$program"
clean "report: error" "$TMP/run.err"
run "$KXRAY" record -f $'no\e[1m' -p $$ -o "$TMP/x.xray"
clean "record: error" "$TMP/run.err"
run "$KXRAY" $'no\e[1m'
clean "no such command" "$TMP/run.err"
run "$KXRAY" export -f folded -o - "$TRACE"
clean "folded" "$TMP/run.out"

# Spreadsheets take no name for a formula.
run "$KXRAY" export -f csv -o "$TMP/csv" "$TRACE"
python3 - "$TMP/csv" >"$TMP/cells" <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="", encoding="utf-8", errors="replace"), strict=True))
for key in ("thread", "function", "module"):
    print(key, sorted({row[key][:2] for row in rows}))
print("formulas", sum(cell[:1] in "=+-@" and key not in ("result",) for row in rows for key, cell in row.items() if cell))
END
assert_eq "csv: cells" "$(tr '\n' ' ' <"$TMP/cells")" \
	"thread [\"'=\"] function [\"'=\", 'pa', 'qu'] module [\"'=\"] formulas 0 "
