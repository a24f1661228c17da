#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 10 s
# Two hosts, network and UTS namespaces with a connection between them, whose clocks are 250 ms apart: after a merge each of the
# server's calls is within the client's. A shift of CLOCK_BOOTTIME alone (another boot) needs no correction; one of CLOCK_REALTIME
# is found by the pairs of calls. Perfetto's own SQL says the same, if KX_TRACE_PROCESSOR names a trace_processor_shell.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh
N=200

# In a host's namespaces, of which a process is kept.
hosts=()
is_apart() { [ "$(readlink /proc/self/ns/net)" != "$(readlink "/proc/$1/ns/net")" ]; }
new_host() {
	unshare --net --uts sh -c 'hostname "$1" && ip link set lo up && exec sleep 600' sh "$1" 2>"$TMP/why" &
	hosts+=("$!")
	_pids+=("$!")
	wait_for is_apart "$!"
	wait_for has_text sleep "/proc/$!/comm"
}
on() { nsenter --net --uts -t "${hosts[$1]}" "${@:2}"; }
if ! unshare --net --uts true 2>"$TMP/why"; then
	skip "two hosts" "no namespaces can be made: $(cat "$TMP/why")"
	exit 0
fi
new_host web1
new_host db1
link=kx$$
if ! ip link add "${link}a" type veth peer name "${link}b" 2>"$TMP/why"; then
	skip "two hosts" "no network can be made: $(cat "$TMP/why")"
	exit 0
fi
ip link set "${link}a" netns "${hosts[0]}"
ip link set "${link}b" netns "${hosts[1]}"
on 0 sh -c "ip address add 10.9.8.1/24 dev ${link}a && ip link set ${link}a up"
on 1 sh -c "ip address add 10.9.8.2/24 dev ${link}b && ip link set ${link}b up"

# Each recorded on its own host, at the same time.
on 1 "$KXRAY" record -q -o "$TMP/db1.xray" -f answer -- "$TARGETS/remote" --start=now 0.0.0.0:0 >"$TMP/server.out" 2>"$TMP/server.err" &
_pids+=("$!")
server=$!
wait_for has_text port "$TMP/server.out" || fail "the server" "$(cat "$TMP/server.err")"
port=$(sed -n 's/^port //p' "$TMP/server.out")
run on 0 "$KXRAY" record -q --label role=client -o "$TMP/web1.xray" -f ask -- "$TARGETS/remote" --start=now --repeat=$N "10.9.8.2:$port"
assert_eq "client: status" "$STATUS" 0
wait "$server"
assert_eq "server: status" "$?" 0
assert_contains "client: counts" "$OUT" "{\"calls\":{\"ask\":$N,\"answer\":0}}"

# inside FILE...: how many of the server's calls are within the client's call of the same number, and how many there are
inside() { python3 tests/readers/merged.py --inside ask=answer "$@"; }

# changed STATEMENT: the server's trace with another clock
changed() {
	cp "$TMP/db1.xray" "$TMP/other.xray"
	cp "$TMP/db1.xray.map" "$TMP/other.xray.map"
	python3 tests/edit_session.py "$TMP/other.xray.map" "$1" || fail "edit" "$1"
}
# merged LABEL WANT OPTION...: in all three forms
merged() {
	local label=$1 want=$2 form
	shift 2
	for form in tar pftrace json; do
		run "$KXRAY" merge "$@" -o "$TMP/merged.$form" "$TMP/web1.xray" "$TMP/other.xray"
		assert_eq "$label, $form: status" "$STATUS" 0
		assert_eq "$label, $form" "$(inside "$TMP/merged.$form")" "$want"
	done
	printf '%s\n' "$ERR" >"$TMP/messages"
	[ -n "${KX_TRACE_PROCESSOR:-}" ] || return 0
	assert_eq "$label, SQL" "$(inside --sql "$TMP/merged.pftrace")" "$want"
}
SET='def add(key, ns):
    for c in s["clock"]["snapshots"]: c[key] += ns
'
changed "pass"
merged "as recorded" "$N of $N"
# Booted 250 ms earlier than the other: BOOTTIME is ahead, REALTIME is the same.
changed "$SET
add('boottime_ns', 250000000); s['host']['boot_id'] = 'another'"
merged "another boot" "$N of $N"
# CLOCK_REALTIME is 250 ms ahead.
changed "$SET
add('realtime_ns', 250000000); s['host']['boot_id'] = 'another'"
merged "a wrong clock" "0 of $N"
merged "a wrong clock that is known" "$N of $N" --offset db1=-250ms
merged "a wrong clock found by the calls" "$N of $N" --pair ask=answer
# Within the network's and the scheduler's time of 250 ms, and the bound is said
run "$KXRAY" merge --json --pair ask=answer -o "$TMP/merged.tar" "$TMP/web1.xray" "$TMP/other.xray"
assert_eq "the bound" "$(python3 -c 'import json, sys
d = json.loads(sys.argv[1]); p = d["pairs"][0]
print(p["client"], p["server"], p["calls"], p["least_ns"] < -250000000 < p["most_ns"], p["least_ns"] <= p["offset_ns"] <= p["most_ns"],
	d["traces"][1]["offset_ns"] == p["offset_ns"], d["traces"][0]["offset_ns"])' "$OUT")" "web1 db1 $N True True True 0"
assert_contains "the bound, for people" "$(cat "$TMP/messages")" "kxray merge: db1: moved by -2"
printf '%s\n' "$OUT" >"$TMP/MERGE.1"
assert_eq "--json: fields are as the page says" "$(python3 tests/json_fields.py --seen "$BUILD/man/kxray-json.7" MERGE "$TMP/MERGE.1" 2>&1)" ""
changed "pass"
merged "clocks that are right" "$N of $N" --pair ask=answer
assert_contains "clocks that are right: not moved" "$(cat "$TMP/messages")" "kxray merge: db1: not moved against web1: $N pairs of calls"
