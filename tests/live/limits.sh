#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 12 s
# Limits of the process (ulimit) and missing capabilities: what fails is explained by them, in one sentence.
. "$(dirname "$0")/../lib.sh"

"$TARGETS/sleeper" --start=now >"$TMP/sleeper.out" &
PID=$!
_pids+=("$PID")
wait_for has_text ready "$TMP/sleeper.out"
trace=$TMP/t.xray
record=("$KXRAY" record -q -d 0.2 -o "$trace" --ring-size 16M)

# limited LIMIT COMMAND...: like run
limited() {
	local limit=$1
	shift
	run bash -c "ulimit $limit && exec \"\$@\"" - "$@"
}
# explained NAME PART: the command has failed with one line that contains PART, and left no file
explained() {
	assert_eq "$1: status" "$STATUS" 1
	assert_eq "$1: one line" "$(wc -l <"$TMP/run.err")" 1
	assert_contains "$1: reason" "$ERR" "$2"
	assert_eq "$1: nothing is left" "$(ls "$trace"* 2>/dev/null)" ""
	rm -f "$trace" "$trace.map"
}

for n in 16 8; do
	limited "-n $n" "${record[@]}" -f tick -p "$PID"
	explained "$n open files: record" "this process may have at most $n open files (raise the limit, as in 'ulimit -n "
	limited "-n $n" "${record[@]}" -f 'syscall:read' -- true
	assert_contains "$n open files: command" "$ERR" "this process may have at most $n open files"
	limited "-n $n" "$KXRAY" doctor
	assert_eq "$n open files: doctor" "$STATUS $(tail -n 1 "$TMP/run.out")" \
		"1 kxray cannot record here: this process may have at most $n open files (raise the limit, as in 'ulimit -n 4096')."
done
limited "-S -n 16" "${record[@]}" -f tick -p "$PID"
assert_eq "a limit that may be raised is raised" "$STATUS $ERR" "0 "
rm -f "$trace" "$trace.map"

limited "-v 20000" "${record[@]}" -f tick -p "$PID"
explained "address space: record" "this process may use at most 20000 KiB of address space (raise the limit, as in 'ulimit -v unlimited')"
limited "-d 1000" "${record[@]}" -f tick -p "$PID"
explained "data: record" "this process may have at most 1000 KiB of data (raise the limit, as in 'ulimit -d unlimited')"
limited "-d 1000" "$KXRAY" functions -p "$PID" -f tick
explained "data: functions" "this process may have at most 1000 KiB of data"
# libbpf has too little for the kernel's types, and says "No such process"
limited "-d 4000" "${record[@]}" -f 'syscall:read' -p "$PID"
explained "data for the kernel's types: record" "this process may have at most 4000 KiB of data"
limited "-d 4000" "$KXRAY" doctor
assert_eq "data: doctor" "$STATUS $(tail -n 1 "$TMP/run.out")" \
	"1 kxray cannot record here: this process may have at most 4000 KiB of data (raise the limit, as in 'ulimit -d unlimited')."
assert_eq "data: doctor accuses nothing else" \
	"$(grep '^  no .*: ' "$TMP/run.out" | grep -vc "not known: \|CAP_")" 0
limited "-f 1" "${record[@]}" -f tick -p "$PID"
explained "file size: record" "this process may write files of at most 1 KiB (raise the limit, as in 'ulimit -f unlimited')"
"${record[@]}" -f tick -p "$PID"
limited "-n 8 -v 30000" "$KXRAY" report "$trace"
assert_eq "report needs little" "$STATUS $ERR" "0 "
rm -f "$trace" "$trace.map"

# Capabilities.
command -v setpriv >/dev/null || { skip "capabilities" "no setpriv here"; exit 0; }
with_caps() { # CAPS COMMAND...
	local caps=$1
	shift
	run setpriv --bounding-set="$caps" --inh-caps=-all "$@"
}
for caps in -sys_admin -all,+bpf,+perfmon,+sys_ptrace; do
	with_caps "$caps" "${record[@]}" -f tick -p "$PID"
	if [ "$STATUS" = 0 ]; then
		pass "$caps: record"
		rm -f "$trace" "$trace.map"
	else
		# a kernel whose only uprobes are perf events
		explained "$caps: record" "on this kernel they need perf events, and these need CAP_SYS_ADMIN"
		with_caps "$caps" "$KXRAY" doctor
		assert_contains "$caps: doctor" "$(tail -n 1 "$TMP/run.out")" "this user lacks CAP_SYS_ADMIN"
	fi
	with_caps "$caps" "${record[@]}" -f tick -p "$PID" --mechanism single
	if [ "$STATUS" = 0 ]; then pass "$caps: perf event uprobes"; else explained "$caps: perf event uprobes" "CAP_SYS_ADMIN"; fi
done
with_caps -all,+sys_ptrace "${record[@]}" -f tick -p "$PID"
explained "no capability for BPF: record" "run kxray as root, or with CAP_"
assert_contains "no capability for BPF: all that are needed" "$ERR" "CAP_SYS_PTRACE"
with_caps -sys_ptrace "${record[@]}" -f tick -p "$PID"
explained "no CAP_SYS_PTRACE: record" "CAP_SYS_PTRACE"
with_caps -all,+sys_admin,+sys_ptrace "${record[@]}" -f tick -p "$PID"
assert_eq "CAP_SYS_ADMIN and CAP_SYS_PTRACE are enough" "$STATUS $ERR" "0 "
kill -KILL "$PID"
