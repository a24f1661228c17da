#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# One recording through every exporter tells the same story, and so do report and llvm-xray; logs
# of LLVM's own runtime come out as traces that llvm-xray takes; filters, damaged files, streams.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

AGREE="python3 tests/readers/agree.py"
mapfile -t FORMATS < <("$KXRAY" export --list --json | python3 -c 'import json, sys
print(*(f["name"] for f in json.load(sys.stdin)), sep="\n")')
assert_between "formats" "${#FORMATS[@]}" 11 50
if [ -z "$(llvm_xrays)" ]; then
	skip "export_agree" "llvm-xray is not installed"
	exit
fi

# story LABEL: $TRACE in all formats, and what agree.py says of them
story() {
	local format name
	"$KXRAY" report --json "$TRACE" >"$TMP/report.json" || fail "$1: report" "status $?"
	for format in "${FORMATS[@]}" "folded --folded-count"; do
		name=${format// --folded/}
		case $format in
		autofdo) format="autofdo --afdo-form text" ;;
		esac
		# shellcheck disable=SC2086
		run "$KXRAY" export -f $format -o "$TMP/out.$name" "$TRACE"
		[ "$STATUS" = 0 ] || fail "$1: export $format" "$ERR"
	done
	$AGREE story "$TMP" "$1" || fail "$1" "the comparison did not run"
}

# Gaps in the trace
TARGET_ARGS=--repeat=2 trace_target counts "${COUNTED[@]}" --ring-size 4K
assert_eq "losses: statuses" "$STATUS $TARGET_STATUS" "0 0"
assert_between "losses: hits lost" "$(json "$TMP/rec.json" 'd["lost"]')" 1 1000000
story losses

# Calls that kxray had to close
trace_target longjmp -f catcher -f dive -f jump -f after
assert_eq "repairs: statuses" "$STATUS $TARGET_STATUS" "0 0"
assert_eq "repairs: calls repaired" "$(json "$TMP/rec.json" 'd["repaired"]')" 11000
story repairs

trace_target counts "${COUNTED[@]}" --callers --args 2
assert_eq "counts: statuses" "$STATUS $TARGET_STATUS" "0 0"
story counts
assert_eq "counts: calls are what the target did" \
	"$(json "$TMP/report.json" 'sorted((f["name"], f["count"]) for f in d["functions"])')" \
	"$(json "$TMP/did.json" 'sorted(call for call in d["calls"].items() if call[1])')"

# Filters: report and csv leave the same calls, and the exported trace has no others.

counts='sorted((f["name"], f["count"], f["open"]) for f in d["functions"])'
all_calls=$(json "$TMP/report.json" 'd["calls"]')
tid=$(json "$TMP/did.json" 'd["threads"][1]["tid"]')
# filtered LEAST MOST OPTION...: so many calls are left
filtered() {
	local least=$1 most=$2
	shift 2
	run "$KXRAY" report --json "$@" "$TRACE"
	cp "$TMP/run.out" "$TMP/filtered.json"
	run "$KXRAY" export -f csv -o "$TMP/filtered.csv" "$@" "$TRACE"
	assert_eq "filter $*: csv and report" \
		"$STATUS $($AGREE rows "$TMP/filtered.json" "$TMP/filtered.csv")" "0 the same"
	assert_between "filter $*: calls left" \
		"$(json "$TMP/filtered.json" 'sum(f["count"] + f["open"] for f in d["functions"])')" \
		"$least" "$most"
	run "$KXRAY" export -f xray -o "$TMP/filtered.xray" "$@" "$TRACE"
	run "$KXRAY" report --json "$TMP/filtered.xray"
	assert_eq "filter $*: and the trace that is exported" "$(json "$TMP/run.out" "$counts")" \
		"$(json "$TMP/filtered.json" "$counts")"
}
filtered "$all_calls" "$all_calls" --pid "$TARGET_PID"
filtered 0 0 --pid 1
filtered 1000 $((all_calls / 2)) --tid "$tid"
filtered 100 $((all_calls - 100)) --function 'leaf_*' -x leaf_b
filtered 100 $((all_calls - 100)) --function inner --function outer
filtered 100 $((all_calls - 100)) --function counts:outer
# how many calls lie in a time or last that long depends on the machine
filtered 1 "$all_calls" --min-duration 1ms
filtered 1000 $((all_calls - 100)) --depth 1
filtered 1000 $((all_calls - 100)) --depth 3
filtered 1 "$all_calls" --time 5ms..60ms
filtered 1 "$all_calls" --time 5ms..60ms --depth 2 --tid "$tid" -x outer --min-duration 2us

# Streams, and what is no trace

mkdir "$TMP/here"
head -c $(($(stat -c %s "$TRACE") / 2 + 1)) "$TRACE" >"$TMP/here/cut.xray"
head -c 20 "$TRACE" >"$TMP/here/short.xray"
: >"$TMP/here/empty.xray"
{ head -c 48 "$TRACE" && printf '\377' && tail -c +50 "$TRACE"; } >"$TMP/here/damaged.xray"
{ printf '\0\5\0\1' && tail -c +5 "$TRACE"; } >"$TMP/here/big.xray"
{ printf '\11' && tail -c +2 "$TRACE"; } >"$TMP/here/newer.xray"
cp "$TRACE.map" "$TMP/here/cut.xray.map"
before=$(ls -A "$TMP/here")
# one_sentence: $ERR is one, and starts as all do
one_sentence() { [[ $ERR = "kxray export: "* && $ERR != *$'\n'* && ${#ERR} -gt 30 ]]; }
# streamed OPTION...: in $same what differs between $TMP/file and the export through a pipe. AFPerf
# has a random id for each run.
streamed() {
	same=$("$KXRAY" export -f "$format" "$@" 2>/dev/null | without_run_id |
		cmp - <(without_run_id <"$TMP/file") 2>&1)
}
without_run_id() {
	if [ "$format" != afperf ]; then
		cat
	else
		awk -F, -v OFS=, '$1 == "RunInfo" { id = $6 } { for (i = 2; i <= NF; i++)
			if ($i "" == id "") $i = "RUN"; print }'
	fi
}
for format in "${FORMATS[@]}"; do
	"$KXRAY" export -f "$format" -o "$TMP/file" "$TRACE" 2>/dev/null
	streamed -o - "$TRACE" </dev/null
	assert_eq "$format: to standard output the same bytes" "$same" ""
	streamed -m "$TRACE.map" -o - - < <(cat "$TRACE")
	assert_eq "$format: from a pipe the same bytes" "$same" ""
	for bad in short empty damaged big newer missing; do
		run env -C "$TMP/here" "$KXRAY" export -f "$format" -o out "$bad.xray"
		assert "$format: $bad file" "status $STATUS: $ERR" [ "$STATUS" = 1 ]
		one_sentence || fail "$format: $bad file: one sentence" "$ERR"
		assert_eq "$format: $bad file: nothing is left" "$(ls -A "$TMP/here")" "$before"
	done
	run env -C "$TMP/here" "$KXRAY" export -f "$format" -o out cut.xray
	assert_eq "$format: truncated file" "$STATUS" 0
	assert_contains "$format: truncated file: it says so" "$ERR" "ends inside a buffer"
	assert "$format: truncated file: all that is whole" "there is no output" [ -s "$TMP/here/out" ]
	cp "$TMP/here/out" "$TMP/cut.$format"
	rm -f "$TMP/here/out" "$TMP/here/out.map"
	assert_eq "$format: truncated file: nothing else is left" "$(ls -A "$TMP/here")" "$before"

	run env -C "$TMP/here" "$KXRAY" export -f "$format" --no-such-option -o out "$TRACE"
	assert_eq "$format: an option that is none" "$STATUS $(ls -A "$TMP/here")" "2 $before"
done
for reader in afperf cpel perun chrome perfetto speedscope pprof; do
	run python3 "tests/readers/$reader.py" "$TMP/cut.$reader"
	assert_eq "$reader: truncated file: its reader takes it" "$STATUS $ERR" "0 "
done
run "$KXRAY" report --json "$TMP/here/cut.xray"
cp "$TMP/run.out" "$TMP/cut.json"
assert_eq "truncated file: csv and report" "$($AGREE rows "$TMP/cut.json" "$TMP/cut.csv")" "the same"
for args in "-f no-such-format" "" "-f csv --time nonsense" "-f xray --xray-version 6" \
	"-f autofdo --afdo-version 5" "-f autofdo --afdo-form yaml" "-f autofdo --afdo-fill all" \
	"-f perun --perun-origin nonsense" "-f cpel --cpel-little" "-f csv --depth -1"; do
	# shellcheck disable=SC2086
	run env -C "$TMP/here" "$KXRAY" export $args -o out "$TRACE"
	assert_eq "wrong usage, export $args" "$STATUS $(ls -A "$TMP/here")" "2 $before"
	[ -n "$ERR" ] || fail "wrong usage, export $args" "it says nothing"
done

# Logs of LLVM's own runtime: many threads in small buffers, tail calls, arguments, events.
cat >"$TMP/logger.c" <<'END'
#include <pthread.h>
int __xray_log_select_mode(const char *);
int __xray_patch(void);
int __xray_log_init_mode(const char *, const char *);
int __xray_log_finalize(void);
int __xray_log_flushLog(void);
#define NOINLINE __attribute__((noinline))
NOINLINE int leaf(int x) { __asm__ volatile(""); return x + 1; }
__attribute__((noinline, xray_log_args(1), xray_always_instrument))
int args(long x) { return leaf((int)x); }
NOINLINE int tail(int x) { __asm__ volatile(""); return leaf(x + 2); }
NOINLINE int recurse(int n) { return n ? recurse(n - 1) + leaf(n) : 0; }
static void *work(void *a)
{
	long n = (long)a, s = 0;
	for (long i = 0; i < n; i++) {
		s += tail(i) + recurse(3) + args(i);
		if (i % 50 == 0)
			__xray_customevent("hello event", 11);
	}
	return (void *)s;
}
__attribute__((xray_never_instrument)) int main(int c, char **v)
{
	pthread_t t[4];
	if (c != 2 || __xray_log_select_mode("xray-fdr") ||
	    __xray_log_init_mode("xray-fdr", v[1]) != 2 || __xray_patch() != 1)
		return 2;
	for (long i = 0; i < 4; i++)
		pthread_create(&t[i], 0, work, (void *)(200 + 100 * i));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	__xray_log_finalize();
	__xray_log_flushLog();
	return 0;
}
END
# The loops make known numbers of calls: 4 threads, 1400 rounds.
expected="{'args': 1400, 'leaf': 7000, 'recurse': 5600, 'tail': 1400, 'work': 4}"
tested=0
for clang in clang-14 clang-19; do
	if ! command -v "$clang" >/dev/null; then
		skip "logs of $clang" "it is not installed"
		continue
	fi
	"$clang" -O2 -pthread -w -fxray-instrument -fxray-instruction-threshold=1 -o "$TMP/logger" \
		"$TMP/logger.c" 2>"$TMP/clang.err" || fail "logs of $clang" "$(cat "$TMP/clang.err")"
	tested=1
	for config in buffer_size=1024:buffer_max=4000 buffer_size=16384:buffer_max=100; do
		label="log of $clang, $config"
		rm -f "$TMP"/log.*
		XRAY_OPTIONS="patch_premain=false xray_logfile_base=$TMP/log." \
			"$TMP/logger" "func_duration_threshold_us=0:$config" 2>/dev/null ||
			fail "$label" "the program ends with status $?"
		log=$(ls "$TMP"/log.*)
		run "$KXRAY" export -f csv -m "$TMP/logger" -o "$TMP/log.csv" "$log"
		assert_eq "$label: calls" "$(python3 -c 'import collections, csv, sys
rows = csv.DictReader(open(sys.argv[1], newline=""))
print(dict(sorted(collections.Counter(row["function"] for row in rows).items())))' \
			"$TMP/log.csv")" "$expected"
		# With many buffers llvm-xray loses their order, with few it may not.
		if [ "${config#*=}" = 1024:buffer_max=4000 ]; then
			for tool in $(llvm_xrays); do
				run "$tool" account -m "$TMP/logger" "$log"
				assert "$label: rejected by $tool" "it is accepted, so this proves nothing" \
					[ "$STATUS" != 0 ]
			done
		fi
		for version in 1 2 3 4 5; do
			run "$KXRAY" export -f xray --xray-version "$version" -m "$TMP/logger" \
				-o "$TMP/repaired.xray" "$log"
			assert_eq "$label: as version $version" "$STATUS $(od -An -tu2 -N2 \
				"$TMP/repaired.xray" | tr -d ' ')" "0 $version"
			assert_eq "$label: as version $version llvm-xray account says the same" \
				"$($AGREE account "$TMP/repaired.xray" "$TMP/logger" "$TMP/log.csv")" "the same"
		done
	done
done
[ "$tested" = 1 ] || fail "logs of LLVM's runtime" "no clang can make one"
