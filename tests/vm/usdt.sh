#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 60 s
#
# USDT markers on other kernels: counts, values, semaphores and spans by each mechanism, as the target passed them.
#
#   tests/vm/usdt.sh [SERIES...]        default $KX_VM_SERIES, or 6.1, whose verifier allows least
series_list=${*:-${KX_VM_SERIES:-6.1}}
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

vm_needs vm_usdt || exit 0

cat >"$TMP/guest" <<'END'
try() { # NAME OPTION...
	name=$1
	shift
	mkdir /out/$name
	/kxray record "$@" --ring-size 4M -o /out/$name/trace.xray --json -- /usdt --start=now >/out/$name/both 2>/out/$name/rec.err
	echo $? >/out/$name/status
	tail -n 2 /out/$name/both | head -n 1 >/out/$name/did.json
	tail -n 1 /out/$name/both >/out/$name/rec.json
}
for how in auto single; do
	options=
	[ $how = auto ] || options="--mechanism $how"
	try $how $options -f 'usdt:kxt:guarded' -f 'usdt:kxp:*' --span 'usdt:kxt:begin ~ end'
	try values_$how $options -f 'usdt:kxt:integers(arg1, arg2, arg3, arg4, arg5, arg6)' -f 'usdt:kxt:longs(arg1, arg2, arg3:ptr)' \
		-f 'usdt:kxt:text(arg1:str[arg2], arg2)' -f 'usdt:kxt:memory(arg1, arg2, arg3, arg4)' \
		-f 'usdt:kxt:constants(arg1, arg2, arg5, arg9, arg10, arg12)' -f 'usdt:kxp:*(arg1)'
done
END

check() {
	local name=vm_$1 out=$2 how got
	assert_eq "${name}_run" "$STATUS" 0
	assert_eq "${name}_kernel_log" "$ERR" ''
	for how in auto single; do
		assert_eq "${name}_$how: $(tail -n 1 "$out/$how/rec.err")" "$(cat "$out/$how/status")" 0
		assert_eq "${name}_${how}_repaired_orphans_lost" "$(json "$out/$how/rec.json" '[d["repaired"], d["orphans"], d["lost"]]')" "[1, 1, 0]"
		got=$("$KXRAY" report --json "$out/$how/trace.xray" | python3 -c 'import json, sys
print(*sorted(f["name"] + "=" + str(f["count"]) for f in json.load(sys.stdin)["functions"]))')
		assert_eq "${name}_${how}_counts" "$got" "usdt:kxp:none=10 usdt:kxp:twice=20 usdt:kxt:begin ~ end=51 usdt:kxt:guarded=50"
		assert_eq "${name}_values_$how: $(tail -n 1 "$out/values_$how/rec.err")" "$(cat "$out/values_$how/status")" 0
		"$KXRAY" export -f csv -o "$TMP/calls.csv" "$out/values_$how/trace.xray" 2>/dev/null
		got=$(python3 tests/live/values.py csv "$TMP/calls.csv" "$out/values_$how/did.json" usdt:kxt:integers usdt:kxt:longs \
			usdt:kxt:text usdt:kxt:memory usdt:kxt:constants usdt:kxp:twice usdt:kxp:none 2>&1)
		assert_eq "${name}_values_$how" "$got" "compared 702"
	done
}

vm_each "$series_list" "$TMP/guest" check "$KXRAY:/kxray $TARGETS/usdt:/usdt" --smp 1
