#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 8 s
# Which real programs take jumps in their code, and which are refused and why. unit/test_in_process_check has each rule alone.
. "$(dirname "$0")/../lib.sh"

if ! grep -q '^Seccomp:[[:space:]]*0$' /proc/self/status; then
	skip "programs" "this machine does not offer processes without a seccomp filter"
	exit 0
fi

# verdict PID: as lines of tests/bench/in_process_verdict.c
verdict() { "$BUILD/tests/in_process_verdict" "$1" 2>&1; }
yes_of() { printf '%s: yes\nthread id: at 0x2d0' "$1"; }

# takes NAME PID PROGRAM: the program and all of its modules
takes() { assert_eq "$1" "$(verdict "$2")" "$(yes_of "$3")"; }

listens() { ss -Hltn "sport = :$1" | grep -q .; }
port() { python3 -IS -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# redis makes threads cancellable at any instruction, without C++, and passes a constant to prctl
server=$(port)
background redis-server --port "$server" --bind 127.0.0.1 --save '' --appendonly no --dir "$TMP" >"$TMP/redis.out"
wait_for listens "$server" || fail "redis-server" "it does not listen"
takes "redis-server" "$PID" "$(basename "$(readlink -f "/proc/$PID/exe")")"

# reader COMMAND...: starts it with a standard input that stays open; its id in $PID
mkfifo "$TMP/in"
exec {in}<>"$TMP/in"
reader() {
	"$@" <"$TMP/in" &
	PID=$!
	_pids+=("$PID")
}

reader sqlite3 "$TMP/db"
echo ".shell touch '$TMP/sql.ready'" >&"$in"
wait_for test -e "$TMP/sql.ready"
takes "sqlite3" "$PID" sqlite3
kill "$PID" # it would read what is for others

# many modules, libffi and libcrypto, whose mprotect makes nothing executable, among them
reader /usr/bin/python3 -c 'import ctypes, hashlib, json, sqlite3, ssl, sys
print("ready", flush=True)
sys.stdin.read()' >"$TMP/python.out"
wait_for has_text ready "$TMP/python.out"
takes "python3" "$PID" "$(basename "$(readlink -f "/proc/$PID/exe")")"
assert_contains "libcrypto is among its modules" "$(cat "/proc/$PID/maps")" libcrypto.so

if command -v nginx >/dev/null; then
	server=$(port)
	mkdir -p "$TMP/nginx/logs"
	printf 'daemon off; master_process off; pid %s/pid; error_log stderr; events {} http { access_log off; server { listen 127.0.0.1:%s; } }' \
		"$TMP/nginx" "$server" >"$TMP/nginx/conf"
	background nginx -c "$TMP/nginx/conf" -p "$TMP/nginx" 2>"$TMP/nginx.err"
	wait_for listens "$server" || fail "nginx" "$(cat "$TMP/nginx.err")"
	takes "nginx" "$PID" nginx
fi

if command -v valgrind >/dev/null; then
	beside_translators exclusive
	reader valgrind -q /usr/bin/python3 -S -c 'print("ready", flush=True); import time; time.sleep(600)' >"$TMP/valgrind.out"
	wait_for has_text ready "$TMP/valgrind.out"
	assert_eq "valgrind" "$(verdict "$PID" | sed 1q)" "$(basename "$(readlink -f "/proc/$PID/exe")"): it runs under valgrind"
fi

# hazard NAME EXPECTED: a target of tests/hazards before it does its work
hazard() {
	TARGETS=$BUILD/tests/hazards start_target "$1"
	assert_eq "$1" "$(verdict "$PID")" "$2"
}
hazard throw "$(yes_of throw)" # C++
hazard cancel "$(yes_of cancel)"
hazard signals "$(yes_of signals)"
hazard seccomp "seccomp: seccomp calls prctl(PR_SET_SECCOMP)
thread id: at 0x2d0"
# these change or make code
for name in patch generated copied; do
	hazard "$name" "$name: yes
module $name: it may make memory executable, so it may change its own code
thread id: at 0x2d0"
done
[ ! -x "$BUILD/tests/hazards/panics" ] || hazard panics "$(yes_of panics)" # Rust

# What record refuses, functions names: the process as a whole, a module of it, and the file alone.
says() { # NAME FUNCTIONS REASON ARG...
	run "$KXRAY" functions --in-process -f "$2" "${@:4}"
	assert_contains "$1" "$(grep 'can be recorded in process' <<<"$OUT$ERR")" "$3"
}
TARGETS=$BUILD/tests/hazards start_target seccomp
says "functions: a process that is refused" 'hz_*' \
	"seccomp: 0 of 2 functions can be recorded in process: seccomp calls prctl(PR_SET_SECCOMP)" -p "$PID"
TARGETS=$BUILD/tests/hazards start_target patch
says "functions: a module that is refused" 'hz_*' \
	"patch: 0 of 2 functions can be recorded in process: it may make memory executable, so it may change its own code" -p "$PID"
says "functions: the same of a file" 'hz_*' \
	"patch: 0 of 2 functions can be recorded in process: it may make memory executable, so it may change its own code" "$BUILD/tests/hazards/patch"
# Of several processes each has its own mappings: what their files say.
patched=$PID
TARGETS=$BUILD/tests/hazards start_target jump
says "functions: a module of another process" 'jump:hz_*' "functions can be recorded in process" -p "$patched,$PID"
assert_eq "functions: a module of another process: no reason" "$(grep -c '^jump: .* in process:' <<<"$OUT$ERR")" 0
