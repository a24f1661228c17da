# SPDX-License-Identifier: BSD-2-Clause
"""
Compares `kxray report --by-value NAME --json` with the calls of a csv export of the same trace: of each function and value
the count and the sum, least and greatest of the durations.

    python3 by_value.py CALLS.csv NAME REPORT.json

Prints the differences, and "N values, N calls" last. `by_value.py labels REPORT.json` prints what `tests/readers/pprof.py
--labels` should for pprof's --pprof-label NAME.
"""
import collections
import csv
import json
import re
import sys

MOST64 = 1 << 63 # a label of pprof is signed

if sys.argv[1] == "labels":
    with open(sys.argv[2], encoding="utf-8") as f:
        document = json.load(f)
    lines = []
    for function in document["by_value"]:
        for v in function["values"]:
            value = v["value"] if v["value"] != "" else '""'
            if isinstance(value, str) and re.fullmatch(r"-?[0-9]{16,}", value):
                value = (int(value) + MOST64) % (2 * MOST64) - MOST64
            if v["state"] in ("whole", "cut"):
                lines.append(f"{v['count']} {function['name']} {document['label']} {json.dumps(value)}")
    print(*sorted(lines), sep="\n")
    sys.exit()
path, name, report = sys.argv[1:]
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
