#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: alone, 29 s
# Processes that nobody asks to trace keep every byte of their code, and what is traced is exact: functions
# of a library that others use too, with --follow and with several processes.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# ask: what the bystander says of its code; how long a malloc and free take is only printed
ask() {
	local lines
	lines=$(wc -l <"$TMP/bystander.out")
	printf x >&"$bystander_in"
	wait_for has_lines "$TMP/bystander.out" $((lines + 1)) || fail "bystander" "no answer"
	ANSWER=$(tail -n 1 "$TMP/bystander.out" | sed 's/,.*//')
	echo "# $1: $(tail -n 1 "$TMP/bystander.out")"
}
has_lines() { [ "$(wc -l <"$1")" -ge "$2" ]; }

start_target bystander
bystander=$PID bystander_in=$TARGET_IN
ask before
unchanged=$ANSWER
assert_contains "the bystander answers" "$unchanged" "text "

memory=(-f 'libc.so*:malloc' -f 'libc.so*:free')

# A command that starts another one.
_new_recording
mkfifo "$TMP/go"
"$KXRAY" record -o "$TRACE" "${memory[@]}" -- sh -c "ls >/dev/null; read x <$TMP/go; ls >/dev/null" \
	2>"$TMP/rec.err" &
KX_PID=$!
_pids+=("$KX_PID")
wait_for _records || fail "-- COMMAND" "$(cat "$TMP/rec.err")"
ask "-- COMMAND"
assert_eq "-- COMMAND: the bystander's code" "$ANSWER" "$unchanged"
if command -v valgrind >/dev/null; then
	run valgrind -q "$TARGETS/counts" --start=now
	assert_eq "-- COMMAND: a program under valgrind" "$STATUS" 0
else
	skip "a program under valgrind" "no valgrind here"
fi
echo >"$TMP/go"
end_kxray
assert_eq "-- COMMAND: status" "$STATUS" 0
run "$KXRAY" report --json "$TRACE"
cp "$TMP/run.out" "$TMP/report.json"
run json "$TMP/report.json" 'sum(f["count"] for f in d["functions"] if f["name"] == "malloc") > 0'
assert_eq "-- COMMAND: its own calls are recorded" "$OUT$ERR" True

start_target sleeper
start_kxray "$PID" --follow "${memory[@]}"
ask "--follow -p"
assert_eq "--follow -p: the bystander's code" "$ANSWER" "$unchanged"
kill "$PID"
end_target "$PID"
end_kxray
# The whole system, filtered: only what passes is changed, whenever it starts.
cp "$TARGETS/bystander" "$TMP/chosen"
_new_recording
"$KXRAY" record -a --comm chosen -o "$TRACE" "${memory[@]}" 2>"$TMP/rec.err" &
KX_PID=$!
_pids+=("$KX_PID")
wait_for _records || fail "-a --comm" "$(cat "$TMP/rec.err")"
TARGETS_BEFORE=$TARGETS TARGETS=$TMP
start_target chosen
TARGETS=$TARGETS_BEFORE
chosen=$PID
# It is traced once malloc's code is another than the bystander's.
malloc_at=$(nm -D "$(ldd "$TARGETS/sleeper" | sed -n 's/.*=> \(.*libc\.so[^ ]*\) .*/\1/p')" | sed -n 's/^\([0-9a-f]*\) T malloc\(@.*\)\?$/\1/p')
# code_of_malloc PID: its first bytes there
code_of_malloc() {
	local start
	start=$(sed -n '/\/libc\.so/{s/-.*//p;q}' "/proc/$1/maps")
	dd if="/proc/$1/mem" bs=16 count=1 iflag=skip_bytes skip=$((0x$start + 0x$malloc_at)) status=none | od -An -tx1
}
assert_eq "malloc's code can be read" "$(code_of_malloc "$bystander" | wc -w)" 16
probed() { [ "$(code_of_malloc "$chosen")" != "$(code_of_malloc "$bystander")" ]; }
answers() {
	local lines
	lines=$(wc -l <"$TMP/chosen.out")
	go_target
	wait_for has_lines "$TMP/chosen.out" $((lines + 1))
}
answers_probed() { answers && probed; }
wait_for answers_probed || fail "-a --comm: the chosen process" "its code never changed"
answers
ask "-a --comm"
assert_eq "-a --comm: the bystander's code" "$ANSWER" "$unchanged"
end_target "$chosen"
kill -INT "$KX_PID"
end_kxray
assert_eq "-a --comm: status" "$STATUS" 0
run "$KXRAY" report --by-process --json "$TRACE"
assert_contains "-a --comm: the chosen process is recorded" "$OUT" chosen

ask after
assert_eq "after: the bystander's code" "$ANSWER" "$unchanged"

# same LABEL PID,...: checks that the trace has the calls of these processes and of no other
same() {
	run python3 tests/live/per_process.py "$TRACE" "$TREE_LOG" --pid "$2"
	assert_eq "$1: calls of each process" "$STATUS $(head -n 5 "$TMP/run.out")" "0 "
	echo "# $1: $ERR"
}

# A library that a bystander has mapped: one process, then two, with --follow and by number alone.
export TREE_LOG=$TMP/calls.log
LIBRARY=$TMP/plug.so
install -m 755 "$TARGETS/treeplug.so" "$LIBRARY"
start_target libuser --repeat=7 "$LIBRARY"
other=$PID other_in=$TARGET_IN
for mechanism in session multi single; do
	for how in "1 --follow" "2 --follow" "2"; do
		read -r n follow <<<"$how"
		label="$n processes, ${follow:-no --follow}, $mechanism"
		rm -f "$TREE_LOG"
		pids=() inputs=()
		for ((i = 0; i < n; i++)); do
			start_target libuser --repeat=$((100 + i)) "$LIBRARY"
			pids+=("$PID") inputs+=("$TARGET_IN")
		done
		start_kxray "$(IFS=,; echo "${pids[*]}")" -f 'plug.so:plug_*' --mechanism "$mechanism" $follow
		if grep -q 'does not offer' "$TMP/rec.err"; then
			skip "$label" "$(cat "$TMP/rec.err")"
			for pid in "${pids[@]}"; do kill "$pid"; done
			continue
		fi
		for ((i = 0; i < n; i++)); do
			printf g >&"${inputs[i]}"
			TARGET_IN=${inputs[i]}
			end_target "${pids[i]}"
			assert_eq "$label: target" "$STATUS" 0
		done
		end_kxray
		assert_eq "$label: status" "$STATUS" 0
		run json "$TMP/rec.json" '(d["lost"], d["orphans"])'
		assert_eq "$label: lost, exits without a call" "$OUT$ERR" "(0, 0)"
		same "$label" "$(IFS=,; echo "${pids[*]}")"
	done
done
TARGET_IN=$other_in
end_target "$other"

# A process that forks while it is traced alone: from its first child on its exits come in another way.
install -m 755 "$TARGETS/tree" "$TMP/tree"
TARGETS_BEFORE=$TARGETS
for n in 1 2 3; do
	TARGETS=$TMP
	rm -f "$TMP/tree.log" "$TMP/other.log"
	export TREE_LOG=$TMP/tree.log
	start_target tree "$TMP/other.log"
	other=$PID other_in=$TARGET_IN
	start_target tree "$TMP/tree.log"
	TARGET_PID=$PID
	TARGETS=$TARGETS_BEFORE
	start_kxray "$TARGET_PID" --follow -f 'tree_*'
	go_target
	end_target "$TARGET_PID"
	assert_eq "a process that forks, $n: status" "$STATUS" 0
	end_kxray
	run python3 tests/live/per_process.py "$TRACE" "$TMP/tree.log" --pid "$TARGET_PID" \
		--only tree_leaf,tree_outer,tree_inner,tree_fork
	assert_eq "a process that forks, $n: its calls" \
		"$STATUS $(grep "^process $TARGET_PID:" "$TMP/run.out")" "0 "
	TARGET_IN=$other_in
	kill "$other"
	wait "$other" 2>/dev/null
	exec {other_in}>&-
done

# Two programs that load a library which throws, and a third that is not traced: the kernel replaces return
# addresses for one process's session in the others, too.
install -m 755 "$TARGETS/dlopener" "$TMP/dlopener"
for follow in "" --follow; do
	label="three that throw${follow:+, }$follow"
	pids=() inputs=()
	for n in 1 2 3; do
		TARGETS=$TMP start_target dlopener "$TARGETS_BEFORE/plugin.so"
		pids+=("$PID") inputs+=("$TARGET_IN")
	done
	start_kxray "${pids[0]},${pids[1]}" -f visit -f through $follow
	for n in 0 1 2; do printf lg >&"${inputs[n]}"; done
	for n in 0 1 2; do
		TARGET_IN=${inputs[n]}
		end_target "${pids[n]}"
		assert_eq "$label: status of process $n" "$STATUS" 0
	done
	end_kxray
	assert_eq "$label: kxray's status" "$STATUS" 0
done

TARGET_IN=$bystander_in
end_target "$bystander"
