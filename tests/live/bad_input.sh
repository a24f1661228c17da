#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: alone, 33 s
# Targets and files that cannot be traced, read or written: kxray prints one sentence and ends with the
# documented status. It leaves no file and no probe, and the target keeps running unchanged.
. "$(dirname "$0")/../lib.sh"
chmod 711 "$TMP"
mkdir "$TMP/here"

# refused NAME STATUS PART COMMAND...: runs COMMAND in an empty folder, which must stay empty
refused() {
	local name=$1 status=$2 part=$3 sentence lines left
	shift 3
	run env -C "$TMP/here" timeout 30 "$@"
	sentence=$(head -n 1 <<<"$ERR")
	# after wrong usage, a second line may refer to --help
	lines=$(grep -vc "^Try 'kxray.* --help'.$" <<<"$ERR")
	left=$(ls -A "$TMP/here")
	rm -rf "$TMP/here" && mkdir "$TMP/here"
	if [ "$STATUS" != "$status" ]; then
		fail "$name" "status $STATUS, not $status: $ERR"
	elif [ "$lines" != 1 ] || [[ $ERR = *Usage:* ]] || [ -n "$OUT" ]; then
		fail "$name" "not one sentence: $ERR $OUT"
	elif [[ $sentence != "kxray"*": "* ]] || [ ${#sentence} -lt 30 ]; then
		fail "$name" "no clear sentence: $sentence"
	elif [[ $sentence != *"$part"* ]]; then
		fail "$name" "'$part' is not in '$sentence'"
	elif [ -n "$left" ]; then
		fail "$name" "it left $left"
	else
		pass "$name"
	fi
}

# The target's code in memory differs from its files at each probe.
cat >"$TMP/changed.py" <<'END'
import sys
pid, n = sys.argv[1], 0
with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as mem:
    for line in maps:
        field = line.split()
        if field[1] == "r-xp" and len(field) == 6 and field[5][0] == "/":
            start, end = (int(x, 16) for x in field[0].split("-"))
            with open(f"/proc/{pid}/map_files/{field[0]}", "rb") as f:
                f.seek(int(field[2], 16))
                want = f.read(end - start)
            mem.seek(start)
            got = mem.read(end - start)[:len(want)]
            n += sum(a != b for a, b in zip(got, want)) if got != want else 0
print(n)
END
changed() { python3 "$TMP/changed.py" "$1"; }

# Ids of kxray's programs in the kernel.
programs() {
	"$BPFTOOL" -j prog show | python3 -c 'import json, sys
print(*(p["id"] for p in json.load(sys.stdin) if p.get("name", "").startswith("kx_")))'
}
BPFTOOL=$(command -v bpftool || echo /usr/sbin/bpftool)
before=" $(programs) "
# Another recording may have programs, too: wait until they are gone.
none_left() {
	local id
	for id in $(programs); do
		[[ $before = *" $id "* ]] || [[ " $new " != *" $id "* ]] || return 1
	done
}

start_target sleeper
sleeper=$PID
assert_eq "code of the target as it is on disk" "$(changed "$sleeper")" 0
"$KXRAY" record -p "$sleeper" -f tick -q -o "$TMP/probe.xray" &
_pids+=($!)
probed() { [ "$(changed "$sleeper")" != 0 ]; }
assert "a probe shows in it" "the check of the target's code finds no difference" wait_for probed
kill $!
wait $!

record=("$KXRAY" record -d 1)

# Process

refused "no such PID" 1 "no such process" "${record[@]}" -p 4194301
refused "no such PID among others" 1 4194301 "${record[@]}" -p "$sleeper,4194301"
refused "functions: no such PID" 1 "no process 4194301" "$KXRAY" functions -p 4194301
for pid in 0 -1 abc 1x 99999999999999999999 '' ','; do
	refused "-p '$pid'" 2 "-p takes process ids" "${record[@]}" -p "$pid"
done

python3 -c 'import threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
time.sleep(60)' &
threaded=$!
_pids+=("$threaded")
two_threads() { [ "$(find "/proc/$threaded/task" -mindepth 1 -maxdepth 1 | wc -l)" = 2 ]; }
wait_for two_threads
thread=$(find "/proc/$threaded/task" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort -n | tail -n 1)
refused "a thread's id" 1 "$thread is a thread" "${record[@]}" -p "$thread"

refused "a kernel thread" 1 "kernel thread" "${record[@]}" -p 2

python3 -c 'import os, time
pid = os.fork()
if pid:
    print(pid, flush=True)
    time.sleep(60)' >"$TMP/zombie" &
_pids+=($!)
is_zombie() { grep -q ') Z' "/proc/$(cat "$TMP/zombie")/stat"; }
wait_for is_zombie
refused "a zombie" 1 "ended" "${record[@]}" -p "$(cat "$TMP/zombie")"

# A program may end at any moment while kxray attaches.
cat >"$TMP/brief.c" <<'END'
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int work(int n);
int work(int n)
{
	usleep((useconds_t)n);
	return n;
}
int main(int argc, char **argv)
{
	for (int left = argc > 1 ? atoi(argv[1]) : 0; left > 0; left -= 500)
		work(500);
	return 7;
}
END
gcc -O1 -fno-inline -o "$TMP/brief" "$TMP/brief.c" || fail "brief" "cannot be compiled"
hangs=0 wrong='' traced=0 gone=0 target_wrong=0
attach_to_brief() { # MICROSECONDS that it works
	"$TMP/brief" "$1" &
	pid=$!
	run env -C "$TMP/here" timeout 20 "$KXRAY" record -d 5 -p "$pid" -f '*'
	case $STATUS in
	124) hangs=$((hangs + 1)) ;;
	0)
		traced=$((traced + 1))
		"$KXRAY" report "$TMP/here/trace.xray" >/dev/null 2>"$TMP/report.err" ||
			wrong="$wrong report: $(cat "$TMP/report.err")"
		;;
	1)
		gone=$((gone + 1))
		[ "$(wc -l <"$TMP/run.err")" = 1 ] || wrong="$wrong $ERR"
		[ -z "$(ls -A "$TMP/here")" ] || wrong="$wrong left: $(ls -A "$TMP/here")"
		;;
	*) wrong="$wrong status $STATUS: $ERR" ;;
	esac
	rm -f "$TMP/here/"*
	wait "$pid"
	[ $? = 7 ] || target_wrong=$((target_wrong + 1))
}
for ((i = 0; i < 30; i++)); do
	attach_to_brief $((i * 20000))
done
# On a busy machine 0.6 s are not enough to be traced.
for ((us = 1000000; traced == 0 && us < 60000000; us *= 2)); do
	attach_to_brief $us
done
assert_eq "ends during attach: no hang in 30" "$hangs" 0
assert_eq "ends during attach: a sentence or a trace ($gone, $traced)" "$wrong" ""
assert "ends during attach: both cases occurred" "$gone without trace, $traced with" \
	[ $((gone > 0 && traced > 0)) = 1 ]
assert_eq "ends during attach: the targets' own status" "$target_wrong" 0

# Binary

cp "$TMP/brief" "$TMP/stripped"
strip "$TMP/stripped"
refused "stripped: functions" 1 "stripped" "$KXRAY" functions "$TMP/stripped"
"$TMP/stripped" 30000000 &
_pids+=($!)
refused "stripped: record" 1 "stripped" "${record[@]}" -p $!
head -c -1000 "$TMP/brief" >"$TMP/cut"
refused "truncated: functions" 1 "is truncated: its headers describe 1000 bytes more" \
	"$KXRAY" functions "$TMP/cut"

cat >"$TMP/exit32.s" <<'END'
	.globl	_start
	.type	_start, @function
_start:
	movl	$29, %eax	# pause
	int	$0x80
	jmp	_start
	.size	_start, . - _start
END
if as --32 -o "$TMP/exit32.o" "$TMP/exit32.s" && ld -m elf_i386 -o "$TMP/exit32" "$TMP/exit32.o"; then
	refused "32-bit: functions" 1 "32-bit" "$KXRAY" functions "$TMP/exit32"
	"$TMP/exit32" &
	pid=$!
	_pids+=("$pid")
	started32() { _is_over "$pid" || [ "$(readlink "/proc/$pid/exe")" = "$TMP/exit32" ]; }
	wait_for started32
	if ! _is_over "$pid" && [ "$(readlink "/proc/$pid/exe")" = "$TMP/exit32" ]; then
		refused "32-bit: record" 1 "32-bit" "${record[@]}" -p "$pid"
		assert "32-bit: keeps running" "it has ended" kill -0 "$pid"
		refused "32-bit: record -- COMMAND" 1 "32-bit" "${record[@]}" -- "$TMP/exit32"
		# one that a recorded program starts
		# shellcheck disable=SC2016
		"$KXRAY" record --follow -f 'exit32:*' -o "$TMP/follow32.xray" -- \
			sh -c '"$0" & echo $! >"$0.pid"; wait' "$TMP/exit32" 2>"$TMP/follow32.err" &
		_pids+=($!)
		said32() { grep -q "cannot trace process $(cat "$TMP/exit32.pid"): .* is a 32-bit binary.*are missing" "$TMP/follow32.err"; }
		wait_for said32
		kill "$(cat "$TMP/exit32.pid")"
		wait "${_pids[-1]}"
		assert_eq "32-bit: a child is named" "$?, $(grep -c 32-bit "$TMP/follow32.err") time" "0, 1 time"
	else
		skip "32-bit: record" "this kernel runs no 32-bit programs"
	fi
else
	skip "32-bit" "no 32-bit linker"
fi
cp "$TMP/brief" "$TMP/foreign"
printf '\xb7\x00' | dd of="$TMP/foreign" bs=1 seek=18 conv=notrunc status=none
refused "another machine's: functions" 1 "another machine" "$KXRAY" functions "$TMP/foreign"
echo "no program" >"$TMP/text"
: >"$TMP/empty"
refused "no ELF: functions" 1 "not an ELF" "$KXRAY" functions "$TMP/text"
refused "empty: functions" 1 "empty" "$KXRAY" functions "$TMP/empty"
refused "a folder: functions" 1 "folder" "$KXRAY" functions "$TMP"
refused "missing: functions" 1 "No such file" "$KXRAY" functions "$TMP/missing"
refused "nothing: functions" 2 "name a process" "$KXRAY" functions

# Functions

refused "no match" 1 "did you mean tick" "${record[@]}" -p "$sleeper" -f tock
refused "no match: functions" 1 "did you mean tick" "$KXRAY" functions -p "$sleeper" -f tock
refused "no match, none close" 1 "none comes close" "${record[@]}" -p "$sleeper" -f 'xyzzy_*'
refused "no such module" 1 "libc.so.6" "${record[@]}" -p "$sleeper" -f 'libnone*:malloc'
refused "no match in a module" 1 "malloc" "${record[@]}" -p "$sleeper" -f 'libc.so*:malooc'
refused "an empty pattern" 1 "pattern is empty" "${record[@]}" -p "$sleeper" -f ''
refused "all excluded" 1 "-x" "${record[@]}" -p "$sleeper" -f tick -x '*'
refused "too many" 1 "-x" "${record[@]}" -p "$sleeper" -f 'libc.so*:*' --max-functions 10
assert "too many: the message has the number" "$ERR" \
	grep -qE '[0-9]{4} functions match.*limit of 10.*narrow' "$TMP/run.err"

# Options and command

refused "no target" 2 "nothing to trace" "$KXRAY" record
refused "no command" 2 "nothing to trace" "$KXRAY" record --
refused "two targets" 2 "not both" "$KXRAY" record -p "$sleeper" -- true
refused "a stray word" 2 "'now' is not an option" "$KXRAY" record -p "$sleeper" now
for option in --function=tick=1:-d:0 -d:-1 -d:1x -d:nan -d:'' --exits:some --args:7 --args:-1 \
	--max-functions:0 --fdr-version:0 --fdr-version:6 --ring-size:0 --ring-size:1T --ring-size:-1 \
	--clock:sun --mechanism:magic; do
	option=${option#--function=tick=1:}
	refused "${option%%:*} '${option#*:}'" 2 "${option%%:*}" \
		"$KXRAY" record -p "$sleeper" "${option%%:*}" "${option#*:}"
done
for option in -p -f -o -d --args; do
	refused "$option without its value" 2 "'$option' needs a value" "$KXRAY" record "$option"
done
for command in record report dump functions doctor; do
	refused "$command: unknown option" 2 "'--no-such'" "$KXRAY" "$command" --no-such
done
refused "unknown command" 2 "'recrod'" "$KXRAY" recrod
refused "a command that does not exist" 1 "No such file" "${record[@]}" -- "$TMP/missing"
refused "a command that is not executable" 1 "Permission denied" "${record[@]}" -- "$TMP/text"

# Output

refused "-o -" 2 "needs a file" "${record[@]}" -p "$sleeper" -o -
refused "into a missing folder" 1 "$TMP/none/t.xray" "${record[@]}" -p "$sleeper" -f tick \
	-o "$TMP/none/t.xray"
refused "to a folder" 1 "is a folder" "${record[@]}" -p "$sleeper" -f tick -o "$TMP"
refused "to a device" 1 "not a regular file" "${record[@]}" -p "$sleeper" -f tick -o /dev/null
mkdir "$TMP/out" "$TMP/out/t.xray.map"
refused "a folder where the map goes" 1 "t.xray.map" "${record[@]}" -p "$sleeper" -f tick \
	-o "$TMP/out/t.xray"
assert_eq "nothing is left of that" "$(ls "$TMP/out")" t.xray.map
rmdir "$TMP/out/t.xray.map"
if unshare -m mount -t tmpfs none "$TMP/out" 2>"$TMP/why"; then
	refused "a read-only place" 1 "Read-only" unshare -m sh -c \
		'mount -t tmpfs -o ro none "$0/out" && "$@"' "$TMP" "${record[@]}" -p "$sleeper" \
		-f tick -o "$TMP/out/t.xray"
else
	skip "a read-only place" "$(cat "$TMP/why")"
fi
# An existing trace stays if the next recording fails to start.
run "${record[@]}" -d 0.1 -p "$sleeper" -f tick -o "$TMP/out/t.xray"
sum=$(cat "$TMP/out/"* | md5sum)
refused "over another trace, no match" 1 "did you mean" "${record[@]}" -p "$sleeper" -f tock \
	-o "$TMP/out/t.xray"
refused "over another trace, no process" 1 "no such process" "${record[@]}" -p 4194301 \
	-o "$TMP/out/t.xray"
assert_eq "the other trace stays" "$(cat "$TMP/out/"* | md5sum)" "$sum"

# Input

trace=$TMP/out/t.xray
for command in report dump; do
	refused "$command: no file" 2 "name a trace" "$KXRAY" "$command"
	refused "$command: a missing file" 1 "No such file" "$KXRAY" "$command" "$TMP/none"
	refused "$command: a folder" 1 "is a folder" "$KXRAY" "$command" "$TMP"
	refused "$command: an empty file" 1 "is empty" "$KXRAY" "$command" "$TMP/empty"
	refused "$command: no trace" 1 "not an XRay trace" "$KXRAY" "$command" "$TMP/brief"
	head -c 31 "$trace" >"$TMP/cut"
	refused "$command: half a header" 1 "less than the 32" "$KXRAY" "$command" "$TMP/cut"
	refused "$command: -m with a file that is not a map" 1 "not a map" "$KXRAY" "$command" \
		-m "$TMP/text" "$trace"
	refused "$command: a binary without sleds" 1 "not a map" "$KXRAY" "$command" \
		-m "$TMP/brief" "$trace"
	refused "$command: a missing map" 1 "No such file" "$KXRAY" "$command" -m "$TMP/none" "$trace"
	head -c 300 "$trace.map" >"$TMP/cut"
	refused "$command: half a map" 1 "map" "$KXRAY" "$command" -m "$TMP/cut" "$trace"
done
# Truncated elsewhere: complete records are shown, and a message reports the truncation.
size=$(stat -c %s "$trace")
head -c $((size - 5)) "$trace" >"$TMP/cut"
cp "$trace.map" "$TMP/cut.map"
run "$KXRAY" report "$TMP/cut"
assert_eq "report: a cut trace: status" "$STATUS" 0
assert_contains "report: a cut trace: its names" "$OUT" tick
assert_contains "report: a cut trace: message" "$ERR" "the trace ends"

# After all tests the kernel and the target are as before.

new=$(programs)
assert "no program is left in the kernel" "$(programs), before $before" wait_for none_left
assert_eq "no probe is left in the target" "$(changed "$sleeper")" 0
kill -TERM "$sleeper"
end_target "$sleeper"
assert_eq "the target's exit status" "$STATUS" 0
assert "the target has done its work" "$(cat "$TMP/sleeper.out")" \
	[ "$(json <(tail -n 1 "$TMP/sleeper.out") 'd["calls"]["tick"]' 2>/dev/null || echo 0)" -gt 100 ]
