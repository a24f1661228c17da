#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 20 s
# kxray-json(7) has every field that record, doctor and functions print, and report and dump for such recordings, and
# kxray-formats(5) those of the maps' sessions, with their types; and no field that none of them has, but for those that
# need another kernel.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh
PAGE=$BUILD/man/kxray-json.7

# printed SECTION COMMAND...: writes its JSON to $TMP/SECTION.N
N=0
printed() {
	local section=$1
	shift
	run "$@"
	[ "$STATUS" = 0 ] || fail "$*" "$ERR"
	cp "$TMP/run.out" "$TMP/$section.$((++N))"
}
# recorded_as SECTION: keeps the summary of the recording that has just ended
recorded_as() {
	local map
	assert_eq "recording $((++N)): status" "$STATUS" 0
	grep '^{' "$TMP/rec.json" >"$TMP/$1.$N"
	for map in "$TMP"/*.xray.map; do
		objcopy -O binary --only-section=.kxray.session --set-section-flags .kxray.session=alloc "$map" \
			"$TMP/SESSION.$((++N))"
	done
}

trace_target waits -f nap -f take -f give -f spin --sched --args 2 --label env=production
recorded_as RECORD
printed REPORT "$KXRAY" report --json "$TRACE"
for key in process thread name cpu module; do
	printed REPORT "$KXRAY" report --json --by $key "$TRACE"
done
printed REPORT "$KXRAY" report --json --by host "$TRACE"
printed REPORT "$KXRAY" report --json --tree "$TRACE"
for view in --callers --callees --histogram "--slowest 3"; do
	# shellcheck disable=SC2086
	printed REPORT "$KXRAY" report --json $view take "$TRACE"
done
printed DUMP "$KXRAY" dump --json "$TRACE"
trace_target values -f 'take_integers(arg1:i8, arg3:bool) -> ret:i8' --if 'arg1 < 100'
recorded_as RECORD
printed REPORT "$KXRAY" report --json --by-value arg3 "$TRACE"
printed REPORT "$KXRAY" report --json --slowest 1 "$TRACE"
printed DUMP "$KXRAY" dump --json "$TRACE"
cp "$TRACE" "$TMP/old.xray"
trace_target waits -f nap -o "$TMP/old.xray"
recorded_as RECORD

# A value that not all functions have
trace_target values -f 'take_*(a, twice)'
recorded_as RECORD

trace_target counts "${COUNTED[@]}" --in-process
recorded_as RECORD
# A budget that lasts for no call
trace_target counts "${COUNTED[@]}" --max-overhead 0.01
recorded_as RECORD
printed REPORT "$KXRAY" report --json "$TRACE"
trace_target counts "${COUNTED[@]}" --rotate 100K
recorded_as RECORD
trace_target counts "${COUNTED[@]}" --flight-recorder 1M
recorded_as RECORD
trace_target counts "${COUNTED[@]}" --keep 5 --trigger 'sleep_2ms > 1 us' --on-dump 'true {}'
recorded_as RECORD
run "$KXRAY" record --count --json -f inner -- "$TARGETS/counts" --start=now
assert_eq "counting: status" "$STATUS" 0
tail -n 1 "$TMP/run.out" >"$TMP/COUNT.1"
start_target sleeper
sleeper=$PID
printed FUNCTIONS "$KXRAY" functions --json "$TARGETS/counts"
printed FUNCTIONS "$KXRAY" functions --json -p "$sleeper" -f '*' --rate 0.1
printed FUNCTIONS "$KXRAY" functions --json -f syscall:futex
printed FUNCTIONS "$KXRAY" functions --json --in-process -f '*' "$TARGETS/counts"
printed FUNCTIONS "$KXRAY" functions --json -f 'usdt:*' "$TARGETS/usdt"
printed DOCTOR "$KXRAY" doctor --json

# checked SECTION [FIELD...]: all fields but these are printed above
checked() {
	local section=$1 page=$PAGE
	[ "$section" != SESSION ] || page=$BUILD/man/kxray-formats.5
	shift
	assert_eq "$section: the page has the fields that are printed, and their types" \
		"$(python3 tests/json_fields.py --seen "$page" "$section" "$TMP/$section".* 2>&1 |
			grep -vxF "$(printf "$section: no output has %s\n" "$@")")" ""
}
# In pid namespaces
checked REPORT "processes[].ns_pid" "groups[].ns_tid"
# ../live/near_misses.sh, unprobed.sh and leases.sh; with kernels that have probes of their functions
checked RECORD unmatched unprobed return_gaps{,.threads,.ms} kernel_mechanism
checked COUNT "functions[].out_seconds" # ../live/count.sh
checked FUNCTIONS
checked DOCTOR
checked DUMP ns_pid ticks type data_hex
# Debug information, programs with links, pid namespaces, processes that join (system_wide.sh, containers.sh), C++ programs, crashes
# and control groups of systemd and containers (labels.sh)
checked SESSION session.values.*[].{type,names,unknown,hidden} "modules[].called" session.host.machine_id \
	session.processes[].{unit,container,container_runtime,pod} session.clock.snapshots[].line_error_ns \
	session.{kernel_mechanism,unprobed,processes_left_out} \
	"session.processes[].ns_pid" "session.processes[].started" \
	session.probe_costs.moved_exits{,.functions,.moves} session.trigger.signal{,_name}
