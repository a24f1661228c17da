#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run with both kernels: parallel, 63 s
# Filters on other kernels, with one CPU, so that the matching calls are known: each filter alone, excluding
# something, and all of them together, excluding nothing.
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/vm/table.sh
. tests/vm/table.sh
vm_needs vm_filters || exit 0

cat >"$TMP/guest" <<'END'
mkdir /cg
mount -t cgroup2 none /cg || exit 1
mkdir -p /cg/a/b
try()	# try NAME OPTION...
{
	name=$1
	shift
	/kxray record -o /out/$name.xray --ring-size 4M --json -f '/counts:leaf_*' "$@" -- /bin/sh -c \
		'echo $$ >/cg/a/b/cgroup.procs; exec /counts --start=now' \
		>/out/$name.txt 2>/out/$name.err
	echo $? >/out/$name.status
}
try comm_thread --comm 'worker-[0]'
try uid_other --uid nobody
try cgroup --cgroup a
try cgroup_other --cgroup /cg/a/b/c 2>/dev/null
mkdir /cg/c
try cgroup_outside --cgroup /c
try all --comm 'counts' --uid 0 --cgroup /cg/a --cpu 0
try syscalls -f 'syscall:*nanosleep' --comm 'w*' --uid 0 --cgroup a --cpu 0 --sched
exit 0
END

# check.py FOLDER/NAME all|THREAD: compares the counts with the target's own counts of these threads
cat >"$TMP/check.py" <<'END'
import json, sys
name, threads = sys.argv[1:]
lines = [l for l in open(name + ".txt") if l.startswith("{")]
target = [json.loads(l) for l in lines if '"threads":[' in l][0]
want = {}
for t in target["threads"]:
    if threads == "all" or t["name"] == threads:
        for f in ("leaf_a", "leaf_b", "leaf_nop5"):
            want[f] = want.get(f, 0) + t["calls"][f]
report = json.load(open(name + ".json"))
got = {f["name"]: f["count"] - f["open"] for f in report["functions"] if f["name"].startswith("leaf_")}
got = {f: n for f, n in got.items() if n}
print("right" if got == want and not report["lost"] else f"got {got}, want {want}")
END
check() {
	local series=$1 out=$2 case threads
	assert_eq "vm_${series}_run" "$STATUS" 0
	assert_eq "vm_${series}_kernel_log" "$ERR" ''
	for case in comm_thread:worker-0 uid_other:nobody cgroup:all cgroup_outside:nobody \
		all:all syscalls:all; do
		threads=${case#*:} case=${case%:*}
		"$KXRAY" report --json "$out/$case.xray" >"$out/$case.json" 2>>"$out/$case.err"
		assert_eq "vm_${series}_$case" "$(cat "$out/$case.status") $(
			python3 "$TMP/check.py" "$out/$case" "$threads" 2>&1 | tail -n 1)" "0 right"
		grep -q right <<<"$(python3 "$TMP/check.py" "$out/$case" "$threads" 2>&1)" ||
			cat "$out/$case.err"
	done
	assert_contains "vm_${series}_no_such_group" "$(cat "$out/cgroup_other.err")" \
		"there is no control group '/cg/a/b/c'"
	documented "$series" 'filters (--comm, --uid)' yes
}
vm_each "${*:-${KX_VM_SERIES:-6.1}}" "$TMP/guest" check "$KXRAY:/kxray $TARGETS/counts:/counts" --smp 1
