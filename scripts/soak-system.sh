#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The whole system for a minute under a mixed load: redis-benchmark against redis-server, a compile
# loop, a shell loop that forks. A moderate selection of functions and system calls must lose nothing,
# kxray's memory must stay constant, and the load must not cost more than predicted.
#
#   scripts/soak-system.sh [SECONDS]      default 60
#
# Prints a table; status 1 if a check fails. Needs root, gcc, python3 and the packages
# redis-server and redis-tools.
seconds=${1:-60}
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../tests/lib.sh"

for tool in redis-server redis-benchmark redis-cli gcc python3; do
	command -v $tool >/dev/null || {
		echo "soak: $tool is missing" >&2
		exit 1
	}
done
[ "$(id -u)" = 0 ] || {
	echo "soak: tracing needs root; run it with sudo" >&2
	exit 1
}
port=$((20000 + $$ % 10000))
python3 scripts/soak_system.py "$KXRAY" "$TMP" "$seconds" $port
