#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# How long a recording takes to begin, and what the target notices of it. Prints a table, then lines "bench ...":
#     planning   wall time (median of five runs), CPU time and memory of `kxray functions` for all functions of the
#                libLLVMs and other large libraries that are installed (100,000 are wanted)
#     system     `record -a` with 400 processes: seconds until it records
#     pause      the longest time in which a thread of the target did not run, while 10,000 functions are attached
#                and detached, and as long without kxray
# An idle machine is needed: what the scheduler delays is not subtracted.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/bench-common.sh
need_root
[ -x "$KXRAY" ] || die "$KXRAY is missing; run 'make'"
bench_folder
started=()
end_all()
{
	[ ${#started[@]} = 0 ] || kill -KILL "${started[@]}" 2>/dev/null
	wait 2>/dev/null
	started=()
}
trap 'end_all; rm -rf "$TMP"' EXIT
cpu_seconds() { awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); printf "%.2f", ($12 + $13) / hz }' "/proc/$1/stat"; }
ms() { echo $(($(date +%s%N) / 1000000)); }

plan_all()
{
	local n mib wall cpu least most
	cat >"$TMP/maps.py" <<-'END'
		import ctypes, glob, sys, time
		n = 0
		for path in sorted(glob.glob("/usr/lib/x86_64-linux-gnu/libLLVM*.so.1*")) + sys.argv[1:]:
		    try:
		        ctypes.CDLL(path)
		        n += 1
		    except OSError:
		        pass
		print("ready", n, flush=True)
		time.sleep(600)
	END
	python3 "$TMP/maps.py" libcrypto.so.3 libstdc++.so.6 >"$TMP/maps.out" 2>&1 &
	tool=$!
	started+=("$tool")
	wait_text "$TMP/maps.out" ready || { cannot "planning" "the libraries do not load"; return; }
	python3 - "$KXRAY" "$tool" >"$TMP/planned" 2>"$TMP/planned.err" <<-'END'
		import os, subprocess, sys, time
		runs = []
		for _ in range(5):
		    begin = time.monotonic()
		    with open(os.devnull, "w") as out:
		        p = subprocess.Popen([sys.argv[1], "functions", "-p", sys.argv[2], "-f", "libLLVM*:*", "-f",
		                              "libcrypto*:*", "-f", "libstdc++*:*", "--max-functions", "1000000"],
		                             stdout=out, stderr=subprocess.PIPE, text=True)
		        err = p.stderr.read()
		        used = os.wait4(p.pid, 0)[2]
		    n = [l.split()[0] for l in err.splitlines() if " functions: " in l]
		    runs.append((time.monotonic() - begin, used.ru_utime + used.ru_stime, used.ru_maxrss >> 10))
		wall, cpu, mib = (sorted(column) for column in zip(*runs))
		print(n[0], f"{wall[2]:.2f} {cpu[2]:.2f} {mib[-1]} {wall[0]:.2f} {wall[-1]:.2f}")
	END
	if ! read -r n wall cpu mib least most <"$TMP/planned"; then
		cannot "planning" "$(tail -n 1 "$TMP/planned.err")"
		return
	fi
	verdict "$n functions planned and listed" "$wall" "<=" 1 s "$least to $most s; $cpu s of CPU time"
	verdict "memory for $n functions" "$mib" "<=" 300 MiB "with the libraries' pages that were read"
}

# Seconds until `record -a` records, beside 400 more processes.
system_wide()
{
	local begin i
	for ((i = 0; i < 400; i++)); do
		sleep 600 &
		started+=($!)
	done
	begin=$(ms)
	start_tool "$TMP/all.json" "$TMP/all.err" "$KXRAY" record -a -f 'libc.so*:getaddrinfo' -o "$TMP/all.xray" --json
	if wait_text "$TMP/all.err" '^kxray: recording'; then
		verdict "record -a beside 400 processes: until it records" \
			"$(awk -v a="$begin" -v b="$(ms)" 'BEGIN { printf "%.2f", (b - a) / 1000 }')" "<=" 1 s \
			"$(cpu_seconds "$tool") s of CPU time"
	else
		cannot "record -a beside 400 processes" "$(head -n 1 "$TMP/all.err")"
	fi
	end_tool
	end_all
}

# gap: the library's thread in `many` prints the longest pause, in us, since it was asked last
gap()
{
	local before i
	before=$(wc -l <"$TMP/gaps.out")
	kill -USR1 "$target"
	for ((i = 0; i < 500; i++)); do
		[ "$(wc -l <"$TMP/gaps.out")" -le "$before" ] || break
		sleep 0.02
	done
	tail -n 1 "$TMP/gaps.out"
}

pause_of_target()
{
	local many=$BUILD/tests/targets/many alone attached detached
	if ! [ -x "$many" ] || ! gcc -O2 -shared -fPIC -pthread -o "$TMP/gaps.so" tests/bench/gaps.c; then
		cannot "pause of the target" "$many or tests/bench/gaps.c is not built"
		return
	fi
	# what waits here starts a program every 20 ms: beside the target, not in its place
	[ "$last" = 0 ] || taskset -cp "0-$((last - 1))" $$ >/dev/null
	mkfifo "$TMP/in"
	: >"$TMP/gaps.out"
	GAPS=$TMP/gaps.out LD_PRELOAD=$TMP/gaps.so "${on_target_cpu[@]}" "$many" <"$TMP/in" >"$TMP/many.out" 2>&1 &
	target=$!
	started+=("$target")
	exec 5>"$TMP/in"
	tool=$target
	wait_text "$TMP/many.out" ready || { cannot "pause of the target" "it does not start"; return; }
	gap >/dev/null
	sleep 1
	alone=$(gap)
	start_tool "$TMP/p.json" "$TMP/p.err" "$KXRAY" record -p "$target" -f 'many_*' -o "$TMP/p.xray" --json
	wait_text "$TMP/p.err" '^kxray: recording' || { cannot "pause of the target" "$(head -n 1 "$TMP/p.err")"; return; }
	attached=$(gap)
	end_tool
	detached=$(gap)
	exec 5>&-
	for i in attached detached; do
		verdict "longest pause of the target, 10,000 functions $i" \
			"$(awk -v v="${!i}" 'BEGIN { printf "%.2f", v / 1000 }')" "<=" 5 ms \
			"$(awk -v v="$alone" 'BEGIN { printf "%.2f", v / 1000 }') ms in a second without kxray"
	done
	end_all
}

plan_all
end_all
system_wide
pause_of_target
summary
