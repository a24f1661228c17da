#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 9 s
# kxray-flight@.service without systemd: what its ExecStart starts, with exactly its capabilities, system calls, address families and a
# read-only file system, as a user of its own, waits for a server, records it, and writes and passes on a dump.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# Of its own: other tests install with another PREFIX.
unit=$TMP/kxray-flight@.service
sed 's,@LIBEXECDIR@,/usr/local/lib/kxray,' exporters/fleet/kxray-flight@.service.in >"$unit"
for tool in setpriv unshare systemd-analyze redis-server redis-cli; do
	command -v $tool >/dev/null || { skip "flight service" "no $tool here"; exit 0; }
done
setting() { sed -n "s/^$1=//p" "$unit"; }

# The names in the unit's filter; systemd-analyze prints the members of a @group, which may be groups.
calls() {
	local one
	for one; do
		case $one in
		@*) calls $(systemd-analyze syscall-filter "$one" | sed -n 's/^ *\([@a-z0-9_-]*\)$/\1/p' | grep -vxF "$one") ;;
		*) echo "$one" ;;
		esac
	done
}
calls $(setting SystemCallFilter) | sort -u >"$TMP/calls"
assert "the filter's system calls" "$(wc -l <"$TMP/calls")" [ "$(grep -cxE 'bpf|perf_event_open|mmap|openat' "$TMP/calls")" -ge 4 ]
families=$(python3 -c 'import socket, sys; print(*(int(getattr(socket, n)) for n in sys.argv[1:]), sep=",")' \
	$(setting RestrictAddressFamilies))
caps=$(setting CapabilityBoundingSet | tr 'A-Z ' 'a-z,' | sed 's/cap_/+/g')
assert_eq "ambient capabilities are the bounding set" "$(setting AmbientCapabilities)" "$(setting CapabilityBoundingSet)"
if ! ${CC:-gcc} -D_GNU_SOURCE -o "$TMP/confined" tests/live/confined.c -lseccomp; then
	fail "confined.c" "it does not compile"
	exit
fi

# A place for everything that the unit's paths name, seen by its processes only.
prefix=/usr/local
libexec=$(setting ExecStart | cut -d' ' -f1)
assert_eq "ExecStart's file" "$libexec" "$prefix/lib/kxray/flight"
mkdir -p "$TMP/local/bin" "$TMP/local/lib" "$TMP/state"
cp -r exporters/fleet "$TMP/local/lib/kxray"
cp "$KXRAY" "$TMP/local/bin/kxray"
cp "$TMP/confined" "$TMP/local/bin/confined"
cp "$TMP/calls" "$TMP/local/calls"
chmod -R a+rX "$TMP/local"
chmod 711 "$TMP"
uid=61234
chown $uid:$uid "$TMP/state"
chmod 700 "$TMP/state"
: >"$TMP/hidden"
chmod 0 "$TMP/hidden"
cat >"$TMP/sandbox" <<END
mount --make-rprivate /
mount --bind "$TMP/local" $prefix
mount --bind "$TMP/hidden" /proc/kallsyms
mkdir -p "/dev/shm/kxray-flight.$$" && mount --bind "$TMP/state" "/dev/shm/kxray-flight.$$"
mount --bind / / && mount -o remount,bind,ro /
mount -o remount,bind,ro /sys
mount -t tmpfs -o mode=755 none /home
mount -t tmpfs -o mode=1777 none /tmp
exec env -i PATH=$prefix/sbin:$prefix/bin:/usr/sbin:/usr/bin KXRAY_SESSIONS=3 STATE_DIRECTORY="/dev/shm/kxray-flight.$$" "\$@"
END
trap 'rmdir "/dev/shm/kxray-flight.$$" 2>/dev/null; _cleanup' EXIT

# start_unit INSTANCE OPTIONS: as systemd starts it with KXRAY_OPTIONS=OPTIONS; its pid is in $KX_PID
start_unit() {
	local words
	# as systemd splits $KXRAY_OPTIONS: at blanks, heeding quotes
	mapfile -t words < <(setting ExecStart | python3 -c 'import shlex, sys
for word in sys.stdin.read().split():
	print(*(shlex.split(sys.argv[2]) if word == "$KXRAY_OPTIONS" else [word.replace("%i", sys.argv[1])]), sep="\n")' "$1" "$2")
	background unshare -m sh "$TMP/sandbox" setpriv --reuid=$uid --regid=$uid --clear-groups --no-new-privs \
		--bounding-set="-all,$caps" --inh-caps="-all,$caps" --ambient-caps="-all,$caps" \
		$prefix/bin/confined $prefix/calls "$families" "${words[@]}" >"$TMP/rec.out" 2>"$TMP/rec.err" </dev/null
	KX_PID=$PID
}
records() { wait_for _records || return 1; has_text 'kxray: recording ' "$TMP/rec.err"; }
status_of() { sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status"; }

# A server of a name that no other process has.
name=kxfl$$
cp "$(readlink -f "$(command -v redis-server)")" "$TMP/$name"
chmod 755 "$TMP/$name"
start_server() {
	background "$TMP/$name" --port 0 --unixsocket "$TMP/redis" --save '' --appendonly no >"$TMP/redis.out"
	SERVER=$PID
}
answers() { redis-cli -s "$TMP/redis" ping; }

for i in 1 2 3 4; do
	for file in "$TMP/state/flight-2020010${i}T000000Z".{1,2}.xray{,.map}; do : >"$file"; done
done
cat >"$TMP/local/hook" <<'END'
#!/bin/sh
cd "$STATE_DIRECTORY" || exit
grep -E '^(Cap(Inh|Prm|Eff|Amb)|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '[:blank:]' | tr '\n' ' ' >hook.rights
kxray report --json "$1" >hook.new 2>hook.err && mv hook.new hook.json
END
chmod 755 "$TMP/local/hook"

start_unit "$name" "--flight-recorder 256K -f 'pingCommand' --on-dump '$prefix/hook {}' --on-dump-limit 600s"
waits() { has_text "no process is named '$name' yet" "$TMP/rec.err" || _is_over "$KX_PID"; }
wait_for waits
assert_eq "it waits for the server" "$(<"$TMP/rec.err")" "flight: no process is named '$name' yet; waiting for one"
kill -USR1 "$KX_PID" # systemctl reload meanwhile
start_server
if ! records; then
	fail "it records" "$(cat "$TMP/rec.err")"
	exit
fi
pass "it records"
assert_eq "its main process is kxray" "$(<"/proc/$KX_PID/comm")" kxray
bits=$(python3 -c 'import sys
names = {"bpf": 39, "perfmon": 38, "sys_ptrace": 19}
print("%016x" % sum(1 << names[n.strip("+")] for n in sys.argv[1].split(",")))' "$caps")
assert_eq "its user and capabilities" "$(status_of "$KX_PID" Uid | cut -f1) $(for s in Eff Prm Inh Amb Bnd; do status_of "$KX_PID" Cap$s; done | sort -u)" \
	"$uid $bits"
assert_eq "no new privileges, a filter" "$(status_of "$KX_PID" NoNewPrivs) $(status_of "$KX_PID" Seccomp)" "1 2"
assert "the server answers" "no" wait_for answers
redis-cli -s "$TMP/redis" -r 100 ping >/dev/null
pings=$(redis-cli -s "$TMP/redis" info commandstats | sed -n 's/^cmdstat_ping:calls=\([0-9]*\).*/\1/p')
kill -USR1 "$KX_PID"
assert "a dump" "$(cat "$TMP/rec.err")" wait_for has_text "kxray: wrote " "$TMP/rec.err"
assert "its command has run" "$(cat "$TMP/rec.err")" wait_for test -e "$TMP/state/hook.json"
assert_eq "its command has no privileges" "$(<"$TMP/state/hook.rights")" \
	"CapInh:$bits CapPrm:0000000000000000 CapEff:0000000000000000 CapAmb:0000000000000000 NoNewPrivs:1 Seccomp:2 "
cp "$TMP/state/hook.json" "$TMP/report.json"
assert "pings before the count" "$pings" [ "${pings:-0}" -ge 100 ]
assert_eq "calls in the dump are those that the server counted" \
	"$(json "$TMP/report.json" '[f["count"] for f in d["functions"] if f["name"] == "pingCommand"]')" "[$pings]"

kill "$SERVER"
wait "$SERVER" 2>/dev/null
end_kxray
assert_eq "it ends with the server" "$STATUS" 0
files=$(cd "$TMP/state" && ls -1 flight-*.xray)
assert_eq "dumps of old starts" "$(grep -c '^flight-2020' <<<"$files") $(grep -c '^flight-2020010[34]' <<<"$files")" "4 4"
assert_eq "dumps of this start" "$(grep -vc '^flight-2020' <<<"$files") $(stat -c '%u %a' "$TMP/state"/flight-2*.2.xray | grep -v ^0 | sort -u)" \
	"2 $uid 600"

# The unit's default options; systemctl stop. A smaller program, of which few functions are counted before.
name=${name}b
cp "$TARGETS/sleeper" "$TMP/$name"
background "$TMP/$name" --start=now >"$TMP/sleeper.out"
SERVER=$PID
assert "another program" "no" wait_for has_text ready "$TMP/sleeper.out"
start_unit "$name" "$(sed -n 's/^Environment="KXRAY_OPTIONS=\(.*\)"$/\1/p' "$unit")"
assert "default options" "$(cat "$TMP/rec.err")" records
kill -TERM "$KX_PID"
end_kxray
assert_eq "it ends on a signal" "$STATUS $(grep -c '^kxray: wrote ' "$TMP/rec.err")" "0 1"

# Wrong options: the status at which the unit does not restart
start_unit "$name" "--no-such-option"
end_kxray
assert_eq "wrong options" "$STATUS" "$(setting RestartPreventExitStatus)"
kill "$SERVER"
