# SPDX-License-Identifier: BSD-2-Clause
"""
Compares a recording with conditions with what the target (targets/conditions.c) says that it called.

    python3 conditions.py DID.json REC.json DUMP.json EXPRESSION FUNCTION...

EXPRESSION is the condition in Python on a call: a, b, c (arguments), text, n, ret, thread, tid, depth; matches(GLOB) and same(TEXT) are about text.
A text that is None cannot be read: what depends on it is unknown, and the call is recorded. A call without a result does not meet what depends
on ret. Prints what differs, and "compared N, met M, unknown U, undecided D" last, N being the calls of FUNCTIONs.
"""
import fnmatch
import json
import sys

did, rec, dump, expression, *functions = sys.argv[1:]
code = compile(expression, expression, "eval")


class NoResult(Exception):
    pass


class Names(dict):
    """@bits: one by one, what comparisons that are unknown are taken for."""

    def __init__(self, call, bits):
        super().__init__()
        self.call, self.bits = call, bits

    def unknown(self):
        self.bits, bit = divmod(self.bits, 2)
        return bool(bit)

    def __missing__(self, name):
        call = self.call
        if name == "ret":
            if call["result"] is None:
                raise NoResult
            return call["result"]
        if name in "abc":
            return call["args"]["abc".index(name)]
        if name == "n":
            return call["args"][1]
        if name in ("matches", "same"):
            return lambda text: self.compare(name, text)
        return call[name]

    def compare(self, name, want):
        text = self.call["text"]
        if text is None:
            return self.unknown()
        # the kernel side compares 250 bytes; of a longer text it knows what no further byte can change
        ends = ["", text[250:], "\1"] if len(text) > 250 else [text[250:]]
        outcomes = {text[:250] + end == want if name == "same" else fnmatch.fnmatchcase(text[:250] + end, want) for end in ends}
        return self.unknown() if len(outcomes) > 1 else outcomes.pop()


def decide(call):
    try:
        return {bool(eval(code, {"abs": abs}, Names(call, bits))) for bits in range(1 << 8)}
    except NoResult:
        return set()


met = unknown = undecided = rejected = 0
want, got = {}, {}
with open(did, encoding="utf-8") as f:
    for call in json.load(f)["calls"]:
        if call["function"] not in functions:
            continue
        outcomes = decide(call)
        if outcomes == {False}:
            rejected += 1
        elif not outcomes:
            undecided += 1
        else:
            met += outcomes == {True}
            unknown += len(outcomes) == 2
            want.setdefault(call["tid"], []).append(call)
with open(dump, encoding="utf-8") as f:
    for line in f:
        record = json.loads(line)
        if record["kind"] == "entry" and record["function"] in functions:
            got.setdefault(record["tid"], []).append(record)
for tid in want | got:
    a, b = got.get(tid, []), want.get(tid, [])
    if [x["function"] for x in a] != [x["function"] for x in b]:
        print(f"thread {tid}: {len(a)} calls in the trace, {len(b)} met the condition, or in another order")
    for i, (x, y) in enumerate(zip(a, b)):
        for name, value in x.get("values", {}).items():
            made = {"arg1": y.get("text", y["args"][0]), "arg2": y["args"][1], "arg3": y["args"][2]}[name]
            if isinstance(value, str) and isinstance(made, str) and value.endswith("…"):
                made = made[:64] + "…"
            if str(value) != str(made):
                print(f"thread {tid}: call {i}: {name} is {value!r} in the trace, {made!r} was passed")
counts = {"met": met, "rejected": rejected, "unknown": unknown, "undecided": undecided}
with open(rec, encoding="utf-8") as f:
    told = json.load(f)["conditions"]
if told != counts:
    print("the summary has", told, "and it was", counts)
print(f"compared {met + rejected + unknown + undecided}, met {met}, unknown {unknown}, undecided {undecided}")
