#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 10 s
# What is nearly right: misspelled commands, options and modules, programs named as to a shell, programs that go by
# the name of a link or by a title, patterns that never match. The calls of such programs are exact.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# says NAME STATUS PART COMMAND...
says() {
	local name=$1 status=$2 part=$3
	shift 3
	run timeout 60 "$@"
	assert_contains "$name" "$STATUS $ERR" "$part"
	[ "$STATUS" = "$status" ] || fail "$name: status" "$STATUS: $ERR"
}
leaf_a() { json "$1" 'sum(f["count"] for f in d["functions"] if f["name"] == "leaf_a")'; }
did_leaf_a() { json "$TMP/did.json" 'sum(t["calls"]["leaf_a"] for t in d["threads"])'; }

says "a command" 2 "there is no command 'recrod'; is it 'record'?" "$KXRAY" recrod
says "completion" 2 "'kxray help --completion bash'" "$KXRAY" completion bash
says "a process without -p" 2 "unexpected argument '1234': a process is named with -p PID" "$KXRAY" top 1234
says "help of a command" 2 "there is no command 'exprot'; is it 'export'?" "$KXRAY" help exprot
says "an option" 2 "there is no option '--durration'; is it '--duration'?" "$KXRAY" record --durration=1
says "the beginning of two options" 2 "is it '--max-" "$KXRAY" record --max 5
says "a format" 2 "there is no format 'perfeto'; is it 'perfetto'?" "$KXRAY" export -f perfeto /nonexistent

# Words in the wrong place.
"$KXRAY" record -f leaf_a -o "$TMP/t.xray" -- "$TARGETS/counts" --start=now >"$TMP/t.out" 2>&1 || fail "a trace" "$(cat "$TMP/t.out")"
says "a program without --" 2 "for a running process write -p \"\$(pgrep -n redis-server)\", to start a command put it last, after '--'" \
	"$KXRAY" record redis-server
says "a number without -p" 2 "'1234' is not an option: for the process of this number write -p 1234" "$KXRAY" record 1234
says "record -p NAME" 2 "(by name: -p \"\$(pgrep -n NAME)\"), not 'redis-server'" "$KXRAY" record -p redis-server
says "functions -p NAME" 2 "(by name: -p \"\$(pgrep -n NAME)\"), not 'redis-server'" "$KXRAY" functions -p redis-server
says "functions PID" 1 "for the process of this number write -p 12345" env -C "$TMP" "$KXRAY" functions 12345
says "a format without -f" 2 "a format is named with -f: kxray export -f csv FILE" env -C "$TMP" "$KXRAY" export csv t.xray
says "an output without -o" 2 "unexpected argument 't.csv' after 't.xray'; an output is named with -o" env -C "$TMP" "$KXRAY" export -f csv t.xray t.csv
says "a file after -f" 2 "'t.xray' is a file, and -f takes a format" env -C "$TMP" "$KXRAY" export -f t.xray
for command in report dump "export -f csv"; do
	# shellcheck disable=SC2086
	says "$command: the map" 1 "t.xray.map: is not an XRay trace but the map of one; name the trace: t.xray" env -C "$TMP" "$KXRAY" $command t.xray.map
done
says "report: a program" 1 "is not an XRay trace but an ELF file" "$KXRAY" report "$KXRAY"
says "a trace without its ending" 1 "t: cannot be opened: No such file or directory; there is 't.xray'" env -C "$TMP" "$KXRAY" report t
mv "$TMP/t.xray" "$TMP/t.1.xray"
says "numbered files" 1 "there are numbered files, the first is 't.1.xray'" env -C "$TMP" "$KXRAY" report t.xray
mv "$TMP/t.1.xray" "$TMP/t.xray.zst"
says "a compressed trace" 1 "there is 't.xray.zst'" env -C "$TMP" "$KXRAY" report t.xray
mv "$TMP/t.xray.zst" "$TMP/t.xray"

# Commands that are none.
printf '#!/usr/bin/env -S A=1 python3\n' >"$TMP/script.py"
says "a script" 1 "is a script, not an ELF binary; name the interpreter that runs it: python3" "$KXRAY" functions "$TMP/script.py"
says "not executable" 1 "cannot be run: Permission denied; it is not executable (chmod +x)" env -C "$TMP" "$KXRAY" record -f main -- ./script.py
chmod +x "$TMP/script.py"
says "record of a script" 1 "'./script.py' is a script: only C functions of the program that runs it can be traced, as in -- python3 ./script.py" \
	env -C "$TMP" "$KXRAY" record -f no_such_function -- ./script.py
says "record of a folder" 1 "cannot be run: Permission denied; it is a folder" "$KXRAY" record -f main -- "$TMP"
says "record of nothing" 1 "there is no program of this name on PATH" "$KXRAY" record -f main -- no-such-program
says "without ./" 1 "but a file here: write ./ before it" env -C "$TMP" "$KXRAY" record -f main -- script.py
printf '#!/no/such/interpreter\n' >"$TMP/script.py"
says "without its interpreter" 1 "the file exists, but not the interpreter or dynamic linker that it names" env -C "$TMP" "$KXRAY" record -f main -- ./script.py
says "functions of nothing" 1 "no program of this name on PATH; name a program, a library by its path, or a process with -p PID" "$KXRAY" functions no-such-program

# Modules.
start_target counts
target=$PID
says "a library without its version" 1 "did you mean -f 'libc.so*:malloc'?" "$KXRAY" functions -p "$target" -f libc:malloc
says "another version" 1 "did you mean -f 'libc.so*:malloc'?" "$KXRAY" functions -p "$target" -f libc.so.5:malloc
says "a program misspelled" 1 "did you mean -f 'counts:leaf_a'?" "$KXRAY" functions -p "$target" -f coutns:leaf_a
says "nothing like it" 1 "no module matches 'elsewhere'" "$KXRAY" functions -p "$target" -f elsewhere:leaf_a
assert_eq "nothing like it: no suggestion" "$(grep -c "did you mean" <<<"$ERR")" 0
# More functions than the limit: an error if they are named, else the best of them.
says "-f and more than the limit" 1 "narrow the patterns, leave some out with -x, raise the limit with --max-functions" \
	"$KXRAY" record -p "$target" -f '*' --max-functions 1 -o "$TMP/limit.xray"
run "$KXRAY" record --max-functions 1 -o "$TMP/limit.xray" --json -- "$TARGETS/counts" --start=now
assert_contains "no -f and more than the limit" "$STATUS $ERR" "more than the limit of 1 (--max-functions): taken are those that cost least"
tail -n 1 "$TMP/run.out" >"$TMP/limit.json"
assert_eq "no -f and more than the limit: functions" "$(json "$TMP/limit.json" 'd["functions"]')" 1
go_target
end_target "$target"

# A program by its name. What is no program, is passed over.
mkdir -p "$TMP/bin/1/mine" "$TMP/bin/2" "$TMP/bin/3"
: >"$TMP/bin/2/mine"
ln -s "$TARGETS/counts" "$TMP/bin/3/mine"
run env PATH="$TMP/bin/1:$TMP/bin/2:$TMP/bin/3" "$KXRAY" functions mine -f leaf_a
assert_contains "a program on PATH" "$STATUS $OUT" "leaf_a [counts]"
says "no program" 1 "cannot open 'yours'" env PATH="$TMP/bin/3" "$KXRAY" functions yours
cp "$TARGETS/counts" "$TMP/bin/python3.99"
says "an interpreter" 1 "'python3.99' is an interpreter: only its C functions can be traced" \
	"$KXRAY" functions "$TMP/bin/python3.99" -f handel_request

# A program that goes by the name of a link, as Debian's redis-server.
mkdir "$TMP/links"
ln -s "$TARGETS/counts" "$TMP/links/servant"
real=$TARGETS
TARGETS=$TMP/links trace_target servant -f servant:leaf_a -f servant:main
assert_eq "the name of a link: status" "$STATUS $TARGET_STATUS" "0 0"
run "$KXRAY" report --json "$TRACE"
assert_eq "the name of a link: calls" "$(leaf_a "$TMP/run.out")" "$(did_leaf_a)"
run "$KXRAY" report --json -f servant:leaf_a "$TRACE"
assert_eq "the name of a link: in report" "$(leaf_a "$TMP/run.out")" "$(did_leaf_a)"
run "$KXRAY" report --json -f 'counts:leaf_*' "$TRACE"
assert_eq "the file's name: in report" "$(leaf_a "$TMP/run.out")" "$(did_leaf_a)"
run "$KXRAY" report -f servant:main "$TRACE"
assert_contains "the name of a link: traced, not called" "$STATUS $ERR" "main was traced"
run "$KXRAY" report --json -f 'master:leaf_*' "$TRACE"
assert_contains "no name of it: in report" "$ERR" "no function of the trace matches 'master:leaf_*'"

# With -a it is started later, when another process already has the file under another name.
start_target counts
other=$PID other_in=$TARGET_IN
_new_recording
"$KXRAY" record -a --comm servant -o "$TRACE" --json -f servant:leaf_a -f nowhere:leaf_a -f 'leaf_no*such' \
	>"$TMP/rec.json" 2>"$TMP/rec.err" &
KX_PID=$!
_pids+=("$KX_PID")
wait_for _records || fail "-a: start" "$(cat "$TMP/rec.err")"
TARGETS=$TMP/links start_target servant
servant=$PID
kx_probed() { # PID: whether leaf_a begins with a breakpoint, or with what replaces it
	python3 - "$1" "$real/counts" <<-'END'
		import re, subprocess, sys
		pid, path = sys.argv[1:]
		name = [l.split() for l in subprocess.run(["nm", path], capture_output=True, text=True).stdout.splitlines()]
		address = next(int(f[0], 16) for f in name if f[-1] == "leaf_a")
		base = next(int(l.split("-")[0], 16) for l in open(f"/proc/{pid}/maps") if l.rstrip().endswith("counts"))
		data = open(path, "rb").read()
		mem = open(f"/proc/{pid}/mem", "rb", 0)
		mem.seek(base + address)
		got = mem.read(64)
		sys.exit(got == data[address:address + 64])
	END
}
wait_for kx_probed "$servant" || fail "-a: the probe" "$(cat "$TMP/rec.err")"
go_target
end_target "$servant"
tail -n 1 "$TMP/servant.out" >"$TMP/did.json"
kill -INT "$KX_PID"
end_kxray
assert_eq "-a: status" "$STATUS" 0
run "$KXRAY" report --json "$TRACE"
assert_eq "-a: calls" "$(leaf_a "$TMP/run.out")" "$(did_leaf_a)"
rec=$(cat "$TMP/rec.err")
assert_contains "-a: the pattern of no module" "$rec" "-f 'nowhere:leaf_a' matched no function in all that time"
assert_contains "-a: the pattern of no function" "$rec" "-f 'leaf_no*such' matched no function in all that time"
assert_eq "-a: the one that matched" "$(grep -c "servant:leaf_a' matched no" <<<"$rec")" 0
assert_eq "-a: in JSON" "$(json "$TMP/rec.json" 'd["unmatched"]')" "['nowhere:leaf_a', 'leaf_no*such']"
TARGET_IN=$other_in go_target
end_target "$other"

# A title in argv[0], and one in comm.
(exec -a "waiter: worker process" sleep 1000) &
_pids+=($!)
titled=$!
has_title() { grep -qz '^waiter: worker' "/proc/$titled/cmdline"; }
wait_for has_title
says "a title in argv[0]" 1 "-f 'waiter:nothing_like_it': '$(command -v sleep)' is stripped" "$KXRAY" functions -p "$titled" -f waiter:nothing_like_it
python3 -c 'import ctypes, time
ctypes.CDLL(None).prctl(15, b"the_cook", 0, 0, 0)
print("ready", flush=True)
time.sleep(1000)' >"$TMP/cook.out" &
_pids+=($!)
cook=$!
wait_for has_text ready "$TMP/cook.out"
says "a name in comm" 1 "matches 'nothing_like_it'" "$KXRAY" functions -p "$cook" -f the_cook:nothing_like_it
