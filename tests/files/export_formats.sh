#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 5 s, without root
# Trace files in every format: each format has the same calls and times as llvm-xray reads; output to a
# file, to standard output and from a pipe has the same bytes; for damaged and truncated files and wrong
# options kxray prints one sentence and leaves no file.
. "$(dirname "$0")/../lib.sh"
# shellcheck source=tests/files/formats.inc
. tests/files/formats.inc

TRACE=$TMP/trace.xray
"$BUILD/tests/make_trace" write "$TRACE" 4000 5 60 60 || fail "make_trace" "status $?"
# Calls nested up to 12 deep, one function per stack, with names of C++ templates.
same_in_all_formats "made trace" unnamed

# Pipes, and files that are not traces

mkdir "$TMP/here"
head -c $(($(stat -c %s "$TRACE") / 2 + 1)) "$TRACE" >"$TMP/here/cut.xray"
head -c 20 "$TRACE" >"$TMP/here/short.xray"
: >"$TMP/here/empty.xray"
{ head -c 48 "$TRACE" && printf '\377' && tail -c +50 "$TRACE"; } >"$TMP/here/damaged.xray"
{ printf '\0\5\0\1' && tail -c +5 "$TRACE"; } >"$TMP/here/big.xray"
{ printf '\11' && tail -c +2 "$TRACE"; } >"$TMP/here/newer.xray"
cp "$TRACE.map" "$TMP/here/cut.xray.map"
before=$(ls -A "$TMP/here")
# one_sentence: succeeds if $ERR is one sentence with the usual prefix
one_sentence() { [[ $ERR = "kxray export: "* && $ERR != *$'\n'* && ${#ERR} -gt 30 ]]; }
# streamed OPTION...: of the format ${as[@]}; puts the differences between $TMP/file and the export through a pipe into $same. AFPerf
# has a random id for each run; CPEL the date of the export in bytes 5 to 8, as this trace has no date.
streamed() {
	same=$("$KXRAY" export "${as[@]}" "$@" 2>/dev/null | without_id_and_date |
		cmp - <(without_id_and_date <"$TMP/file") 2>&1)
}
without_id_and_date() {
	case $format in
	afperf)
		awk -F, -v OFS=, '$1 == "RunInfo" { id = $6 } { for (i = 2; i <= NF; i++)
			if ($i "" == id "") $i = "RUN"; print }'
		;;
	cpel) tail -c +9 ;;
	*) cat ;;
	esac
}
for format in "${FORMATS[@]}"; do
	# Without source lines, the versions of AutoFDO that gcc reads would be empty, which is refused.
	as=(-f "$format")
	[ "$format" != autofdo ] || as+=(--afdo-version 4)
	"$KXRAY" export "${as[@]}" -o "$TMP/file" "$TRACE" 2>/dev/null
	streamed -o - "$TRACE" </dev/null
	assert_eq "$format: to standard output the same bytes" "$same" ""
	streamed -m "$TRACE.map" -o - - < <(cat "$TRACE")
	assert_eq "$format: from a pipe the same bytes" "$same" ""
	for bad in short empty damaged big newer missing; do
		run env -C "$TMP/here" "$KXRAY" export "${as[@]}" -o out "$bad.xray"
		assert "$format: $bad file" "status $STATUS: $ERR" [ "$STATUS" = 1 ]
		one_sentence || fail "$format: $bad file: one sentence" "$ERR"
		assert_eq "$format: $bad file: nothing is left" "$(ls -A "$TMP/here")" "$before"
	done
	run env -C "$TMP/here" "$KXRAY" export "${as[@]}" -o out cut.xray
	assert_eq "$format: truncated file" "$STATUS" 0
	assert_contains "$format: truncated file: message" "$ERR" "ends inside a buffer"
	assert "$format: truncated file: complete records are exported" "there is no output" [ -s "$TMP/here/out" ]
	cp "$TMP/here/out" "$TMP/cut.$format"
	rm -f "$TMP/here/out" "$TMP/here/out.map"
	assert_eq "$format: truncated file: nothing else is left" "$(ls -A "$TMP/here")" "$before"

	run env -C "$TMP/here" "$KXRAY" export "${as[@]}" --no-such-option -o out "$TRACE"
	assert_eq "$format: an unknown option" "$STATUS $(ls -A "$TMP/here")" "2 $before"
done
for reader in "${FORMATS[@]}"; do
	[ -e "tests/readers/$reader.py" ] || continue
	run python3 "tests/readers/$reader.py" "$TMP/cut.$reader"
	assert_eq "$reader: truncated file: its reader takes it" "$STATUS $ERR" "0 "
done
run "$KXRAY" report --json "$TMP/here/cut.xray"
cp "$TMP/run.out" "$TMP/cut.json"
assert_eq "truncated file: csv and report" "$($AGREE rows "$TMP/cut.json" "$TMP/cut.csv")" "the same"
"$KXRAY" export -f folded --folded-count -o "$TMP/cut.folded-count" "$TMP/here/cut.xray" 2>/dev/null
for format in "${FORMATS[@]}" folded-count; do
	assert_eq "$format: truncated file: as many calls as in the report, open ones included" \
		"$($AGREE counts "$TMP/cut.json" "$format" "$TMP/cut.$format")" "the same"
done
for args in "-f no-such-format" "" "-f csv --time nonsense" "-f xray --xray-version 6" \
	"-f autofdo --afdo-version 5" "-f autofdo --afdo-form yaml" "-f autofdo --afdo-fill all" \
	"-f perun --perun-origin nonsense" "-f cpel --cpel-little" "-f csv --depth -1"; do
	# shellcheck disable=SC2086
	run env -C "$TMP/here" "$KXRAY" export $args -o out "$TRACE"
	assert_eq "wrong usage, export $args" "$STATUS $(ls -A "$TMP/here")" "2 $before"
	[ -n "$ERR" ] || fail "wrong usage, export $args" "it says nothing"
done
