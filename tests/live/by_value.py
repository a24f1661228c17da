# SPDX-License-Identifier: BSD-2-Clause
"""
Compares `kxray report --by-value NAME --json` with the calls of a csv export of the same trace: of each function and value
the count and the sum, least and greatest of the durations.

    python3 by_value.py CALLS.csv NAME REPORT.json

Prints the differences, and "N values, N calls" last.
"""
import collections
import csv
import json
import sys

path, name, report = sys.argv[1:]
MOST = 1 << 53

rows = collections.defaultdict(list)
with open(path, newline="", encoding="utf-8") as f:
    for row in csv.DictReader(f):
        values = json.loads(row["values"] or "{}")
        if name in values:
            rows[row["function"], json.dumps(values[name])].append(float(row["duration_ns"]))
seen = set()
with open(report, encoding="utf-8") as f:
    document = json.load(f)
calls = 0
for function in document["by_value"]:
    assert function["distinct"] == len(function["values"])
    assert function["count"] == sum(v["count"] for v in function["values"])
    for v in function["values"]:
        key = function["name"], json.dumps(v["value"])
        times = rows[key]
        calls += v["count"]
        if key in seen:
            print("twice:", key)
        seen.add(key)
        got = [v["count"], v["min_ns"], v["max_ns"]]
        want = [len(times), min(times), max(times)] if times else [0, 0, 0]
        # csv has each time as a number of its own, the report the sum of ticks: half a nanosecond for each
        if any(abs(a - b) > 1 for a, b in zip(got, want)) or abs(v["total_ns"] - sum(times)) > len(times) + 1:
            print(key, got, want, v["total_ns"], sum(times))
for key in rows:
    if key not in seen:
        print("missing:", key)
print(f"{len(seen)} values, {calls} calls")
