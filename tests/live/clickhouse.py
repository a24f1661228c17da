# SPDX-License-Identifier: BSD-2-Clause
"""
Asks a ClickHouse server the questions of exporters/clickhouse/questions.sql, and compares the answers with report and dump.

    clickhouse.py FOLDER

FOLDER has the traces one.xray and other.xray, which are the hosts "one" and "other"; $PORT is the server's, which reads both. Prints
one result line for each question.
"""
import calendar
import collections
import json
import os
import re
import subprocess
import sys
import time

FOLDER = sys.argv[1]
KXRAY = os.environ["KXRAY"]
HOSTS = ("one", "other")


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def report(host, *options):
    return json.loads(output(KXRAY, "report", "--json", *options, f"{FOLDER}/{host}.xray"))


def typed(text):
    return int(text) if re.fullmatch(r"-?\d+", text) else text


def ask(sql):
    client = ["clickhouse-client", "--host", "127.0.0.1", "--port", os.environ["PORT"], "-d", "kxray_all"]
    return [tuple(map(typed, line.split("\t"))) for line in output(*client, "-q", sql).splitlines()]


REPORTS = {h: report(h) for h in HOSTS}
FUNCTIONS = {(h, f["name"]): f for h in HOSTS for f in REPORTS[h]["functions"]}
EVENTS = {h: [json.loads(line) for line in output(KXRAY, "dump", "--json", f"{FOLDER}/{h}.xray").splitlines()] for h in HOSTS}


def notes(host, kind):
    """The notes of a kind, with the number of their thread."""
    head = f"kxray:{kind} "
    for e in EVENTS[host]:
        if e["kind"] == "custom" and e.get("data", "").startswith(head):
            yield e["tid"], json.loads(e["data"][len(head):])


def near(got, want, tolerance):
    """Both have the same keys, and values that differ by at most tolerance(key)."""
    wrong = {k: (got.get(k), want.get(k)) for k in got.keys() | want.keys()
             if k not in got or k not in want or abs(got[k] - want[k]) > tolerance(k)}
    return not wrong and bool(want), wrong


def same(got, want):
    return near(got, want, lambda k: 0)


def calls(rows):
    ok, wrong = same({r[:2]: r[2] for r in rows}, {k: f["count"] for k, f in FUNCTIONS.items()})
    # report: by nearest rank, within 1 %
    p99, wrong_p99 = near({r[:2]: r[3] for r in rows}, {k: f["p99_ns"] for k, f in FUNCTIONS.items()},
                          lambda k: 1 + FUNCTIONS[k]["p99_ns"] // 100)
    return ok and p99, [wrong, wrong_p99]


def self(rows):
    want = collections.Counter()
    for (_, name), f in FUNCTIONS.items():
        want[name] += f["self_ns"]
    # each call's time is rounded
    return near(dict(rows), want, lambda k: sum(f["count"] for (_, name), f in FUNCTIONS.items() if name == k))


def threads(rows):
    want = {(h, t["tid"], t["name"]): t["calls"] for h in HOSTS for t in report(h, "--by", "thread")["groups"]}
    return same({r[:3]: r[3] for r in rows}, want)


def slowest(rows):
    want = [(h, s["start_ns"], s["total_ns"]) for h in HOSTS for s in report(h, "--slowest", "3")["slowest"]]
    # report adds rounded parts up
    return near({r[:2]: r[2] for r in rows}, {w[:2]: w[2] for w in want}, lambda k: 5)


def slow(rows):
    want = {(h, f["name"]): f["count"] for h in HOSTS for f in report(h, "--min-duration", "1ms")["functions"]}
    return same({r[:2]: r[2] for r in rows}, want)


def clock(rows):
    want = collections.Counter()
    for h in HOSTS:
        started = next(session["started"] for _, session in notes(h, "session"))
        whole, fraction = started.rstrip("Z").split(".")
        begin = calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) * 10**9 + int(fraction)
        want.update((h, (begin + e["ns"]) // 10**6) for e in EVENTS[h] if e["kind"] == "entry")
    return same({r[:2]: r[2] for r in rows}, want)


def unused(rows):
    with open(f"{FOLDER}/one.rec.json") as f:
        chosen = json.load(f)["functions"]
    called = {name for _, name in FUNCTIONS}
    names = {str(r[0]) for r in rows}
    return len(names) + len({n for h, n in FUNCTIONS if h == "one"}) == chosen and not names & called, sorted(names)


def off(rows):
    want = {k: f["off_cpu_ns"] for k, f in FUNCTIONS.items() if f.get("off_cpu_ns")}
    got = {r[:2]: r[2] for r in rows}
    # report counts the time of recursive calls once
    for k in [k for k in want if k[1] == "recursive"]:
        del want[k]
        got.pop(k, None)
    return near(got, want, lambda k: FUNCTIONS[k]["count"])


def states(rows):
    times, ticks = collections.Counter(), collections.Counter()
    called = {e["tid"] for e in EVENTS["one"] if e["kind"] == "entry"}
    for tid, note in notes("one", "sched"):
        if tid in called:
            times["one", note["state"]] += 1
            ticks["one", note["state"]] += note["off"]
    ok, wrong = same({r[:2]: r[2] for r in rows}, times)
    hz = REPORTS["one"]["tsc_hz"]
    good, bad = near({r[:2]: r[3] for r in rows}, {k: n * 10**9 / hz for k, n in ticks.items()}, lambda k: times[k])
    return ok and good, [wrong, bad]


def lost(rows):
    pid = next(e["pid"] for e in EVENTS["other"] if e["kind"] == "entry")
    want = [("other", pid, "counts", REPORTS["other"]["lost"])]
    return rows == want and want[0][3] > 0, [rows, want]


ANSWERS = (calls, self, threads, slowest, slow, clock, unused, off, states, lost)


def main():
    with open("exporters/clickhouse/questions.sql") as f:
        questions = dict(re.findall(r"^-- (\w+): [^\n]*\n(?!--)(.*?);$", f.read(), re.M | re.S))
    if questions.keys() != {a.__name__ for a in ANSWERS}:
        print(f"not ok questions: {sorted(questions)}")
    for answer in ANSWERS:
        rows = ask(questions[answer.__name__])
        ok, why = answer(rows)
        print(f"ok question: {answer.__name__}" if ok else f"not ok question: {answer.__name__}: {str(why)[:500]}")


main()
