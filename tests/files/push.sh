#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 20 s, without root
# exporters/fleet/push against a strict stand-in for Pyroscope and for Parca: whatever the server answers, or if it breaks off, or push is killed,
# each profile is stored by it, once, or waits in the spool, or is counted.
. "$(dirname "$0")/../lib.sh"

for tool in curl flock protoc; do
	command -v $tool >/dev/null || { skip "push" "no $tool here"; exit 0; }
done
server=$TMP/server
spool=$TMP/spool
push=(env KXRAY="$KXRAY" exporters/fleet/push --spool "$spool" --pause 0)
made=0
# new_trace: another trace, in $trace; its calls in $calls
new_trace() {
	made=$((made + 1))
	trace=$TMP/t$made.xray
	"$BUILD/tests/make_trace" write "$trace" $((1000 + 10 * made)) 2 40
	calls=$("$KXRAY" report --json "$trace" | python3 -Sc 'import json, sys; print(sum(f["count"] for f in json.load(sys.stdin)["functions"]))')
}
start_server() { # KIND
	rm -f "$server/port"
	background env PORT="${port:-0}" python3 tests/files/profile_server.py "$1" "$server"
	SERVER=$PID
	wait_for test -e "$server/port" || fail "$1: the server starts" "it does not"
	port=$(<"$server/port")
	url=http://127.0.0.1:$port
}
stop_server() {
	kill "$SERVER"
	wait "$SERVER" 2>/dev/null
}
plan() { printf '%s\n' "$@" >"$server/plan"; }
# logged EXPRESSION: of the requests since the last forget, d
logged() {
	python3 -Sc 'import json, sys
d = [json.loads(line) for line in open(sys.argv[1])]
stored = [r for r in d if r["stored"]]
print(eval(sys.argv[2]))' "$server/log" "$1"
}
answers() { logged '" ".join(r["answer"] for r in d)'; }
stored() { logged '[r["calls"] for r in stored]'; }
forget() { : >"$server/log"; }
waiting() { find "$spool" -maxdepth 1 -name '[0-9]*.pb.gz' | wc -l; }
refused() { find "$spool/refused" -name '*.pb.gz' | wc -l; }
# pushes NAME STATUS [OPTION...]: sends $trace
pushes() {
	local name=$1 status=$2
	shift 2
	run "${push[@]}" "$@" "$kind" "$url" "$trace"
	assert_eq "$kind, $name: status, sentences" "$STATUS $(wc -l <"$TMP/run.err") $OUT" "$status $([ "$status" = 0 ] && echo 0 || echo 1) "
}

scenarios() {
	kind=$1
	mkdir -p "$server"
	rm -rf "$spool"
	: >"$server/plan"
	forget
	start_server "$kind"

	new_trace
	KXRAY_SERVICE=redis pushes "taken" 0 --label 'zone=a "b" \c' --label tier=1
	assert_eq "$kind, taken: stored" "$(stored) $(waiting)" "[$calls] 0"
	assert_eq "$kind, taken: labels" "$(logged 'sorted(d[0]["labels"].items())')" \
		"[('__name__', 'kxray'), ('host', '$(uname -n)'), ('service_name', 'redis'), ('tier', '1'), ('zone', 'a \"b\" \\\\c')]"
	pushes "the same trace again" 0
	assert_eq "$kind, the same trace again: requests" "$(answers)" "200"

	forget
	new_trace
	plan 500 503 202
	pushes "fails twice" 0
	assert_eq "$kind, fails twice: requests" "$(answers) $(stored) $(waiting)" "500 503 202 [$calls] 0"

	forget
	new_trace
	plan "429 1"
	pushes "too many" 0
	assert_eq "$kind, too many: requests" "$(answers) $(stored)" "429 200 [$calls]"
	assert_eq "$kind, too many: Retry-After is heeded" "$(logged 'd[1]["at"] - d[0]["at"] >= 1')" True

	forget
	new_trace
	plan "429 1000"
	pushes "too many for long" 1
	assert_contains "$kind, too many for long: why" "$ERR" "takes no profiles (status 429 "
	run "${push[@]}" "$kind" "$url"
	assert_eq "$kind, too many for long: the next run sends nothing" "$STATUS $(answers) $(waiting)" "1 429 1"
	echo 1 >"$spool/.not-before"
	run "${push[@]}" "$kind" "$url"
	assert_eq "$kind, too many for long: when the time has come" "$STATUS $(answers) $(stored) $(waiting)" "0 429 200 [$calls] 0"

	forget
	new_trace
	plan 413
	pushes "too large" 1
	assert_contains "$kind, too large: why" "$ERR" "refuses a profile (status 413 "
	assert_eq "$kind, too large: kept" "$(answers) $(waiting) $(refused)" "413 0 1"

	forget
	new_trace
	plan cut
	pushes "cut" 0
	assert_eq "$kind, cut: requests" "$(answers) $(stored)" "cut 200 [$calls]"

	# The server has it, and push cannot know: it comes again as the same bytes under the same id.
	forget
	new_trace
	plan store-cut
	pushes "stored, but cut" 0
	assert_eq "$kind, stored, but cut: requests" "$(answers) $(stored)" "store-cut 200 [$calls, $calls]"
	assert_eq "$kind, stored, but cut: it can be recognized" "$(logged 'len({(r["id"], r["digest"], str(r["labels"])) for r in d})')" 1

	forget
	new_trace
	plan half
	pushes "a cut answer" 0
	assert_eq "$kind, a cut answer is one" "$(answers) $(stored) $(waiting)" "half [$calls] 0"

	# Killed when the request is there
	forget
	new_trace
	plan hang
	background setsid "${push[@]}" "$kind" "$url" "$trace" 2>"$TMP/run.err"
	wait_for test -s "$server/log"
	kill -KILL -- "-$PID"
	wait "$PID" 2>/dev/null
	run "${push[@]}" "$kind" "$url"
	assert_eq "$kind, killed: the next run sends it" "$STATUS $(answers) $(stored) $(waiting)" "0 hang 200 [$calls] 0"
	# Killed after the answer, before it has left the spool
	id=$(tail -n 1 "$spool/sent")
	: >"$spool/1-$id.pb.gz"
	run "${push[@]}" "$kind" "$url"
	assert_eq "$kind, killed after the answer: not sent again" "$STATUS $(answers) $(waiting)" "0 hang 200 0"
	# Killed while it writes a profile
	: >"$spool/.new.$PID"
	run "${push[@]}" "$kind" "$url"
	assert_eq "$kind, killed while it writes: nothing is left" "$STATUS $(find "$spool" -name '.new*')" "0 "

	# No server for a while; then all come, in order
	stop_server
	forget
	want=
	for i in 1 2 3; do
		new_trace
		want=$want${want:+, }$calls
		pushes "no server $i" 1 --time-limit 1
	done
	assert_contains "$kind, no server: how many wait" "$ERR" "; 3 wait in '$spool' for the next run"
	start_server "$kind"
	run "${push[@]}" "$kind" "$url"
	assert_eq "$kind, a server again" "$STATUS $(stored) $(waiting)" "0 [$want] 0"

	# One at which the server always fails does not hold up the others
	stop_server
	forget
	new_trace
	poison=$calls
	pushes "no server 4" 1 --time-limit 1
	start_server "$kind"
	new_trace
	plan 500 500 500 500 200 500
	pushes "one that always fails" 1
	assert_eq "$kind, one that always fails: the other one" "$(stored) $(logged 'd[-1]["calls"]') $(waiting) $(refused)" "[$calls] $poison 0 2"

	# Ten refused ones stay, the newest
	for i in {10..19}; do : >"$spool/refused/1$i-x.pb.gz"; done
	run "${push[@]}" "$kind" "$url"
	assert_eq "$kind, refused ones" "$STATUS $(refused) $(cd "$spool/refused" && echo 11?-x.pb.gz | wc -w)" "0 10 8"

	# Two at once
	forget
	new_trace
	one=$calls
	background "${push[@]}" "$kind" "$url" "$trace" 2>"$TMP/other.err"
	new_trace
	pushes "two at once" 0
	wait "$PID"
	assert_eq "$kind, two at once: stored" "$(logged 'sorted(r["calls"] for r in stored)') $(waiting)" "[$one, $calls] 0"
	stop_server

	# A full spool: the oldest are dropped, and counted
	for i in 1 2 3 4; do head -c 400000 /dev/zero >"$spool/100000000000000000$i-x.pb.gz"; done
	new_trace
	run "${push[@]}" --spool-size 1 --time-limit 1 "$kind" "$url" "$trace"
	assert_eq "$kind, full: status, sentences" "$STATUS $(wc -l <"$TMP/run.err")" "1 2"
	assert_contains "$kind, full: why" "$(head -n 1 "$TMP/run.err")" "the spool '$spool' is full (1 MiB): dropped the oldest 2 profiles, 2 since it was made"
	assert_eq "$kind, full: what is left" "$(cd "$spool" && echo 1000*) $(waiting) $(<"$spool/dropped")" "1000000000000000003-x.pb.gz 1000000000000000004-x.pb.gz 3 2"
	for i in 1 2; do head -c 400000 /dev/zero >"$spool/20$i-x.pb.gz"; done
	run "${push[@]}" --spool-size 1 --time-limit 1 "$kind" "$url"
	assert_contains "$kind, full again: why" "$ERR" "dropped the oldest 2 profiles, 4 since it was made"
	assert_eq "$kind, no request was wrong" "$(logged '[r for r in d if "error" in r]')" "[]"
}
scenarios pyroscope
port=
scenarios parca

# What is not sent at all
wrong() { # PART ARG...
	local part=$1
	shift
	run exporters/fleet/push "$@"
	set -- "${*//[[:cntrl:]]/ }"
	assert_eq "wrong usage: $*" "$STATUS $(wc -l <"$TMP/run.err") $OUT" "2 1 "
	assert_contains "wrong usage, why: $*" "$ERR" "$part"
}
wrong "not ''"
wrong "not 'grafana http://x t'" grafana http://x t
wrong "is not the address of a server" parca x:1 t
wrong "the spool is needed" parca http://x
wrong "unexpected argument 'u'" parca http://x t u
wrong "'--no' is not an option" --no parca http://x t
wrong "--label needs a value" --label
wrong "'a-b=1' is not a label" --label a-b=1 parca http://x t
wrong "is not a label" --label $'a=1\n2' parca http://x t
wrong "'__name__' is always kxray" --label __name__=x parca http://x t
wrong "--time-limit takes a whole number above 0, not '0'" --time-limit 0 parca http://x t
echo no trace >"$TMP/bad.xray"
run "${push[@]}" --spool "$TMP/other" parca http://127.0.0.1:1 "$TMP/bad.xray"
assert_eq "no trace: status, sentences" "$STATUS $(wc -l <"$TMP/run.err")" "1 1"
assert_contains "no trace: why" "$ERR" "'$TMP/bad.xray' gave no profile: "
assert_eq "no trace: nothing waits" "$(find "$TMP/other" -type f | wc -l)" 0
# As the command of --on-dump, whose standard error is /dev/null, it writes to the system's log.
mkdir "$TMP/bin"
printf '#!/bin/sh\nprintf "%%s\\n" "$*" >>"%s"\n' "$TMP/logged" >"$TMP/bin/logger"
chmod +x "$TMP/bin/logger"
env PATH="$TMP/bin:$PATH" KXRAY="$KXRAY" exporters/fleet/push --spool "$TMP/other" parca http://127.0.0.1:1 "$TMP/bad.xray" 2>/dev/null
assert_contains "with /dev/null: in the log" "$(cat "$TMP/logged")" "-t kxray-push -- '$TMP/bad.xray' gave no profile: "
