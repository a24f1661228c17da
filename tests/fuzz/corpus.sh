#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 20 s, without root
#
# Replays the fuzz corpus under AddressSanitizer and UBSan: what was found once stays found. `make
# fuzz` looks for more. Among the fast tests (KX_TEST_FAST=1) without sanitizers, which need a build of
# their own.
. "$(dirname "$0")/../lib.sh"

# Compiling takes a hundred times as long as replaying, so it does not optimize; hence another folder than `make asan`'s.
asan=${ASAN_BUILD:-build-corpus} options=(SANITIZE=1 'CFLAGS=-O0 -g1 -Wno-format-truncation')
if [ "${KX_TEST_FAST:-}" = 1 ]; then
	asan=$BUILD options=()
fi
if ! make -s ${options[@]+"${options[@]}"} BUILD="$asan" fuzz-replay >"$TMP/build.log" 2>&1; then
	fail fuzz_build "$(tail -3 "$TMP/build.log")"
	exit 1
fi
for kind in fdr map elf plan spec types usdt condition windows; do
	if "$asan/tests/fuzz_$kind" "tests/fuzz/corpus/$kind" >"$TMP/$kind.log" 2>&1; then
		pass "fuzz_corpus_$kind"
	else
		fail "fuzz_corpus_$kind" "$(grep -m1 -E 'ERROR|error|abort' "$TMP/$kind.log") $(tail -1 "$TMP/$kind.log")"
	fi
done
