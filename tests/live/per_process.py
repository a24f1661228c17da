# SPDX-License-Identifier: BSD-2-Clause
"""
Compares the calls of each process in a trace with the processes' own counts.

    python3 per_process.py TRACE LOG [OPTION...]

LOG has lines {"pid":P,"calls":{NAME:COUNT,...}}, as tree.h writes them. Prints the differences.
"--only NAME,..." compares only these functions; "--pid P,..." means that only these processes were traced.
"""
import argparse
import json
import sys

import fdr


def seen(path):
    """{pid: {name: entries}} of a trace; reading it also checks the trace."""
    trace, names = fdr.Trace(path), fdr.map_names(path + ".map")
    found = {}
    for t in trace.threads.values():
        calls = found.setdefault(t.pid, {})
        for func, n in t.counts().items():
            calls[names[func]] = calls.get(names[func], 0) + n
    return {pid: calls for pid, calls in found.items() if calls}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trace")
    parser.add_argument("log")
    parser.add_argument("--only")
    parser.add_argument("--pid")
    a = parser.parse_args()
    with open(a.log, encoding="utf-8") as f:
        did = {line["pid"]: line["calls"] for line in map(json.loads, f)}
    if a.only:
        did = {pid: {name: n for name, n in calls.items() if name in a.only.split(",")}
               for pid, calls in did.items()}
    if a.pid:
        did = {int(pid): did[int(pid)] for pid in a.pid.split(",")}
    did = {pid: calls for pid, calls in did.items() if calls}
    found = seen(a.trace)
    for pid in sorted({**did, **found}):
        want, got = did.get(pid, {}), found.get(pid, {})
        for name in sorted({**want, **got}):
            if want.get(name, 0) != got.get(name, 0):
                print(f"process {pid}: {want.get(name, 0)} calls of {name}, "
                      f"{got.get(name, 0)} seen")
    print(f"compared {len(did)} processes, {sum(sum(c.values()) for c in did.values())} calls",
          file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except (fdr.Bad, OSError, KeyError, ValueError) as e:
        sys.exit(f"{type(e).__name__}: {e}")
