# SPDX-License-Identifier: BSD-2-Clause
"""
Compares the files of a rotated trace with the target's own counts and the summary.

    python3 rotate.py FOLDER LABEL 

Prints one result line a check, like lib.sh. Calls of sleep_2ms are checked against the 2 ms that they
sleep, also where a call crosses files.
"""
import glob
import json
import os
import subprocess
import sys

import fdr

FOLDER, LABEL = sys.argv[1:3]
KXRAY = os.environ["KXRAY"]
TOOLS = [p for p in ("/usr/lib/llvm-14/bin/llvm-xray", "/usr/lib/llvm-19/bin/llvm-xray")
         if os.path.exists(p)]


def result(name, got, want):
    bad = f": got {got}, want {want}" if got != want else ""
    print(f"{'not ok' if bad else 'ok'} {LABEL}: {name}{bad[:500]}")


def load(name):
    with open(f"{FOLDER}/{name}", encoding="utf-8") as f:
        return json.load(f)


def session(path):
    with open(path + ".map", "rb") as f:
        data = f.read()
    return json.JSONDecoder().raw_decode(
        data[data.index(b'{"kxray":'):].decode(errors="replace"))[0]["session"]


def number(path):
    return int(path.split(".")[-2])


rec, did = load("rec.json"), load("did.json")
files = sorted(glob.glob(FOLDER + "/trace.*.xray"), key=number)
calls, events, bad, continued, marked, opened, shortest = {}, [0, 0, 0], [], 0, 0, 0, []
carried = 0
for path in files:
    info = session(path)
    if not info["events"] and not info["rotation"]["continued"]:
        if opened:
            bad.append(f"{path} is empty after {opened} open calls")
        continue # no call in this time, so no thread
    trace = fdr.Trace(path, allow_open=True)
    if info["rotation"]["file"] != number(path):
        bad.append(f"{path} is number {info['rotation']['file']}")
    # what is open at one file's end is what the next one begins with
    carried += opened != info["rotation"]["continued"]
    opened = sum(len(t.stack) for t in trace.threads.values())
    continued += info["rotation"]["continued"]
    hits = sum(r.kind in ("entry", "exit", "tail") for t in trace.threads.values()
               for r in t.records)
    notes = sum(n["calls"] for t in trace.threads.values() for n in t.notes("continued"))
    marked += notes
    report = json.loads(subprocess.run([KXRAY, "report", "--json", path], check=True,
                                       capture_output=True, text=True).stdout)
    for n, value in enumerate((hits - notes, info["events"], report["events"])):
        events[n] += value
    for f in report["functions"]:
        calls[f["name"]] = calls.get(f["name"], 0) + f["count"] - f["open"]
        if f["name"] == "sleep_2ms" and f["count"] > f["open"]:
            shortest.append(f["min_ns"])
    for tool in TOOLS:
        if subprocess.run([tool, "account", "-m", path + ".map", path], check=False,
                          capture_output=True).returncode:
            bad.append(f"{tool} refuses {path}")
result("every file by itself", bad, [])
result("files", [number(f) for f in files], list(range(1, rec["files"] + 1)))
result("there are several", len(files) > 5, True)
result("hits in the files, in their maps, in their reports", events, [rec["events"]] * 3)
result("calls that ended", calls, {k: n for k, n in did["calls"].items() if n and k in calls})
result("no function is missing", len(calls), rec["functions"])
result("open calls are continued", (carried, marked), (0, continued))
result("some calls crossed a boundary", continued > 0, True)
if shortest:
    result("calls that crossed one keep their duration", min(shortest) >= 2000000, True)
