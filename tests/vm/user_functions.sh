#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 37 s
#
# User functions on other kernels: kxray records programs in a VM; on this machine, the counts of
# `kxray report` and `llvm-xray account` are compared with the programs' own counts.
#
#   tests/vm/user_functions.sh [SERIES...]        default $KX_VM_SERIES, or 6.1, whose verifier allows least
#
# KX_VM_TARGETS names the target programs (counts counts-cet).
series_list=${*:-${KX_VM_SERIES:-6.1}}
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
targets=${KX_VM_TARGETS:-counts counts-cet}

vm_needs vm_user_functions || exit 0

# Runs in the guest. The target gets its byte when kxray has printed that all probes are in place, which
# takes long in emulation.
cat >"$TMP/guest" <<'END'
/kxray doctor >/out/doctor 2>&1
echo $? >/out/doctor.status
for target in $(cat /list); do
	out=/out/$target
	mkdir $out
	rm -f /tmp/in
	mkfifo /tmp/in
	/targets/$target </tmp/in >$out/target.out 2>&1 &
	target_pid=$!
	exec 3>/tmp/in
	waited=0
	until grep -q ready $out/target.out || [ $waited -ge 200 ]; do
		sleep 0.1
		waited=$((waited + 1))
	done
	/kxray record -p $target_pid --ring-size 4M -f '*' -o $out/trace.xray --json >$out/record.json \
		2>$out/record.err &
	kxray_pid=$!
	waited=0
	until grep -q -i -E 'recording|tracing' $out/record.err || [ $waited -ge 300 ]; do
		kill -0 $kxray_pid 2>/dev/null || break
		sleep 0.1
		waited=$((waited + 1))
	done
	printf g >&3
	exec 3>&-
	wait $target_pid
	echo $? >$out/target.status
	waited=0
	while kill -0 $kxray_pid 2>/dev/null && [ $waited -lt 300 ]; do
		sleep 0.1
		waited=$((waited + 1))
	done
	kill -INT $kxray_pid 2>/dev/null && echo "vm: record did not end with its target" \
		>>$out/record.err
	wait $kxray_pid
	echo $? >$out/record.status
done
END
printf '%s\n' "$targets" >"$TMP/list"

# compare TARGET-OUTPUT FUNCTION-COUNTS.json: prints the differences
compare()
{
	python3 - "$1" "$2" <<-'END'
	import json, sys
	done = json.loads([l for l in open(sys.argv[1]) if l.startswith('{')][-1])['calls']
	seen = json.load(open(sys.argv[2]))
	print(*['%s: %s calls, %s seen' % (name, calls, seen.get(name, 0))
		for name, calls in done.items() if calls != seen.get(name, 0)], sep=', ')
	END
}

counts_of_report()	# kxray report's JSON -> {"name": count}
{
	python3 -c 'import json, sys
print(json.dumps({f["name"]: f["count"] - f["open"] for f in json.load(sys.stdin)["functions"]}))'
}

counts_of_account()	# llvm-xray account's CSV -> the same
{
	python3 -c 'import csv, json, sys
print(json.dumps({r["function"].strip(): int(r["count"])
	for r in csv.DictReader(sys.stdin, skipinitialspace=True)}))'
}

check_counts()	# check_counts NAME TARGET-FOLDER CONVERTER COMMAND...
{
	local name=$1 folder=$2 converter=$3 difference
	shift 3
	run "$@"
	if [ "$STATUS" != 0 ]; then
		fail "$name" "status $STATUS: $ERR"
		return
	fi
	if ! "$converter" <"$TMP/run.out" >"$TMP/seen.json" 2>"$TMP/why" ||
		! difference=$(compare "$folder/target.out" "$TMP/seen.json" 2>"$TMP/why"); then
		fail "$name" "cannot be read: $(tail -n 1 "$TMP/why")"
		return
	fi
	assert_eq "$name" "$difference" ''
}

check_target()	# check_target NAME FOLDER
{
	local name=$1 folder=$2 tool version

	assert_eq "${name}_target_unharmed" "$(cat "$folder/target.status")" 0
	if grep -q '^vm: ' "$folder/record.err"; then
		fail "${name}_record" "$(grep '^vm: ' "$folder/record.err")"
	else
		assert_eq "${name}_record" "$(cat "$folder/record.status")" 0
	fi
	if [ ! -s "$folder/trace.xray" ]; then
		fail "${name}_trace" "no trace: $(cat "$folder/record.err")"
		return
	fi
	run json "$folder/record.json" 'd["lost"]'
	assert_eq "${name}_lost" "$OUT$ERR" 0
	check_counts "${name}_report" "$folder" counts_of_report \
		"$KXRAY" report --json "$folder/trace.xray"
	for tool in $(llvm_xrays); do
		version=${tool#/usr/lib/llvm-}
		check_counts "${name}_account_${version%%/*}" "$folder" counts_of_account \
			"$tool" account -f csv -m "$folder/trace.xray.map" "$folder/trace.xray"
	done
}

files="$KXRAY:/kxray $TMP/list:/list"
for target in $targets; do
	files+=" $TARGETS/$target:/targets/$target"
done
check_kernel()	# check_kernel SERIES FOLDER
{
	local series=$1 out=$2 target

	assert_eq "vm_${series}_run" "$STATUS" 0
	# A warning or oops in the kernel's log fails the test.
	assert_eq "vm_${series}_kernel_log" "$ERR" ''
	assert_eq "vm_${series}_doctor" \
		"$(cat "$out/doctor.status")$([ -s "$out/doctor" ] || echo ', silent')" 0
	for target in $targets; do
		check_target "vm_${series}_$target" "$out/$target"
	done
}

vm_each "$series_list" "$TMP/guest" check_kernel "$files"
