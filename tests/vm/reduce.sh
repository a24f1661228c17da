#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run with both kernels: parallel, 43 s
#
# --min-duration, --depth and --count on other kernels: exactly the calls that the target makes.
#
#   tests/vm/reduce.sh [SERIES...]        default $KX_VM_SERIES, or 6.1, whose verifier allows least
series_list=${*:-${KX_VM_SERIES:-6.1}}
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/vm/table.sh
. tests/vm/table.sh

vm_needs vm_reduce || exit 0

cat >"$TMP/guest" <<'END'
f="-f quick -f idle -f slow -f parent -f jumper -f leaper -f ender"
for how in "lasting --min-duration 30ms --args 6 --callers" "any --min-duration 1ns" \
	"depth --depth 2" "count --count"; do
	set -- $how
	name=$1
	shift
	mkdir /out/$name
	out="--ring-size 4M -o /out/$name/trace.xray"
	[ $name = count ] && out=
	/kxray record "$@" $f $out --json -- /slow --start=now >/out/$name/both 2>/out/$name/rec.err
	echo $? >/out/$name/status
	grep spans /out/$name/both >/out/$name/did.json
	tail -n 1 /out/$name/both >/out/$name/rec.json
done
mkdir /out/ending
/kxray record --min-duration 30ms -f lasting --json -o /out/ending/trace.xray -- /slow_exit --start=now \
	>/out/ending/both 2>/out/ending/rec.err
echo $? >/out/ending/status
tail -n 1 /out/ending/both >/out/ending/rec.json
END

reduced() { # LABEL FOLDER CHECK...
	python3 tests/live/reduce.py "$2" "$1" "${@:3}" || fail "$1" "the check did not run"
}

check() {
	local name=vm_$1 out=$2 how
	assert_eq "${name}_run" "$STATUS" 0
	assert_eq "${name}_kernel_log" "$ERR" ''
	for how in lasting any depth count ending; do
		assert_eq "${name}_$how: $(tail -n 1 "$out/$how/rec.err")" "$(cat "$out/$how/status")" 0
	done
	reduced "${name}_lasting" "$out/lasting" lasting=30 calls
	# a thread's end is recorded, even if the process has ended meanwhile
	reduced "${name}_ending" "$out/ending" counts=lasting:1
	assert_eq "${name}_ending_left_out" "$(json "$out/ending/rec.json" '[d["entries"], d["reduced"], d["lost"]]')" \
		'[1, 0, 0]'
	reduced "${name}_any" "$out/any" calls
	reduced "${name}_depth" "$out/depth" counts=parent:12,jumper:12,idle:1512,ender:2,slow:12,leaper:12,quick:1548
	assert_eq "${name}_depth_left_out" "$(json "$out/depth/rec.json" 'd["reduced"]')" $((6110 - 3110))
	assert_eq "${name}_count" "$(json "$out/count/rec.json" \
		'sorted((f["name"], f["count"]) for f in d["functions"])')" \
		"[('ender', 2), ('idle', 1512), ('jumper', 12), ('leaper', 12), ('parent', 12), ('quick', 4548), ('slow', 12)]"
	documented "$1" 'fewer calls (--min-duration, --depth)' yes
	documented "$1" 'only counts (--count)' yes
}

vm_each "$series_list" "$TMP/guest" check "$KXRAY:/kxray $TARGETS/slow:/slow $TARGETS/slow_exit:/slow_exit"
