#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 3 s
# An ordinary user: permitted actions work, others fail with a message that names the missing capability.
. "$(dirname "$0")/../lib.sh"

command -v setpriv >/dev/null || { skip "permissions" "no setpriv here"; exit 0; }
chmod 711 "$TMP"
cp "$KXRAY" "$TMP/kxray"
cp "$TARGETS/sleeper" "$TMP/sleeper"
chmod 755 "$TMP/kxray" "$TMP/sleeper"
mkdir "$TMP/home"
chown 65534:65534 "$TMP/home"
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all
	env -C "$TMP/home")

"$TMP/sleeper" --start=now >"$TMP/roots.out" &
roots=$!
_pids+=("$roots")
"${nobody[@]}" "$TMP/sleeper" --start=now >"$TMP/own.out" &
own=$!
_pids+=("$own")
wait_for has_text ready "$TMP/roots.out"
wait_for has_text ready "$TMP/own.out"

# refused NAME PART COMMAND...
refused() {
	local name=$1 part=$2
	shift 2
	run "${nobody[@]}" "$@"
	assert_eq "$name: status" "$STATUS" 1
	assert_eq "$name: one sentence" "$(wc -l <"$TMP/run.err") $OUT" "1 "
	assert_contains "$name: what is missing" "$ERR" "$part"
	assert_eq "$name: nothing is left" "$(ls -A "$TMP/home")" ""
	rm -rf "$TMP/home/"*
}

refused "another's process: functions" CAP_SYS_PTRACE "$TMP/kxray" functions -p "$roots"
refused "another's process: record" CAP_SYS_PTRACE "$TMP/kxray" record -d 1 -p "$roots"
refused "own process: record" CAP_BPF "$TMP/kxray" record -d 1 -f tick -p "$own"
assert_contains "own process: the other one, too" "$ERR" CAP_PERFMON
refused "own command: record" CAP_BPF "$TMP/kxray" record -f tick -- "$TMP/sleeper" --start=now
"$KXRAY" record -q -d 0.2 -f tick -p "$own" -o "$TMP/t.xray"
chmod 600 "$TMP/t.xray"
refused "another's trace: report" "Permission denied" "$TMP/kxray" report "$TMP/t.xray"
refused "a folder of others" "Permission denied" "$TMP/kxray" record -f tick -p "$own" -o /t.xray

run "${nobody[@]}" "$TMP/kxray" functions -p "$own" -f tick --json
assert_eq "own process: functions" "$STATUS" 0
assert_eq "own process: what it finds" "$(json "$TMP/run.out" '[f["name"] for f in d]')" "['tick']"
run "${nobody[@]}" "$TMP/kxray" functions "$TMP/sleeper" -f tick --json
assert_eq "a binary: functions" "$STATUS $(json "$TMP/run.out" '[f["name"] for f in d]')" "0 ['tick']"
chmod 644 "$TMP/t.xray" "$TMP/t.xray.map"
run "${nobody[@]}" "$TMP/kxray" report "$TMP/t.xray"
assert_eq "a trace: report" "$STATUS $ERR" "0 "
assert_contains "a trace: names" "$OUT" tick

run "${nobody[@]}" "$TMP/kxray" doctor
assert_contains "doctor names what is missing" "$OUT$ERR" CAP_BPF
assert_contains "doctor names all of it" "$OUT$ERR" CAP_PERFMON
run "${nobody[@]}" "$TMP/kxray" doctor --json
assert "doctor --json is complete without privileges, too" "$OUT $ERR" json "$TMP/run.out" 'len(d)'

# with_caps CAPS: a recording of the user's own process with only these capabilities
with_caps() {
	STATUS=0
	setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps="$1" --ambient-caps="$1" \
		env -C "$TMP/home" "$TMP/kxray" record --json -d 0.5 -f tick -p "${2:-$own}" \
		>"$TMP/caps.out" 2>"$TMP/caps.err" || STATUS=$?
}
ticks() { json "$TMP/caps.out" 'd["entries"]'; }

# No more, also with a libbpf (before 1.3) that lists the BTF of modules, which needs CAP_SYS_ADMIN.
if [ "$(json "$TMP/run.out" 'd["checks"]["uprobe_multi"]["works"] or d["checks"]["uprobe_multi"]["errno"] in (1, 13)')" = True ]; then
	with_caps +bpf,+perfmon
	assert_eq "CAP_BPF and CAP_PERFMON: own process" "$STATUS" 0
	assert "CAP_BPF and CAP_PERFMON: events" "$(cat "$TMP/caps.out" "$TMP/caps.err")" [ "$(ticks || echo 0)" -gt 10 ]
	with_caps +bpf,+perfmon "$roots"
	assert_eq "CAP_BPF and CAP_PERFMON: another's process" "$STATUS" 1
	assert_contains "CAP_BPF and CAP_PERFMON: what is missing" "$(cat "$TMP/caps.err")" CAP_SYS_PTRACE
fi
# The capabilities that doctor recommends are enough.
run "${nobody[@]}" "$TMP/kxray" doctor
caps=$(sed -n "s/.*setcap \([a-z_,]*\)+ep.*/\1/p" "$TMP/run.out" "$TMP/run.err")
assert_contains "doctor recommends capabilities" "$caps" cap_sys_ptrace
with_caps "$(sed 's/cap_/+/g' <<<"$caps")" "$roots"
assert_eq "with them: another's process" "$STATUS" 0
assert "with them: events" "$(cat "$TMP/caps.out" "$TMP/caps.err")" [ "$(ticks || echo 0)" -gt 10 ]

for pid in "$roots" "$own"; do
	kill "$pid"
	wait "$pid"
	assert_eq "the target's exit status" $? 0
done
