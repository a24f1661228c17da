#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 52 s
#
# System calls on other kernels: the counts of each thread are the target's own, those of the whole
# program are those of strace -c on the same kernel.
#
#   tests/vm/syscalls.sh [SERIES...]        default $KX_VM_SERIES, or 6.1, whose verifier allows least
series_list=${*:-${KX_VM_SERIES:-6.1}}
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/vm/table.sh
. tests/vm/table.sh

vm_needs vm_syscalls || exit 0

cat >"$TMP/guest" <<'END'
mkfifo /tmp/in
/syscalls </tmp/in >/out/did 2>&1 &
target=$!
exec 3>/tmp/in
until grep -q ready /out/did; do sleep 0.1; done
/kxray record -p $target --ring-size 4M -f 'syscall:*' --args 3 -o /out/pid.xray --json >/out/pid.json \
	2>/out/pid.err &
kxray=$!
until grep -q '^kxray: recording' /out/pid.err; do kill -0 $kxray || break; sleep 0.1; done
printf g >&3
wait $target
echo $? >/out/pid.target
wait $kxray
echo $? >/out/pid.status

/kxray record --ring-size 4M -f 'syscall:*' -o /out/command.xray -- /syscalls --start=now --alone \
	>/out/command.out 2>/out/command.err
echo $? >/out/command.status
/kxray record --ring-size 4M -f shout -f syscall:write --args 3 --callers -o /out/inside.xray -- /syscalls \
	--start=now --alone >/out/inside.out 2>/out/inside.err
echo $? >/out/inside.status
/kxray record --ring-size 4M -f shout -f syscall:write --args 3 --depth 1 --min-duration 1ns --sched \
	-o /out/reduced.xray -- /syscalls --start=now --alone >/out/reduced.out 2>/out/reduced.err
echo $? >/out/reduced.status
/strace -f -c -U name,calls -o /out/strace /syscalls --start=now --alone >/out/strace.out 2>&1
END

same() # NAME WHAT...
{
	local name=$1 difference
	shift
	difference=$(python3 tests/live/syscalls.py "$@" 2>&1)
	assert_eq "$name" "$difference" ''
}

check()
{
	local name=vm_$1 out=$2

	assert_eq "${name}_run" "$STATUS" 0
	assert_eq "${name}_kernel_log" "$ERR" ''
	assert_eq "${name}_statuses" \
		"$(cat "$out/pid.target" "$out/pid.status" "$out/command.status" \
		"$out/inside.status" "$out/reduced.status" | tr '\n' ' ')" "0 0 0 0 0 "
	if [ ! -s "$out/reduced.xray" ]; then
		fail "${name}_trace" "$(cat "$out"/{pid,command,inside,reduced}.err)"
		return
	fi
	assert_eq "${name}_lost" "$(json "$out/pid.json" '[d["lost"], d["orphans"]]')" "[0, 1]"
	"$KXRAY" export -f csv -o "$TMP/calls.csv" "$out/pid.xray" 2>"$TMP/export.err"
	same "${name}_threads" threads "$TMP/calls.csv" "$out/did"
	same "${name}_results" results "$TMP/calls.csv" "$out/did"
	"$KXRAY" export -f csv -o "$TMP/calls.csv" "$out/inside.xray" 2>"$TMP/export.err"
	# depth 2 and 7 bytes; the two other writes print the target's output
	assert_eq "${name}_inside_a_function" "$(awk -F, '$4 == "write" {
		n[$9]++; bytes[$9] += $14 } END { print n[1], n[2], bytes[2] }' "$TMP/calls.csv")" \
		"2 300 2100"
	"$KXRAY" export -f csv -o "$TMP/calls.csv" "$out/reduced.xray" 2>"$TMP/export.err"
	assert_eq "${name}_outermost_only" "$(awk -F, '$4 == "write" || $4 == "shout" {
		n[$4 $9]++ } END { print n["write1"], n["write2"], n["shout1"] }' "$TMP/calls.csv")" \
		"2  300"
	"$KXRAY" report --json "$out/command.xray" >"$TMP/report.json"
	awk '$1 == "execve" || $1 == "total" { $2 = $2 - 1 } { print $1, $2 }' "$out/strace" \
		>"$TMP/strace"
	same "${name}_as_strace_counts" same "$TMP/report.json" "$TMP/strace" futex exit exit_group
	documented "$1" 'system calls' yes
}

vm_each "$series_list" "$TMP/guest" check \
	"$KXRAY:/kxray $TARGETS/syscalls:/syscalls $(command -v strace):/strace"
