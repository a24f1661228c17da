# SPDX-License-Identifier: BSD-2-Clause
"""
Compares the values in an export of a trace with those that the target printed, call by call of each function.

    python3 values.py csv|dump|chrome FILE DID.json FUNCTION...

The exports have numbers beyond 53 bits as text, and so are they compared. Prints the first difference of each function,
and "compared N" last, the number of values.
"""
import csv
import json
import re
import sys

how, path, did, *functions = sys.argv[1:]
MOST = 1 << 53


def from_csv(f):
    for row in csv.DictReader(f):
        yield row["function"], json.loads(row["values"] or "{}")


def from_dump(f):
    opened = {}
    for line in f:
        record = json.loads(line)
        if record["kind"] == "entry":
            opened.setdefault(record["tid"], []).append(record.get("values", {}))
        elif record["kind"] in ("exit", "tail-exit"):
            yield record["function"], opened[record["tid"]].pop() | record.get("values", {})


def from_chrome(f):
    opened = {}
    for event in json.load(f)["traceEvents"]:
        args = {k: None if v == "?" else v for k, v in event.get("args", {}).items()}
        if event["ph"] == "B":
            opened.setdefault(event["tid"], []).append((event["name"], args))
        elif event["ph"] == "E":
            name, first = opened[event["tid"]].pop()
            yield name, first | args
        elif event["ph"] == "i" and event["name"].startswith("usdt:"):
            yield event["name"], args


def same(x, y):
    return x == y or (isinstance(y, int) and not isinstance(y, bool) and abs(y) > MOST and x == str(y))


got, want, compared = {}, {}, 0
with open(path, newline="", encoding="utf-8") as f:
    for name, values in {"csv": from_csv, "dump": from_dump, "chrome": from_chrome}[how](f):
        # without the parameters of C++, and of gcc's copies
        got.setdefault(re.sub(r"(\[abi:cxx11\])?\((?!\*).*|\.(isra|constprop|part)\.\d+.*", "", name), []).append(values)
with open(did, encoding="utf-8") as f:
    for call in json.load(f)["calls"]:
        result = {call.get("of", "ret"): call["result"]} if "result" in call else {}
        want.setdefault(call["function"], []).append(call["args"] | result)
for name in functions:
    a, b = got.get(name, []), want[name]
    if len(a) != len(b):
        print(f"{name}: {len(a)} calls in the trace, {len(b)} made")
    for i, (x, y) in enumerate(zip(a, b)):
        wrong = [k for k in x | y if k not in x or k not in y or not same(x[k], y[k])]
        compared += len(y)
        if wrong:
            print(f"{name}: call {i}: {wrong[0]} is {x.get(wrong[0])!r} in the trace, {y.get(wrong[0])!r} was passed")
            break
print("compared", compared)
