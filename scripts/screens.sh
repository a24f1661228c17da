#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Makes the screens in tests/screens from a real run: records the demo server, shows kxray's views of it in terminals of
# 80 and 200 columns, and captures what stands there: NAME-80.txt, NAME-200.txt, and README's picture as SVG.
#     scripts/screens.sh [FOLDER]      default: tests/screens
# Needs root, tmux, redis-server, redis-benchmark, and a built $BUILD (default build).
set -eu
cd "$(dirname "$0")/.."
out=$(realpath "${1:-tests/screens}")
build=$(realpath "${BUILD:-build}")
tmp=$(mktemp -d)
server=
finish() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || :
	tmux -L "kxray$$" kill-server 2>/dev/null || :
	rm -rf "$tmp"
}
trap finish EXIT
mkdir -p "$out" "$tmp/bin"
ln -s "$build/kxray" "$tmp/bin/kxray"
export PATH="$tmp/bin:$PATH"

cp "$build/tests/targets/demo" "$tmp"
cd "$tmp"
./demo >demo.out &
server=$!
until grep -q ready demo.out; do
	kill -0 "$server" && sleep 0.05
done
for trace in yesterday.xray trace.xray; do
	kxray record -q -p "$server" -f '*' -f 'syscall:*' --sched -d 3 -o "$trace"
done

# screen NAME COLUMNS COMMAND: runs it at a prompt, and takes the screen when it has ended
# One session stays: without any, the server would end, and could do so while the next one begins.
tmux -L "kxray$$" -f /dev/null new-session -d "sleep 1000"
screen() {
	local name=$1 columns=$2 command=$3
	tmux -L "kxray$$" new-session -d -s screen -x "$columns" -y 40 -c "$tmp" \
		"env PS1= bash --norc -c 'printf \"\$ %s\\n\" \"\$1\"; eval \"\$1\"; tmux -L kxray$$ wait-for -S done; sleep 60' - $(printf %q "$command")"
	tmux -L "kxray$$" wait-for "done"
	tmux -L "kxray$$" capture-pane -t screen -p | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' >"$out/$name-$columns.txt"
	tmux -L "kxray$$" capture-pane -t screen -e -p >"$tmp/screen.ansi"
	tmux -L "kxray$$" kill-session -t screen
}

for columns in 80 200; do
	screen functions $columns "kxray functions -p $server -f '*' --limit 12"
	screen report $columns 'kxray report --limit 12 trace.xray'
	screen threads $columns 'kxray report --by thread --limit 3 trace.xray'
	screen callers $columns "kxray report --callers 'syscall:futex' trace.xray"
	screen histogram $columns 'kxray report --histogram handle_request trace.xray'
	screen slowest $columns 'kxray report --slowest 1 handle_request trace.xray'
	screen diff $columns 'kxray diff --limit 8 yesterday.xray trace.xray'
	screen doctor $columns 'kxray doctor'
done
screen tree 200 'kxray report --tree handle_request trace.xray'
screen tree 80 'kxray report --tree handle_request trace.xray'

# README's picture: a program that was built by others
redis-server --port 0 --unixsocket redis.sock --save '' >redis.log &
redis=$!
until [ -S redis.sock ]; do
	kill -0 "$redis" && sleep 0.05
done
redis-benchmark -s redis.sock -c 10 -n 2000000 -q -t set,lpush >/dev/null 2>&1 &
benchmark=$!
kxray record -q -p "$redis" -f '*' -f 'syscall:*' -d 2 -o trace.xray
kill "$redis" "$benchmark"
screen redis 92 'kxray report --tree processCommand --limit 12 trace.xray'
sed -e :a -e '/^[[:space:]]*$/{$d;N;ba' -e '}' screen.ansi |
	"$OLDPWD/scripts/screen_svg.py" --title 'what a command consists of in a redis-server that was running' >"$out/tree.svg"
ls "$out"
