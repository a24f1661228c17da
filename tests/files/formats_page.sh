#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 1 s, without root
# kxray-formats(5) has each export format; ../unit/test_formats_page.c has the notes, ../live/json_fields.sh the map.
. "$(dirname "$0")/../lib.sh"
PAGE=$BUILD/man/kxray-formats.5

"$KXRAY" export --list --json | python3 -c 'import json, sys
print(*(f["name"] for f in json.load(sys.stdin)), sep="\n")' >"$TMP/formats"
assert_between "formats" "$(wc -l <"$TMP/formats")" 11 50
# described FILE: the headings under EXPORTS
described() { sed -n '/^\.SH EXPORTS/,/^\.SH SEE/s/^\.SS //p' "$1"; }
assert_eq "the page has the formats of export --list" "$(described "$PAGE" | sort)" "$(sort "$TMP/formats")"
sed '/^\.SS pprof/d' "$PAGE" >"$TMP/page"
assert_eq "a missing format is found" "$(described "$TMP/page" | grep -cvxFf "$TMP/formats") $(described "$TMP/page" | wc -l)" \
	"0 $(($(wc -l <"$TMP/formats") - 1))"
