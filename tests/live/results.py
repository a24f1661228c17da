# SPDX-License-Identifier: BSD-2-Clause
"""
Compares the results in the csv export of a trace with those that the target printed.

    python3 results.py CALLS.csv DID.json [--without FUNCTION]

--without: calls of FUNCTION have no result, because they leave by a tail jump. Prints the first difference of each
function, and "compared N" last.
"""
import csv
import json
import sys

calls, did = sys.argv[1:3]
without = sys.argv[4:] if sys.argv[3:4] == ["--without"] else []
got, want = {}, {}
with open(calls, newline="", encoding="utf-8") as f:
    for row in csv.DictReader(f):
        got.setdefault(row["function"], []).append(row["result"])
with open(did, encoding="utf-8") as f:
    for call in json.load(f)["calls"]:
        name = call["function"]
        if not name.startswith("result_"):
            continue
        want.setdefault(name, []).append("" if name in without else str(call["result"]))
for name in sorted(got | want):
    a, b = got.get(name, []), want.get(name, [])
    if len(a) != len(b):
        print(f"{name}: {len(a)} calls in the trace, {len(b)} made")
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            print(f"{name}: call {i}: {x} in the trace, {y} returned")
            break
print("compared", sum(len(v) for v in want.values()))
