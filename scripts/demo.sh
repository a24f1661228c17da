#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# `make demo`: traces a small multi-threaded server while it runs, by its PID, and
# shows the result in kxray's report and in LLVM's own tool. KEEP=1: the server keeps running, at most for a day.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-build}
dir=$(mktemp -d "${TMPDIR:-/tmp}/kxray-demo.XXXXXX")
trace=$dir/trace.xray
server=

finish() {
	[ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null || :
	[ -e "$trace" ] || rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

sudo=
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || {
		echo "demo: tracing needs root; run 'make demo' as root or install sudo." >&2
		exit 1
	}
	sudo=sudo
fi

# Prints the command as it can be pasted, then runs it.
show() {
	printf '\n$'
	for word; do
		case $word in
		*[!A-Za-z0-9_./=:,-]*) printf " '%s'" "$word" ;;
		*) printf ' %s' "$word" ;;
		esac
	done
	echo
	"$@"
}

if [ "${KEEP:-}" = 1 ]; then # in a session of its own: Ctrl-C in this terminal does not end it
	setsid "$build/tests/targets/demo" --repeat=1440 --limit=86500 >"$dir/server.out" 2>&1 </dev/null &
else
	"$build/tests/targets/demo" >"$dir/server.out" &
fi
server=$!
until grep -q ready "$dir/server.out"; do
	kill -0 "$server" && sleep 0.05
done
echo "A small server runs as process $server: three workers, no trace of tracing in its code."

# shellcheck disable=SC2086
show $sudo "$build/kxray" record -p "$server" -f '*' -d 3 -o "$trace"
[ -z "$sudo" ] || sudo chown "$(id -u)" "$trace" "$trace.map"
show "$build/kxray" report "$trace"

llvm_xray=$(command -v llvm-xray || ls /usr/lib/llvm-*/bin/llvm-xray 2>/dev/null | tail -n 1)
if [ -n "$llvm_xray" ]; then
	show "$llvm_xray" account "$trace" -instr_map="$trace.map" -sort=sum -sortorder=dsc
fi
kill -0 "$server"
if [ "${KEEP:-}" = 1 ]; then
	echo "
The server keeps running as process $server (a day at most). Trace it as you like, for example with:
    ${sudo:+sudo }$build/kxray record -p $server -f 'parse_*' -d 5
and end it with: kill $server"
	server=
else
	echo "
The server still runs; it ends now (make demo KEEP=1 keeps it)."
fi
echo "The trace stays in $trace (and $(basename "$trace").map);
look into it with: $build/kxray dump $trace | less"
rm -f "$dir/server.out"
