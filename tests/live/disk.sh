#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 18 s
# A full disk, a file size limit, and SIGKILL to kxray while it records: flushed records stay readable, the
# message names the cause, and the target computes its result.
. "$(dirname "$0")/../lib.sh"
if [ -z "${KX_IN_NAMESPACE:-}" ]; then
	# Fails in a chroot that is not a mount point, for example: mounts cannot be made private there.
	if ! why=$(unshare -m true 2>&1); then
		skip "disk" "$why"
		exit
	fi
	KX_IN_NAMESPACE=1 unshare -m "$0" "$@"
	exit
fi

DISK=$TMP/disk
mkdir "$DISK"
cat >"$TMP/adder.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
unsigned long add(unsigned long a, unsigned long b);
__attribute__((noinline)) unsigned long add(unsigned long a, unsigned long b)
{
	return a * 31 + b;
}
int main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 0, sum = 0;
	char byte;

	if (read(0, &byte, 1) != 1)
		return 1;
	for (unsigned long i = 0; i < n; i++)
		sum = add(sum, i);
	printf("%lu\n", sum);
	return 0;
}
END
gcc -O1 -fno-inline -fno-optimize-sibling-calls -o "$TMP/adder" "$TMP/adder.c" ||
	fail "adder" "cannot be compiled"
CALLS=1500000
WANT=$(echo g | "$TMP/adder" $CALLS)

disk() { # SIZE
	umount "$DISK" 2>/dev/null
	mount -t tmpfs -o "size=$1" none "$DISK" || {
		skip "disk" "no tmpfs can be mounted here"
		exit 0
	}
}

# record [OPTION...]: attaches to a new, waiting target; its pid is in $ADDER, kxray's in $REC
record() {
	rm -f "$TMP/in"
	mkfifo "$TMP/in"
	"$TMP/adder" $CALLS <"$TMP/in" >"$TMP/adder.out" &
	ADDER=$!
	_pids+=("$ADDER")
	exec 7>"$TMP/in"
	wait_for grep -q adder "/proc/$ADDER/maps"
	: >"$TMP/rec.err"
	(
		exec 7>&-
		[ -z "${LIMIT:-}" ] || ulimit -f "$LIMIT"
		exec "$KXRAY" record -p "$ADDER" -o "$DISK/t.xray" "$@" >"$TMP/rec.out" 2>"$TMP/rec.err"
	) &
	REC=$!
	_pids+=("$REC")
	wait_for started
}
started() { has_text 'kxray: recording' "$TMP/rec.err" || _is_over "$REC"; }

# status_of PID: waits for its end and puts its exit status into $STATUS
status_of() {
	STATUS=0
	wait_for _is_over "$1" || kill -KILL "$1"
	wait "$1" 2>/dev/null || STATUS=$?
}

# Lets the target continue, and checks its result.
target_ends() {
	printf g >&7
	exec 7>&-
	status_of "$ADDER"
	assert_eq "$1: the target's result" "$STATUS $(cat "$TMP/adder.out")" "0 $WANT"
}

# readable NAME: all readers accept the trace, which may be truncated
readable() {
	local name=$1 tool command count
	run "$KXRAY" report --json "$DISK/t.xray"
	count=$(json "$TMP/run.out" 'sum(f["count"] for f in d["functions"] if f["name"] == "add")')
	assert "$name: the report shows what was written" "status $STATUS, $count calls: $ERR" \
		[ $((STATUS == 0 && count > 1000 && count < CALLS)) = 1 ]
	for tool in $(llvm_xrays); do
		for command in account stack graph 'convert -f yaml'; do
			# shellcheck disable=SC2086
			run "$tool" $command -m "$DISK/t.xray.map" "$DISK/t.xray"
			assert_eq "$name: $tool $command" "$STATUS $ERR" "0 "
		done
	done
	run "$tool" account -f csv -m "$DISK/t.xray.map" "$DISK/t.xray"
	assert_contains "$name: with names" "$OUT" '"add"'
	assert_eq "$name: nothing else is left" "$(ls "$DISK")" "$(printf 't.xray\nt.xray.map')"
}

# Full while recording

disk 3M
record -f add --json
target_ends "full disk"
status_of "$REC"
assert_eq "full disk: status" "$STATUS" 1
assert_eq "full disk: one message" "$(grep -c '^kxray record: ' "$TMP/rec.err")" 1
assert_contains "full disk: it says so" "$(grep '^kxray record: ' "$TMP/rec.err")" \
	"No space left on device"
assert_contains "full disk: it names the file" "$(grep '^kxray record: ' "$TMP/rec.err")" \
	"$DISK/t.xray"
assert "full disk: it was full" "$(df "$DISK")" [ "$(stat -c %s "$DISK/t.xray")" -gt 2500000 ]
readable "full disk"
# What did not fit is counted in the map, which has its room.
run "$KXRAY" report --json "$DISK/t.xray"
cp "$TMP/run.out" "$TMP/full.json"
assert_eq "full disk: the lost events of the summary are in the report" \
	"$(json "$TMP/full.json" '[d["lost"], d["ended_early"]]')" \
	"[$(tail -n 1 "$TMP/rec.out" | python3 -c 'import json, sys; print(json.load(sys.stdin)["lost"])'), False]"
assert_between "full disk: lost events" "$(json "$TMP/full.json" 'd["lost"]')" 1 $((2 * CALLS))
run "$KXRAY" report --fail-on-loss "$DISK/t.xray"
assert_eq "full disk: --fail-on-loss" "$STATUS" 3

# The same of a compressed trace: it ends with a whole frame

disk 1M
record -f add --json --compress
target_ends "full disk, compressed"
status_of "$REC"
assert_eq "full disk, compressed: status" "$STATUS" 1
assert_contains "full disk, compressed: it says so" "$(grep '^kxray record: ' "$TMP/rec.err")" \
	"'$DISK/t.xray.zst' cannot be written: No space left on device"
assert_eq "full disk, compressed: nothing else is left" "$(ls "$DISK")" "$(printf 't.xray.map\nt.xray.zst')"
run zstd -q -d -o "$TMP/full.xray" "$DISK/t.xray.zst"
assert_eq "full disk, compressed: zstd -d" "$STATUS $ERR" "0 "
run "$KXRAY" report --json "$DISK/t.xray.zst"
cp "$TMP/run.out" "$TMP/full.json"
assert_eq "full disk, compressed: the trace holds the events that are not counted as lost" \
	"$(json "$TMP/full.json" 'd["events"], d["lost"], 2 * d["calls"] - d["open"]')" \
	"$(tail -n 1 "$TMP/rec.out" | python3 -c 'import json, sys
d = json.load(sys.stdin)
print((d["events"], d["lost"], d["events"]))')"
for tool in $(llvm_xrays); do
	run "$tool" account -f csv -m "$DISK/t.xray.map" "$TMP/full.xray"
	assert_contains "full disk, compressed: $tool" "$STATUS $OUT" ",$(json "$TMP/full.json" 'd["calls"] - d["open"]'),"
done

# Nearly full before the start: the room that is left is for the counts of what is lost

disk 256k
head -c 172k /dev/zero >"$DISK/other"
record -f add --json
target_ends "nearly full disk"
status_of "$REC"
assert_eq "nearly full disk: status" "$STATUS" 1
run "$KXRAY" report --json "$DISK/t.xray"
cp "$TMP/run.out" "$TMP/full.json"
assert_eq "nearly full disk: the lost events of the summary are in the report" \
	"$(json "$TMP/full.json" '[d["lost"], d["ended_early"]]')" \
	"[$(tail -n 1 "$TMP/rec.out" | python3 -c 'import json, sys; print(json.load(sys.stdin)["lost"])'), False]"

# Full before the start, or when the map is written

disk 64k
head -c 64k /dev/zero >"$DISK/other"
record -f add
target_ends "disk full before"
status_of "$REC"
assert_eq "disk full before: status" "$STATUS" 1
assert_contains "disk full before: it says so" "$(cat "$TMP/rec.err")" "No space left on device"
assert_eq "disk full before: nothing is left" "$(ls "$DISK")" other

disk 64k
record -f 'libc.so*:*'
target_ends "full at the map"
status_of "$REC"
assert_eq "full at the map: status" "$STATUS" 1
assert_contains "full at the map: it says so" "$(cat "$TMP/rec.err")" "No space left on device"
assert_contains "full at the map: it names the file" "$(cat "$TMP/rec.err")" "$DISK/t.xray.map"
assert_eq "full at the map: nothing is left" "$(ls "$DISK")" ""

# A file size limit (ulimit -f, in KiB) sends SIGXFSZ, unless it is ignored

disk 16M
LIMIT=2048 record -f add
target_ends "file size limit"
status_of "$REC"
assert_eq "file size limit: status" "$STATUS" 1
assert_contains "file size limit: it says so" "$(grep '^kxray record: ' "$TMP/rec.err")" "File too large"
readable "file size limit"

# kxray is killed

disk 100M
record -f add
printf g >&7
large() { [ "$(stat -c %s "$DISK/t.xray")" -gt 100000 ]; }
wait_for large
kill -KILL "$REC"
status_of "$REC"
exec 7>&-
status_of "$ADDER"
assert_eq "killed: the target's result" "$STATUS $(cat "$TMP/adder.out")" "0 $WANT"
readable "killed"
run "$KXRAY" report --json "$DISK/t.xray"
cp "$TMP/run.out" "$TMP/killed.json"
assert_eq "killed: the report says that losses are not known" "$(json "$TMP/killed.json" 'd["ended_early"]')" True
run "$KXRAY" report --fail-on-loss "$DISK/t.xray"
assert_contains "killed: the report says so in the table" "$STATUS $OUT" "did not end in order"
assert_contains "killed: it shows no number for them" "$OUT" "losses not known"
assert_eq "killed: --fail-on-loss" "$STATUS" 3

umount "$DISK"
