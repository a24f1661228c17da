#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run with both kernels: parallel, 60 s
#
# Values of calls on other kernels: of user functions by each mechanism, of a kernel function and of a system call, as the target
# passed them.
#
#   tests/vm/values.sh [SERIES...]        default $KX_VM_SERIES, or 6.1, whose verifier allows least
series_list=${*:-${KX_VM_SERIES:-6.1}}
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

vm_needs vm_values || exit 0

cat >"$TMP/guest" <<'END'
for how in "auto" "multi --mechanism multi" "single --mechanism single" "results --results --exits instruction"; do
	set -- $how
	name=$1
	shift
	mkdir /out/$name
	/kxray record "$@" -f 'take_integers(arg1:i8, arg2:u8, arg3:i16, arg4:u16, arg5:i32, arg6:u32) -> ret:i8' \
		-f 'take_longs(arg1:i64, arg2:u64, arg3:bool, arg4:char, arg5:ptr, arg6:x64) -> ret:u64' \
		-f 'take_string(arg1:str) -> ret:ptr' -f 'take_bytes(arg1:str[arg2], arg2:i64, arg3:i32) -> ret:i32' \
		--ring-size 4M -o /out/$name/trace.xray --json -- /values --start=now >/out/$name/both 2>/out/$name/rec.err
	echo $? >/out/$name/status
	tail -n 2 /out/$name/both | head -n 1 >/out/$name/did.json
	tail -n 1 /out/$name/both >/out/$name/rec.json
done
mkdir /out/kernel
/kxray record -f 'kernel:vfs_write(arg2:str[arg3], arg3:u64) -> ret:i64' -f 'syscall:write(arg1:i32, arg2:str[arg3], arg3:u64) -> ret:i64' \
	--ring-size 4M -o /out/kernel/trace.xray --json -- /values --start=now >/out/kernel/both 2>/out/kernel/rec.err
echo $? >/out/kernel/status
mkdir /out/names
/kxray record -f 'kernel:vfs_write(file->f_path.dentry->d_name.name, buf:str[count], count) -> ret' \
	-f 'syscall:write(fd, buf:str[count], count) -> ret' -f 'kernel:do_filp_open(dfd, pathname->name, op->open_flag)' \
	--ring-size 4M -o /out/names/trace.xray --json -- /values --start=now >/out/names/both 2>/out/names/rec.err
echo $? >/out/names/status
/kxray record -f 'kernel:vfs_write(file->f_pth)' -o /out/wrong.xray -- /values --start=now 2>/out/wrong.err || true
END

check() {
	local name=vm_$1 out=$2 how got ready size
	assert_eq "${name}_run" "$STATUS" 0
	assert_eq "${name}_kernel_log" "$ERR" ''
	for how in auto multi single results; do
		if [ "$how" = multi ] && [ "$1" = 6.1 ]; then
			assert_eq "${name}_multi_refused" "$(cat "$out/multi/status")" 1
			continue
		fi
		assert_eq "${name}_$how: $(tail -n 1 "$out/$how/rec.err")" "$(cat "$out/$how/status")" 0
		"$KXRAY" export -f csv -o "$TMP/calls.csv" "$out/$how/trace.xray" 2>/dev/null
		got=$(python3 tests/live/values.py csv "$TMP/calls.csv" "$out/$how/did.json" take_integers take_longs take_string take_bytes 2>&1)
		assert_eq "${name}_${how}_values" "$got" "compared 541"
	done
	assert_eq "${name}_kernel: $(tail -n 1 "$out/kernel/rec.err")" "$(cat "$out/kernel/status")" 0
	"$KXRAY" dump "$out/kernel/trace.xray" >"$TMP/dump"
	# the target's first line
	ready=$(grep ready "$out/kernel/both")
	size=$((${#ready} + 1))
	assert_contains "${name}_kernel_function" "$(cat "$TMP/dump")" 'vfs_write {arg2 = "'"$ready"'\n", arg3 = '"$size}"
	assert_contains "${name}_kernel_result" "$(cat "$TMP/dump")" "vfs_write {ret = $size}"
	assert_contains "${name}_system_call" "$(cat "$TMP/dump")" 'write {arg1 = 1, arg2 = "'"$ready"'\n", arg3 = '"$size}"
	assert_eq "${name}_names: $(tail -n 1 "$out/names/rec.err")" "$(cat "$out/names/status")" 0
	"$KXRAY" dump "$out/names/trace.xray" >"$TMP/names"
	ready=$(grep ready "$out/names/both")
	size=$((${#ready} + 1))
	assert_contains "${name}_kernel_names" "$(cat "$TMP/names")" \
		'vfs_write {file->f_path.dentry->d_name.name = "both", buf = "'"$ready"'\n", count = '"$size}"
	assert_contains "${name}_system_call_names" "$(cat "$TMP/names")" 'write {fd = 1, buf = "'"$ready"'\n", count = '"$size}"
	assert_contains "${name}_kernel_results" "$(cat "$TMP/names")" "vfs_write {ret = $size}"
	assert_contains "${name}_wrong" "$(cat "$out/wrong.err")" "no member 'f_pth' in struct file (file->f_pth); did you mean 'f_path'?"
	assert_contains "${name}_system_call_result" "$(cat "$TMP/dump")" "write {ret = $size}"
}

vm_each "$series_list" "$TMP/guest" check "$KXRAY:/kxray $TARGETS/values:/values" --smp 1
