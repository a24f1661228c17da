#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 6 s
# A trace knows its host, labels, and the unit, container and pod of its processes (real control groups with the names that
# container runtimes give them); it has snapshots of the clocks in between; wrong labels are refused in a sentence each.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# session EXPRESSION: of the map's session, as Python
session() {
	objcopy -O binary --only-section=.kxray.session --set-section-flags .kxray.session=alloc "$TRACE.map" "$TMP/session"
	python3 -c 'import json, sys
s = json.load(open(sys.argv[1]))["session"]
print(eval(sys.argv[2]))' "$TMP/session" "$1"
}

ID=$(printf '%064x' $$)
UID_=2f1a0c44_9e55_4b21_8d14_$(printf '%012x' $$)
mount=$(awk '{ for (i = 7; i < NF; i++) if ($i == "-" && $(i + 1) == "cgroup2") print $5 }' /proc/self/mountinfo | head -n 1)
pod="kubepods-burstable-pod$UID_.slice" made=()
make_group() { mkdir "$mount/$1" 2>"$TMP/why" && made=("$mount/$1" "${made[@]}"); }
remove_groups() { [ ${#made[@]} = 0 ] || rmdir "${made[@]}"; }
if [ -z "$mount" ]; then
	skip "control groups" "cgroup v2 is not mounted"
elif ! make_group "$pod" || ! make_group "$pod/cri-containerd-$ID.scope"; then
	skip "control groups" "no control group can be made: $(cat "$TMP/why")"
else
	make_group "kx-$$.slice" && make_group "kx-$$.slice/kx-$$.service" || fail "a second group" "$(cat "$TMP/why")"
	for group in "$pod/cri-containerd-$ID.scope" "kx-$$.slice/kx-$$.service"; do
		start_target sleeper
		echo "$PID" >"$mount/$group/cgroup.procs"
		start_kxray "$PID" -f '*' -d 0.2 --label env=production --label 'note=a, "b"'
		end_kxray
		assert_eq "$group: status" "$STATUS" 0
		kill "$PID" && wait "$PID" 2>/dev/null
		"$KXRAY" report "$TRACE" >"$TMP/report"
		if [[ $group == */cri* ]]; then
			assert_eq "container" "$(session '[(p["cgroup"], p["container"], p["container_runtime"], p["pod"])
				for p in s["processes"]]')" \
				"[('/$group', '$ID', 'containerd', '${UID_//_/-}')]"
			assert_contains "report" "$(cat "$TMP/report")" \
				"(container=${ID::12}, pod=${UID_//_/-}, env=production, note=a, \"b\"), "
		else
			assert_eq "unit" "$(session '[p["unit"] for p in s["processes"]]')" "['kx-$$.service']"
		fi
	done
fi
wait_for remove_groups

start_target sleeper
start_kxray "$PID" -f '*' -d 2.5 --label env=production
end_kxray
assert_eq "recording: status" "$STATUS" 0
assert_eq "host" "$(session '[s["host"]["name"], s["host"]["boot_id"], s["labels"]]')" \
	"['$(uname -n)', '$(cat /proc/sys/kernel/random/boot_id)', {'env': 'production'}]"
assert_eq "machine id" "$(session 's["host"].get("machine_id", "")')" "$(cat /etc/machine-id 2>/dev/null)"
# Once a second, and the clocks run on
assert_eq "snapshots" "$(session '(lambda w, n: [w[0], set(w[1:-1]), w[-1], 3 <= len(w) <= 63, all(a[k] < b[k] for a, b in
	zip(n, n[1:]) for k in ("tsc", "monotonic_ns", "boottime_ns"))])([c["when"] for c in s["clock"]["snapshots"]],
	s["clock"]["snapshots"])')" "['start', {'flush'}, 'end', True, True]"
"$KXRAY" report --json "$TRACE" >"$TMP/report"
assert_eq "report --json" "$(python3 -c 'import json, sys
labels = json.load(open(sys.argv[1]))["labels"]
print(labels["host"], labels["env"])' "$TMP/report")" "$(uname -n) production"
for wrong in "env" "1a=x" "host=me" "env="; do
	run "$KXRAY" record --label "$wrong" -- true
	assert_eq "--label $wrong: status and one sentence" "$STATUS $(wc -l <<<"$ERR")" "2 2"
	assert_contains "--label $wrong" "$ERR" "--label"
done
run "$KXRAY" record --label a=1 --label a=2 -- true
assert_contains "twice" "$STATUS $ERR" "2 kxray record: --label 'a' is given twice"
run "$KXRAY" record --count --label a=1 -- true
assert_contains "--count" "$STATUS $ERR" "leave out --label"
