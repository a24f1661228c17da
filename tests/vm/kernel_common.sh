# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# For kernel_functions.sh and kernel_with_syscalls.sh, after lib.sh: recording the target in a guest, and
# checking a recording of kernel functions. In emulation, each recording spends seconds on reading the
# kernel's symbols, so the recordings are divided between two scripts that run in parallel.

# Mechanisms that a kernel series has, the preferred one first.
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

# The common beginning of the guests' scripts.
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

# The target waits until kxray prints that all probes are in place.
record()	# record FOLDER OPTION...
{
	out=/out/$1
	shift
	mkdir $out
	start_target $out
	case $* in
	*--count*) ;;
	*) set -- --ring-size 4M -o $out/trace.xray "$@" ;;
	esac
	/kxray record -p $target --json "$@" >$out/record.json 2>$out/record.err &
	kxray=$!
	until grep -q -E 'kxray: (recording|counting)' $out/record.err; do
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

END

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

check_counts()	# check_counts NAME FOLDER: by report and by every llvm-xray
{
	local name=$1 folder=$2 tool version

	"$KXRAY" report --json "$folder/trace.xray" 2>"$TMP/why" | python3 -c 'import json, sys
print(json.dumps({f["name"]: f["count"] - f["open"] for f in json.load(sys.stdin)["functions"]}))' \
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

# Every call is nested inside its caller: stacks and their counts are compared with the target's calls.
cat >"$TMP/nesting.py" <<'END'
import json, sys
calls = json.loads([l for l in open(sys.argv[1]) if l.startswith('{')][-1])['calls']
seen = []  # {stack: number of calls of its last function}
for line in open(sys.argv[2]):
    stack, count = line.rsplit(' ', 1)
    seen.append((tuple(stack.split(';')), int(count)))
# with the system calls in between, if they are traced too
call = (lambda *names: names) if sys.argv[3:] == ['syscalls'] else (lambda *names: ())
write = ('note',) + call('write') + ('__x64_sys_write', 'ksys_write', 'vfs_write')
nap = [(('nap',) + call(name) + ('hrtimer_nanosleep',)) for name in ('nanosleep', 'clock_nanosleep')]
for path, want in (
        (('ask',) + call('getppid') + ('__x64_sys_getppid',), calls['__x64_sys_getppid']),
        (write, calls['note']),
        (write + ('write_null',), calls['note']),
        (nap[any(n == 'clock_nanosleep' for names, _ in seen for n in names)], calls['nap']),
        (('talk',) + call('sendto') + ('tcp_sendmsg',), calls['talk']),
        (('talk',) + call('recvfrom') + ('tcp_recvmsg',), calls['talk'])):
    got = sum(n for names, n in seen if names[-len(path):] == path)
    if got != want:
        print(';'.join(path), got, 'not', want)
END

check_nesting()	# check_nesting NAME FOLDER [syscalls]
{
	run "$KXRAY" export -f folded --folded-count -o - "$2/trace.xray"
	assert_eq "$1_nesting" "$(python3 "$TMP/nesting.py" "$2/target.out" "$TMP/run.out" ${3:+"$3"} 2>&1)" ''
}

check_recording()	# check_recording NAME FOLDER MECHANISM [syscalls]
{
	local name=$1 folder=$2 missed=0

	assert_eq "${name}_target" "$(cat "$folder/target.status")" 0
	assert_eq "${name}_record" "$(cat "$folder/record.status")" 0
	if [ ! -s "$folder/trace.xray" ]; then
		fail "${name}_trace" "no trace: $(cat "$folder/record.err")"
		return
	fi
	assert_eq "${name}_mechanism" \
		"$(json "$folder/record.json" 'd["kernel_mechanism"]')" "$(name_of "$3")"
	# Where functions that process packets are traced, too: a timer's softirq may interrupt a program at a probe, and
	# the kernel then reports none of its calls. They are not the target's own.
	if [ "$name" = vm_6.12_session ]; then
		missed=$(sed -n 's/^kxray: \([0-9]*\) lost: hits that the kernel did not report.*/\1/p' "$folder/record.err")
	fi
	assert_eq "${name}_whole" \
		"$(json "$folder/record.json" '[d["lost"], d["repaired"], d["orphans"]]')" "[${missed:-0}, 0, 0]"
	check_counts "$name" "$folder"
	check_nesting "$name" "$folder" ${4:+"$4"}
}
