#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 60 s
# Every command in README.md and in the manual's examples does what it says: each is run as it is written, in the order
# of its page, with a server named redis-server in the place of the reader's own. What they record is cut to a fraction
# of a second, and what records the whole system does so with a filter, which leaves other tests' processes alone.
. "$(dirname "$0")/../lib.sh"

mkdir "$TMP/bin"
export REAL=$KXRAY ROOT=$PWD PATH="$TMP/bin:/usr/sbin:$PATH"
shim() { # NAME < SCRIPT
	{ printf '#!/bin/bash\n'; cat; } >"$TMP/bin/$1"
	chmod +x "$TMP/bin/$1"
}
shim sudo <<<'exec "$@"'
shim pgrep <<<'echo "$REDIS"'
shim make <<<'exec env -u MAKEFLAGS -u MAKELEVEL /usr/bin/make -n -C "$ROOT" NOSETUP=1 "$@" >/dev/null'
shim git <<<'mkdir -p kxray'
shim xdg-open <<<'[ -e "$1" ]'
command -v jq >/dev/null || shim jq <<<'exec python3 -c "import json, sys; [json.loads(line) for line in sys.stdin]"'
command -v flamegraph.pl >/dev/null || shim flamegraph.pl <<<'grep . '
command -v speedscope >/dev/null || shim speedscope <<<'[ -s "$1" ]'
for llvm in $(llvm_xrays); do
	ln -sf "$llvm" "$TMP/bin/llvm-xray"
done
# Recordings and views that last until Ctrl-C end after 300 ms, and so do longer ones; everything else is as written.
shim kxray <<'END'
command=$1
shift
arguments=()
timed=
case $command in
record)
	while [ $# -gt 0 ]; do
		case $1 in
		--) break ;;
		-d) timed=1; arguments+=(-d 300ms); shift 2 || exit 9; continue ;;
		--keep) arguments+=("$1" "$2"); shift 2; continue ;;
		-p) [[ $2 =~ ^[0-9] ]] || { echo "no PID: $2" >&2; exit 9; } ;;
		esac
		arguments+=("$1")
		shift
	done
	[ -n "$timed$*" ] || arguments+=(-d 300ms)
	;;
# The server is not two hosts, of which one calls the other: ../live/merge.sh.
merge)
	set -- "${@/--pair/--offset}"
	set -- "${@/send_query=handle_query/web1=250ms}"
	;;
top) arguments=(-n 1 --interval 200ms) ;;
functions)
	while [ $# -gt 0 ]; do
		arguments+=("$1")
		[ "$1" != --rate ] || { arguments+=(200ms); shift; }
		shift
	done
	;;
esac
[[ " ${arguments[*]} $* " != *" -a "* || " ${arguments[*]} $* " = *" --comm "* ]] || arguments+=(--comm demo)
exec "$REAL" "$command" "${arguments[@]}" "$@"
END

# for_process COMMAND: sets COMMAND to it, with a running server in the place of PID
for_process() {
	_is_over "$SERVER" && start_demo
	COMMAND=$(sed -E "s#/usr/lib/kxray/#$ROOT/exporters/fleet/#g; s/(-p|--pid) PID\b/\1 $SERVER/g; s/\\\$PID\b/$SERVER/g; s/\b(PID|1234)\b/$SERVER/g" <<<"$1")
}
start_demo() {
	start_target demo --repeat=30 --limit=1900
	SERVER=$PID
}

# Where this kernel has no probes for its own functions, the command must say so, and runs without them.
try() { # NAME COMMAND
	run bash -c "$2"
	if [ $STATUS = 1 ] && [[ $2 = *kernel:* && $ERR = *"kernel functions"* ]]; then
		run bash -c "$(sed -E "s/-f '?kernel:[^ ]*//g; s/--kernel-mechanism[= ][a-z.]+//" <<<"$2")"
	fi
	# two recordings of a fraction of a second on a loaded machine may differ
	[[ $2 != *--fail-above* || "$OUT$ERR" != *"slower by more than"* ]] || STATUS=0
	assert_eq "$1" "$STATUS $([ $STATUS = 0 ] || tail -n 3 "$TMP/run.err")" "0 "
}

mkdir "$TMP/redis"
background redis-server --port 0 --unixsocket "$TMP/redis/socket" --save '' --dir "$TMP/redis" >"$TMP/redis/log"
export REDIS=$PID
wait_for test -S "$TMP/redis/socket" || fail "redis-server" "$(tail "$TMP/redis/log")"
# some requests every few milliseconds: a benchmark's would take a CPU as long as the test lasts
for request in 'set key value' 'get key' 'hset hash field value'; do
	# shellcheck disable=SC2086
	background redis-cli -s "$TMP/redis/socket" -r 100000000 -i 0.004 $request >/dev/null
done
start_demo
"$KXRAY" record -q -p "$SERVER" -f '*' -f 'syscall:*' -d 1 -o "$TMP/trace.xray" || fail "the trace that pages begin with" "status $?"

# Traces of two hosts, before and after.
host_trace() { # NAME HOST NUMBER
	local id=0000000$3-0000-4000-8000-00000000000$3
	cp "$TMP/trace.xray" "$TMP/hosts/$1.xray"
	cp "$TMP/trace.xray.map" "$TMP/hosts/$1.xray.map"
	python3 tests/edit_session.py "$TMP/hosts/$1.xray.map" \
		"s['host'].update(name='$2', boot_id='$id', machine_id='${id//-/}')" || fail "trace of $1" "status $?"
}
mkdir "$TMP/hosts"
host_trace web1 web1 1
host_trace db1 db1 2
host_trace web1-old web1 3
host_trace db1-old db1 4
host_trace web1-new web1 5
host_trace db1-new db1 6

mapfile -t lines < <(python3 tests/live/documentation.py README.md "$BUILD"/man/*)
[ "${#lines[@]}" -gt 30 ] || fail "commands in documents" "only ${#lines[@]} were found"
page=
for line in "${lines[@]}"; do
	name=${line%%$'\t'*} command=${line#*$'\t'}
	if [ "$name" != "$page" ]; then
		page=$name
		mkdir -p "$TMP/$page/build"
		cd "$TMP/$page" || exit 1
		ln -s "$TMP/bin/kxray" build/kxray
		cp "$TMP/trace.xray" "$TMP/trace.xray.map" "$TMP"/hosts/* .
		for program in benchmark benchmark-of-main benchmark-of-this-change program server start-workers.sh; do
			cp "$TARGETS/counts" "$program"
		done
	fi
	for_process "$command"
	try "$page: $command" "$COMMAND"
done
cd "$TMP" || exit 1
