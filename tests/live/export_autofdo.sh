#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 6 s
# AutoFDO profiles of live programs: exact counts at the right source lines, and gcc accepts them.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

SOURCES=$PWD/tests/live/targets
READ4="python3 tests/readers/gcov_v4.py"
READ2="python3 tests/readers/gcov_v2.py"

# exported LABEL OUT [OPTION...]: exports $TRACE to $TMP/OUT
exported() {
	local label=$1 out=$2
	shift 2
	run "$KXRAY" export -f autofdo -o "$TMP/$out" "$@" "$TRACE"
	assert_eq "$label: export" "$STATUS" 0
}

# checked LABEL PROFILE EXPRESSION...: each Python EXPRESSION on the profile d must be true.
# did: the target's own counts; at(TEXT): number of the first line in its source that contains TEXT.
checked() {
	local label=$1
	python3 - "$@" <<-'END'
	import json, os, sys
	label, profile, source = sys.argv[1], sys.argv[2], os.environ["SOURCE"]
	d = json.load(open(profile))
	f = d["functions"]
	try:
	    did = json.load(open(os.environ["TMP"] + "/did.json"))["calls"]
	except (KeyError, FileNotFoundError):
	    did = {}
	lines = open(source).read().split("\n")
	def at(text):
	    return next(i for i, line in enumerate(lines, 1) if text in line)
	# leaf_nop5 is written in assembler and has no lines
	lined = {n: c for n, c in did.items() if n != "leaf_nop5"}
	def calls(callee):
	    """Calls of callee over all call sites."""
	    def walk(body):
	        return (sum(t.get(callee, 0) for t in body["calls"].values()) +
	                sum(walk(b) for b in body["inlined"].values()))
	    return sum(walk(body) for body in f.values())
	def site(callee, body, line, count=None):
	    """True if callee is called at that line of the body, in all @count times."""
	    got = [(t, body["locations"].get(k)) for k, t in body["calls"].items()
	           if k.split(".")[0] == str(line) and callee in t]
	    return bool(got) and (count is None or sum(t[callee] for t, n in got) == count)
	for expression in sys.argv[3:]:
	    try:
	        ok = bool(eval(expression.replace("\n", " ").strip(), globals()))
	        why = ""
	    except Exception as e:
	        ok, why = False, " (%s: %s)" % (type(e).__name__, e)
	    if ok:
	        print("ok %s: %s" % (label, expression.replace("\n", " ")))
	    else:
	        print("not ok %s: %s%s" % (label, expression, why))
	END
}

# Four threads, exact counts
export SOURCE=$SOURCES/counts.c
trace_target counts "${COUNTED[@]}" --callers
assert_eq "counts: recording" "$STATUS $TARGET_STATUS" "0 0"
exported "counts, normal" normal --afdo-version 4
exported "counts, compact" compact --afdo-form compact
exported "counts, text" text --afdo-form text
run $READ4 "$TMP/normal" "$TMP/compact" "$TMP/text"
assert_eq "counts: three forms, one profile" "$STATUS $ERR" "0 "
cp "$TMP/run.out" "$TMP/normal.json"
checked counts "$TMP/normal.json" \
	'all(f[n]["head"] == c for n, c in did.items())' \
	'all(f[n]["file"].endswith("counts.c") and f[n]["timestamp"] > 0 for n in lined)' \
	'all(calls(n) == did[n] for n in did if n not in ("tail_last", "recursive"))' \
	'site("recursive", f["recursive"], at("recursive(depth - 1)") - at("long recursive("),
	      did["recursive"] * 9 // 10)' \
	'site("middle", f["outer"], at("return middle(x)") - at("long outer("), did["outer"])' \
	'site("inner", f["middle"], at("return inner(x)") - at("long middle("), did["inner"])' \
	'set(f["middle"]["locations"].values()) == {did["middle"]}' \
	'calls("tail_last") == 0' \
	'f["work"]["head"] == 0' \
	'any(k.startswith(str(at("round_of_work(w);") - at("void *work(")) + ".")
	     and site("leaf_a", b, at("leaf_a(n);") - at("void round_of_work("), did["leaf_a"])
	     for k, b in f["work"]["inlined"].items())'
exported "counts, version 3" v3 --afdo-version 3
$READ2 "$TMP/v3" >"$TMP/v3.json" || fail "counts: version 3" "the reader refuses it"
checked "counts, version 3" "$TMP/v3.json" \
	'all(f[n]["head"] == c for n, c in lined.items())' \
	'set(f) == set(lined)' \
	'all(calls(n) == lined[n] for n in ("inner", "middle"))' \
	'set(f["leaf_a"]["locations"].values()) == {did["leaf_a"]}'
run "$KXRAY" export -f autofdo -o "$TMP/piped" "$TRACE"
"$KXRAY" export -f autofdo -o - "$TRACE" 2>/dev/null | cmp - "$TMP/piped" >/dev/null
assert_eq "counts: the same through a pipe" "${PIPESTATUS[*]}" "0 0"

# The binary is replaced after it was traced
mkdir "$TMP/bin"
cp "$TARGETS/fdo" "$TMP/bin/fdo"
TARGETS=$TMP/bin trace_target fdo -f often
cp --remove-destination "$TARGETS/counts" "$TMP/bin/fdo"
exported "replaced binary" replaced --afdo-form text
assert_contains "replaced binary: message" "$ERR" "$TMP/bin/fdo: another build than the traced one"
run $READ4 "$TMP/replaced"
assert_eq "replaced binary: no lines from it" \
	"$(json "$TMP/run.out" 'd["functions"]["often"]["file"]')" ""
exported "binary given as an option" named --afdo-form text --afdo-binary "$TARGETS/fdo"
run $READ4 "$TMP/named"
assert_contains "binary given as an option: lines" \
	"$(json "$TMP/run.out" 'd["functions"]["often"]["file"]')" /fdo.c

# gcc reads the profile and optimizes with it
export SOURCE=$SOURCES/fdo.c
trace_target fdo -f hot_loop -f often -f rarely -f middle -f main --callers
assert_eq "fdo: recording" "$STATUS $TARGET_STATUS" "0 0"
exported fdo fdo.afdo
$READ2 "$TMP/fdo.afdo" >"$TMP/fdo.json" || fail "fdo" "the reader refuses it"
checked fdo "$TMP/fdo.json" \
	'(f["hot_loop"]["head"], f["often"]["head"], f["rarely"]["head"]) == (100, 1180, 20)' \
	'f["middle"]["head"] == 100' \
	'site("often", f["middle"], at("sum += f(i)") - at("int middle("), 980)' \
	'site("rarely", f["middle"], at("sum += f(i)") - at("int middle("), 20)' \
	'set(f["hot_loop"]["locations"].values()) == {100}' \
	'[b["calls"] for k, b in f["middle"]["inlined"].items()] and calls("often") == 1180'

exported "fdo, no discriminators" nodisc.afdo --afdo-no-discriminators
$READ2 "$TMP/nodisc.afdo" >"$TMP/nodisc.json" || fail "fdo" "the reader refuses it"
checked "fdo, no discriminators" "$TMP/nodisc.json" \
	'all(k.endswith(".0") for b in f.values() for k in b["locations"])' \
	'all(k.split(":")[0].endswith(".0") for b in f.values() for k in b["inlined"])' \
	'site("often", f["middle"], at("sum += f(i)") - at("int middle("), 980)' \
	'calls("often") == 1180'
# vectorized PROFILE: compiles with the profile; succeeds if hot_loop is vectorized
vectorized() {
	# shellcheck disable=SC2086
	gcc -O3 -g -D_GNU_SOURCE -I"$SOURCES" ${1:+-fauto-profile=$1} -fopt-info-vec \
		-fdump-ipa-afdo-optimized="$TMP/afdo.dump" \
		-fdump-tree-optimized-all="$TMP/blocks.dump" \
		-S -o "$TMP/fdo.s" "$SOURCES/fdo.c" >"$TMP/gcc.out" 2>&1 || return 2
	grep -q 'loop vectorized' "$TMP/gcc.out"
}
version=$(gcc -dumpversion)
if [ "${version%%.*}" -lt 12 ] || [ "${version%%.*}" -gt 15 ]; then
	skip "gcc -fauto-profile" "gcc $version reads another version"
else
	vectorized ''
	assert_eq "gcc: the loop can be vectorized" $? 0
	vectorized "$TMP/fdo.afdo"
	assert_eq "gcc: takes the profile, loop still vectorized" $? 0
	assert_eq "gcc: no message about it" "$(grep -c -e error -e warning "$TMP/gcc.out")" 0
	assert "gcc: counts of the entry" "$(grep -m 3 count "$TMP/blocks.dump")" \
		grep -q 'count 1180 (auto FDO)' "$TMP/blocks.dump"
	assert_contains "gcc: indirect call becomes direct" "$(cat "$TMP/afdo.dump")" \
		'Indirect call -> direct call'
	# Why lines are filled: with head counts alone gcc treats the loop as cold.
	$READ2 --bare "$TMP/fdo.afdo" "$TMP/bare.afdo"
	vectorized "$TMP/bare.afdo"
	assert_eq "gcc: head counts alone prevent vectorization" $? 1
	exported "fdo, no fill" none.afdo --afdo-fill none
	vectorized "$TMP/none.afdo"
	assert_eq "gcc: nothing filled, loop still vectorized" $? 0
	exported "fdo, version 3" fdo3.afdo --afdo-version 3
	vectorized "$TMP/fdo3.afdo"
	assert_contains "gcc: knows the versions apart" "$(cat "$TMP/gcc.out")" \
		'AutoFDO profile version 3 does not match 2'
fi

# Samples: the loop without calls is the hottest place. It has about 1024 iterations of a few cycles per
# call, so 2000 * 100 calls make about 2 * 10^8 iterations.
TARGET_ARGS=--repeat=2000 trace_command fdo -f main --sample 2000
exported samples sampled --afdo-form text
$READ4 "$TMP/sampled" >"$TMP/sampled.json" || fail "samples" "the reader refuses it"
checked samples "$TMP/sampled.json" \
	'2e7 < max(f["hot_loop"]["locations"].values()) < 2e9' \
	'max(f["hot_loop"]["locations"].values()) == d["summary"]["max_count"]' \
	'max(f["hot_loop"]["locations"], key=f["hot_loop"]["locations"].get).split(".")[0] in
	 (str(at("i < SIZE") - at("hot_loop(")), str(at("a[i] =") - at("hot_loop(")))'
exported "samples for gcc" sampled.afdo
vectorized "$TMP/sampled.afdo"
assert_eq "gcc: takes measured lines" $? 0

# An empty profile, which gcc takes without a word, is a failure with its reason, and leaves no file.
# refused LABEL WANT OPTION...
refused() {
	local label=$1 want=$2
	shift 2
	rm -f "$TMP/empty"
	run "$KXRAY" export -f autofdo -o "$TMP/empty" "$@" "$TRACE"
	assert_eq "$label: status, sentences" "$STATUS $(wc -l <<<"$ERR")" "1 1"
	assert_contains "$label: why" "$ERR" "$want"
	assert "$label: no file" "there is one" [ ! -e "$TMP/empty" ]
}
trace_target fdo -f often -f middle
refused "no call sites" "neither call sites nor samples; record with --callers" --afdo-fill none
refused "no lines" "none of the 2 called functions has source lines: /bin/true" --afdo-binary /bin/true
exported "no call sites, lines filled" filled.afdo
$READ2 "$TMP/filled.afdo" >"$TMP/filled.json" || fail "lines filled" "the reader refuses it"
checked "no call sites, lines filled" "$TMP/filled.json" \
	'{n: b["head"] for n, b in f.items()} == {"often": 1180, "middle": 100}'

# Two processes with the program at different addresses
start_target fdo
first=$PID
first_in=$TARGET_IN
start_target fdo
second=$PID
start_kxray "$first,$second" -f often -f middle --callers
printf g >&"$first_in"
go_target
end_target "$second"
exec {first_in}>&-
wait "$first"
end_kxray
assert_eq "two processes: recording" "$STATUS" 0
exported "two processes" two --afdo-version 4
$READ4 "$TMP/two" >"$TMP/two.json" || fail "two processes" "the reader refuses it"
checked "two processes" "$TMP/two.json" \
	'(f["often"]["head"], f["middle"]["head"]) == (2360, 200)' \
	'site("often", f["middle"], at("sum += f(i)") - at("int middle("), 1960)' \
	'calls("often") == 2360 and calls("middle") == 200'
