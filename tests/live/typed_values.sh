#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 15 s
# Values of calls by name, member and type (-f 'f(req->path, n) -> ret', --args=auto): each is what the program passed, in C, C++,
# Rust and Go, as far as there are compilers.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

c=(-f 'take_scalars(c, b, tiny, s, color, big) -> ret' -f 'take_wide(u, l, w, count, address, byte) -> ret'
	-f 'take_members(r->hdr.len, r->hdr.delta, r->name, r->items[3], r->ratio, r->half, other->code) -> ret'
	-f 'take_chain(r->next->next->next->path, r->next->next->color, r->next->next->id, r->done, r->color) -> ret'
	-f 'take_by_value(p.a, packed.n, tight.n, e.n, s.n, last) -> ret.b' -f 'make_packed(n) -> ret.n'
	-f 'take_many(f, g, h.last, h.v[2], i) -> ret' -f 'take_words(w.a, n) -> ret.a' -f 'take_local*(n, r->id) -> ret'
	-f 'take_buffer(data:str[n], n, raw) -> ret')
cxx=(-f 'shop::by_text(s:str[40], r:str[40], v:str[40]) -> ret' -f 'shop::by_item(i.name, i.state, p->owner[0], moved.name) -> ret'
	-f 'shop::by_copy(g.a, g.b, n) -> ret' -f 'shop::make*(n) -> ret' -f 'item::use(this->name, text, n) -> ret')
rust=(-f 'take_text(s, n, owned, last) -> ret' -f 'take_owned(s, mode, flag, c) -> ret' -f 'give_text(s, n) -> ret'
	-f 'take_request(r.path:str[24], r.inner.name:str[24], r.inner.mode, r.inner.count, r.weight) -> ret')
go=(-f 'main.takeText(s, n, last, other) -> ret' -f 'main.takeRequest(r.Next.Path:str[24], r.In.Name:str[24], r.In.Count, small) -> ret'
	-f 'main.(*Request).method(r.Weight, n, after) -> ret' -f 'main.twoResults(a, b) -> ret')

# check WHAT NUMBER FUNCTION... -- OPTION...: the values of $TMP/program
check() {
	local what=$1 number=$2 names=()
	shift 2
	while [ "$1" != -- ]; do
		names+=("$1")
		shift
	done
	shift
	STATUS=0
	"$KXRAY" record -o "$TRACE" --json "$@" -- "$TMP/program" >"$TMP/out" 2>"$TMP/err" || STATUS=$?
	[ "$STATUS" = 0 ] || fail "$what: record" "$(cat "$TMP/err")"
	sed -n '/^{"calls"/p' "$TMP/out" >"$TMP/did.json"
	assert_eq "$what: lost, unknown" "$(sed -n '/^{"schema"/p' "$TMP/out" "$TMP/err" | python3 -c 'import json, sys
d = json.load(sys.stdin)
print(d["lost"], *[": ".join(u.values()) for u in d.get("unknown_values", [])])')" "0"
	"$KXRAY" export -f csv -o "$TMP/calls.csv" "$TRACE" 2>"$TMP/export.err" || fail "$what: csv" "$(cat "$TMP/export.err")"
	assert_eq "$what" "$(python3 tests/live/values.py csv "$TMP/calls.csv" "$TMP/did.json" "${names[@]}" 2>&1)" "compared $number"
}

in_c=(take_scalars take_wide take_members take_chain take_by_value make_packed take_many take_words take_local take_buffer)
for compiler in 'gcc -g -O0' 'gcc -gdwarf-4 -O2' 'clang -g -O1'; do
	$compiler -o "$TMP/program" tests/live/typed/typed.c || fail "$compiler" ""
	check "$compiler" 193 "${in_c[@]}" -- "${c[@]}"
done
check "--args=auto" 28 take_scalars take_wide -- --args=auto -f take_scalars -f take_wide -f 'libc.so*:write' -f 'syscall:write'
"$KXRAY" dump "$TRACE" >"$TMP/dump"
assert_contains "--args=auto, a prototype" "$(grep libc "$TMP/dump")" "write {fd = 1, buf = 0x"
assert_contains "--args=auto, a system call" "$(grep syscall "$TMP/dump")" "count = 4096}"
assert_contains "--args=auto, results" "$(cat "$TMP/dump")" "write {ret = 4096}"
for compiler in 'g++ -g -O0' 'g++ -gdwarf-4 -O2' 'clang++ -g -O1'; do
	$compiler -std=c++17 -o "$TMP/program" tests/live/typed/typed.cpp || fail "$compiler" ""
	check "$compiler" 31 shop::by_text shop::by_item shop::by_copy shop::make item::use -- "${cxx[@]}"
done
if command -v rustc >/dev/null; then
	rustc -g -C opt-level=1 -A warnings -o "$TMP/program" tests/live/typed/typed.rs || fail rustc ""
	check rustc 34 take_text take_owned take_request give_text -- "${rust[@]}"
else
	skip "Rust" "rustc is not installed"
fi
if command -v go >/dev/null; then
	# the cache of the hazards' target, and its flags: else each run compiles Go's own library
	GOCACHE=${GOCACHE:-$BUILD/go-cache} GOFLAGS=-mod=mod go build -o "$TMP/program" tests/live/typed/typed.go || fail go ""
	check go 27 main.takeText main.takeRequest 'main.(*Request).method' main.twoResults -- "${go[@]}"
else
	skip "Go" "go is not installed"
fi
