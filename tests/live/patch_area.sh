#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 8 s
# Jumps in the code of a running process, and their removal: by kxray, by its keeper after kxray was killed, by `kxray detach`. The process computes
# the same, its code is the file's again, and nothing stays mapped. More kills: tests/live/patch_area.sh ROUNDS [SEED]
. "$(dirname "$0")/../lib.sh"
. tests/live/remote.sh

ALL="removed areas 1 restored 65 foreign 0 stays 0 "
changed() { "$PATCHER" changed "$TARGET_PID"; }
is_unchanged() { [ "$(changed)" = 0 ]; }
mapped() { grep -cE '/dev/zero|rwxp' "/proc/${1:-$TARGET_PID}/maps"; }
install() { # [guard]
	start_patcher install "$TARGET_PID" "$@"
	wait_for has_text "installed " "$TMP/patcher.out" || fail "install" "$(cat "$TMP/patcher.out")"
}
# works LABEL BYTE WORD: the target's next line
works() {
	local n
	n=$(wc -l <"$TMP/target.out")
	tell "$2"
	wait_for has_lines $((n + 1)) "$TMP/target.out"
	assert_eq "$1" "$(last_line)" "$3"
}
has_lines() { [ "$(wc -l <"$2")" -ge "$1" ]; }
kill_patcher() {
	kill -KILL "$PATCHER_PID"
	end_patcher 2>/dev/null
}
detach() { run "$KXRAY" detach -p "$1"; }

start patched 4
install
assert_contains "all are installed" "$(cat "$TMP/patcher.out")" "installed 65"
assert "the code has jumps" "$(changed) bytes differ" test "$(changed)" -gt 65
works "it works with them" x right
works "and a forked child" f forked
detach "$TARGET_PID"
assert_eq "a recording that lives" "$STATUS $ERR" \
	"1 kxray detach: process $TARGET_PID: kxray record is recording it, or was until 2 s ago: end that first, or try again"
tell_patcher
end_patcher
assert_eq "removed" "$(tail -n 2 "$TMP/patcher.out")" "passed 1
$ALL"
assert_eq "bytes, mappings" "$(changed) $(mapped)" "0 0"
detach "$TARGET_PID"
assert_eq "detach: nothing" "$STATUS $OUT$ERR" "0 nothing of kxray is in process $TARGET_PID"

# It may not, or there is nothing: one sentence with what to do.
detach 4194301
assert_eq "detach: no such process" "$STATUS $OUT$ERR" "1 kxray detach: there is no process 4194301"
detach 2 # some kernels open its memory, which is empty
assert "detach: a kernel thread" "status $STATUS: $OUT$ERR" \
	grep -qE '^(kxray detach: process 2 is a kernel thread: .*|nothing of kxray is in process 2)$' <<<"$OUT$ERR"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 711 "$TMP"
	cp "$KXRAY" "$TMP/kxray"
	run setpriv --reuid 65534 --regid 65534 --clear-groups "$TMP/kxray" detach -p "$TARGET_PID"
	assert_eq "detach: another user's process" "$STATUS $OUT$ERR" "1 kxray detach: no permission to look at process $TARGET_PID: it \
belongs to another user or is protected; run as that user or as root, or with the capability CAP_SYS_PTRACE"
else
	skip "detach: another user's process" "needs root and setpriv"
fi

# killed before the table was written: the rings are found by themselves
run "$PATCHER" rings "$TARGET_PID"
assert_eq "only rings" "$STATUS $(mapped)" "0 1"
detach "$TARGET_PID"
assert_eq "only rings: detach" "$STATUS $OUT$ERR $(mapped)" "0 process $TARGET_PID: 0 jumps removed, all memory unmapped 0"

# another module at the same place
run "$PATCHER" stale "$TARGET_PID"
assert_eq "not the module" "$OUT" "not writable 1
another file 1
another part 1
another file 1
0
removed areas 1 restored 0 foreign 0 stays 0 "
assert_eq "not the module: bytes, mappings" "$(changed) $(mapped)" "0 0"

# killed, and without a keeper: all stays, and detach takes it out; another's bytes stay
install
kill_patcher
works "killed without a keeper" x right
works "a child that stays" k right
child=$(awk '/^child/ { print $2 }' "$TMP/target.out")
mapped_before=$(mapped)
detached() { # PID: when the last heartbeat is 2 s old
	detach "$1"
	[[ $ERR != *"is recording it"* ]]
}
wait_for detached "$child"
assert_eq "detach of the child" "$STATUS $OUT$ERR" "0 process $child: 65 jumps removed, all memory unmapped"
assert_eq "nothing is mapped there" "$(mapped "$child")" 0
assert_eq "its parent's stays" "$(mapped)" "$mapped_before"
at=$(python3 - "$TARGET_PID" "$TARGETS/patched" <<'EOF'
import sys
pid, path = sys.argv[1:]
text = next(l for l in open(f"/proc/{pid}/maps") if path in l and " rwxp " in l).split()
start, end = (int(x, 16) for x in text[0].split("-"))
with open(f"/proc/{pid}/mem", "r+b", 0) as mem, open(path, "rb") as f:
    mem.seek(start)
    got = mem.read(end - start)
    f.seek(int(text[2], 16))
    want = f.read(end - start)
    last = max(i for i in range(len(want)) if got[i] == 0xe9 and want[i] != 0xe9)
    mem.seek(start + last)
    mem.write(b"\x90")  # in p_stuck, which is not called
EOF
)
wait_for detached "$TARGET_PID"
assert_eq "detach, and another's bytes $at" "$STATUS $OUT$ERR" \
	"1 process $TARGET_PID: 64 jumps removed, 1 left that another program has changed, all memory unmapped"
assert_eq "nothing is mapped" "$(mapped)" 0
kill -TERM "$child"
works "then it works" x right
finish "then" '{"wrong":0}'

# killed: the keeper does it
start patched 2
install guard
kill_patcher
wait_for is_unchanged
assert_eq "the keeper: bytes" "$(changed)" 0
wait_for eval '[ "$(mapped)" = 0 ]'
assert_eq "the keeper: mappings" "$(mapped)" 0
works "the keeper: it works" x right

# while something traces it the keeper waits, but the recorder is off
install guard
run "$PATCHER" head "$TARGET_PID"
assert_eq "enabled" "$OUT" "enabled 1"
"$PATCHER" hold "$TARGET_PID" <>"$TMP/.pause" >"$TMP/hold.out" &
HOLD=$!
_pids+=("$HOLD")
wait_for has_text stopped "$TMP/hold.out"
kill_patcher
is_off() { [ "$("$PATCHER" head "$TARGET_PID")" = "enabled 0" ]; }
wait_for is_off
assert_eq "a debugger: switched off" "$("$PATCHER" head "$TARGET_PID")" "enabled 0"
assert "a debugger: the jumps stay" "$(changed) bytes differ" test "$(changed)" -gt 65
run "$PATCHER" remove "$TARGET_PID"
assert_contains "a debugger: named" "$OUT" "error 16 process $TARGET_PID is traced by patcher (process "
{
	kill -KILL "$HOLD"
	wait "$HOLD"
} 2>/dev/null
wait_for is_unchanged
wait_for eval '[ "$(mapped)" = 0 ]'
assert_eq "after the debugger" "$(changed) $(mapped)" "0 0"
finish "after the debugger" '{"wrong":0}'

# while a thread is in vfork, which nothing can stop, the keeper tries again, and the other threads work
start patched 2
install guard
tell v
in_vfork() { is_in_state "$TARGET_PID" D; }
wait_for in_vfork
kill_patcher
wait_for is_off
tried() { [ "$(date +%s%3N)" -gt $((began + 1500)) ]; } # more than once
began=$(date +%s%3N)
wait_for tried
assert "vfork: the jumps stay" "$(changed) bytes differ" test "$(changed)" -gt 65
remove_beside_keeper() { # which traces it for a moment, again and again
	run "$PATCHER" remove "$TARGET_PID"
	[[ $OUT != *"is traced by kx-keeper"* ]]
}
wait_for remove_beside_keeper
assert_eq "vfork: named" "$OUT" "error 16 process $(pgrep -P "$TARGET_PID") runs in the memory of process $TARGET_PID, as after vfork"
detach_beside_keeper() { # and when the recorder has been silent for long enough
	detach "$TARGET_PID"
	[[ $ERR != *"is traced by kx-keeper"* && $ERR != *"or was until 2 s ago"* ]]
}
wait_for detach_beside_keeper
assert_eq "vfork: detach" "$STATUS $OUT$ERR" "1 kxray detach: process $(pgrep -P "$TARGET_PID") runs in the memory of process $TARGET_PID, \
as after vfork; its jumps stay for now, and record nothing: try again later"
works "vfork: it works" x right
wait_for eval '[ "$(changed) $(mapped)" = "0 0" ]'
assert_eq "after vfork" "$(changed) $(mapped)" "0 0"
finish "after vfork" '{"wrong":0}'

# execve drops all
start patched 1
install
kill_patcher
tell e
wait_for eval '[ "$(grep -c ready "$TMP/target.out")" = 2 ]'
run "$PATCHER" remove "$TARGET_PID"
assert_eq "after execve" "$OUT" "removed areas 0 restored 0 foreign 0 stays 0 "
# no calls can be borrowed: the bytes are restored, the rest stays
install
kill_patcher
works "seccomp" s right
run "$PATCHER" remove "$TARGET_PID"
assert_eq "seccomp: removed" "$OUT" "removed areas 1 restored 65 foreign 0 stays 1 process $TARGET_PID cannot be made to do system calls: it has a seccomp filter, which may forbid system calls"
assert_eq "seccomp: bytes" "$(changed)" 0
works "seccomp: it works" x right
finish "seccomp" '{"wrong":0}'

# a thread that stays in a window
for mode in stuck "stuck altstack"; do
	# shellcheck disable=SC2086
	start patched 1 $mode
	install
	assert_eq "$mode: one is left out" "$(cat "$TMP/patcher.out")" "left 1
stuck 1
installed 64"
	tell_patcher
	end_patcher
	assert_eq "$mode: removed" "$(tail -n 1 "$TMP/patcher.out")" "${ALL/65/64}"
	works "$mode: it works" d right
	finish "$mode" '{"wrong":0}'
done
# a thread that stays in a trampoline
start patched 1 late
install
tell l
wait_for has_text late "$TMP/target.out"
tell_patcher
end_patcher
assert_eq "late: its trampoline stays" "$(tail -n 1 "$TMP/patcher.out")" \
	"removed areas 1 restored 65 foreign 0 stays 1 a thread is inside one of its functions"
assert_eq "late: bytes" "$(changed)" 0
works "late: it works" d right
run "$PATCHER" remove "$TARGET_PID"
assert_eq "late: then nothing stays" "$OUT" "removed areas 1 restored 0 foreign 0 stays 0 "
finish "late" '{"wrong":0}'

# killed at random moments; what is left is removed, sometimes by one that is killed too
rounds=${1:-40}
start patched 2
run python3 tests/live/remote_kills.py "$rounds" "${2:-$RANDOM}" "$PATCHER" cycle "$TARGET_PID"
assert_eq "killed" "$STATUS $OUT" "0 killed $rounds"
works "it works" x right
while run "$PATCHER" remove "$TARGET_PID"; [ "$OUT" != "removed areas 0 restored 0 foreign 0 stays 0 " ]; do :; done
assert_eq "bytes, writable code" "$(changed) $(grep -c rwxp "/proc/$TARGET_PID/maps")" "0 0"
works "it works without" x right
finish "killed" '{"wrong":0}'
