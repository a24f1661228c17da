#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run with both kernels: parallel, 75 s
#
# The flight recorder on other kernels: SIGUSR1, a slow call, an entry, the end; and one dump per
# crashing process, with a busy CPU and with many threads that end together.
#
#   tests/vm/flight.sh [SERIES...]        default $KX_VM_SERIES, or 6.1, whose verifier allows least
series_list=${*:-${KX_VM_SERIES:-6.1}}
# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/vm/table.sh
. tests/vm/table.sh

vm_needs vm_flight || exit 0

cat >"$TMP/guest" <<'END'
wrote() # COUNT ERR: waits until COUNT dumps are written
{
	until [ "$(grep -c '^kxray: wrote ' "$2")" -ge "$1" ]; do
		kill -0 $kxray || break
		sleep 0.1
	done
}
calls() # prints the calls of maybe_slow so far: the target prints them after each byte
{
	printf n >&3
	tail -n 1 $out/flight.out | sed 's/.*maybe_slow"://; s/}.*//'
}
worked() # CALLS: waits until the target has made CALLS more
{
	until grep -q did $out/flight.out; do
		printf n >&3
		sleep 0.1
	done
	calls_before=$(calls)
	until [ "$(calls)" -ge $((calls_before + $1)) ]; do
		kill -0 $target || break
		sleep 0.1
	done
}
start() # NAME THREADS OPTION...
{
	name=$1
	out=/out/$name
	mkdir -p $out
	rm -f /tmp/in
	mkfifo /tmp/in
	/flight --threads=$2 --load=5 </tmp/in >$out/flight.out 2>&1 &
	target=$!
	exec 3>/tmp/in
	shift 2
	until grep -q ready $out/flight.out; do sleep 0.1; done
	kill -STOP $target # its load would slow down the emulated start of the recording
	/kxray record -p $target -f busy -f maybe_slow -f rare -f crash --args 2 -o $out/trace.xray \
		--json "$@" >$out/json 2>$out/err &
	kxray=$!
	until grep -q '^kxray: recording' $out/err; do kill -0 $kxray || break; sleep 0.1; done
	kill -CONT $target
}
finish()
{
	exec 3>&-
	wait $target
	echo $? >$out/target
	wait $kxray
	echo $? >$out/status
}

interrupt()
{
	kill -INT $kxray
	wait $kxray
	echo $? >$out/status
	printf q >&3
	wait $target
	exec 3>&-
}

# A small store: much of it is overwritten before the first dump.
start asked 1 --flight-recorder 64K
worked 2000
kill -USR1 $kxray
wrote 1 $out/err
interrupt

# A store large enough for the slow call including its entry, on machines of any speed; the limit is above what
# a starved emulator makes of the short calls.
start triggered 1 --flight-recorder 16M --trigger 'maybe_slow>2000ms' --trigger rare@entry \
	--dump-interval 0.1
worked 200
printf L >&3
wrote 1 $out/err
sleep 0.2 # longer than the dump interval
printf r >&3
wrote 2 $out/err
interrupt

for i in 1 2; do
	start crash$i 8 --flight-recorder 1M
	worked 200
	/flight --threads=1 --load=0 </dev/zero >/tmp/busy.out 2>&1 &
	busy=$!
	until grep -q ready /tmp/busy.out; do sleep 0.1; done
	printf s >&3
	finish
	kill $busy
done
END

check_crash() # NAME OUT
{
	local name=$1 out=$2

	assert_eq "${name}_statuses" "$(cat "$out/target" "$out/status" | tr '\n' ' ')" "139 0 "
	assert_eq "${name}_one_dump" "$(cd "$out" && echo trace.*.xray)" trace.1.xray
	python3 tests/live/flight.py "$out" "$name" "$out/trace.1.xray" reads reason=crash says=SIGSEGV \
		fresh ended=9 crashing=crash
}

check()
{
	local name=vm_$1 out=$2 i

	assert_eq "${name}_run" "$STATUS" 0
	assert_eq "${name}_kernel_log" "$ERR" ''
	for i in asked/trace.2.xray triggered/trace.3.xray; do
		if [ ! -s "$out/$i" ]; then
			fail "${name}_dumps" "no $i: $(cat "$out/${i%/*}/err"; ls "$out/${i%/*}")"
			return
		fi
	done
	assert_eq "${name}_statuses" "$(cat "$out/asked/status" "$out/triggered/status" | tr '\n' ' ')" "0 0 "
	assert_eq "${name}_asked" "$(json "$out/asked/json" 'd["dumps"], d["dumps_failed"], d["lost"]')" \
		"(2, 0, 0)"
	assert_eq "${name}_triggered" \
		"$(json "$out/triggered/json" 'd["dumps"], d["dumps_failed"], d["lost"]')" "(3, 0, 0)"
	python3 tests/live/flight.py "$out" "${name}_signal" "$out/asked/trace.1.xray" reads reason=signal \
		fresh cut gapless
	i=$out/triggered/trace
	python3 tests/live/flight.py "$out" "${name}_slow" "$i.1.xray" reads reason=slow fresh gapless \
		slow=maybe_slow,2000
	python3 tests/live/flight.py "$out" "${name}_entry" "$i.2.xray" reads reason=entry fresh gapless \
		entered=rare
	python3 tests/live/flight.py "$out" "${name}_end" "$i.3.xray" reads reason=end gapless
	for i in 1 2; do
		check_crash "${name}_crash$i" "$out/crash$i"
	done
	documented "$1" 'flight recorder' yes
}

vm_each "$series_list" "$TMP/guest" check "$KXRAY:/kxray $TARGETS/flight:/flight"
