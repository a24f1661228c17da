#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run with both kernels: parallel, 90 s
#
# Conditions of calls on other kernels, by each mechanism: exactly the calls that met them are recorded.
#
#   tests/vm/conditions.sh [SERIES...]        default $KX_VM_SERIES, or 6.1, whose verifier allows least
series_list=${*:-${KX_VM_SERIES:-6.1}}
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

vm_needs vm_conditions || exit 0

cat >"$TMP/guest" <<'END'
record() # NAME OPTION...
{
	local name=$1
	shift
	mkdir /out/$name
	/kxray record "$@" --ring-size 4M -o /out/$name/trace.xray --json -- /conditions --start=now >/out/$name/both 2>/out/$name/rec.err
	echo $? >/out/$name/status
	tail -n 2 /out/$name/both | head -n 1 >/out/$name/did.json
	tail -n 1 /out/$name/both >/out/$name/rec.json
}
for how in "auto" "single --mechanism single"; do
	set -- $how
	name=$1
	shift
	record $name-entry "$@" -f cond_leaf --callers --args 2 --if 'arg1:i32 <= -3 || arg2 == 4096 && !(arg3:i8 == 20)'
	[ $name = auto ] && record $name-text "$@" -f 'cond_text(arg1:str)' --if 'arg1 =~ "/api/*"'
	record $name-result "$@" -f 'cond_leaf(arg1:i32, arg3:i8) if ret:i32 < 0 && arg1 > -3' --max-overhead 99
	[ $name = auto ] || continue
	record $name-depth "$@" -f cond_nest -f cond_leaf --if 'depth == 3'
	record $name-long "$@" -f cond_nest -f cond_jump --if 'ret < 0' --min-duration 1ns --callers --args 3
done
record kernel -f 'kernel:vfs_write' -f 'syscall:write(arg1:i32, arg2:str[arg3], arg3:u64) -> n:i64' \
	--if 'ret == 3 || thread == "nobody"' --ring-size 4M
record dump -f cond_jump --flight-recorder 1M --trigger 'cond_leaf if ret:i32 < 0 && arg1:i32 > -3'
END

# compare NAME WHAT EXPRESSION COMPARED FUNCTION...
compare() {
	local name=$1 what=$out/$2 expression=$3 want=$4 got
	shift 4
	assert_eq "${name}_status: $(tail -n 1 "$what/rec.err")" "$(cat "$what/status")" 0
	"$KXRAY" dump --json "$what/trace.xray" >"$TMP/dump.json" 2>"$TMP/dump.err"
	got=$(python3 tests/live/conditions.py "$what/did.json" "$what/rec.json" "$TMP/dump.json" "$expression" "$@" 2>&1)
	assert_eq "$name" "$got" "$want"
}

check() {
	local name=vm_$1 out=$2 how
	assert_eq "${name}_run" "$STATUS" 0
	assert_eq "${name}_kernel_log" "$ERR" ''
	for how in auto single; do
		compare "${name}_${how}_entry" $how-entry 'a <= -3 or b == 4096 and c != 20' 'compared 126, met 51, unknown 0, undecided 0' cond_leaf
		[ $how != auto ] || compare "${name}_${how}_text" $how-text 'matches("/api/*")' 'compared 36, met 6, unknown 9, undecided 0' cond_text
		compare "${name}_${how}_result" $how-result 'ret < 0 and a > -3' 'compared 126, met 33, unknown 0, undecided 0' cond_leaf
		[ $how = auto ] || continue
		compare "${name}_${how}_depth" $how-depth 'depth == 3' 'compared 141, met 6, unknown 0, undecided 0' cond_nest cond_leaf
		compare "${name}_${how}_long" $how-long 'ret < 0' 'compared 21, met 12, unknown 0, undecided 3' cond_nest cond_jump
	done
	assert_eq "${name}_kernel: $(tail -n 1 "$out/kernel/rec.err")" "$(cat "$out/kernel/status")" 0
	assert_eq "${name}_dump: $(tail -n 1 "$out/dump/rec.err")" "$(cat "$out/dump/status")" 0
	# one dump is for the end of the process; others the calls caused, or joined
	assert_eq "${name}_dump" "$(json "$out/dump/rec.json" 'd["triggers_merged"] + d["dumps"] - 1')" 33
}

vm_each "$series_list" "$TMP/guest" check "$KXRAY:/kxray $TARGETS/conditions:/conditions" --smp 1
