#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 12 s
# Where functions are defined, and who called them: file and line as grep finds them in the source, from DWARF of several kinds, in
# `functions` and, through the map alone, in reports and exports; callers in modules without traced functions; stripped
# programs through a debuginfod server of this test.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

unset DEBUGINFOD_URLS
export DEBUGINFOD_CACHE_PATH=$TMP/cache
mkdir "$TMP/src" "$TMP/bin" "$TMP/debug"
cat >"$TMP/src/relay.c" <<'END'
static __attribute__((noinline)) int hidden_relay(int (*f)(int), int n)
{
	return f(n) + 1;
}
int relay(int (*f)(int), int n);
int relay(int (*f)(int), int n)
{
	return hidden_relay(f, n) + 1;
}
END
cat >"$TMP/src/places.c" <<'END'
#include "inner.h"
int relay(int (*f)(int), int n);

__attribute__((noinline)) int pl_called(
	int n)
{
	__asm__ volatile("");
	return n + 1;
}

static __attribute__((noinline)) int pl_direct(int n)
{
	return pl_called(n) + 1;
}

__asm__(".text\n.type pl_assembly,@function\npl_assembly: ret\n.size pl_assembly,.-pl_assembly\n");

int main(void)
{
	int sum = 0;

	for (int i = 0; i < 30; i++)
		sum += relay(pl_called, i) + pl_inner(i);
	for (int i = 0; i < 12; i++)
		sum += pl_direct(i);
	return sum == 1;
}
END
cat >"$TMP/src/inner.h" <<'END'
static __attribute__((noinline)) int pl_inner(int n)
{
	__asm__ volatile("");
	return n * 3;
}
END

# line FILE FUNCTION: of its definition
line() { grep -n "$2(" "$TMP/src/$1" | grep -v ';$' | head -n 1 | cut -d: -f1; }
want="pl_called places.c:$(line places.c pl_called)
pl_direct places.c:$(line places.c pl_direct)
pl_inner inner.h:$(line inner.h pl_inner)"
assert_eq "the lines are known" "$(tr '\n' ' ' <<<"$want")" "pl_called places.c:4 pl_direct places.c:11 pl_inner inner.h:1 "

# build NAME COMPILER FLAG...: $TMP/bin/NAME with its library
build() {
	local name=$1 cc=$2
	shift 2
	$cc -O1 "$@" -shared -fPIC -Wl,--build-id -o "$TMP/bin/librelay.so" "$TMP/src/relay.c" &&
		$cc -O1 "$@" -Wl,--build-id -o "$TMP/bin/$name" "$TMP/src/places.c" -L"$TMP/bin" -lrelay \
			-Wl,-rpath,"$TMP/bin" || fail "$name" "is not built"
}
# listed BINARY: "NAME FILE:LINE" of `functions`, and of its JSON
listed() { "$KXRAY" functions "$1" -f 'pl_*' -x pl_assembly 2>/dev/null | sed -n 's|^.* \(pl_[a-z]*\) \[[^]]*\] .*/\([^/]*:[0-9]*\)$|\1 \2|p' | sort; }
listed_json() {
	"$KXRAY" functions "$1" -f 'pl_*' -x pl_assembly --json 2>/dev/null | python3 -c 'import json, os, sys
for f in sorted(json.load(sys.stdin), key=lambda f: f["name"]):
    print(f["name"], "%s:%d" % (os.path.basename(f["file"]), f["line"]) if "file" in f else "-")'
}

for kind in "gcc gcc -g" "dwarf4 gcc -gdwarf-4" "clang clang -g -fno-integrated-as" "clang-no-aranges clang -gdwarf-5" \
	"compressed gcc -g -gz" "minimal gcc -g1"; do
	set -- $kind
	if ! command -v "$2" >/dev/null; then
		skip "$1" "$2 is not installed"
		continue
	fi
	build "$@"
	assert_eq "$1: functions" "$(listed "$TMP/bin/$1")" "$want"
done
assert_eq "functions: JSON" "$(listed_json "$TMP/bin/gcc")" "$want"
build split gcc -g -gsplit-dwarf
assert_eq "split DWARF: lines of the code" "$(listed "$TMP/bin/split" | grep -c 'pl_[a-z]* [a-z.]*:[0-9]')" 3
build none gcc -g0
assert_eq "without DWARF: functions" "$(listed "$TMP/bin/none")" ""
assert_eq "without DWARF: JSON" "$(listed_json "$TMP/bin/none" | sort -u -k 2 | cut -d' ' -f2)" "-"

# Debug files: by .gnu_debuglink beside the program, and with dwz, whose common part is a third file.
build linked gcc -g
objcopy --only-keep-debug "$TMP/bin/linked" "$TMP/bin/linked.debug"
strip -g --add-gnu-debuglink="$TMP/bin/linked.debug" "$TMP/bin/linked" 2>/dev/null ||
	{ strip -g "$TMP/bin/linked" && (cd "$TMP/bin" && objcopy --add-gnu-debuglink=linked.debug linked); }
assert_eq "debuglink: functions" "$(listed "$TMP/bin/linked")" "$want"
mv "$TMP/bin/linked.debug" "$TMP/bin/moved"
assert_eq "debuglink: without its file" "$(listed "$TMP/bin/linked")" ""
build dwz1 gcc -gdwarf-4
cp "$TMP/bin/dwz1" "$TMP/bin/dwz2"
if command -v dwz >/dev/null; then
	(cd "$TMP/bin" && dwz -m common.dwz -r dwz1 dwz2 2>/dev/null)
	assert_contains "dwz: an alternate file" "$(readelf -SW "$TMP/bin/dwz1")" .gnu_debugaltlink
	assert_eq "dwz: functions" "$(listed "$TMP/bin/dwz1")" "$want"
else
	skip "dwz" "it is not installed"
fi

# Recorded: the map has all of it, also when the binaries are gone.
build recorded gcc -g
strip --strip-debug -o "$TMP/bin/stripped-later" "$TMP/bin/recorded"
run "$KXRAY" record --callers -f 'pl_called' -f pl_inner -o "$TRACE" --json -- "$TMP/bin/recorded"
assert_eq "record: events" "$(json "$TMP/run.out" 'd["events"]')" 144
mv "$TMP/bin" "$TMP/gone"
called="$TMP/src/places.c:4" inner="$TMP/src/inner.h:1"
run "$KXRAY" report --wide "$TRACE"
assert_eq "report --wide" "$(sed -n 's|^.*  \(pl_[a-z]*\) .* \(/[^ ]*\)$|\1 \2|p' <<<"$OUT" | sort)" "pl_called $called
pl_inner $inner"
run "$KXRAY" report "$TRACE"
assert_eq "report: no places without --wide" "$(grep -c 'places.c' <<<"$OUT")" 0
run "$KXRAY" report --json "$TRACE"
assert_eq "report --json" "$(json "$TMP/run.out" '"\n".join(sorted("%(name)s %(file)s:%(line)d" % f for f in d["functions"]))')" \
	"pl_called $called
pl_inner $inner"
run "$KXRAY" export -f csv -o "$TMP/calls.csv" "$TRACE"
assert_eq "csv: caller, place, calls" "$(python3 -c 'import collections, csv, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="")))
count = collections.Counter((r["function"], r["caller_function"], r["caller"].split("+")[0], r["file"], r["line"]) for r in rows)
for key, n in sorted(count.items()):
    print(n, *key)' "$TMP/calls.csv")" "30 pl_called hidden_relay librelay.so $TMP/src/places.c 4
12 pl_called pl_direct recorded $TMP/src/places.c 4
30 pl_inner main recorded $TMP/src/inner.h 1"
run "$KXRAY" dump "$TRACE"
assert_eq "dump: callers" "$(grep -o 'pl_[a-z]* .*entry\|called by [a-z_]* \[[a-z.]*\]' <<<"$OUT" | sort | uniq -c | sed 's/^ *//')" \
	"30 called by hidden_relay [librelay.so]
30 called by main [recorded]
12 called by pl_direct [recorded]"
run "$KXRAY" dump --json "$TRACE"
assert_eq "dump --json: callers" "$(grep -c '"caller_function":"hidden_relay","caller_module":"librelay.so"' <<<"$OUT")" 30
run "$KXRAY" export -f pprof -o "$TMP/calls.pb.gz" "$TRACE"
assert_eq "pprof: places" "$(zcat "$TMP/calls.pb.gz" | protoc --decode=perftools.profiles.Profile -Itests/readers tests/readers/pprof.proto |
	grep -A6 '^function {' | grep -o 'start_line: [0-9]*' | sort)" "start_line: 1
start_line: 4"
run "$KXRAY" export -f speedscope -o "$TMP/calls.json" "$TRACE"
assert_eq "speedscope: places" "$(python3 -c 'import json, sys
for f in sorted(json.load(open(sys.argv[1]))["shared"]["frames"], key=lambda f: f["name"]):
    print(f["name"], "%s:%d" % (f["file"], f["line"]))' "$TMP/calls.json")" "pl_called $called
pl_inner $inner"
run "$KXRAY" export -f xray -o "$TMP/again.xray" "$TRACE"
run "$KXRAY" report --json "$TMP/again.xray"
assert_eq "export -f xray keeps them" "$(json "$TMP/run.out" 'sorted(f["line"] for f in d["functions"])')" "[1, 4]"
mv "$TMP/gone" "$TMP/bin"

# A flight recorder's dump is a trace like others.
run "$KXRAY" record --flight-recorder 1M -f pl_called -o "$TMP/flight.xray" --json -- "$TMP/bin/recorded"
run "$KXRAY" report --json "$TMP/flight.1.xray"
assert_eq "flight recorder: calls" "$(json "$TMP/run.out" 'd["functions"][0]["count"]')" 42

# A debug file that only a server has.
if ! command -v debuginfod >/dev/null; then
	skip "debuginfod" "the server is not installed"
	exit
fi
build remote gcc -g
objcopy --only-keep-debug "$TMP/bin/remote" "$TMP/debug/remote.debug"
strip -s "$TMP/bin/remote"
answers() { python3 -c 'import sys, urllib.request
urllib.request.urlopen("http://127.0.0.1:%s/metrics" % sys.argv[1], timeout=5)' "$1" 2>/dev/null; }
has_file() { python3 -c 'import sys, urllib.request
urllib.request.urlopen("http://127.0.0.1:%s/buildid/%s/debuginfo" % tuple(sys.argv[1:]), timeout=5)' "$1" "$2" 2>/dev/null; }
id=$(readelf -n "$TMP/bin/remote" | sed -n 's/^ *Build ID: //p')
for try in 1 2 3 4 5; do
	port=$((20000 + (RANDOM * 32768 + RANDOM) % 40000))
	debuginfod -F -p "$port" -d "$TMP/server.sqlite" "$TMP/debug" >"$TMP/server.log" 2>&1 &
	server=$!
	_pids+=("$server")
	ready() { answers "$port" || _is_over "$server"; }
	wait_for ready
	_is_over "$server" || break
done
there() { has_file "$port" "$id"; }
wait_for there || fail "the server" "$(tail -n 3 "$TMP/server.log")"

run "$KXRAY" functions "$TMP/bin/remote" -f 'pl_*'
assert_contains "without the variable" "$STATUS $ERR" "1 kxray functions: -f 'pl_*': '$TMP/bin/remote' is stripped"
assert_contains "without the variable: what to do" "$ERR" DEBUGINFOD_URLS
if command -v strace >/dev/null; then
	strace -f -e trace=socket,connect -o "$TMP/sockets" "$KXRAY" functions "$TMP/bin/remote" -f 'pl_*' 2>/dev/null
	assert_eq "without the variable: no network" "$(grep -c AF_INET "$TMP/sockets")" 0
	strace -f -e trace=connect -o "$TMP/sockets" env DEBUGINFOD_CACHE_PATH="$TMP/other-cache" \
		DEBUGINFOD_URLS="http://127.0.0.1:$port" "$KXRAY" functions "$TMP/bin/remote" -f 'pl_*' >/dev/null 2>&1
	assert_contains "with it: this is how it is seen" "$(cat "$TMP/sockets")" "htons($port)"
else
	skip "no network" "strace is not installed"
fi
export DEBUGINFOD_URLS=http://127.0.0.1:$port
run "$KXRAY" functions "$TMP/bin/remote" -f 'pl_*' -x pl_assembly
assert_eq "debuginfod: static functions and lines" "$(sed -n 's|^.* \(pl_[a-z]*\) \[[^]]*\] .*/\([^/]*:[0-9]*\)$|\1 \2|p' <<<"$OUT" | sort)" "$want"
assert_contains "debuginfod: a word" "$ERR" "kxray functions: downloading debug information of remote ("
run "$KXRAY" functions "$TMP/bin/remote" -f 'pl_*' -x pl_assembly
assert_eq "debuginfod: cached" "$STATUS $(grep -c downloading <<<"$ERR")" "0 0"
rm -r "$TMP/cache"
run "$KXRAY" record -f pl_direct -o "$TRACE" --json -- "$TMP/bin/remote"
assert_eq "debuginfod: recorded" "$STATUS $(json "$TMP/run.out" 'd["entries"]') $(grep -c 'downloading .* of remote' <<<"$ERR")" "0 12 1"
run "$KXRAY" report --wide "$TRACE"
assert_contains "debuginfod: in the report" "$OUT" "pl_direct [remote] $TMP/src/places.c:11"

# A server that is not there is named once, and a Ctrl-C ends the wait for one that does not answer.
run env DEBUGINFOD_URLS=http://127.0.0.1:1 DEBUGINFOD_CACHE_PATH="$TMP/none" "$KXRAY" functions "$TMP/bin/remote" -f 'pl_*'
assert_eq "no server: said once" "$STATUS $(grep -c 'no server can be reached' <<<"$ERR")" "1 1"
cat >"$TMP/silent.py" <<'END'
import socket, sys
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
c, _ = s.accept()
print("asked", flush=True)
sys.stdin.read()
END
mkfifo "$TMP/hold"
python3 "$TMP/silent.py" <"$TMP/hold" >"$TMP/silent.out" &
_pids+=($!)
exec 7>"$TMP/hold"
wait_for test -s "$TMP/silent.out"
DEBUGINFOD_URLS=http://127.0.0.1:$(head -n 1 "$TMP/silent.out") DEBUGINFOD_CACHE_PATH=$TMP/none2 \
	"$KXRAY" record -f pl_direct -o "$TRACE" -- "$TMP/bin/remote" >/dev/null 2>"$TMP/asking.err" &
asking=$!
_pids+=("$asking")
wait_for has_text asked "$TMP/silent.out" || fail "the silent server" "is not asked"
kill -INT "$asking"
wait_for _is_over "$asking" && pass "Ctrl-C ends the wait" || fail "Ctrl-C ends the wait" "it still runs"
wait "$asking"
assert_contains "Ctrl-C: as before the recording" "$? $(tail -n 1 "$TMP/asking.err")" "1 kxray record: "
exec 7>&-
