# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# For the soak scripts, after tests/lib.sh: the table of checks, and what is read of kxray while it runs.

bad=0 # 1 after a check that failed: the script's exit status
check() { # NAME COMMAND...: prints whether COMMAND succeeds
	local what=$1
	shift
	if "$@"; then
		printf '%-58s yes\n' "$what"
	else
		printf '%-58s NO\n' "$what"
		bad=1
	fi
}
# field NAME: of /proc/$KX_PID/status, such as VmRSS (KiB)
field() { awk -v key="$1:" '$1 == key { print $2 }' "/proc/$KX_PID/status"; }
