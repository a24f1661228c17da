# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# For guests, after lib.sh: a script that proves a row of the README's table of kernels compares the row with what it
# proves, so that matrix.sh need not record the same again.

# The rows that other scripts than matrix.sh prove on 6.1 and 6.12: "SCRIPT ROW".
proven_rows='filters filters (--comm, --uid)
kernel_functions kernel functions, session
kernel_functions kernel functions, multi
kernel_functions kernel functions, fentry
kernel_functions kernel functions, single
syscalls system calls
sched scheduler (--sched)
flight flight recorder
reduce fewer calls (--min-duration, --depth)
reduce only counts (--count)'

# table_cell SERIES ROW: prints the README's cell
table_cell()
{
	awk -F ' *[|] *' -v series="$1" -v row="$2" '
	/<!-- kernels: written/ { inside = 1; next }
	/<!-- kernels end/ { exit }
	!inside { next }
	!column { for (i = 3; i < NF; i++) if (index(" " $i, " " series " ")) column = i }
	$2 == row { print $column }' README.md
}

# documented SERIES ROW yes|no: the script's own assertions prove the answer; the README must have the same.
# Kernels that the table lacks are not compared.
documented()
{
	local want=$3 script

	script=$(basename "$0" .sh)
	[ "$want" = yes ] || want=–
	case $1 in
	6.1 | 6.12) ;;
	*) return ;;
	esac
	if ! grep -q -x -F "$script $2" <<<"$proven_rows"; then
		fail "vm_$1_documented" "tests/vm/table.sh does not say that $script proves '$2'"
		return
	fi
	assert_eq "vm_$1_documented: $2" "$(table_cell "$1" "$2")" "$want"
}
