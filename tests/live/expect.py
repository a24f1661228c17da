# SPDX-License-Identifier: BSD-2-Clause
"""
Compares a recording with its target's own counts.

    python3 expect.py FOLDER LABEL CHECK...

FOLDER has the files of tracing.sh. A CHECK is a function below whose name starts with check_,
with "=VALUE" if it takes one. Each prints one result line, like lib.sh. Before the checks:
"extra=NAME:COUNT,..." adds calls that the target does not count, "only=NAME,..." lists the
traced functions if not all that it counts were traced, "cxx=ARGUMENTS" if they are C++ functions.
"""
import csv
import functools
import io
import json
import os
import re
import subprocess
import sys

import fdr

FOLDER, LABEL = sys.argv[1:3]
TRACE = FOLDER + "/trace.xray"
MAP = os.environ.get("MAP", TRACE + ".map")
KXRAY = os.environ["KXRAY"]
LLVM_XRAYS = [p for p in ("/usr/lib/llvm-14/bin/llvm-xray", "/usr/lib/llvm-19/bin/llvm-xray")
              if os.path.exists(p)]
_kept = {}


class Wrong(Exception):
    """An expectation that does not hold."""


def once(function):
    def kept():
        if function not in _kept:
            _kept[function] = function()
        return _kept[function]
    kept.wrapped = function
    return kept


def same(what, got, want):
    if got == want:
        return
    if isinstance(got, dict) and isinstance(want, dict):
        keys = [k for k in {**got, **want} if got.get(k) != want.get(k)]
        got, want = ({k: d.get(k) for k in keys} for d in (got, want))
    raise Wrong(f"{what}: got {got}, want {want}")


def call(*command, keep=True):
    """The command's output; it must end with status 0."""
    done = subprocess.run(command, stdout=subprocess.PIPE if keep else subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise Wrong(f"{' '.join(command)} ends with {done.returncode}: {done.stderr[-300:]}")
    return done.stdout


def load(name):
    with open(f"{FOLDER}/{name}", encoding="utf-8") as f:
        return json.loads(f.read())


@once
def did():
    return load("did.json")


@once
def rec():
    return load("rec.json")


@once
def report():
    return json.loads(call(KXRAY, "report", "--json", "-m", MAP, TRACE))


@once
def trace():
    return fdr.Trace(TRACE)


@once
def names():
    return fdr.map_names(MAP)


def by_name(counts):
    return {names()[func]: n for func, n in counts.items()}


def cxx(arguments):
    """The functions are C++: their names in the trace have (ARGUMENTS)."""
    _kept[calls.wrapped] = {f"{name}({arguments})": n for name, n in calls().items()}
    shown = call("c++filt", *names().values()).splitlines()
    _kept[names.wrapped] = dict(zip(names(), shown))


@once
def calls():
    """The target's own counts of the traced functions."""
    return {name: n for name, n in did()["calls"].items() if n}


def account(tool):
    rows = csv.DictReader(io.StringIO(call(tool, "account", "-m", MAP, "-format=csv", TRACE)))
    return {r["function"]: int(r["count"]) for r in rows}


@functools.cache
def yaml_records(tool):
    """[(thread, kind, function, cpu, arguments)] of the records of llvm-xray convert."""
    text = call(tool, "convert", "-f", "yaml", "-symbolize", "-m", MAP, TRACE)
    line = re.compile(r"  - \{ type: \d+, func-id: \d+, function: (.*?), (?:args: \[ (.*?) \], )?"
                      r"cpu: (\d+), thread: (\d+), (?:process: \d+, )?kind: ([a-z-]+), tsc: (\d+), ")
    return [(int(tid), kind, function.strip("'"), int(cpu),
             [int(a) for a in args.split(",")] if args else None)
            for function, args, cpu, tid, kind, _ in map(re.Match.groups, line.finditer(text))]


def extra(value):
    """NAME:COUNT,...: calls that the target itself does not count."""
    for pair in value.split(","):
        name, count = pair.split(":")
        calls()[name] = int(count)


def only(value):
    """NAME,...: only these were traced."""
    for name in set(calls()) - set(value.split(",")):
        del calls()[name]


def check_report():
    same("counts of kxray report", {f["name"]: f["count"] for f in report()["functions"]}, calls())
    same("calls open", report()["open"], 0)
    same("lost", report()["lost"], 0)


def check_account():
    for tool in LLVM_XRAYS:
        same(tool + " account", account(tool), calls())


def check_tools():
    """Every subcommand of both llvm-xray versions accepts the file, without -k or -d."""
    for tool in LLVM_XRAYS:
        for kind in ("raw", "yaml", "trace_event"):
            call(tool, "convert", "-f", kind, "-symbolize", "-m", MAP, TRACE, keep=False)
        for stacks in (("-per-thread-stacks",),
                       ("-all-stacks", "-stack-format=flame", "-aggregation-type=time")):
            call(tool, "stack", "-m", MAP, *stacks, TRACE, keep=False)
    check_long_tools()
    call(KXRAY, "dump", "-m", MAP, TRACE, keep=False)


def check_long_tools():
    """The subcommands that are fast enough for a large file."""
    for tool in LLVM_XRAYS:
        for what in ("account", "stack", "graph"):
            call(tool, what, "-m", MAP, TRACE, keep=False)
        call(tool, "fdr-dump", "--verify", TRACE, keep=False)


def check_fdr():
    """The strict reader (fdr.py) accepts the trace, and its counts are right."""
    total = {}
    for t in trace().threads.values():
        for func, n in t.counts().items():
            total[func] = total.get(func, 0) + n
    same("counts in the trace", by_name(total), calls())


def check_threads():
    """Each thread's own counts, in the trace and in convert; their names and process."""
    want = {t["tid"]: {n: c for n, c in t["calls"].items() if c} for t in did()["threads"]}
    got = {tid: by_name(t.counts()) for tid, t in trace().threads.items() if t.counts()}
    for tid, counts in want.items():
        same(f"counts of thread {tid}", got.get(tid), counts)
    same("threads", len(got), len(want) + ("main" in calls()))
    for t in did()["threads"]:
        thread = trace().threads[t["tid"]]
        same("name of a thread", thread.name, t["name"])
        if trace().version >= 2:
            same("process of a thread", thread.pid, did()["pid"])
        same("process in the note", thread.notes("thread")[0]["pid"], did()["pid"])
    for tool in LLVM_XRAYS:
        enters, leaves = {}, {}
        for tid, kind, function, _, _ in yaml_records(tool):
            if kind.startswith("function-"):
                counts = enters if kind.startswith("function-enter") else leaves
                counts = counts.setdefault(tid, {})
                counts[function] = counts.get(function, 0) + 1
        for tid, counts in want.items():
            same(f"{tool} convert, entries of {tid}", enters.get(tid), counts)
            same(f"{tool} convert, exits of {tid}", leaves.get(tid), counts)


def check_summary():
    """The summary of record --json: nothing lost, nothing added, nothing left out."""
    total = sum(calls().values())
    for key, want in (("entries", total), ("exits", total), ("events", 2 * total), ("lost", 0),
                      ("repaired", 0), ("orphans", 0), ("functions", len(calls())),
                      ("bytes", os.path.getsize(TRACE))):
        same(f"{key} of record --json", rec()[key], want)
    if "threads" in did():
        same("threads of record --json", rec()["threads"],
             len(did()["threads"]) + ("main" in calls()))
    same("loss notes", trace().notes("loss"), [])
    same("function records", len(trace().functions()), 2 * total)


def check_sleep():
    """2 ms to 20 ms, or the target's own measurement if the machine is busy."""
    f = next(f for f in report()["functions"] if f["name"] == "sleep_2ms")
    most = max(20000000, did()["longest_sleep_ns"])
    if not 2000000 <= f["min_ns"] <= f["p50_ns"] <= f["p99_ns"] <= f["max_ns"] <= most:
        raise Wrong(f"2 ms take {f['min_ns']} to {f['max_ns']} ns")
    if not 2000000 * f["count"] <= f["self_ns"] == f["total_ns"] <= most * f["count"]:
        raise Wrong(f"{f['count']} times 2 ms take {f['total_ns']} ns")


def check_entries():
    """--exits=none: the entries alone are counted."""
    total = sum(calls().values())
    same("entries", rec()["entries"], total)
    same("exits", rec()["exits"], 0)
    same("lost", rec()["lost"], 0)
    same("events", rec()["events"], total)
    same("counts of kxray report", {f["name"]: f["count"] for f in report()["functions"]},
         calls())


def check_entered():
    """All entries are recorded, and every call has an exit: its own, or a repaired one."""
    same("entries", rec()["entries"], sum(calls().values()))
    same("exits and repaired", rec()["exits"] + rec()["repaired"], rec()["entries"])
    same("lost", rec()["lost"], 0)


def check_tails():
    """The exits of tail_first are tail exits, and no others are."""
    tails = {}
    for r in trace().functions():
        if r.kind == "tail":
            tails[r.func] = tails.get(r.func, 0) + 1
    same("tail exits", by_name(tails), {"tail_first": calls()["tail_first"]})


def check_cpus():
    """Each call of on_cpu is recorded on the CPU that its thread had moved itself to."""
    tids = {}
    for t in did()["threads"]:
        got = [r.cpu for r in trace().threads[t["tid"]].records
               if r.kind == "entry" and names()[r.func] == "on_cpu"]
        same(f"CPUs of thread {t['tid']}", got, t["cpus"])
        tids[t["tid"]] = t["cpus"]
    for tool in LLVM_XRAYS:
        got = {tid: [] for tid in tids}
        for tid, kind, function, cpu, _ in yaml_records(tool):
            if function == "on_cpu" and kind == "function-enter":
                got[tid].append(cpu)
        same(tool + " convert, CPUs", got, tids)


def argument_calls(index, thread):
    """The arguments of each call of six_args and on_cpu by worker INDEX of counts, in order."""
    rounds = thread["calls"]["six_args"] // (10 + index)
    six = [[n, n + 1, n + 2, n + 3, n + 4, 0x123456789abcdef0 + index]
           for _ in range(rounds) for n in range(10 + index)]
    return {"six_args": six, "on_cpu": [[cpu] for cpu in thread["cpus"]]}


def check_args(count):
    """The first COUNT arguments are right in the trace, in convert and in dump."""
    count = int(count)
    got = {"trace": {}, "dump": {}}
    for tid, t in trace().threads.items():
        for r in t.records:
            if r.kind == "entry":
                got["trace"].setdefault((tid, names()[r.func]), []).append(r.args)
    for line in call(KXRAY, "dump", "--json", "-m", MAP, TRACE).splitlines():
        r = json.loads(line)
        if r["kind"] == "entry":
            args = [int(a, 16) for a in r["args"]] if "args" in r else None
            got["dump"].setdefault((r["tid"], r["function"]), []).append(args)
    for tool in LLVM_XRAYS:
        got[tool] = {}
        for tid, kind, function, _, args in yaml_records(tool):
            if kind.startswith("function-enter"):
                same("kind of an entry with arguments", kind.endswith("-arg"), count > 0)
                got[tool].setdefault((tid, function), []).append(args)
    for index, t in enumerate(did()["threads"]):
        for function, want in argument_calls(index, t).items():
            want = [args[:count] for args in want]
            for reader, records in got.items():
                records = records[t["tid"], function]
                if not count:
                    same(f"{reader}: arguments", set(map(str, records)), {"None"})
                    continue
                same(f"{reader}: how many of {function}", {len(r) for r in records}, {count})
                # An int is in the low half of its register.
                low = (1 << (32 if function == "on_cpu" else 64)) - 1
                records = [[a & low for a in args[:len(want[0])]] for args in records]
                same(f"{reader}: arguments of {function}", records, want)


def check_loss():
    """Every hit is an event or counted as lost; the trace has a note for each loss."""
    total = sum(calls().values())
    if not rec()["lost"]:
        raise Wrong("nothing was lost, so this proves nothing")
    no_exits = rec()["exits"] == 0
    same("hits", rec()["events"] + rec()["lost"] + rec()["orphans"],
         total if no_exits else 2 * total)
    same("events", rec()["entries"] + rec()["exits"], rec()["events"])
    same("function records", len(trace().functions()), rec()["events"] + rec()["repaired"])
    same("repaired", trace().repaired(), rec()["repaired"])
    notes = trace().notes("loss")
    same("losses in the notes", sum(n["entries"] + n["exits"] for n in notes), rec()["lost"])
    same("lost of report", report()["lost"], rec()["lost"])
    same("events of report", report()["events"], rec()["events"])
    for t in trace().threads.values():
        for r in t.records:
            if r.kind == "custom" and r.data.startswith(b"kxray:loss "):
                note = json.loads(r.data[11:])
                if not 0 < note["from"] <= note["to"] <= r.tsc:
                    raise Wrong(f"a gap from {note['from']} to {note['to']} stands at {r.tsc}")
        # A thread's recorded and lost hits add up to the hits that it made.
        done = next((d for d in did()["threads"] if d["tid"] == t.tid), None)
        if done and not no_exits:
            lost = sum(n["entries"] + n["exits"] for n in t.notes("loss"))
            records = sum(r.kind in ("entry", "exit", "tail") for r in t.records) - t.repaired
            hits = 2 * sum(n for f, n in done["calls"].items() if f in calls())
            if hits != records + lost:
                raise Wrong(f"thread {t.tid} had {hits} hits: {records} records, {lost} lost; "
                            f"{rec()['orphans']} orphans in all")
    # The remaining records balance, and both versions of llvm-xray count the same.
    counts = {f["name"]: f["count"] for f in report()["functions"]}
    for tool in LLVM_XRAYS:
        same(tool + " account", account(tool), counts)


def check_ids(value):
    """NAME:ID,...: the functions have these ids."""
    want = {name: int(number) for name, number in (pair.split(":") for pair in value.split(","))}
    same("ids in the trace", {names()[f]: f for t in trace().threads.values() for f in t.counts()},
         want)


def check_buffers(least):
    """Every thread has at least that many buffers."""
    few = min(t.buffers for t in trace().threads.values() if t.counts())
    if few < int(least):
        raise Wrong(f"a thread has {few} buffers, {least} are wanted")


def check_whole(deepest=None):
    """
    Nothing is lost, every call has an exit, and kxray's readers agree with the summary. DEEPEST: the target went on after the
    recording, whose end may have come in the middle of that many calls.
    """
    cut = fdr.Trace(TRACE, allow_open=True) if deepest else trace()
    still_open = sum(f["open"] for f in report()["functions"])
    if still_open > int(deepest or 0):
        raise Wrong(f"{still_open} calls are open")
    same("lost and orphans", (rec()["lost"], report()["lost"]), (0, 0))
    same("exits, repaired and open", rec()["exits"] + rec()["repaired"] + still_open, rec()["entries"])
    same("events of report", report()["events"], rec()["events"])
    same("function records", len(cut.functions()), 2 * rec()["entries"] - still_open)
    same("repaired", cut.repaired(), rec()["repaired"])
    if not rec()["entries"]:
        raise Wrong("there are no events")


def check_remains(least):
    """The trace of a killed kxray has at least that many entries, and all readers agree."""
    cut = fdr.Trace(TRACE, allow_truncated=True, allow_open=True)
    entries = sum(sum(t.counts().values()) for t in cut.threads.values())
    if entries < int(least):
        raise Wrong(f"there are {entries} entries")
    same("calls of report", sum(f["count"] for f in report()["functions"]), entries)
    same("function records", report()["events"], len(cut.functions()))


def check_last(value):
    """NAME,...: the calls in which the target ended; all of its earlier calls are recorded, too."""
    last = value.split(",")
    entries = [names()[r.func] for r in trace().functions() if r.kind == "entry"]
    same("the last calls", entries[-len(last):], last)
    same("calls of obey and crash", [entries.count(n) for n in last], [1] * len(last))
    same("calls of step_one", entries.count("step_one"), entries.count("step_two"))
    if not 20 <= entries.count("step_two") <= calls()["step_two"]:
        raise Wrong(f"{entries.count('step_two')} of {calls()['step_two']} calls are in the trace")
    same("repaired", rec()["repaired"], len(last))


def check_balanced():
    """account of both versions accepts the trace, without -k or -d."""
    for tool in LLVM_XRAYS:
        account(tool)


def check_processes(value):
    same("processes", len({t.pid for t in trace().threads.values()}), int(value))


def check_version(value):
    same("version", trace().version, int(value))


def check_hops():
    """
    Every migration and every call of the target is in the trace once, in order, on its CPU, and at a
    time between the counter's values before and after it, within the clock's known error.
    """
    # The scheduler's event precedes the target's reading of the new CPU's clock.
    off = 2 * rec()["clock_error_ns"] * rec()["tsc_hz"] // 1000000000 + 1
    for thread in did()["threads"]:
        records = [r for r in trace().threads[thread["tid"]].records if r.kind in ("cpu", "entry")]
        # Until its first own migration, the scheduler may migrate it, too.
        while records[0].kind != "entry":
            records.pop(0)
        steps, cpu = thread["steps"][1:], thread["steps"][0][0]
        got = [r.cpu if r.kind == "cpu" else -1 for r in records]
        same(f"steps of thread {thread['tid']}", got, [s[0] for s in steps])
        for r, (moved_to, before, after) in zip(records, steps):
            cpu = moved_to if moved_to >= 0 else cpu
            same(f"CPU of the {r.kind} at {r.at}", r.cpu, cpu)
            if not before - off <= r.tsc <= after + off:
                raise Wrong(f"the {r.kind} at {r.at} has {r.tsc}, which is not from {before} to "
                            f"{after}")


def check_repaired(value=None):
    """record, the notes in the trace and report agree on the repaired exits (and on VALUE)."""
    same("repaired exits in the trace", trace().repaired(), rec()["repaired"])
    same("repaired of report", report()["repaired"], rec()["repaired"])
    same("calls without exit of report", sum(f["no_exit"] for f in report()["functions"]),
         rec()["repaired"])
    check_entered()
    same("left out", rec()["orphans"], 0)
    if value is not None:
        same("repaired", rec()["repaired"], int(value))


def main():
    for check in sys.argv[3:]:
        name, _, value = check.partition("=")
        if name in ("extra", "only", "cxx"):
            globals()[name](value)
            continue
        try:
            globals()["check_" + name](*([value] if value else []))
            print(f"ok {LABEL}: {name}")
        except (Wrong, fdr.Bad) as e:
            why = " ".join(str(e).split())
            print(f"not ok {LABEL}: {name}: {why[:600]}")
        except Exception as e:  # a damaged file may make the reader fail in any way
            print(f"not ok {LABEL}: {name}: {type(e).__name__}: {e}")


if __name__ == "__main__":
    main()
