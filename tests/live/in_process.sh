#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 10 s
# record --in-process: counts and times are the target's own, also with full rings; refusals; a kxray that is killed leaves the code
# of the file, with its keeper's or `kxray detach`'s help. More: scripts/hazards-in-process.sh
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

json_true() { [ "$(json "$1" "bool($2)")" = True ]; }
in_process() { json "$TMP/rec.json" "d['in_process']['$1']"; }

# traced LABEL CHECK...: both ended with status 0, some functions were recorded in process, and the CHECKs of expect.py hold
traced() {
	local label=$1
	shift
	assert_eq "$label: statuses" "$STATUS $TARGET_STATUS" "0 0"
	assert "$label: functions in process" "$(cat "$TMP/rec.json" "$TMP/rec.err")" test "$(in_process functions)" -gt 0
	expect "$label" "$@"
}

# Four threads, in a session with functions that are left to uprobes; and the same functions by uprobes alone.
by_name='sorted((f["name"], f["count"]) for f in d["functions"])'
trace_target counts "${COUNTED[@]}" --in-process
traced "four threads" report account fdr threads summary sleep
assert_eq "four threads: all functions are counted" "$(($(in_process functions) + $(in_process by_uprobes)))" \
	"$(json "$TMP/did.json" 'len(d["calls"])')"
assert "four threads: the time for which threads were stopped" "$(cat "$TMP/rec.json")" json_true "$TMP/rec.json" \
	'd["in_process"]["stopped_ms"] > 0 and d["in_process"]["jumps"] >= d["in_process"]["functions"]'
"$KXRAY" report --json "$TRACE" >"$TMP/in_process.json"
trace_target counts "${COUNTED[@]}"
"$KXRAY" report --json "$TRACE" >"$TMP/uprobes.json"
assert_eq "the same counts as by uprobes" "$(json "$TMP/in_process.json" "$by_name")" "$(json "$TMP/uprobes.json" "$by_name")"

# The summary for people
start_target counts
_new_recording
"$KXRAY" record --in-process -p "$PID" -f outer -f middle -o "$TRACE" 2>"$TMP/rec.err" &
KX_PID=$!
_pids+=("$KX_PID")
wait_for _records
assert_eq "none of the areas is in a core dump" "$(awk '/^[0-9a-f]+-/ { area = /dev\/zero/; areas += area } /^VmFlags:/ && area && !/ dd( |$)/ { dumped++ }
	END { print (areas > 2), dumped + 0 }' "/proc/$PID/smaps")" "1 0"
go_target
end_target "$PID"
end_kxray
assert "the summary's line" "$(cat "$TMP/rec.err")" grep -qE \
	'^kxray: in process: [0-9,]+ functions? \([0-9,]+ jumps?\), [0-9,]+ by uprobes; threads were stopped for [0-9.]+ ms at most$' \
	"$TMP/rec.err"

# Frames that end by exceptions have no exits.
trace_target throws -f catcher -f passer -f thrower --in-process
traced "exceptions" cxx=long repaired=40000 report fdr

# Each call lasts at least as long as its function measures itself, and half of them less than 0.5 us longer.
trace_target spins -f spin --in-process
traced "times" report fdr summary
assert_eq "times: in process" "$(in_process functions) $(in_process by_uprobes)" "1 0"
python3 - "$TRACE" "$TMP/did.json" >"$TMP/times" <<'PY' || fail "times: read" "$(tail -n 1 "$TMP/times")"
import json
import sys
sys.path.insert(0, "tests/live")
import fdr
trace = fdr.Trace(sys.argv[1])
with open(sys.argv[2]) as f:
    measured = json.load(f)["ticks"]
ticks = [r.tsc for t in trace.threads.values() for r in t.records if r.kind in ("entry", "exit")]
over = sorted(b - a - m for a, b, m in zip(ticks[::2], ticks[1::2], measured))
print(len(over), over[0] >= 0, over[len(over) // 2] < 0.5e-6 * trace.hz, over[0], over[len(over) // 2])
PY
assert_eq "times: each is the function's own and some ticks" "$(cut -d ' ' -f 1-3 "$TMP/times") $(cut -d ' ' -f 4- "$TMP/times")" \
	"300 True True $(cut -d ' ' -f 4- "$TMP/times")"

# Rings that are full while kxray is stopped: each call is recorded or lost, and the trace says where.
functions=(-f 'leaf_*' -f outer -f middle -f inner -f recursive -f 'tail_*')
start_target counts --repeat=2
TARGET_PID=$PID
start_kxray "$PID" "${functions[@]}" --in-process --ring-size 16K
kill -STOP "$KX_PID"
go_target
wait_for has_text calls "$TMP/counts.out"
kill -CONT "$KX_PID"
end_target "$TARGET_PID"
TARGET_STATUS=$STATUS
end_kxray
tail -n 1 "$TMP/counts.out" >"$TMP/did.json"
traced "full rings" only=leaf_a,leaf_b,leaf_nop5,outer,middle,inner,recursive,tail_first,tail_last loss

# A trigger needs a BPF program at its function, which keeps its uprobe: else it never fires.
start_target counts
TARGET_PID=$PID
start_kxray "$TARGET_PID" -f leaf_a --in-process --flight-recorder 1M --trigger leaf_b@entry
go_target
end_target "$TARGET_PID"
end_kxray
assert_contains "a trigger fires" "$(grep '^kxray: wrote ' "$TMP/rec.err")" "trace.1.xray (entry: leaf_b in thread "
assert_eq "a trigger's function has uprobes" "$(json "$TMP/rec.json" '[d["in_process"][k] for k in ("functions", "by_uprobes")]')" "[1, 1]"

# SIGKILL while two threads are in recorded calls: the keeper restores the code; where it is killed, too, kxray detach does.
changed() { python3 -S tests/live/process_code.py "$TARGET_PID"; }
works() { # the target goes on and is right
	go_target x
	ran=$((ran + 1))
	wait_for eval '[ "$(grep -c ran "$TMP/loop.out")" = "$ran" ]'
}
keeper() { read -r KEEPER _ <"/proc/$KX_PID/task/$KX_PID/children"; }
kill_both() {
	start_kxray "$TARGET_PID" -f 'hz_*' --in-process
	keeper
	kill -KILL "$KEEPER" "$KX_PID"
	end_kxray
	works
}
TARGETS=$BUILD/tests/hazards start_target loop
TARGET_PID=$PID ran=0
start_kxray "$PID" -f 'hz_*' --in-process
works
# Its reader goes before other threads, and a process that gets a CPU wakes it. Field 19 of stat is the nice value.
assert_eq "the reader's priority" "$(awk '{ print $19 }' "/proc/$KX_PID/stat")" -10
assert_contains "a program at the timer interrupt" "$(awk '/^prog_id/ { print $2 }' "/proc/$KX_PID"/fdinfo/* 2>/dev/null |
	xargs -n 1 "${BPFTOOL:-$(command -v bpftool || echo /usr/sbin/bpftool)}" prog show id)" "name kx_tick"
assert "before a kill: jumps" "no byte differs from the file" test "$(changed)" -gt 0
keeper
kill -KILL "$KX_PID"
end_kxray
wait_for _is_over "$KEEPER"
assert_eq "kxray is killed: bytes that differ from the file when its keeper has ended" "$(changed)" 0
works
kill_both
assert "both are killed: inert jumps" "no byte differs from the file" test "$(changed)" -gt 0
run "$KXRAY" record -p "$PID" -f 'hz_*' -d 0.1 -o "$TMP/beside.xray"
assert_contains "both are killed: what has changed the code, for uprobes" "$ERR" \
	"kxray record --in-process has jumps in their code in process $PID: end it first, or run 'kxray detach -p $PID' if it was killed"
# Another recording takes them out, and leaves out no function for what it found.
again() {
	run "$KXRAY" record --in-process -p "$PID" -f 'hz_*' -d 0.1 -o "$TMP/again.xray"
	[[ $ERR != *"another kxray"*" records"* && $ERR != *"has jumps in their code"* ]] # its threads may not stop at once
}
wait_for again
assert_eq "both are killed: the next recording in process" "$STATUS $(grep -c "^kxray: left out" <<<"$ERR") $(changed)" "0 0 0"
works
kill_both
# It refuses while it takes the killed recorder for a living one, by the time of its last look. Memory may stay mapped (status 1), as a
# stack may hold an address in it.
detached() {
	run "$KXRAY" detach -p "$TARGET_PID"
	[[ $ERR != *"is recording it"* ]]
}
wait_for detached
assert_eq "kxray detach: bytes that differ from the file" "$(changed) $ERR" "0 "
works
run "$KXRAY" detach -p "$TARGET_PID"
assert "kxray detach again: nothing is left to restore" "$OUT $ERR" grep -qE '(: 0 jumps removed|^nothing of kxray is in)' "$TMP/run.out"

# SIGKILL while the rings get their pages, before any table is written: they are found by themselves.
mapped() { wc -l <"/proc/$TARGET_PID/maps"; }
before=$(mapped)
_new_recording
"$KXRAY" record --in-process -p "$TARGET_PID" -f 'hz_*' --ring-size 128M -o "$TRACE" 2>"$TMP/rec.err" &
KX_PID=$!
_pids+=("$KX_PID")
gets_pages() { awk '/^RssShmem:/ { exit $2 < 1024 }' "/proc/$KX_PID/status"; }
until gets_pages || _is_over "$KX_PID"; do :; done 2>/dev/null
keeper
kill -KILL "$KX_PID"
end_kxray
wait_for _is_over "$KEEPER"
assert_eq "kxray is killed before there is a table: mappings, bytes that differ from the file" "$(mapped) $(changed)" "$before 0"
works

# Refused: one sentence each, and nothing happens to the process.
refused() { # NAME PART OPTION...
	local name=$1 part=$2
	shift 2
	run "$KXRAY" record --in-process "$@"
	ERR=${ERR%$'\n'"Try 'kxray record --help'."}
	assert "refused, $name" "status $STATUS: $ERR" test "$STATUS" -gt 0 -a "$(wc -l <<<"$ERR")" = 1
	assert_contains "refused, $name: the reason" "$ERR" "$part"
}
here=(-p "$TARGET_PID" -f 'hz_*')
refused "no -p" "-p PID" -f 'hz_*'
refused "-a" "-a" -a -f "$BUILD/tests/hazards/loop:hz_*"
refused "a command" "-p PID" -f 'hz_*' -- true
refused "no -f" "-f" -p "$TARGET_PID"
refused "--exits" "--exits" "${here[@]}" --exits=none
refused "--args" "--args" "${here[@]}" --args 2
refused "--min-duration" "--min-duration" "${here[@]}" --min-duration 1ms
refused "--depth" "--depth" "${here[@]}" --depth 2
refused "--count" "--count" "${here[@]}" --count
refused "--max-overhead" "--max-overhead" "${here[@]}" --max-overhead 5%
refused "its end" "999999999" -p 999999999 -f 'hz_*'
assert_eq "refused: bytes that differ from the file" "$(changed)" 0
go_target q
end_target "$TARGET_PID"
assert_eq "the target's status and answer" "$STATUS $(tail -n 1 "$TMP/loop.out" | cut -c 1-5)" "0 right"

# Processes that are refused as a whole
start_target counts-static
refused "a static program" "static" -p "$PID" -f outer
end_target "$PID"
cat >"$TMP/filter.py" <<'PY'
import ctypes
import os
import struct
import sys
libc = ctypes.CDLL(None)
allow = ctypes.create_string_buffer(struct.pack("<HBBI", 6, 0, 0, 0x7fff0000))
program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", 1, ctypes.addressof(allow)))
libc.prctl(38, 1, 0, 0, 0)
if libc.prctl(22, 2, program, 0, 0):
    sys.exit(2)
os.execv(sys.argv[1], sys.argv[1:])
PY
printf '#!/bin/sh\nexec python3 %s %s\n' "$TMP/filter.py" "$BUILD/tests/hazards/loop" >"$TMP/filtered"
chmod +x "$TMP/filtered"
TARGETS=$TMP start_target filtered
refused "a seccomp filter" "seccomp" -p "$PID" -f 'hz_*'
go_target q
end_target "$PID"
assert_eq "a seccomp filter: the target's status" "$STATUS" 0
# The kernel says no: the likely cause is named
reason() { # NAME HOW PART
	TARGETS=$BUILD/tests/hazards start_target limits "$2"
	refused "$1" "$3" -p "$PID" -f 'hz_*'
	go_target q
	end_target "$PID"
	assert_eq "$1: the target's status" "$STATUS" 0
}
reason "no executable memory" mdwe "PR_SET_MDWE"
reason "all mappings taken" mappings "vm.max_map_count"
TARGETS=$BUILD/tests/hazards start_target patch
refused "the reason for every function" "in process (leave out --in-process): it may make memory executable" -p "$PID" -f 'hz_*'
end_target "$PID"

# Another kxray is named, whether it has uprobes or jumps there.
TARGETS=$BUILD/tests/hazards start_target loop
TARGET_PID=$PID
start_kxray "$TARGET_PID" -f 'hz_*' --exits=instruction
refused "probes of another kxray" "in process: another kxray (process $KX_PID) has probes at " -p "$TARGET_PID" -f 'hz_*' -d 0.1 -o "$TMP/other.xray"
kill -INT "$KX_PID"
end_kxray
start_kxray "$TARGET_PID" -f 'hz_*' --in-process
refused "jumps of another kxray" "another kxray (process $KX_PID) records process $TARGET_PID in process" -p "$TARGET_PID" -f 'hz_*' -d 0.1 -o "$TMP/other.xray"
kill -INT "$KX_PID"
end_kxray
go_target q
end_target "$TARGET_PID"
assert_eq "two kxrays: the target's status" "$STATUS" 0

# Memory that is locked when it is mapped, and the process's limit: no room for the rings, or, with small ones, for the code.
# Without capabilities, the limit is heeded for root, too.
if command -v setpriv >/dev/null && command -v prlimit >/dev/null; then
	printf '#!/bin/sh\nexec prlimit --memlock=6291456:8388608 setpriv --bounding-set=-all --inh-caps=-all %s locked\n' "$BUILD/tests/hazards/limits" >"$TMP/locked"
	chmod +x "$TMP/locked"
	TARGETS=$TMP start_target locked
	for size in 32M 64K; do
		refused "locked memory, $size" "leave out --in-process): all that it maps is locked in memory (mlockall), and its limit (RLIMIT_MEMLOCK)" \
			-p "$PID" -f 'hz_*' --ring-size $size -d 0.1 -o "$TMP/other.xray"
	done
	kill "$PID"
	wait "$PID" 2>/dev/null
else
	skip "locked memory" "setpriv or prlimit is not installed"
fi

# A process whose only thread sleeps for a time: recorded, and nothing of it is left when kxray is killed; its sleep goes on.
left() { echo "$(changed) $(python3 -S tests/live/process_code.py --vdso "$TARGET_PID") $(grep -cE 'dev/zero|rwxp' "/proc/$TARGET_PID/maps")"; }
start_target sleeper 1000000
TARGET_PID=$PID
start_kxray "$PID" -f tick --in-process
assert "it sleeps: jumps" "no byte differs from the file" test "$(changed)" -gt 0
keeper
kill -KILL "$KX_PID"
end_kxray
wait_for _is_over "$KEEPER"
assert_eq "it sleeps: bytes of its code and its vDSO, and mappings, when the keeper has ended" "$(left)" "0 0 0"

# All of libc: uprobes are at the return of each of its short system calls, so that none of them can be borrowed.
libc=$(grep -o '/[^ ]*libc\.so[^ ]*' "/proc/$TARGET_PID/maps" | head -n 1)
start_target counts
COUNTS_PID=$PID
start_kxray "$PID" -f 'libc.so*:*' --in-process
kill -INT "$KX_PID"
end_kxray
assert_eq "all of libc: status" "$STATUS" 0
assert_eq "all of libc: bytes of it and of the vDSO when kxray has ended" \
	"$(python3 -S tests/live/process_code.py "$PID" "$libc") $(python3 -S tests/live/process_code.py --vdso "$PID")" "0 0"
go_target q
end_target "$COUNTS_PID"
assert_eq "all of libc: the target's status" "$STATUS" 0
PID=$TARGET_PID

# Without a keeper: said, as for probes.
if command -v strace >/dev/null; then
	_new_recording
	strace -qq -o /dev/null -e trace=clone -e inject=clone:error=EAGAIN:when=1 "$KXRAY" record --in-process -p "$PID" -f tick \
		-o "$TRACE" 2>"$TMP/rec.err" &
	KX_PID=$!
	_pids+=("$KX_PID")
	wait_for _records
	assert_contains "no keeper" "$(cat "$TMP/rec.err")" "if kxray is killed: after a SIGKILL, 'kxray detach -p $PID' does"
	kill -INT "$(<"/proc/$KX_PID/task/$KX_PID/children")"
	end_kxray
	assert_eq "no keeper: nothing is left at the end" "$(left)" "0 0 0"
else
	skip "no keeper" "strace is not installed"
fi
kill -TERM "$TARGET_PID"
end_target "$TARGET_PID"
assert_eq "it sleeps: SIGTERM ends that" "$STATUS $(tail -n 1 "$TMP/sleeper.out")" '0 {"calls":{"tick":1}}'
