#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 15 s
# record --by-heat: functions that are called too often are excluded, with a message.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# The limit is a share of the CPU time that the program gets. hot always takes most of that; the others have a
# fixed rate, so their share grows when the program gets less on a busy machine: to about 1 % at a load of 100.
start_target hot
go_target
run "$KXRAY" record -p "$PID" -f hot -f cool -f mild --by-heat 1 --max-overhead 20 -d 1 -o "$TRACE" --json
assert_eq "patterns: status" "$STATUS" 0
assert_eq "patterns: what is recorded" "$(recorded)" "cool mild"
assert_contains "patterns: what is left out" "$ERR" "too hot: hot: "
assert_contains "patterns: what was chosen" "$ERR" "2 functions (2 of them called), predicted to take "

rm -f "$TRACE" "$TRACE.map"
run "$KXRAY" record -p "$PID" -f hot --by-heat 0.5 --max-overhead 0.0000001 -d 1 -o "$TRACE"
assert_eq "nothing cool: status" "$STATUS" 1
assert_contains "nothing cool: message" "$ERR" "allow more with --max-overhead"
assert_eq "nothing cool: no file" "$(ls "$TRACE"* 2>/dev/null)" ""

# Interrupted during the ten minutes of counting.
"$KXRAY" record -p "$PID" -f hot --by-heat 600 -o "$TRACE" 2>"$TMP/rec.err" &
KX_PID=$!
_pids+=("$KX_PID")
wait_for ends_by_signal "$KX_PID"
kill -INT "$KX_PID"
end_kxray
assert_eq "interrupted: status" "$STATUS" 1
assert_contains "interrupted: message" "$(cat "$TMP/rec.err")" "the counting was interrupted"
assert_eq "interrupted: no file" "$(ls "$TRACE"* 2>/dev/null)" ""
kill -KILL "$PID"

# Without -f; recorded until the target has done some rounds of its work.
start_target counts --repeat=100000000
go_target
start_kxray "$PID" --by-heat 1 --max-overhead 100000%
wait_for used_cpu "$PID" $(($(cpu_ticks "$PID") + 100))
kill -INT "$KX_PID"
end_kxray
assert_eq "all: status" "$STATUS" 0
for name in middle outer tail_first sleep_2ms; do
	assert_contains "all: $name" " $(recorded) " " $name "
done
assert_contains "all: expensive ones are not considered" "$(cat "$TMP/rec.err")" \
	"functions with an expensive entry were not considered"
case " $(recorded) " in
*" inner "*) fail "all: no stepped entry" "$(recorded)" ;;
*) pass "all: no stepped entry" ;;
esac

# Interrupted while it tries probes on itself, before the counting: no probe is left to the kernel.
python3 - "$KXRAY" "$PID" >"$TMP/tried" <<'END'
import os, random, signal, subprocess, sys, time
log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
os.lseek(log, 0, os.SEEK_END)
pids, leaks, ended = set(), 0, 0
for _ in range(40):
    p = subprocess.Popen([sys.argv[1], "top", "-p", sys.argv[2]], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    pids.add(b"kxray:%d " % p.pid)
    time.sleep(random.uniform(0.04, 0.2))
    p.send_signal(signal.SIGINT)
    p.wait()
    ended += 1
while True:
    try:
        text = os.read(log, 8192)
        leaks += b"leaking uprobe" in text and any(pid in text for pid in pids)
    except BlockingIOError:
        break
    except BrokenPipeError:  # some were overwritten
        pass
print(ended, leaks)
END
assert_eq "interrupted at once: rounds, leaked probes" "$(cat "$TMP/tried")" "40 0"

mistake() { # MESSAGE OPTION...
	local message=$1
	shift
	run "$KXRAY" record -o "$TRACE" "$@"
	assert_eq "$*: status" "$STATUS" 2
	assert_contains "$*: message" "$ERR" "$message"
}
mistake "--by-heat takes a time" -p "$PID" --by-heat 0
mistake "--by-heat takes a time" -p "$PID" --by-heat x
mistake "--max-overhead takes percent" -p "$PID" --by-heat 1 --max-overhead -1
mistake "--max-overhead takes percent" -p "$PID" --by-heat 1 --max-overhead 5%%
mistake "-p PID" --by-heat 1 -- true
mistake "either --count or --by-heat" -p "$PID" --by-heat 1 --count
kill -KILL "$PID"
