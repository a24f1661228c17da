#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What a flight recorder takes of a host, with a dump every ten seconds whose profile is sent to a server, and what that is
# for HOSTS (1,000) hosts; kxray-fleet(7) has the figures:
#     scripts/bench-fleet.sh
# Needs root, a built $BUILD (default build), curl, python3 and protobuf-compiler. Three and a half minutes. RATES="1000 10000" for other
# events a second, ROUNDS dumps each (3), CLICKHOUSE_BYTES a call in ClickHouse (scripts/bench-clickhouse.sh measures it).
#
# The server is the stand-in of tests/files/push.sh, on this machine; its time is not counted.
set -u

cd "$(dirname "$0")/.." || exit 1
. scripts/bench-common.sh
HOSTS=${HOSTS:-1000}
RATES=${RATES:-1000 10000 100000}
EVERY=10 # seconds
export ROUNDS=${ROUNDS:-3}

need_root
[ -x "$KXRAY" ] || die "$KXRAY is missing; run 'make'"
for tool in curl python3 protoc; do
	command -v $tool >/dev/null || die "$tool is not installed"
done
bench_folder
server=
redis=
trap '[ -z "$server" ] || kill $server; [ -z "$redis" ] || kill $redis; rm -rf "$TMP"' EXIT
export KXRAY
mkdir -p "$BUILD/tests/bench" "$TMP/server"
${CC:-gcc} -O2 -o "$BUILD/tests/bench/steady" tests/bench/steady.c || die "steady.c does not compile"
python3 tests/files/profile_server.py pyroscope "$TMP/server" &
server=$!
for ((i = 0; i < 200; i++)); do
	[ -e "$TMP/server/port" ] && break
	sleep 0.1
done

# measure RATE MODE: leaves a JSON object in $TMP/RATE.MODE
measure()
{
	scripts/bench_fleet.py "$KXRAY" "$BUILD/tests/bench/steady" "$TMP" "$1" $EVERY "$2" \
		"http://127.0.0.1:$(<"$TMP/server/port")" >"$TMP/$1.$2"
}
# of RATE MODE EXPRESSION: f are the figures
of() { python3 -Sc 'import json, sys; f = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$TMP/$1.$2" "$3"; }

echo "kxray bench: a flight recorder on $(nproc) CPUs, a dump every $EVERY s, $ROUNDS of each; percent of one CPU"
echo
printf '%-4s  %-52s %9s %-3s %-11s %s\n' "" "what" "measured" "" "target" "least to greatest; absolute"
for mode in record dump; do
	measure 10000 $mode || die "10,000 events a second cannot be recorded"
	what=recording
	[ $mode = record ] || what="recording and dumping"
	verdict "10000 events/s, $what" "$(of 10000 $mode '"%.2f" % (100 * f["kxray"])')" "<=" 1 % \
		"$(of 10000 $mode '"%.0f events/s, %d lost" % (f["events"], f["lost"])')"
done
measured=
for rate in $RATES; do
	if ! measure "$rate" push; then
		cannot "$rate events/s, with dump and push" "see above"
		continue
	fi
	measured="$measured $rate"
	value=$(of "$rate" push '"%.2f" % (100 * f["kxray"])')
	detail=$(of "$rate" push '"%.0f events/s, %d lost; probes in the program: %.2f %%" % (f["events"], f["lost"], 100 * (f["program"] - f["plain"]))')
	if [ "$rate" -le 10000 ]; then
		verdict "$rate events/s, with dump and push" "$value" "<=" 1 % "$detail"
	else
		printf '%-4s  %-52s %9s %-3s %-11s %s\n' "" "$rate events/s, with dump and push" "$value" % "" "$detail"
		printf 'bench name="%s" value=%s unit=%% result=NOTE\n' "$rate events/s, with dump and push" "$value" >>"$TMP/lines"
	fi
done
[ -n "$measured" ] || die "nothing was measured"
requests=$(grep -c '"stored": true' "$TMP/server/log")
errors=$(grep -c '"error"' "$TMP/server/log")
echo "# the server stored $requests profiles and refused $errors"

# The profile of that program has nine functions only.
PROFILE=0
if command -v redis-server redis-benchmark redis-cli >/dev/null; then
	redis-server --port 0 --unixsocket "$TMP/redis" --save '' --appendonly no >"$TMP/redis.out" 2>&1 &
	redis=$!
	for ((i = 0; i < 200; i++)); do
		redis-cli -s "$TMP/redis" ping >/dev/null 2>&1 && break
		sleep 0.1
	done
	"$KXRAY" record -q -y -p $redis -f '*' -o "$TMP/redis.xray" 2>"$TMP/tool.err" &
	tool=$!
	while ! grep -q '^sigmask:' /proc/$tool/fdinfo/* 2>/dev/null && kill -0 $tool 2>/dev/null; do sleep 0.1; done
	redis-benchmark -s "$TMP/redis" -q -n 20000 -c 20 -t get,set,lpush,zadd >/dev/null
	kill -INT $tool
	wait $tool
	"$KXRAY" export -f pprof -o "$TMP/redis.pb.gz" "$TMP/redis.xray" 2>/dev/null && PROFILE=$(stat -c %s "$TMP/redis.pb.gz")
	echo "# a profile of redis-server under redis-benchmark, $("$KXRAY" report --json "$TMP/redis.xray" |
		python3 -Sc 'import json, sys; print(len(json.load(sys.stdin)["functions"]))') functions called: $PROFILE bytes"
fi

echo
echo "A host, and $HOSTS hosts:"
for rate in $measured; do
	python3 -S - "$TMP/$rate.push" "$rate" "$HOSTS" "$EVERY" "${CLICKHOUSE_BYTES:-0}" "$PROFILE" <<'END'
import json, sys
f = json.load(open(sys.argv[1]))
rate, hosts, every = int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
in_clickhouse, real = float(sys.argv[5]), int(sys.argv[6])
day = 86400
calls = rate / 2 * day
print(f"{rate} events/s: memory {f['memory'] / 1e6:.0f} MB (--flight-recorder {f['size']}M); dump {f['dump'] / 1e3:.0f} kB, {f['dump'] / (rate * every):.1f} bytes an event; map "
      f"{f['map'] / 1e3:.1f} kB")
for what, size in ('this program', f['pprof']), ('redis-server', real):
    sent = size * 4 / 3 + 600  # base64, labels and JSON around it, headers
    if size:
        print(f"    profile of {what}: {size} bytes, sent {sent:.0f}; {hosts} hosts: {hosts / every:.0f} requests/s, "
              f"{hosts * sent / every / 1e3:.0f} kB/s, {hosts * sent * day / every / 1e9:.1f} GB a day; a spool of 64 MiB has room for "
              f"{(64 << 20) // size}, {(64 << 20) // size * every / 3600:.1f} hours")
line = f"    every call: {calls / 1e6:.0f} million a host and day, {calls * f['csv'] / 1e9:.1f} GB as csv ({f['csv']:.0f} bytes a call)"
if in_clickhouse:
    line += f", {calls * in_clickhouse / 1e9:.2f} GB in ClickHouse; {hosts} hosts: {hosts * calls * in_clickhouse / 1e12:.1f} TB a day"
print(line)
END
done
summary
