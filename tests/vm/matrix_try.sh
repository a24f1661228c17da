#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Tries each feature of kxray on the running kernel: prints a line "WHAT: yes" or "WHAT: no" for each, and
# the reason for "no" on standard error; "died of signal N" if kxray did. "Yes" means that exactly the target's calls were recorded.
#     matrix_try.sh KXRAY TARGETS-FOLDER SCRATCH-FOLDER [some]
# With "some", only what no other guest test proves (table.sh lists those).
# Also runs in the virtual machines: needs only busybox sh, kxray, the targets counts, kernelcalls, tree,
# tree-child, treeplug.so, and their libraries.
kxray=$1 targets=$2 scratch=$3

# called NAME FILE: prints the target's own count of calls of NAME, summed over its threads
called() { grep -o "\"$1\":[0-9]*" "$2" | tail -n 1 | cut -d: -f2; }

# seen NAME: prints the calls of NAME in the report
seen() {
	grep "\"name\":\"$1\"" "$scratch/report" | sed 's/.*"count":\([0-9]*\).*/\1/' |
		awk '{ n += $1 } END { print n + 0 }'
}

# traced OPTION... : records the target $target, reports
target=counts
traced() {
	rm -f "$scratch"/trace*
	"$kxray" record --ring-size 4M -o "$scratch/trace.xray" "$@" -- "$targets/$target" --start=now \
		>"$scratch/out" 2>"$scratch/err" &&
		"$kxray" report --json "$scratch/trace.xray" >"$scratch/report" 2>>"$scratch/err"
}

# same CALLED SEEN: succeeds if both counts are equal and not 0
same() { [ "$(called "$1" "$scratch/out")" = "$(seen "$2")" ]; }

# answer WHAT STATUS
answer() {
	if [ "$2" = 0 ]; then
		echo "$1: yes"
	elif [ "$2" -gt 128 ]; then
		echo "$1: died of signal $(($2 - 128))"
	else
		echo "$1: no"
		echo "$1: $(grep -v -e 'clock' "$scratch/err" | tail -n 2 | tr '\n' ' ')" >&2
	fi
}

for mechanism in single multi session; do
	traced -f 'leaf_*' --mechanism $mechanism && same leaf_a leaf_a && same leaf_b leaf_b
	answer "user functions, $mechanism" $?
done

rm -f "$scratch"/trace* "$scratch/log"
"$kxray" record --ring-size 4M -o "$scratch/trace.xray" -f "$targets/tree:tree_*" -f "$targets/treeplug.so:*" \
	-f "$targets/tree-child:child_*" -- "$targets/tree" --start=now --repeat=12 "$scratch/log" \
	>"$scratch/out" 2>"$scratch/err" &&
	"$kxray" report --json "$scratch/trace.xray" >"$scratch/report" 2>>"$scratch/err" &&
	for name in tree_leaf tree_fork child_work plug_leaf; do
		grep -o "\"$name\":[0-9]*" "$scratch/log" | cut -d: -f2 |
			awk -v name=$name '{ n += $1 } END { print "{\"" name "\":" n "}" }' >"$scratch/out"
		same $name $name || echo false
	done | grep -v true >"$scratch/wrong"
[ -e "$scratch/wrong" ] && [ ! -s "$scratch/wrong" ]
answer "children, their programs and libraries (--follow)" $?

rm -f "$scratch"/trace* "$scratch/err" # the last recording's says "recording", too
cp "$targets/counts" "$scratch/counts" # a file of its own: other tests run the target at the same time
"$kxray" record -a --ring-size 4M -o "$scratch/trace.xray" -f "$scratch/counts:leaf_*" 2>"$scratch/err" &
recorder=$!
while kill -0 $recorder 2>/dev/null && ! grep -q '^kxray: recording ' "$scratch/err"; do
	sleep 0.1
done
"$scratch/counts" --start=now >"$scratch/out"
kill -INT $recorder 2>/dev/null
wait $recorder && "$kxray" report --json "$scratch/trace.xray" >"$scratch/report" && same leaf_a leaf_a
answer "every process (-a)" $?
[ "${4-}" != some ] || exit 0

traced -f 'leaf_*' --comm 'c*nts' --uid 0 && same leaf_a leaf_a &&
	traced -f 'leaf_*' --comm 'count' && [ "$(seen leaf_a)" = 0 ]
answer "filters (--comm, --uid)" $?

target=kernelcalls
for mechanism in session multi fentry single; do
	traced -f kernel:__x64_sys_getppid --kernel-mechanism $mechanism &&
		same __x64_sys_getppid __x64_sys_getppid
	answer "kernel functions, $mechanism" $?
done
target=counts

traced -f 'syscall:clock_nanosleep' && same sleep_2ms clock_nanosleep
answer "system calls" $?

traced -f sleep_2ms --sched && same sleep_2ms sleep_2ms &&
	grep '"name":"sleep_2ms"' "$scratch/report" | grep -q '"off_cpu_ns":[1-9]'
answer "scheduler (--sched)" $?

rm -f "$scratch"/trace*
"$kxray" record --flight-recorder 16M -o "$scratch/trace.xray" -f 'leaf_*' -- "$targets/counts" \
	--start=now >"$scratch/out" 2>"$scratch/err" &&
	"$kxray" report --json "$scratch/trace.1.xray" >"$scratch/report" && same leaf_a leaf_a
answer "flight recorder" $?

traced -f 'leaf_*' -f sleep_2ms --min-duration 1900us && same sleep_2ms sleep_2ms &&
	traced -f outer -f middle -f inner --depth 1 && same outer outer && [ "$(seen inner)" = 0 ]
answer "fewer calls (--min-duration, --depth)" $?

"$kxray" record --count --json -f 'leaf_*' -- "$targets/counts" --start=now >"$scratch/out" \
	2>"$scratch/err"
status=$?
grep -o '"name": *"leaf_a"[^}]*' "$scratch/out" | sed 's/: */:/g; s/, */,/g' >"$scratch/report"
[ $status = 0 ] && same leaf_a leaf_a
answer "only counts (--count)" $?
exit 0
