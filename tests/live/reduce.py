# SPDX-License-Identifier: BSD-2-Clause
"""
The checks of tests/live/reduce.sh on a recording of the target `slow`, in the folder that
tracing.sh leaves.

    python3 reduce.py FOLDER LABEL CHECK...

    durations=LEAST_MS      every call of at least LEAST_MS, with its times
    lasting=LEAST_MS        the same without comparing times
    counts=NAME:COUNT,...   these calls and no others; COUNT or LEAST-MOST
    calls                   entries + lost + reduced are the target's calls

and llvm-xray account has the calls of kxray's export.
"""
import csv
import functools
import io
import json
import os
import subprocess
import sys

FOLDER, LABEL = sys.argv[1:3]
TRACE = FOLDER + "/trace.xray"
KXRAY = os.environ["KXRAY"]


def say(name, wrong):
    print(f"not ok {LABEL}: {name}: {wrong}" if wrong else f"ok {LABEL}: {name}")


def load(name):
    with open(f"{FOLDER}/{name}", encoding="utf-8") as f:
        return json.loads(f.read())


def call(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


@functools.cache
def rows(*options):
    found = list(csv.DictReader(io.StringIO(
        call(KXRAY, "export", "-f", "csv", "-o", "-", *options, TRACE))))
    return sorted(found, key=lambda r: int(r["start_ns"]))


def counted(names):
    counts = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts


def durations(least_ms, timed=True):
    """On a real machine the target and the trace use the same clock; in an emulated one each has
    its own measured frequency, and the host may stop the machine between two readings."""
    done, seen, wrong = load("did.json")["spans"], rows(), []
    for tid, functions in done.items():
        for name, spans in functions.items():
            called = [r for r in seen if r["tid"] == tid and r["function"] == name]
            # How long a call lasts that never returns is not known.
            if name == "leaper":
                if len(called) > len(spans) or any(r["how"] != "repaired" for r in called):
                    wrong.append(f"{name} in {tid}: {called}")
                continue
            got = [int(r["duration_ns"]) for r in called]
            if len(got) != len(spans):
                wrong.append(f"{len(got)} calls of {name} in {tid}, not {len(spans)}")
            # the clock's frequency is measured: half a percent
            wrong += [f"a call of {name} took {ns}, measured inside {inside}, outside {outside}"
                      for ns, (inside, outside) in zip(got, spans)
                      if timed and not inside * 0.995 - 2000 <= ns <= outside * 1.005 + 2000]
    say("slow calls last as long as they did" if timed else "slow calls", "; ".join(wrong[:3]))
    enders = [int(r["duration_ns"]) for r in seen if r["function"] == "ender"]
    say("calls that a thread's end closes", "" if len(enders) == 2 and
        (not timed or min(enders) > 59e6) else enders)
    # The kernel decides by what it measures, with the probes' own time.
    short = [r for r in rows("--raw") if int(r["duration_ns"]) < int(least_ms) * 1e6 - 1000 and
             r["how"] != "open"]
    say("no short calls", short[:3] and str(short[:3]))
    inside = [r for r in seen if r["function"] in ("slow", "leaper") and r["depth"] != "2"]
    say("callers are there", inside[:3] and str(inside[:3]))


def counts(want):
    want = {name: [int(n) for n in count.split("-")]
            for name, count in (w.split(":") for w in want.split(","))}
    got = counted(r["function"] for r in rows())
    right = set(got) <= set(want) and all(n[0] <= got.get(name, 0) <= n[-1] for name, n in want.items())
    say("calls", "" if right else f"got {got}, want {want}")


def calls():
    done, summary = load("did.json")["calls"], load("rec.json")
    got = summary["entries"] + summary["lost"] + summary["reduced"]
    say("calls = entries + lost + reduced", "" if got == sum(done.values()) else
        f"got {summary['entries']} + {summary['lost']} + {summary['reduced']}, want {sum(done.values())}")


def tools():
    seen = counted(r["function"] for r in rows() if r["how"] != "open")
    for tool in ("/usr/lib/llvm-14/bin/llvm-xray", "/usr/lib/llvm-19/bin/llvm-xray"):
        if not os.path.exists(tool):
            continue
        text = call(tool, "account", "-format=csv", "-m", TRACE + ".map", TRACE)
        got = {r["function"]: int(r["count"]) for r in csv.DictReader(io.StringIO(text))}
        say(f"{tool.split('/')[3]} account", "" if got == seen else f"got {got}, want {seen}")


for check in sys.argv[3:]:
    what, _, value = check.partition("=")
    if what == "durations":
        durations(value)
    elif what == "lasting":
        durations(value, timed=False)
    elif what == "counts":
        counts(value)
    elif what == "calls":
        calls()
    else:
        sys.exit(f"reduce.py: there is no check {what}")
tools()
