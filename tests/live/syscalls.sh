#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 15 s
# System calls: compared with the target's own counts and with strace -c.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# check NAME WHAT...: checks the recording with syscalls.py
check() {
	local name=$1 difference
	shift
	difference=$(python3 tests/live/syscalls.py "$@" 2>&1)
	assert_eq "$name" "$difference" ''
}
to_csv() { "$KXRAY" export -f csv -o "$TMP/calls.csv" "$TRACE" 2>"$TMP/export.err" || fail "export" "$(cat "$TMP/export.err")"; }
orphans() { json "$TMP/rec.json" 'd["orphans"]'; }

# The only exit without entry is that of the read in which the target waited. Exits of new threads and of
# calls refused by a seccomp filter, which also have no entry, are not recorded.
for what in '' --refuse; do
	TARGET_ARGS=$what trace_target syscalls -f 'syscall:*'
	assert_eq "by PID $what: statuses" "$STATUS $TARGET_STATUS" "0 0"
	to_csv
	check "by PID $what: counts of each thread" threads "$TMP/calls.csv" "$TMP/syscalls.out"
	assert_eq "by PID $what: lost, exits without entry" \
		"$(json "$TMP/rec.json" '[d["lost"], d["orphans"]]')" "[0, 1]"
	# exit of the second thread, and exit_group
	assert_eq "by PID $what: calls that never return" "$(json "$TMP/rec.json" 'd["repaired"]')" 2
done

# With the child, which returns from a fork that it did not enter.
TARGET_ARGS='' trace_target syscalls -f 'syscall:*' --follow
to_csv
check "with its child: counts of each thread" threads "$TMP/calls.csv" "$TMP/syscalls.out" child
assert_eq "with its child: lost, exits without entry, calls that never return" \
	"$(json "$TMP/rec.json" '[d["lost"], d["orphans"], d["repaired"]]')" "[0, 1, 3]"

# The same program under strace; it has no dynamic linker, so all of its calls but execve are recorded.
# The number of futex calls depends on timing; strace does not count calls that never return.
for args in --alone --exec; do
	TARGET_ARGS=$args trace_command syscalls -f 'syscall:*'
	assert_eq "command $args: status" "$STATUS" 0
	"$KXRAY" report --json "$TRACE" >"$TMP/report.json"
	# shellcheck disable=SC2086
	strace -f -c -U name,calls -o "$TMP/strace" "$TARGETS/syscalls" --start=now $args \
		>"$TMP/strace.out" 2>"$TMP/strace.err" </dev/null
	# strace also counts its own execve of the program
	awk '$1 == "execve" { $2 = $2 - 1 } $1 == "total" { $2 = $2 - 1 } { print $1, $2 }' \
		"$TMP/strace" >"$TMP/strace.rest"
	check "command $args: as strace counts" same "$TMP/report.json" "$TMP/strace.rest" futex \
		exit exit_group
	assert_eq "command $args: exits without entry" "$(orphans)" 0
done

unset TARGET_ARGS

# A selection by glob, with exclusions.
trace_target syscalls -f 'syscall:get*id' -x 'syscall:getuid'
"$KXRAY" report --json "$TRACE" >"$TMP/report.json"
assert_eq "globs" "$(json "$TMP/report.json" 'sorted((f["name"], f["count"]) for f in d["functions"]
	if f["name"] in ("getppid", "getuid", "write"))')" "[('getppid', 1700)]"

# Arguments and results, in all formats.
trace_target syscalls -f 'syscall:*' --args 3
to_csv
check "arguments and results" results "$TMP/calls.csv" "$TMP/syscalls.out"
"$KXRAY" dump "$TRACE" >"$TMP/dump"
assert_eq "results in dump" "$(grep -c 'kxray:result {\\"value\\":-2}' "$TMP/dump") $(
	grep -c 'kxray:result {\\"value\\":7}' "$TMP/dump")" "50 300"
"$KXRAY" export -f chrome -o "$TMP/calls.json" "$TRACE" 2>/dev/null
assert_eq "results in chrome" "$(json "$TMP/calls.json" \
	'sum(e.get("args", {}).get("result") == "-2" for e in d["traceEvents"])')" 50
for version in 1 2 3 4; do
	trace_target syscalls -f syscall:openat --args 1 --fdr-version $version
	to_csv
	assert_eq "results in version $version" "$(grep -c ',openat,.*,-2.$' "$TMP/calls.csv")" 50
done
trace_target syscalls -f syscall:write -f syscall:openat
to_csv
assert_eq "no results without --args" "$(cut -d, -f 14 "$TMP/calls.csv" | sort -u | tr -d '\r\n')" result

# Calls that never return end with their thread.
trace_command syscalls -f 'syscall:*' --min-duration 30us
to_csv
assert_eq "only what lasts" "$(awk -F, 'NR > 1 && $7 < 30000 { print $4, $7 }' "$TMP/calls.csv")" ''

# Inside a user function: 7 bytes, 300 times.
trace_target syscalls -f shout -f syscall:write --args 3 --callers
to_csv
assert_eq "inside a user function" "$(awk -F, '$4 == "write" && $9 == 2 && $14 == "7"' \
	"$TMP/calls.csv" | wc -l) $(awk -F, '$4 == "shout" && $9 == 1' "$TMP/calls.csv" | wc -l)" "300 300"
"$KXRAY" export -f perfetto -o "$TMP/calls.pftrace" "$TRACE" 2>/dev/null
python3 tests/readers/perfetto.py "$TMP/calls.pftrace" >"$TMP/perfetto.calls"
check "nested in time in Perfetto" nested "$TMP/perfetto.calls" 300 shout write
assert_eq "results in Perfetto" "$(grep -c '"write".* result="7"' "$TMP/perfetto.calls")" 300
for tool in $(llvm_xrays); do
	stacks=$("$tool" stack -all-stacks -stack-format=flame -aggregation-type=count \
		-instr_map="$TRACE.map" "$TRACE" 2>&1)
	assert_contains "llvm-xray ${tool//[^0-9]/} stack" "$stacks" "shout;write; 300"
	run "$tool" account -f csv -m "$TRACE.map" "$TRACE"
	assert_contains "llvm-xray ${tool//[^0-9]/} account" "$(tr -d '" ' <<<"$OUT" |
		awk -F, '/write/ { print $2 }')" 301
done

# The program is killed in a read: the call ends before the thread does. The other read began before the attach.
start_target syscalls --hang
target=$PID
start_kxray "$target" -f syscall:read -f syscall:write
go_target
reads() { [ "$(cut -d' ' -f1 "/proc/$target/syscall" 2>/dev/null)" = 0 ] && grep -q pid "$TMP/syscalls.out"; }
wait_for reads || fail "blocked" "the target does not read"
kill -KILL "$target"
end_target "$target" 2>/dev/null
end_kxray
to_csv
assert_eq "killed in a read" "$STATUS $(awk -F, '$4 == "read" { print $11 }' "$TMP/calls.csv") $(
	grep -c ',write,' "$TMP/calls.csv") $(orphans)" "0 exit 301 1"

# Two processes in one recording.
start_target syscalls
first=$PID first_in=$TARGET_IN
mv "$TMP/syscalls.out" "$TMP/first.out"
start_target syscalls
start_kxray "$first,$PID" -f 'syscall:*'
printf g >&"$first_in"
go_target
end_target "$PID"
second_status=$STATUS
exec {first_in}>&-
end_target "$first"
end_kxray
assert_eq "two processes: statuses" "$STATUS $second_status" "0 0"
to_csv
check "two processes: the first" threads "$TMP/calls.csv" "$TMP/first.out"
check "two processes: the second" threads "$TMP/calls.csv" "$TMP/syscalls.out"
assert_eq "two processes: exits without entry" "$(orphans)" 2

# The list of traceable system calls needs no process.
run "$KXRAY" functions -f 'syscall:open*' --json
assert_eq "functions" "$(json "$TMP/run.out" '[(f["name"], f["module"]) for f in d][:2]')" \
	"[('open', 'syscall'), ('openat', 'syscall')]"
