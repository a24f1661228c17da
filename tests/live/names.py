# SPDX-License-Identifier: BSD-2-Clause
"""
Compares the identities in a trace with those logged by the processes of names.c.

    python3 names.py TRACE LOG SESSION REPORT [--started-before PID]

SESSION is the map's session data, REPORT the output of report --by-process --json. Prints the differences.
"""
import json
import sys

import fdr


def differ(what, got, want):
    if got != want:
        print(f"{what}: {got}, not {want}")


def main():
    path, log, session, report = sys.argv[1:5]
    older = int(sys.argv[6]) if len(sys.argv) > 6 else 0
    with open(log, encoding="utf-8") as f:
        did = {line["pid"]: line for line in map(json.loads, f)}
    with open(session, "rb") as f:
        known = {p["pid"]: p for p in json.loads(f.read().rstrip(b"\0"))["session"]["processes"]}
    with open(report, encoding="utf-8") as f:
        reported = {p["pid"]: p for p in json.load(f)["processes"]}
    threads = {(t.pid, t.tid): t for t in fdr.Trace(path).threads.values() if t.counts()}

    differ("processes of report", sorted(reported), sorted(did))
    differ("threads", sorted(threads),
           sorted((pid, t["tid"]) for pid, p in did.items() for t in p["threads"]))
    for pid, want in did.items():
        ns_pid = want["ns_pid"] if want["ns_pid"] != pid else None
        for t in want["threads"]:
            name = f"thread {t['tid']} of {pid}"
            got = threads.get((pid, t["tid"]))
            if not got:
                continue
            notes = got.notes("thread")
            differ(f"names of {name}", [n["name"] for n in notes], t["names"])
            differ(f"calls of {name}", sum(got.counts().values()), t["calls"])
            ns_tid = t["ns_tid"] if t["ns_tid"] != t["tid"] else None
            for n in notes:
                differ(f"ids of {name}", (n.get("ns_pid"), n.get("ns_tid")), (ns_pid, ns_tid))
            differ(f"process of {name}", notes[-1]["process"], want["name"])
        for what, p in ("session", known.get(pid, {})), ("report", reported.get(pid, {})):
            differ(f"{what}: name of {pid}", p.get("name"), want["name"])
            differ(f"{what}: ns_pid of {pid}", p.get("ns_pid"), ns_pid)
        calls = sum(t["calls"] for t in want["threads"])
        differ(f"report: calls of {pid}",
               sum(f["count"] for f in reported.get(pid, {}).get("functions", [])), calls)
        p = known.get(pid, {})
        if pid != older and not 0 <= p.get("started", -1) < p.get("ended", -1):
            print(f"session: process {pid} is from {p.get('started')} to {p.get('ended')}")
        if want["name"] != "names" and did.get(p.get("parent"), {}).get("name") != "names":
            print(f"session: the parent of {pid} is {p.get('parent')}")
    print(f"compared {len(did)} processes, {len(threads)} threads", file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except (fdr.Bad, OSError, KeyError, ValueError) as e:
        sys.exit(f"{type(e).__name__}: {e}")
