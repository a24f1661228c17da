#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 4 s
#
# Kernel functions on a kernel that does not allow tracing them: one sentence names every mechanism with
# the same reason as kxray doctor, and no file is left. Functions can still be listed.
# tests/vm/kernel_functions.sh traces kernel functions.
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# On every kernel: functions that must not be probed are refused before any mechanism is tried.
run "$KXRAY" functions -f 'kernel:bpf_map_update_elem'
assert_eq "a denied function: status" "$STATUS" 1
assert_contains "a denied function" "$ERR" "the recorder's own BPF programs run through it"
run "$KXRAY" functions -f 'kernel:_raw_spin_lock' -f 'kernel:vfs_write' --json --left-out
assert_eq "a denied function among others: status" "$STATUS" 0
assert_eq "a denied function among others: the rest" \
	"$(json "$TMP/run.out" '[(f["name"], f["module"], f["cost"], f["exit"]) for f in d]')" \
	"[('vfs_write', 'kernel', 'kernel', 'return')]"
assert_contains "a denied function among others" "$ERR" \
	"left out: _raw_spin_lock (kernel): it is a lock that a probe may already hold"
assert_eq "the address is the kernel's" "$(json "$TMP/run.out" 'd[0]["address"]')" \
	"0x$(awk '$3 == "vfs_write" { print $1 }' /proc/kallsyms)"
run "$KXRAY" functions -f 'kernel:tcp_sendmgs'
assert_eq "no such function: status" "$STATUS" 1
assert_contains "no such function" "$ERR" "did you mean tcp_sendmsg"
run "$KXRAY" record --kernel-mechanism=best -f 'kernel:vfs_write' -- true
assert_eq "no such mechanism: status" "$STATUS" 2
assert_contains "no such mechanism" "$ERR" \
	"--kernel-mechanism takes auto, session, multi, fentry or single, not 'best'"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	run setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$KXRAY" functions -f 'kernel:vfs_write'
	assert_eq "hidden addresses: status" "$STATUS" 1
	assert_contains "hidden addresses" "$ERR" "hides the addresses of its functions"
fi

"$KXRAY" doctor --json >"$TMP/doctor.json"
if [ "$(json "$TMP/doctor.json" 'd["kernel_mechanism"]')" != None ]; then
	skip "kernel functions are refused" "this kernel lets its functions be traced"
	exit 0
fi

mounts=$(cat /proc/mounts)
sentence=$(json "$TMP/doctor.json" '"; ".join("%s: %s" % (name, d["checks"][name.replace(".", "_")]["why"])
	for name in ("kprobe.session", "kprobe.multi", "fentry", "kprobe"))')
run "$KXRAY" record -o "$TMP/none.xray" -f 'kernel:vfs_write' -- true
assert_eq "refused: status" "$STATUS" 1
assert_contains "refused: all mechanisms with doctor's reasons" "$ERR" \
	"kernel functions cannot be traced here; all mechanisms were tried: $sentence"
assert_eq "refused: one line" "$(wc -l <"$TMP/run.err")" 1
for pair in session:kprobe.session multi:kprobe.multi fentry:fentry single:kprobe; do
	name=${pair#*:}
	run "$KXRAY" record --kernel-mechanism="${pair%:*}" -o "$TMP/none.xray" -f 'kernel:vfs_write' -- true
	assert_eq "$name selected: status" "$STATUS" 1
	assert_contains "$name selected" "$ERR" "kernel functions cannot be traced by $name here: $(json \
		"$TMP/doctor.json" "d['checks']['${name/./_}']['why']")"
done
run "$KXRAY" record -o "$TMP/none.xray" -f 'kernel:vfs_write' -f leaf_a -- "$TARGETS/counts" --start=now
assert_eq "refused beside user functions: status" "$STATUS" 1
assert_eq "nothing is written" "$(ls "$TMP" | grep none)" ''
assert_eq "nothing is mounted" "$(cat /proc/mounts)" "$mounts"
run "$KXRAY" doctor
assert_contains "doctor says so" "$OUT" "used: none, they cannot be traced here"
