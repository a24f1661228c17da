#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Kernel functions on kernels that let them be traced: the counts of `kxray report` and `llvm-xray
# account` must be what the target did, by each mechanism that there is, under the user functions
# that made the calls.
#
#   tests/vm/kernel_functions.sh [SERIES...]        default 6.1 6.12
#
# One CPU: with more, qemu's emulation has been seen to run code that the kernel had patched already.
series_list=${*:-6.1 6.12}
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

vm_needs vm_kernel_functions || exit 0

# What the kernels have, best first.
mechanisms_of()
{
	case $1 in
	6.1) echo "fentry single" ;;
	*) echo "session multi fentry single" ;;
	esac
}

name_of()
{
	case $1 in
	session) echo kprobe.session ;;
	multi) echo kprobe.multi ;;
	fentry) echo fentry ;;
	single) echo kprobe ;;
	esac
}

cat >"$TMP/guest" <<'END'
patterns="-f ask -f note -f nap -f talk -f kernel:__x64_sys_getppid -f kernel:__x64_sys_write
	-f kernel:ksys_write -f kernel:vfs_write -f kernel:write_null -f kernel:hrtimer_nanosleep
	-f kernel:tcp_sendmsg -f kernel:tcp_recvmsg"
more="-f kernel:tcp_v4_* -f kernel:ip_* -f kernel:tcp_rcv_* -f kernel:__tcp_*"

start_target()
{
	rm -f /tmp/in
	mkfifo /tmp/in
	/target --repeat=3 </tmp/in >$1/target.out 2>&1 &
	target=$!
	exec 3>/tmp/in
	until grep -q ready $1/target.out; do sleep 0.1; done
}

# The target waits until kxray says on stderr that every probe is in.
record()	# record FOLDER OPTION...
{
	out=/out/$1
	shift
	mkdir $out
	start_target $out
	/kxray record -p $target --json -o $out/trace.xray "$@" >$out/record.json 2>$out/record.err &
	kxray=$!
	until grep -q 'kxray: recording' $out/record.err; do
		kill -0 $kxray 2>/dev/null || break
		sleep 0.1
	done
	printf g >&3
	exec 3>&-
	wait $target
	echo $? >$out/target.status
	wait $kxray
	echo $? >$out/record.status
}

# tracefs and debugfs are not mounted, and nothing of kxray's may mount them
grep -c -E 'tracefs|debugfs' /proc/mounts >/out/mounts.before
/kxray doctor --json >/out/doctor.json 2>/out/doctor.err
for m in session multi fentry single; do
	record $m --kernel-mechanism=$m --args 3 $patterns -f kernel:bpf_map_update_elem
done
record auto $patterns
# the way of a packet, in softirqs on a stack of their own; left out for the mechanisms that
# take long for each function
grep -q '"kernel_mechanism": "kprobe.session"' /out/doctor.json && record wide $patterns $more
/kxray functions -f 'kernel:tcp_sendmsg' --json >/out/functions.json 2>/out/functions.err
/kxray record -o /out/none.xray -f 'kernel:bpf_map_update_elem' -- /target --start=now \
	>/out/denied.out 2>/out/denied.err
echo $? >/out/denied.status
echo 2 >/proc/sys/kernel/kptr_restrict
/kxray record -o /out/none.xray -f 'kernel:tcp_sendmsg' -- /target --start=now \
	>/out/hidden.out 2>/out/hidden.err
echo $? >/out/hidden.status
ls /out/none.xray* >/out/leftover 2>/dev/null
grep -c -E 'tracefs|debugfs' /proc/mounts >/out/mounts.after
/kxray report --json /out/auto/trace.xray >/out/report.json
END

# compare TARGET-OUTPUT FUNCTION-COUNTS.json: prints what differs, nothing if all is as it was
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

check_counts()	# check_counts NAME FOLDER: by report and by every llvm-xray
{
	local name=$1 folder=$2 tool version

	"$KXRAY" report --json "$folder/trace.xray" 2>"$TMP/why" | python3 -c 'import json, sys
print(json.dumps({f["name"]: f["count"] for f in json.load(sys.stdin)["functions"]}))' \
		>"$TMP/seen.json" 2>>"$TMP/why"
	assert_eq "${name}_report" "$(compare "$folder/target.out" "$TMP/seen.json" 2>&1)" ''
	for tool in $(llvm_xrays); do
		version=${tool#/usr/lib/llvm-}
		"$tool" account -f csv -m "$folder/trace.xray.map" "$folder/trace.xray" 2>"$TMP/why" |
			python3 -c 'import csv, json, sys
print(json.dumps({r["function"].strip(): int(r["count"])
	for r in csv.DictReader(sys.stdin, skipinitialspace=True)}))' >"$TMP/seen.json" 2>>"$TMP/why"
		assert_eq "${name}_account_${version%%/*}" \
			"$(compare "$folder/target.out" "$TMP/seen.json" 2>&1)" ''
	done
}

# Every call lies inside the one that made it: stacks with their counts, as the target has made them.
cat >"$TMP/nesting.py" <<'END'
import json, sys
calls = json.loads([l for l in open(sys.argv[1]) if l.startswith('{')][-1])['calls']
seen = []  # each stack and how often its last function was called there
for line in open(sys.argv[2]):
    stack, count = line.rsplit(' ', 1)
    seen.append((tuple(stack.split(';')), int(count)))
write = ('note', '__x64_sys_write', 'ksys_write', 'vfs_write')
for path, want in (
        (('ask', '__x64_sys_getppid'), calls['__x64_sys_getppid']),
        (write, calls['note']),
        (write + ('write_null',), calls['note']),
        (('nap', 'hrtimer_nanosleep'), calls['nap']),
        (('talk', 'tcp_sendmsg'), calls['talk']),
        (('talk', 'tcp_recvmsg'), calls['talk'])):
    got = sum(n for names, n in seen if names[-len(path):] == path)
    if got != want:
        print(';'.join(path), got, 'not', want)
END

check_nesting()	# check_nesting NAME FOLDER
{
	run "$KXRAY" export -f folded --folded-count -o - "$2/trace.xray"
	assert_eq "$1_nesting" "$(python3 "$TMP/nesting.py" "$2/target.out" "$TMP/run.out" 2>&1)" ''
}

check_recording()	# check_recording NAME FOLDER MECHANISM
{
	local name=$1 folder=$2

	assert_eq "${name}_target" "$(cat "$folder/target.status")" 0
	assert_eq "${name}_record" "$(cat "$folder/record.status")" 0
	if [ ! -s "$folder/trace.xray" ]; then
		fail "${name}_trace" "no trace: $(cat "$folder/record.err")"
		return
	fi
	assert_eq "${name}_mechanism" \
		"$(json "$folder/record.json" 'd["kernel_mechanism"]')" "$(name_of "$3")"
	assert_eq "${name}_whole" \
		"$(json "$folder/record.json" '[d["lost"], d["repaired"], d["orphans"]]')" '[0, 0, 0]'
	check_counts "$name" "$folder"
	check_nesting "$name" "$folder"
}

check_kernel()	# check_kernel SERIES FOLDER
{
	local vm=vm_$1 out=$2 have m best why

	have=$(mechanisms_of "$1")
	best=${have%% *}
	assert_eq "${vm}_run" "$STATUS" 0
	assert_eq "${vm}_kernel_log" "$ERR" ''
	for m in session multi fentry single; do
		why=$(json "$out/doctor.json" "d['checks']['$(name_of "$m" | tr . _)']['why']")
		if [[ " $have " != *" $m "* ]]; then
			assert_eq "${vm}_${m}_refused" "$(cat "$out/$m/record.status")" 1
			assert_contains "${vm}_${m}_sentence" "$(cat "$out/$m/record.err")" \
				"kernel functions cannot be traced by $(name_of "$m") here: $why;"
			assert "${vm}_${m}_nothing_written" "there is a trace" \
				test ! -e "$out/$m/trace.xray"
			continue
		fi
		assert_eq "${vm}_${m}_doctor" "$why" ''
		check_recording "${vm}_$m" "$out/$m" "$m"
		assert_contains "${vm}_${m}_denied" "$(cat "$out/$m/record.err")" \
			"left out bpf_map_update_elem: the recorder's own BPF programs run through it"
		# tcp_sendmsg(sk, msg, size): each message is one byte long
		assert_eq "${vm}_${m}_args" "$("$KXRAY" dump "$out/$m/trace.xray" |
			grep -c -E 'entry +tcp_sendmsg \(0xff[0-9a-f]+, 0xff[0-9a-f]+, 0x1\)')" \
			"$(json <(tail -n 1 "$out/$m/target.out") 'd["calls"]["tcp_sendmsg"]')"
	done
	assert_eq "${vm}_doctor_best" "$(json "$out/doctor.json" 'd["kernel_mechanism"]')" \
		"$(name_of "$best")"
	check_recording "${vm}_auto" "$out/auto" "$best"
	if [ "$best" = session ]; then
		check_recording "${vm}_wide" "$out/wide" "$best"
	fi
	assert_eq "${vm}_functions" "$(json "$out/functions.json" \
		'[(f["name"], f["module"], f["address"][:6]) for f in d]')" \
		"[('tcp_sendmsg', 'kernel', '0xffff')]"
	assert_eq "${vm}_functions_quiet" "$(cat "$out/functions.err")" "1 function: 1 in the kernel"
	assert_eq "${vm}_denied_status" "$(cat "$out/denied.status")" 1
	assert_contains "${vm}_denied_alone" "$(cat "$out/denied.err")" \
		"bpf_map_update_elem in kernel cannot be traced: the recorder's own BPF programs"
	assert_eq "${vm}_hidden_status" "$(cat "$out/hidden.status")" 1
	assert_contains "${vm}_hidden" "$(cat "$out/hidden.err")" "kptr_restrict"
	assert_eq "${vm}_nothing_left" "$(cat "$out/leftover")" ''
	assert_eq "${vm}_nothing_mounted" "$(cat "$out/mounts.before" "$out/mounts.after" | tr '\n' ' ')" \
		'0 0 '
}

vm_each "$series_list" "$TMP/guest" check_kernel "$KXRAY:/kxray $TARGETS/kernelcalls:/target" --smp 1
