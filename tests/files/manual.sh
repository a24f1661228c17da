#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 3 s, without root
# The manual pages and --help: a page for each command, each option in both, every example is a valid command line.
. "$(dirname "$0")/../lib.sh"
man=$BUILD/man

commands=$("$KXRAY" help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
assert_contains "kxray help lists the commands" "$commands" record
for command in $commands; do
	page=$man/kxray-$command.1
	assert_eq "sections of $command's page" \
		"$(grep -oxE '\.SH (NAME|SYNOPSIS|DESCRIPTION|OPTIONS|EXIT STATUS|EXAMPLES|SEE ALSO)' "$page" 2>&1 | tr '\n' ' ')" \
		".SH NAME .SH SYNOPSIS .SH DESCRIPTION .SH OPTIONS .SH EXIT STATUS .SH EXAMPLES .SH SEE ALSO "
	assert_contains "kxray(1) names it" "$(<"$man/kxray.1")" "
\\fBkxray\\-$command\\fR(1)
"
	"$KXRAY" "$command" --help >"$TMP/help"
	sed -nE 's/^  (-., |    )--([a-z0-9-]+).*/\2/p' "$TMP/help" | grep -vx help | sort >"$TMP/options"
	assert "options of $command" "none in --help" test -s "$TMP/options"
	sed -n 's/^\(\\fB\\-.\\fR, \)\?\\fB\\-\\-\([a-z0-9\\-]*\)\\fR.*/\2/p' "$page" | tr -d '\\' | sort -u >"$TMP/manual"
	assert_eq "options of $command are in --help and in its page" "$(grep -vx help "$TMP/manual")" "$(<"$TMP/options")"
	assert_eq "kxray help $command" "$("$KXRAY" help "$command")" "$(<"$TMP/help")"
	sed -n '/^Examples:/,$s/^  \([^ ].*\)/\1/p' "$TMP/help" >"$TMP/lines"
	run python3 tests/files/command_lines.py "$KXRAY" "$TMP/lines"
	assert_eq "examples of $command --help" "$STATUS $ERR" "0 "
	assert_contains "are of this command" "$(<"$TMP/lines")" "kxray $command"
done

assert_eq "kxray help --help" "$("$KXRAY" help --help)" "$("$KXRAY" --help)"

printf "kxray report --no-such x\nsudo kxray record -f 'a|b' -- x --no-such\nkxray dump -m\nls\n" >"$TMP/lines"
run python3 tests/files/command_lines.py "$KXRAY" "$TMP/lines"
assert_eq "wrong examples are found" "$STATUS $(grep -c '^not valid' <<<"$ERR")" "1 2"
echo '@OPTIONS nosuch@' >"$TMP/x.1.in"
assert_eq "a list that the program does not have" "$(awk -v kxray="$KXRAY" -f scripts/manual.awk "$TMP/x.1.in" >/dev/null 2>&1; echo $?)" 1

# References to other pages of kxray, in all pages.
names=$(cd "$man" && printf '%s\n' kxray*)
assert_eq "each page that is referred to exists" \
	"$(sed -nE 's/.*\b(kxray(\\?-[a-z]+)?)(\\fR)? ?\(([1-8])\).*/\1.\4/p' "$man"/* | tr -d '\\' | sort -u | grep -vxF "$names")" ""

if ! command -v mandoc >/dev/null; then
	skip "mandoc" "it is not installed"
	exit
fi
for page in "$man"/*; do
	run mandoc -T lint "$page"
	assert_eq "lint ${page##*/}" "$STATUS $OUT$ERR" "0 "
	mandoc -T ascii -O width=500 "$page" | col -bx | sed -n '/^EXAMPLES/,/^[^ ]/s/^ *\(\(sudo \)\?kxray .*\)/\1/p' >"$TMP/lines"
	run python3 tests/files/command_lines.py "$KXRAY" "$TMP/lines"
	assert_eq "examples of ${page##*/}" "$STATUS $ERR" "0 "
	cat "$TMP/lines" >>"$TMP/all"
done
assert_contains "pages have examples" "$(<"$TMP/all")" "sudo kxray record -p 1234"
echo '.TH x' >"$TMP/bad.1"
assert "a wrong page is found" "lint passed" test -n "$(mandoc -T lint "$TMP/bad.1")"
