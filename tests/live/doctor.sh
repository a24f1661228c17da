#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 9 s
# kxray doctor compared with other sources: features.c, which tries each mechanism with plain system calls,
# the processor's flags, and runs with fewer capabilities.
. "$(dirname "$0")/../lib.sh"

json_ok() { json "$1" 'd["verdict"]' >"$TMP/verdict" 2>"$TMP/why"; }

run "$KXRAY" doctor --json
cp "$TMP/run.out" "$TMP/doctor.json"
if ! json_ok "$TMP/doctor.json"; then
	fail "doctor --json parses" "$(tail -n 1 "$TMP/why"); $ERR"
	exit 1
fi
pass "doctor --json parses"
can_record=$STATUS
assert_eq "nothing on stderr" "$ERR" ""
assert_eq "its status is its verdict" "$STATUS" "$(json "$TMP/doctor.json" 'int(not d["can_record"])')"
assert_eq "only findings that do not work have a reason" \
	"$(json "$TMP/doctor.json" '[k for k, c in d["checks"].items() if c["works"] == bool(c["why"])]')" "[]"
assert_eq "CPUs" "$(json "$TMP/doctor.json" 'd["cpus"]')" "$(getconf _NPROCESSORS_ONLN)"
assert_eq "capabilities as /proc shows them" \
	"$(json "$TMP/doctor.json" 'd["user"]["capabilities"]["CAP_BPF"]["held"]')" \
	"$(python3 -c 'import re
m = re.search(r"CapEff:\s*(\w+)", open("/proc/self/status").read())
print(bool(int(m[1], 16) >> 39 & 1))')"

# The findings of features.c on the same kernel.
if ${CC:-gcc} -std=gnu11 -O2 -D_GNU_SOURCE -o "$TMP/features" tests/vm/features.c &&
	"$TMP/features" >"$TMP/features.out"; then
	while read -r theirs ours; do
		answer=$(sed -n "s/^$theirs \([a-z]*\).*/\1/p" "$TMP/features.out")
		assert_eq "$ours as tried by another program" \
			"$(json "$TMP/doctor.json" "'yes' if d['checks']['$ours']['works'] else 'no'")" "$answer"
	done <<-END
		btf btf
		bpf_array_mmap array_mmap
		uprobe_session uprobe_session
		uprobe_multi uprobe_multi
		bpf_perf_uprobe uprobe
		kprobe_multi kprobe_multi
	END
	for flag in constant_tsc nonstop_tsc; do
		answer=$(sed -n "s/^$flag \([a-z]*\).*/\1/p" "$TMP/features.out")
		assert_eq "$flag" "$(json "$TMP/doctor.json" "'yes' if d['clock']['$flag'] else 'no'")" "$answer"
	done
else
	fail "another program's findings" "tests/vm/features.c does not build or run"
fi

if [ "$can_record" = 0 ]; then
	# The checks must agree with a recording.
	run "$KXRAY" record -q -o "$TMP/trace" -f 'leaf_*' --json -- "$TARGETS/counts"
	assert_eq "record works if doctor says so" "$STATUS" 0
	if [ "$STATUS" = 0 ]; then
		cp "$TMP/run.out" "$TMP/record.raw"
		# The target prints JSON, too; the summary of record is the line with "mechanism".
		grep '"mechanism"' "$TMP/record.raw" >"$TMP/record.json"
		for key in mechanism clock; do
			of_doctor=$(json "$TMP/doctor.json" \
				"d['mechanism'] if '$key' == 'mechanism' else d['clock']['kind']")
			assert_eq "doctor's $key is the recording's" "$of_doctor" \
				"$(json "$TMP/record.json" "d['$key']")"
		done
	fi
	assert_eq "the clock's source" "$(json "$TMP/doctor.json" 'd["clock"]["source"]')" \
		"$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource)"
	assert_eq "a converted clock has an error" \
		"$(json "$TMP/doctor.json" '(d["clock"]["kind"] == "ktime") == (d["clock"]["error_ns"] > 0)')" True
	# All costs are measured and above zero. Comparing them is the job of make bench.
	assert_eq "every kind of start is measured" \
		"$(json "$TMP/doctor.json" '[c["start"] for c in d["costs"]]')" \
		"['nop5', 'push', 'endbr64_push_at_push', 'endbr64_push_at_endbr64', 'sub_rsp']"
	assert_eq "a probe costs more than none, with or without return" \
		"$(json "$TMP/doctor.json" 'all(0 < c["plain_ns"] < min(c["entry_ns"], c["entry_return_ns"])
			for c in d["costs"])')" True
	assert_eq "what cold caches add is known" "$(json "$TMP/doctor.json" 'all(c["cold_ns"] >= 0 for c in d["costs"])')" True
	assert_eq "single-stepping is the most expensive" \
		"$(json "$TMP/doctor.json" '({c["start"]: c for c in d["costs"]}["sub_rsp"]["entry_ns"] >
			{c["start"]: c for c in d["costs"]}["push"]["entry_ns"])')" True
	assert_eq "a probe moved past endbr64 is not stepped" \
		"$(json "$TMP/doctor.json" '({c["start"]: c for c in d["costs"]}["endbr64_push_at_push"]["entry_ns"] <
			{c["start"]: c for c in d["costs"]}["endbr64_push_at_endbr64"]["entry_ns"])')" True
fi

run "$KXRAY" doctor
assert_eq "the text has the same status" "$STATUS" "$can_record"
assert_eq "and ends with the verdict" "$(tail -n 1 "$TMP/run.out")" "$(cat "$TMP/verdict")."

# A program that nobody else runs, in three processes.
cp "$TARGETS/sleeper" "$TMP/three"
for i in 1 2 3; do
	"$TMP/three" >"$TMP/three.$i" &
	_pids+=($!)
	wait_for test -s "$TMP/three.$i" || fail "a process starts" "no output"
done
three="[f['processes'] for f in d['shared_files']['files'] if f['path'] == '$TMP/three']"
run "$KXRAY" doctor --json
cp "$TMP/run.out" "$TMP/files.json"
assert_eq "a file that three processes have mapped" "$(json "$TMP/files.json" "$three")" "[3]"
assert_eq "the most used file is first" "$(json "$TMP/files.json" '([f["processes"] for f in d["shared_files"]["files"]] ==
	sorted((f["processes"] for f in d["shared_files"]["files"]), reverse=True))')" True
assert_eq "whether a process can have probes of its own" "$(json "$TMP/files.json" 'd["shared_files"]["own_probes"]')" \
	"$(json "$TMP/files.json" 'd["mechanism"] is not None and (d["mechanism"] != "uprobe.multi" or
		d["checks"]["uprobe_multi_process_filter"]["works"])')"
kill "${_pids[-1]}" "${_pids[-2]}"
wait "${_pids[-1]}" "${_pids[-2]}" 2>/dev/null
run "$KXRAY" doctor --json
cp "$TMP/run.out" "$TMP/files.json"
assert_eq "one process shares nothing" "$(json "$TMP/files.json" "$three")" "[]"

# A copy that every user can read: others may not be allowed to enter the build folder.
everybody=$(mktemp -d /tmp/kxray-doctor.XXXXXX)
install -m 755 "$KXRAY" "$everybody/kxray"
chmod 755 "$everybody"
trap 'rm -rf "$everybody"; _cleanup' EXIT

as_nobody() { # [CAPABILITY...]: prints setpriv's arguments for user 65534 with only these capabilities
	local caps
	caps=$(printf ',+%s' "$@")
	if [ $# = 0 ]; then
		echo setpriv --reuid 65534 --regid 65534 --clear-groups
	else
		echo setpriv --reuid 65534 --regid 65534 --clear-groups \
			--inh-caps "${caps#,}" --ambient-caps "${caps#,}"
	fi
}

if [ "$(id -u)" != 0 ] || ! command -v setpriv >/dev/null; then
	skip "fewer capabilities" "needs root and setpriv"
	exit 0
fi
# shellcheck disable=SC2046
run $(as_nobody) "$everybody/kxray" doctor --json
cp "$TMP/run.out" "$TMP/nobody.json"
assert_eq "nobody cannot record" "$STATUS" 1
assert_eq "nobody: what is missing" "$(json "$TMP/nobody.json" 'd["user"]["missing"]')" \
	"['CAP_BPF', 'CAP_PERFMON']"
assert_contains "nobody: the verdict names it" "$(json "$TMP/nobody.json" 'd["verdict"]')" \
	"CAP_BPF and CAP_PERFMON"
assert_eq "nobody: BTF can still be read, programs not loaded" \
	"$(json "$TMP/nobody.json" 'd["checks"]["btf"]["works"], d["checks"]["uprobe_session"]["errno"]')" \
	"(True, 1)"
assert_eq "nobody: uid" "$(json "$TMP/nobody.json" 'd["user"]["uid"]')" 65534
# shellcheck disable=SC2046
run $(as_nobody) "$everybody/kxray" doctor
assert_eq "nobody: the text" "$STATUS" 1
assert_contains "nobody: its last line" "$(tail -n 1 "$TMP/run.out")" "CAP_PERFMON"

if setpriv --list-caps 2>/dev/null | grep -qx perfmon; then
	# shellcheck disable=SC2046
	run $(as_nobody bpf) "$everybody/kxray" doctor --json
	cp "$TMP/run.out" "$TMP/bpf.json"
	assert_eq "CAP_BPF alone: the other is missing" \
		"$STATUS $(json "$TMP/bpf.json" 'd["user"]["missing"]')" "1 ['CAP_PERFMON']"
	if [ "$can_record" = 0 ]; then
		# shellcheck disable=SC2046
		run $(as_nobody bpf perfmon sys_admin) "$everybody/kxray" doctor --json
		cp "$TMP/run.out" "$TMP/caps.json"
		assert_eq "an ordinary user with the capabilities can" "$STATUS" 0
		assert_contains "its own processes only" "$(json "$TMP/caps.json" 'd["verdict"]')" \
			"CAP_SYS_PTRACE is missing"
	fi
else
	skip "single capabilities" "this setpriv does not know perfmon and bpf"
fi

run "$KXRAY" doctor --verbose
assert_eq "an unknown option is wrong usage" "$STATUS" 2
assert_contains "and is named" "$ERR" "--verbose"
run "$KXRAY" doctor now
assert_eq "so is an argument" "$STATUS" 2
run "$KXRAY" doctor --help
assert_eq "--help" "$STATUS" 0
