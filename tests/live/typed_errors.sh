#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# run: parallel, 5 s
# Values by name that cannot be: one sentence, or unknown with its reason, and never a value that is wrong.
. "$(dirname "$0")/../lib.sh"
. tests/live/tracing.sh

gcc -gdwarf-4 -O2 -o "$TMP/program" tests/live/typed/typed.c || fail "gcc" ""
strip -o "$TMP/stripped" --keep-symbol=take_members "$TMP/program"

# refused SPEC SENTENCE [PROGRAM]
refused() {
	STATUS=0
	"$KXRAY" record -o "$TRACE" -f "$1" -- "$TMP/${3:-program}" >/dev/null 2>"$TMP/err" || STATUS=$?
	assert_eq "$1" "$STATUS $(tail -n 1 "$TMP/err")" "1 kxray record: $2"
}

f='take_members'
refused "$f(q->id)" "-f '$f(q->id)': no parameter 'q' in $f"
refused "$f(othr->id)" "-f '$f(othr->id)': no parameter 'othr' in $f; did you mean 'other'?"
refused "$f(r->hdr.lne)" "-f '$f(r->hdr.lne)': no member 'lne' in struct hdr (r->hdr.lne); did you mean 'len'?"
refused "$f(r->hdr->len)" "-f '$f(r->hdr->len)': what is before '->len' is no pointer (r->hdr->len): write '.len'"
refused "$f(r->hdr)" "-f '$f(r->hdr)': r->hdr is no number or string but a structure 'hdr': name one of its members"
refused "$f(r->hdr.len:str)" "-f '$f(r->hdr.len:str)': r->hdr.len is neither a pointer nor an array, so it is no string"
refused "$f(r->hdr.len:u64)" "-f '$f(r->hdr.len:u64)': r->hdr.len has 2 bytes, not 8"
refused "$f(r->items[5])" "-f '$f(r->items[5])': r->items[5]: the array has 5 elements"
refused "$f(r->next->next->next->next->id)" \
	"-f '$f(r->next->next->next->next->id)': r->next->next->next->next->id follows more than 4 pointers"
refused "$f(r) -> ret.x" "-f '$f(r) -> ret.x': what is before 'x' has no members (ret.x)"
refused "$f(q)" "-f '$f(q)': no parameter 'q' in $f"
refused 'take_member(q)' "no function of 'program' matches 'take_member'; did you mean take_members?; with --follow kxray waits for programs that it starts"
refused "syscall:write(fd, text)" "-f 'syscall:write(fd, text)': no parameter 'text' in write"

STATUS=0
"$KXRAY" record -o "$TRACE" -f "$f(r->id)" -- "$TMP/stripped" >/dev/null 2>"$TMP/err" || STATUS=$?
assert_eq "without debug information" "$STATUS" 1
assert_contains "without debug information" "$(cat "$TMP/err")" "-f '$f(r->id)': what r->id is, is not known: "
assert_contains "without debug information" "$(cat "$TMP/err")" "or name registers, arg1 to arg6, with a type as in arg1:i32"

# What some functions do not have is unknown there, and so is what the compiler has left out.
"$KXRAY" record -o "$TRACE" --json -f 'take_*(other->code, unused, n)' -- "$TMP/program" >"$TMP/out" 2>"$TMP/err" || fail record "$(cat "$TMP/err")"
sed -n '/^{"schema"/p' "$TMP/out" >"$TMP/rec.json"
"$KXRAY" dump --json "$TRACE" >"$TMP/dump.json"
assert_eq "known values" "$(python3 - "$TMP/dump.json" <<'END'
import json, sys
seen = set()
for line in open(sys.argv[1]):
    r = json.loads(line)
    if r["kind"] == "entry" and r["function"].split(".")[0] in ("take_members", "take_local", "take_words"):
        seen.add((r["function"].split(".")[0], json.dumps(r["values"])))
for name, values in sorted(seen):
    print(name, values)
END
)" "$(
	for n in 0 3 6; do echo "take_local {\"other->code\": null, \"unused\": null, \"n\": $n}"; done
	echo 'take_members {"other->code": -7, "unused": null, "n": null}'
	for n in -1 -2147483647 -32768 0 1 2147483647 32767; do echo "take_words {\"other->code\": null, \"unused\": null, \"n\": $n}"; done
)"
assert_eq "reasons" "$(python3 - "$TMP/rec.json" <<'END'
import json, sys
unknown = json.load(open(sys.argv[1]))["unknown_values"]
print(len(unknown), *sorted({u["why"] for u in unknown if u["function"].startswith("take_scalars")}), sep="; ")
END
)" "8; no parameter 'n' in take_scalars; no parameter 'other' in take_scalars; no parameter 'unused' in take_scalars; did you mean 's'?"

# "f(Foo)" is the function with this parameter; "f(x)", as none has that name, the values of all that are called f.
cat >"$TMP/overloads.cpp" <<'END'
struct Foo { long a; };
__attribute__((noinline)) long f(Foo x) { __asm__ volatile("" : : "r"(x.a)); return x.a; }
__attribute__((noinline)) long f(long x) { __asm__ volatile("" : : "r"(x)); return x; }
int main() { return f(Foo{ 3 }) + f(7) != 10; }
END
g++ -g -o "$TMP/overloads" "$TMP/overloads.cpp" || fail g++ ""
"$KXRAY" record -o "$TRACE" -f 'f(Foo)' -- "$TMP/overloads" >/dev/null 2>"$TMP/err" || fail "f(Foo)" "$(cat "$TMP/err")"
assert_eq "f(Foo)" "$("$KXRAY" export -f csv -o - "$TRACE" 2>/dev/null | python3 -c 'import csv, sys
print([(r["function"], r.get("values", "")) for r in csv.DictReader(sys.stdin)])')" "[('f(Foo)', '')]"
"$KXRAY" record -o "$TRACE" -f 'f(x)' -- "$TMP/overloads" >/dev/null 2>"$TMP/err" || fail "f(x)" "$(cat "$TMP/err")"
assert_eq "f(x)" "$("$KXRAY" export -f csv -o - "$TRACE" 2>/dev/null | python3 -c 'import csv, sys
print([(r["function"], r.get("values", "")) for r in csv.DictReader(sys.stdin)])')" \
	"[('f(Foo)', '{\"x\":null}'), ('f(long)', '{\"x\":7}')]"
assert_contains "f(x)" "$(cat "$TMP/err")" "kxray: x of f(Foo) is not recorded: x is no number or string but a structure 'Foo': name one of its members"
