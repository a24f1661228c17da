#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 6 s
# record --count: prints the calls of each function and writes no trace.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

# The target's own counts of the counted functions, compared with kxray's last output line.
same_counts() { # LABEL FILE
	local wrong
	wrong=$(python3 - "$2" "$TMP/did.json" <<-'END'
	import json, sys
	seen = json.loads(open(sys.argv[1]).read().splitlines()[-1])
	done = {n: c for n, c in json.load(open(sys.argv[2]))["calls"].items() if c}
	got = {f["name"]: f["count"] for f in seen["functions"]}
	order = [f["count"] for f in seen["functions"]]
	if got != done:
	    print("got", got, "want", done)
	if order != sorted(order, reverse=True) or seen["calls"] != sum(order):
	    print("order or sum of", seen)
	END
	) || wrong="cannot be compared: $wrong"
	assert_eq "$1: counts" "$wrong" ""
}

attached() { # LABEL OPTION...
	local label=$1
	shift
	rm -f "$TMP/rec.err"
	start_target counts --repeat=3
	"$KXRAY" record -p "$PID" --count --json "${COUNTED[@]}" "$@" >"$TMP/count.json" 2>"$TMP/rec.err" &
	KX_PID=$!
	_pids+=("$KX_PID")
	wait_for has_text 'counting calls of 12 functions' "$TMP/rec.err"
	go_target
	end_target "$PID"
	assert_eq "$label: target unharmed" "$STATUS" 0
	end_kxray
	assert_eq "$label: status $(tail -n 1 "$TMP/rec.err")" "$STATUS" 0
	tail -n 1 "$TMP/counts.out" >"$TMP/did.json"
	same_counts "$label" "$TMP/count.json"
}
attached "four threads"
attached "by multi" --mechanism multi
attached "by single" --mechanism single

cd "$TMP" || exit 1
run "$KXRAY" record --count --json "${COUNTED[@]}" -- "$TARGETS/counts" --start=now --exit=7
cd "$OLDPWD" || exit 1
assert_eq "command: its status is passed on" "$STATUS" 7
tail -n 2 "$TMP/run.out" | head -n 1 >"$TMP/did.json"
same_counts "command" "$TMP/run.out"
assert_eq "no file is written" "$(ls "$TMP"/*.xray* 2>/dev/null)" ""

run "$KXRAY" record --count -f descend -f bottom -- "$TARGETS/deep" --start=now
assert_eq "table: status" "$STATUS" 0
assert_contains "table: a row" "$(tr -s ' ' <<<"$OUT")" "99.9 % descend [deep]"
assert_contains "table: the sum" "$(tr -s ' ' <<<"$OUT")" " 10010 "

# --count with other sources of calls.
run "$KXRAY" record --count --json -f leaf_a -f syscall:clock_nanosleep -- "$TARGETS/counts" --start=now
tail -n 1 "$TMP/run.out" >"$TMP/count.json"
assert_eq "system calls" "$(json "$TMP/count.json" \
	'sorted((f["name"], f["module"], f["count"]) for f in d["functions"])')" \
	"[('clock_nanosleep', 'syscall', 26), ('leaf_a', 'counts', 4600)]"

# With a budget that they exceed, probes are out for a time, and the table says for how long; with a great one, all calls are counted.
work() { printf '%s\n' "$1" >&"$TARGET_IN"; }
answers() { grep -c '^{' "$TMP/bursts.out"; }
has_answers() { [ "$(answers)" -ge "$1" ]; }
bounded() { # BUDGET OPTION...
	rm -f "$TMP/rec.err"
	start_target bursts --calls=2000
	TARGET=$PID
	"$KXRAY" record -p "$PID" --count --max-overhead "$@" >"$TMP/count.out" 2>"$TMP/rec.err" &
	KX_PID=$!
	_pids+=("$KX_PID")
	wait_for has_text 'counting calls of ' "$TMP/rec.err"
}
end_bounded() {
	work 0
	end_target "$TARGET"
	end_kxray
	assert_eq "$1: status" "$STATUS" 0
	grep '^{' "$TMP/bursts.out" | tail -n 1 >"$TMP/did.json"
	tail -n 1 "$TMP/count.out" >"$TMP/count.json"
}
of() { json "$TMP/count.json" "next((f for f in d['functions'] if f['name'] == '$1'), {}).get('$2')"; }
bounded 0.5 -f hot -f seldom --json
until has_text 'hot is called too often for --max-overhead: its probes are taken out' "$TMP/rec.err"; do
	n=$(answers)
	work 20
	wait_for has_answers $((n + 1)) || break
done
work 20
end_bounded "budget"
assert "budget: not all calls were counted" "$(of hot count) of $(json "$TMP/did.json" "d['hot']")" \
	[ "$(of hot count)" -lt "$(json "$TMP/did.json" "d['hot']")" ]
assert_eq "budget: for how long" "$(json "$TMP/count.json" "[f['out_seconds'] > 0 for f in d['functions'] if f['name'] == 'hot']")" "[True]"
assert_contains "budget: said" "$(cat "$TMP/rec.err")" "were not counted for a time"
bounded 100000% -f hot -f seldom --json
work 20
wait_for has_answers 1
end_bounded "great budget"
assert_eq "great budget: all are counted" "$(of hot count) $(of seldom count)" \
	"$(json "$TMP/did.json" "str(d['hot']) + ' ' + str(d['seldom'])")"
assert_eq "great budget: always" "$(of hot out_seconds)" None

start_target counts
run "$KXRAY" record --count -d 0.2 -p "$PID" -f leaf_a
assert_eq "never called: status" "$STATUS" 0
assert_contains "never called: it says so" "$ERR" "none of the traced functions was called"
assert_eq "never called: no table" "$OUT" ""

for vain in "-o x" "--args 2" "--callers" "--sample 9" "--sched" "--depth 2" "--min-duration 1us" \
	"--fdr-version 3" "--ring-size 1M" "--exits=return"; do
	# shellcheck disable=SC2086
	run "$KXRAY" record --count $vain -p "$PID" -f leaf_a
	assert_eq "--count $vain: status" "$STATUS" 2
	assert_contains "--count $vain: message" "$ERR" "leave out ${vain%%[ =]*}"
done
go_target
end_target "$PID"
