# SPDX-License-Identifier: BSD-2-Clause
#
# Makes a manual page of user/man/PAGE.in: prints it with these lines replaced.
#     @OPTIONS COMMAND@     all options of the command
#     @EXAMPLES COMMAND@    its examples
#     @COMMANDS@            the list of commands
#     @FORMATS@             that of the formats of export
#     @PAGES@               references to all other pages
# Variables: kxray, the program; pages, the names of all pages ("kxray.1 kxray-json.7").

function from_program(what,    command, line, lines)
{
	command = kxray " help --man " what
	while ((command | getline line) > 0) {
		print line
		lines++
	}
	if (close(command) || !lines) {
		print FILENAME ":" FNR ": " $0 ": the program has no such list" > "/dev/stderr"
		exit 1
	}
}

function references(    n, i, list, page, last)
{
	n = split(pages, list, " ")
	for (i = 1; i <= n; i++)
		if (list[i] ".in" != base)
			last = i
	for (i = 1; i <= last; i++)
		if (list[i] ".in" != base) {
			split(list[i], page, ".")
			print ".BR " page[1] " (" page[2] ")" (i < last ? "," : "")
		}
}

FNR == 1 { base = FILENAME; sub(/.*\//, "", base) }
/^@[A-Z]+( [a-z]+)?@$/ {
	argument = substr($2, 1, length($2) - 1)
	if ($1 == "@OPTIONS") from_program(argument)
	else if ($1 == "@EXAMPLES") from_program(argument " examples")
	else if ($0 == "@PAGES@") references()
	else from_program(tolower(substr($0, 2, length($0) - 2)))
	next
}
{ print }
