#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
#
# Compares vmlinux/vmlinux.h with a kernel's BTF, by default the running one's:
#     scripts/check-vmlinux.sh [BTF-FILE]
# Fields of task_struct must exist with the same type (CO-RE finds their
# offsets); registers of pt_regs must be at the same offsets. Prints the
# differences and ends with status 1, or 0 if there are none.
set -eu
cd "$(dirname "$0")/.."
btf=${1:-/sys/kernel/btf/vmlinux}
bpftool=${BPFTOOL:-$(command -v bpftool || echo /usr/sbin/bpftool)}

[ -r "$btf" ] || {
	echo "check-vmlinux: cannot read $btf; this kernel has no BTF (CONFIG_DEBUG_INFO_BTF)." >&2
	exit 1
}
dump=$(mktemp)
trap 'rm -f "$dump"' EXIT
"$bpftool" btf dump file "$btf" format c >"$dump"
echo '== raw' >>"$dump"
"$bpftool" btf dump file "$btf" format raw >>"$dump"

awk '
function bad(text) { print "check-vmlinux: " text; status = 1 }
function field(line) { # splits "TYPE NAME;" into type and name
	sub(/[ \t]*\/\*.*/, "", line)
	sub(/^[ \t]+/, "", line)
	sub(/;$/, "", line)
	name = line
	sub(/.*[ *]/, "", name)
	type = substr(line, 1, length(line) - length(name))
	sub(/ +$/, "", type)
	if (type == "long unsigned int")
		type = "unsigned long"
	if (match(name, /\[.*/)) {
		type = type substr(name, RSTART)
		name = substr(name, 1, RSTART - 1)
	}
}
FNR == 1 { input++ }

# vmlinux.h: our declarations
input == 1 && /^struct [a-z_]+ \{/ { in_struct = $2; next }
input == 1 && /^\}/ { in_struct = ""; next }
input == 1 && in_struct && /;/ {
	field($0)
	ours[in_struct, name] = type
	if (in_struct == "pt_regs")
		at[name] = 64 * registers++
}

# the C dump: fields and types of task_struct
input == 2 && /^== raw/ { raw = 1; in_struct = ""; next }
input == 2 && !raw && $0 == "struct task_struct {" { in_struct = $2; next }
input == 2 && !raw && /^\}/ { in_struct = ""; next }
input == 2 && !raw && in_struct && /^\t[^\t].*;$/ { field($0); theirs[name] = type }

# the raw dump: offsets in pt_regs
input == 2 && raw && /^\[/ { in_struct = / STRUCT .pt_regs. / ? "pt_regs" : ""; next }
input == 2 && raw && in_struct && match($0, /bits_offset=[0-9]+/) {
	name = $1
	gsub(/[^a-z0-9_]/, "", name)
	found_at[name] = substr($0, RSTART + 12, RLENGTH - 12)
}

END {
	for (key in ours) {
		split(key, part, SUBSEP)
		if (part[1] != "task_struct")
			continue
		checked++
		if (!(part[2] in theirs))
			bad("task_struct." part[2] " is not in this kernel")
		else if (theirs[part[2]] != ours[key])
			bad("task_struct." part[2] " is \"" theirs[part[2]] "\" in this kernel, not \"" ours[key] "\"")
	}
	for (name in at) {
		# Since 6.9 these two are in unnamed unions; the offsets of their neighbours determine theirs.
		if ((name == "cs" || name == "ss") && !(name in found_at))
			continue
		checked++
		if (!(name in found_at))
			bad("pt_regs." name " is not in this kernel")
		else if (found_at[name] != at[name])
			bad("pt_regs." name " is at bit " found_at[name] " in this kernel, not " at[name])
	}
	if (checked < 20)
		bad("only " checked + 0 " fields could be compared")
	if (!status)
		print checked " fields compared, no difference"
	exit status
}' vmlinux/vmlinux.h "$dump"
