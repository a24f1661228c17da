# SPDX-License-Identifier: BSD-2-Clause
"""
Checks one dump of a flight recorder.

    python3 flight.py FOLDER LABEL DUMP CHECK...

A CHECK is a function below whose name starts with check_, with "=VALUE" if it takes one.
Each prints one result line, like lib.sh. FOLDER has the target's output in flight.out.
"""
import csv
import functools
import io
import json
import os
import subprocess
import sys

import fdr

FOLDER, LABEL, DUMP = sys.argv[1:4]
MAP = DUMP + ".map"
KXRAY = os.environ["KXRAY"]
LLVM_XRAYS = [p for p in ("/usr/lib/llvm-14/bin/llvm-xray", "/usr/lib/llvm-19/bin/llvm-xray")
              if os.path.exists(p)]


class Wrong(Exception):
    """An expectation that does not hold."""


def call(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode:
        raise Wrong(f"{' '.join(command)} ends with {done.returncode}: {done.stderr[-300:]}")
    return done.stdout


@functools.cache
def session():
    """The session data (JSON) in the map."""
    with open(MAP, "rb") as f:
        data = f.read()
    start = data.index(b'{"kxray":')
    return json.JSONDecoder().raw_decode(data[start:].decode(errors="replace"))[0]["session"]


@functools.cache
def trace():
    return fdr.Trace(DUMP, allow_open=True)


@functools.cache
def names():
    return fdr.map_names(MAP)


@functools.cache
def hits():
    """(tsc, kind, function, arguments) of all threads."""
    function = names()
    return [(r.tsc, r.kind, function[r.func], r.args) for t in trace().threads.values()
            for r in t.records if r.kind in ("entry", "exit", "tail")]


def check_reads():
    """Both versions of llvm-xray, the strict reader and kxray's own readers accept it."""
    for tool in LLVM_XRAYS:
        for what in ("account", "stack", "graph"):
            call(tool, what, "-m", MAP, DUMP)
        call(tool, "fdr-dump", "--verify", DUMP)
        call(tool, "convert", "-f", "trace_event", "-symbolize", "-m", MAP, DUMP)
    trace()
    call(KXRAY, "dump", "-m", MAP, DUMP)
    report = json.loads(call(KXRAY, "report", "--json", DUMP))
    if report["events"] != session()["events"] or not report["events"]:
        raise Wrong(f"report has {report['events']} events, the map says {session()['events']}")


def check_reason(kind):
    if session()["trigger"]["kind"] != kind:
        raise Wrong(f"the reason is {session()['trigger']}")


def check_says(text):
    if text not in session()["trigger"]["text"]:
        raise Wrong(f"the reason is {session()['trigger']['text']}")


def check_fresh():
    """The newest event is at most a second older than the trigger: a busy machine may delay the target."""
    newest = max(h[0] for h in hits())
    age = (session()["trigger"]["tsc"] - newest) / trace().hz
    if age > 1:
        raise Wrong(f"the newest event is {age} s older than the trigger")


def check_slow(value):
    """FUNCTION,MS: exactly one call of FUNCTION lasted longer, and it is the trigger's."""
    function, least = value.split(",")
    rows = csv.DictReader(io.StringIO(call(KXRAY, "export", "-f", "csv", "-o", "-", DUMP)))
    durations = [int(r["duration_ns"]) for r in rows
                 if r["function"] == function and int(r["duration_ns"]) > int(least) * 1000000]
    trigger = session()["trigger"]
    if len(durations) != 1:
        raise Wrong(f"{len(durations)} calls of {function} lasted more than {least} ms")
    if trigger["limit_ns"] != int(least) * 1000000 or trigger["function"] != function:
        raise Wrong(f"the trigger is {trigger}")
    # The trigger's clock is read at another moment than the record's, between which the thread may have waited.
    if not int(least) * 1000000 <= trigger["duration_ns"] < durations[0] + 1000000000:
        raise Wrong(f"the call lasted {durations[0]} ns, the trigger has {trigger}")


def check_entered(function):
    """The trigger's call is the only one of FUNCTION, and before the trigger."""
    entries = [h for h in hits() if h[2] == function and h[1] == "entry"]
    if len(entries) != 1 or entries[0][0] > session()["trigger"]["tsc"]:
        raise Wrong(f"{len(entries)} entries of {function}; trigger {session()['trigger']}")


def check_cut():
    """The store was overwritten: the dump starts later than the recording."""
    flight = session()["flight"]
    if not flight["cut"] or not flight["overwritten_records"]:
        raise Wrong(f"nothing is overwritten: {flight}")


def check_uncut():
    if session()["flight"]["cut"]:
        raise Wrong(f"it is cut: {session()['flight']}")


def check_seconds(value):
    """MIN,MAX: limits of the time, in seconds, that the dump covers; no event is outside it."""
    low, high = (float(v) for v in value.split(","))
    flight = session()["flight"]
    tscs = [h[0] for h in hits()]
    if not low <= flight["seconds"] <= high:
        raise Wrong(f"it covers {flight['seconds']} s")
    if min(tscs) < flight["from_tsc"] or max(tscs) >= flight["to_tsc"]:
        raise Wrong(f"events from {min(tscs)} to {max(tscs)} in {flight}")


def check_gapless():
    """maybe_slow()'s second argument is the call's number: none is missing in between."""
    numbers = [h[3][1] for h in hits() if h[2] == "maybe_slow" and h[1] == "entry"]
    if len(numbers) < 2 or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        raise Wrong(f"numbers {numbers[:3]} to {numbers[-3:]}, {len(numbers)} of them")


def check_all_calls():
    """Everything since the start: as many calls as the target counted."""
    with open(FOLDER + "/flight.out", encoding="utf-8") as f:
        did = json.loads([l for l in f if l.startswith("did ")][-1][4:])
    entries = [h[2] for h in hits() if h[1] == "entry"]
    for name in ("maybe_slow", "rare"):
        if entries.count(name) != did[name]:
            raise Wrong(f"{entries.count(name)} calls of {name}, the target made {did[name]}")


def check_ended(value):
    """THREADS: the dump has that many threads, and none of their calls is open at its end."""
    threads = fdr.Trace(DUMP).threads.values()
    if len(threads) != int(value):
        raise Wrong(f"{len(threads)} threads")


def check_crashing(function):
    """The crash is inside FUNCTION, the last function that its thread entered."""
    function_names, found = names(), False
    for t in trace().threads.values():
        entries = [function_names[r.func] for r in t.records if r.kind == "entry"]
        found |= bool(entries) and entries[-1] == function
    if not found:
        raise Wrong(f"no thread entered {function} last")


def check_names(value):
    """Each thread has this name and so has its process."""
    for t in trace().threads.values():
        note = t.notes("thread")[0]
        if (note["name"], note["process"]) != (value, value):
            raise Wrong(f"a thread has the note {note}")


def main():
    for check in sys.argv[4:]:
        name, _, value = check.partition("=")
        try:
            function = globals()["check_" + name]
            function(value) if value else function()
            print(f"ok {LABEL}: {name}")
        except (Wrong, fdr.Bad, OSError, KeyError, ValueError, IndexError, TypeError) as error:
            print(f"not ok {LABEL}: {name}: {type(error).__name__}: {error}".replace("\n", " "))


main()
