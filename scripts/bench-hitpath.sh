#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What each part of the program at a probe costs, and all of it, against an empty program:
#     scripts/bench-hitpath.sh [ROUNDS [CALLS]]      default 1000 300
# Needs root, a built $BUILD (default build) and a kernel with uprobe.session. Parts take turns in runs of CALLS calls,
# each between two runs of the empty program; a figure is the median of ROUNDS. Called by scripts/bench.sh.
set -u

cd "$(dirname "$0")/.." || exit 1
. scripts/bench-common.sh

need_root
[ -x "$BUILD/tests/hitpath" ] || die "$BUILD/tests/hitpath is missing; run 'make tests'"
bench_folder
trap 'rm -rf "$TMP"' EXIT
"${on_target_cpu[@]}" "$BUILD/tests/hitpath" "${1:-1000}" "${2:-300}" >"$TMP/out" || exit 1

echo "One call with programs at entry and return / with empty programs, $(uname -sr)"
awk '
BEGIN {
	about["empty"] = "empty program"
	about["ids"] = "bpf_get_current_pid_tgid"
	about["task"] = "bpf_get_current_task_btf"
	about["cookie"] = "bpf_get_attach_cookie"
	about["clock"] = "bpf_ktime_get_ns"
	about["stack"] = "bpf_get_current_task_btf, bpf_task_storage_get"
	about["loads"] = "ring, thread, cookie, kind of hit by loads"
	about["slot"] = "compare-and-swap"
	about["record-64K"] = "a record: slot, clock, stores; ring of 64 KiB"
	about["record-16M"] = "the same; ring of 16 MiB"
	about["record-of-hit"] = "the same, of the thread and function by loads"
	about["kxray"] = "kx_session_plain"
	about["kxray-general"] = "kx_session"
	about["kxray-asking"] = "kx_session_plain with helpers instead of loads"
	printf "%-50s %13s %13s %13s\n", "both programs do", "nop5", "push", "endbr64+push"
}
$1 == "size" { size[$2] = sprintf(", %d instructions, %d bytes compiled", $3, $4); next }
{ if (!($1 in name)) { name[$1] = ++n; order[n] = $1 }; ratio[$1, $2] = $5; ns[$1, $2] = $3 }
END {
	for (i = 1; i <= n; i++) {
		p = order[i]
		printf "%-50s %5.2f (%4.0f ns) %5.2f (%4.0f ns) %5.2f (%4.0f ns)\n", about[p],
			ratio[p, "nop5"], ns[p, "nop5"], ratio[p, "push"], ns[p, "push"],
			ratio[p, "endbr64+push"], ns[p, "endbr64+push"]
	}
	for (p in size)
		print about[p] size[p]
}' "$TMP/out"
echo
awk '$1 != "size" { printf "bench name=\"hit path, %s, %s\" value=%s unit=x result=NOTE\n", $1, $2, $5 }' "$TMP/out"
