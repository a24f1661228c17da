#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: alone, 17 s
# The whole system: exact calls of a library in every process that has it, started before or during the
# recording; kxray itself is not recorded; many forks; a library that is replaced while it is in use.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

export TREE_LOG=$TMP/calls.log
LIBRARY=$TMP/plug.so
install -m 755 "$TARGETS/treeplug.so" "$LIBRARY"

# start_all LABEL OPTION...: kxray record -a
start_all() {
	local label=$1
	shift
	_new_recording
	rm -f "$TREE_LOG"
	"$KXRAY" record -a -o "$TRACE" --json "$@" >"$TMP/rec.json" 2>"$TMP/rec.err" &
	KX_PID=$!
	_pids+=("$KX_PID")
	wait_for _records || fail "$label: start" "$(cat "$TMP/rec.err")"
}

# end_all LABEL
end_all() {
	kill -INT "$KX_PID" 2>/dev/null
	end_kxray
	assert_eq "$1: status" "$STATUS" 0
	run json "$TMP/rec.json" 'd["lost"]'
	assert_eq "$1: lost" "$OUT$ERR" 0
}

logged() { [ "$(wc -l <"$TREE_LOG")" -ge "$1" ]; } # PROCESSES

# same LABEL PROCESSES: checks that the trace has the calls of the log for each process
same() {
	assert_eq "$1: processes in the log" "$(wc -l <"$TREE_LOG")" "$2"
	run python3 tests/live/per_process.py "$TRACE" "$TREE_LOG"
	assert_eq "$1: calls of each process" "$STATUS $(head -n 5 "$TMP/run.out")" "0 "
	echo "# $1: $ERR"
}

# Three processes have the library before the recording, ten start and end during it.
for mechanism in session multi single; do
	label="-a, $mechanism"
	rm -f "$TREE_LOG"
	before=() inputs=()
	for n in 1 2 3; do
		start_target libuser --repeat=$((100 * n)) "$LIBRARY"
		before+=("$PID") inputs+=("$TARGET_IN")
	done
	start_all "$label" -f "$LIBRARY:plug_*" --mechanism "$mechanism"
	if grep -q 'does not offer' "$TMP/rec.err"; then
		skip "mechanism $mechanism" "$(cat "$TMP/rec.err")"
	else
		for n in {1..10}; do
			"$TARGETS/libuser" --start=now --repeat=$((10 + n)) "$LIBRARY" >/dev/null &
			_pids+=("$!")
		done
	fi
	for n in 0 1 2; do
		printf g >&"${inputs[n]}"
		TARGET_IN=${inputs[n]}
		end_target "${before[n]}"
	done
	if ! grep -q 'does not offer' "$TMP/rec.err"; then
		wait_for logged 13
		end_all "$label"
		same "$label" 13
	fi
done

# Every process allocates memory, kxray too; of the processes named so only kxray itself is not in the trace.
libc=$(ldd "$KXRAY" | sed -n 's/.*libc\.so\.6 => \([^ ]*\) .*/\1/p')
start_all "kxray itself" -f "$(realpath "$libc"):malloc" --comm "$(basename "$KXRAY")"
traced=()
for n in 1 2 3; do
	"$KXRAY" doctor >/dev/null 2>&1 &
	traced+=("$!")
	wait "$!"
done
end_all "kxray itself"
run python3 -c 'import sys
sys.path.insert(0, "tests/live")
import fdr
trace = fdr.Trace(sys.argv[1], allow_open=True)
pids = {t.pid for t in trace.threads.values() if t.counts()}
print(int(sys.argv[2]) in pids, all(int(pid) in pids for pid in sys.argv[3:]))' \
	"$TRACE" "$KX_PID" "${traced[@]}"
assert_eq "kxray itself is not traced, another kxray is" "$OUT$ERR" "False True"

# Many forks: 2000 children at a time and 400 grandchildren, each with one call.
for scope in follow all; do
	rm -f "$TMP/bomb.out"
	if [ $scope = follow ]; then
		TARGET_ARGS=--repeat=2000 trace_command bomb -f 'bomb_*'
		assert_eq "2400 forks, --follow: status" "$STATUS" 0
	else
		start_all "2400 forks, -a" -f "$TARGETS/bomb:bomb_*"
		"$TARGETS/bomb" --start=now --repeat=2000 >"$TMP/bomb.out"
		assert_eq "2400 forks, -a: target" "$?" 0
		end_all "2400 forks, -a"
		tail -n 1 "$TMP/bomb.out" >"$TMP/did.json"
	fi
	expect "2400 forks, $scope" report account
	run json "$TMP/rec.json" 'd.get("unfollowed", 0)'
	assert_eq "2400 forks, $scope: processes not followed" "$OUT$ERR" 0
done

# The library's file is replaced while a process uses it: that process keeps the old code.
rm -f "$TREE_LOG"
start_target libuser --repeat=100 "$LIBRARY"
old=$PID input=$TARGET_IN
start_all "replaced during" -f "$LIBRARY:plug_*"
install -m 755 "$TARGETS/treeplug.so" "$TMP/new.so"
mv "$TMP/new.so" "$LIBRARY"
printf g >&"$input"
end_target "$old"
assert_eq "replaced during: the old one's status" "$STATUS" 0
# It gets its probes while it runs.
printf g | "$TARGETS/late" "$LIBRARY" 2000 >"$TMP/late.out"
assert_eq "replaced during: the new one's status" "$?" 0
end_all "replaced during"
run python3 tests/live/per_process.py "$TRACE" "$TREE_LOG" --pid "$old"
assert_eq "replaced during: calls of the process with the old file" \
	"$STATUS $(grep "process $old:" "$TMP/run.out")" "0 "
run "$KXRAY" report --json "$TRACE"
cp "$TMP/run.out" "$TMP/report.json"
run json "$TMP/report.json" 'sum(f["count"] for f in d["functions"] if f["name"] == "plug_work")'
assert_between "replaced during: calls of both, the new file's from a moment on" "$OUT" 101 \
	$((100 + $(json <(tail -n 1 "$TMP/late.out") 'd["calls"]["plug_work"]')))

# Replaced before the recording begins: the process still has the old file.
rm -f "$TREE_LOG"
start_target libuser --repeat=100 "$LIBRARY"
old=$PID input=$TARGET_IN
install -m 755 "$TARGETS/treeplug.so" "$TMP/new.so"
mv "$TMP/new.so" "$LIBRARY"
start_all "replaced before" -f "$LIBRARY:plug_*"
printf g >&"$input"
end_target "$old"
assert_eq "replaced before: the old one's status" "$STATUS" 0
"$TARGETS/libuser" --start=now --repeat=50 "$LIBRARY" >/dev/null
end_all "replaced before"
same "replaced before" 2

# The sets of system calls and kernel functions are fixed: an unknown name is an error at the start.
run "$KXRAY" record -a -f 'syscall:opne' -o "$TMP/none.xray" -d 1
assert_eq "a system call that does not exist: status" "$STATUS" 1
assert_contains "a system call that does not exist" "$ERR" "did you mean open in syscall"
assert "and nothing is written" "there is a trace" test ! -e "$TMP/none.xray"
