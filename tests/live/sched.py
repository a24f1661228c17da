#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Checks a recording of the target `waits` with --sched, read by an independent reader (fdr.py).

    sched.py CHECK TRACE DID.json REPORT.json      prints the errors found

    switches   as many as /proc/PID/task/TID/status counts between two marks of each thread
    times      the report's on-CPU and off-CPU times match the events and add up to the total
    naps       sleeping is off-CPU time
    wakers     the writer wakes the reader, each time
    spins      no CPU runs two threads at a time; spinning is on-CPU time
    waits      time in which threads were runnable, as the kernel counts it (schedstat)
"""
import collections
import json
import sys

import fdr

PREFIX = b"kxray:sched "
Interval = collections.namedtuple("Interval", "start end wake state by open cpu")


class Thread:
    """intervals: off-CPU times; calls: (function id, depth, begin, end), in the order of their ends."""

    def __init__(self, thread):
        self.tid, self.intervals, self.calls, stack = thread.tid, [], [], []
        for r in thread.records:
            if r.kind == "entry":
                stack.append((r.func, len(stack), r.tsc))
            elif r.kind in ("exit", "tail"):
                self.calls.append((*stack.pop(), r.tsc))
            elif r.kind == "custom" and r.data.startswith(PREFIX):
                note = json.loads(r.data[len(PREFIX):])
                off, could_run = note["off"], note["state"] in "RN"
                self.intervals.append(Interval(
                    r.tsc - off, r.tsc, r.tsc - (off if could_run else note.get("wait", 0)),
                    note["state"], note.get("by"), note.get("open", False), r.cpu))

    def marks(self, mark):
        """(begin, end) of the calls of mark."""
        return sorted((begin, end) for func, _, begin, end in self.calls if func == mark)


class Recording:
    def __init__(self, trace, done, report):
        self.path, self.trace = trace, fdr.Trace(trace, allow_open=True)
        self.did = json.loads([line for line in open(done) if line.startswith("{")][-1])
        self.report = json.load(open(report))
        self.ids = {f["name"]: f["id"] for f in self.report["functions"]}
        self.functions = {f["name"]: f for f in self.report["functions"]}
        self.threads = {t.tid: Thread(t) for t in self.trace.threads.values()}

    def clock_error(self):
        """Ticks by which two times of the trace may be off against each other."""
        with open(self.path + ".map", "rb") as f:
            data = f.read()
        text = data[data.index(b'{"kxray":'):].decode(errors="replace")
        return 2 * json.JSONDecoder().raw_decode(text)[0]["session"]["clock"]["error_ticks"] + 1

    def ns(self, ticks):
        return ticks * 1000000000 / self.trace.hz

    def workers(self):
        """Each thread and two windows (begin, end): around both readings of /proc, and between them."""
        for worker in self.did["threads"]:
            thread = self.threads[worker["tid"]]
            marks = thread.marks(self.ids["mark"])
            if len(marks) != 4:
                raise ValueError(f"thread {thread.tid} has {len(marks)} marks")
            yield worker, thread, (marks[0][1], marks[3][0]), (marks[1][1], marks[2][0])

    def tid(self, name):
        return next(w["tid"] for w in self.did["threads"] if w["name"] == name)


def median(values):
    return sorted(values)[len(values) // 2]


def overlap(begin, end, start, stop):
    return max(0, min(end, stop) - max(begin, start))


def check_switches(recording):
    for worker, thread, most, least in recording.workers():
        for kind, states in (("voluntary", "SDTtPIF"), ("involuntary", "R")):
            low, high = (sum(w[0] <= i.start <= w[1] and i.state in states
                             for i in thread.intervals) for w in (least, most))
            if not low <= worker[kind] <= high:
                yield (f"{worker['name']}: {low} to {high} {kind} switches, "
                       f"the kernel counted {worker[kind]}")
        # The writer never sleeps, so it may not switch if it has a CPU to itself.
        if worker["name"] != "writer" and worker["voluntary"] + worker["involuntary"] == 0:
            yield f"{worker['name']} has not switched at all, so this proves nothing"


def expected_times(recording):
    """{function id: [total, off, wait, self, self_off]} in ticks, computed from the events."""
    sums = collections.defaultdict(lambda: [0] * 5)
    for t in recording.threads.values():
        offs = {}
        for call in t.calls:
            _, _, begin, end = call
            offs[call] = (sum(overlap(begin, end, i.start, i.end) for i in t.intervals),
                          sum(overlap(begin, end, i.wake, i.end) for i in t.intervals))
        for call in t.calls:
            func, depth, begin, end = call
            callees = [c for c in t.calls if c[1] == depth + 1 and begin <= c[2] and c[3] <= end]
            s = sums[func]
            s[0] += end - begin
            s[1] += offs[call][0]
            s[2] += offs[call][1]
            s[3] += end - begin - sum(c[3] - c[2] for c in callees)
            s[4] += offs[call][0] - sum(offs[c][0] for c in callees)
    return sums


def check_times(recording):
    want = expected_times(recording)
    for f in recording.report["functions"]:
        total, off, wait, own, own_off = (recording.ns(v) for v in want[f["id"]])
        for key, value in (("total_ns", total), ("off_cpu_ns", off), ("wait_ns", wait),
                           ("self_ns", own), ("self_off_cpu_ns", own_off)):
            if abs(f[key] - value) > 1:
                yield f"{f['name']}: {key} is {f[key]}, {value:.1f} by the events"
        if f["on_cpu_ns"] + f["off_cpu_ns"] != f["total_ns"]:
            yield f"{f['name']}: on-CPU and off-CPU do not add up to its total"
        if f["self_on_cpu_ns"] + f["self_off_cpu_ns"] != f["self_ns"]:
            yield f"{f['name']}: on-CPU and off-CPU do not add up to its self time"
        if f["wait_ns"] > f["off_cpu_ns"]:
            yield f"{f['name']} waits longer than it is off the CPU"


def check_naps(recording):
    """A nap is off-CPU time except for going to sleep and waking up. The host may stop a virtual
    machine at any moment, so the median is compared, not each nap."""
    sleeper, naps, timers = recording.threads[recording.tid("sleeper")], [], 0
    for func, _, begin, end in sleeper.calls:
        if func != recording.ids["nap"]:
            continue
        if recording.ns(end - begin) < recording.did["nap_ns"] - 1000:
            yield f"a nap of {recording.did['nap_ns']} ns took {recording.ns(end - begin):.0f} ns"
        inside = [i for i in sleeper.intervals if begin <= i.start and i.end <= end]
        slept = [i for i in inside if i.state == "S"]
        # If the timer expires before the thread is off its CPU, there is no sleep.
        if len(slept) > 1 or any(i.by for i in slept):
            yield f"a nap has the sleeps {slept}, not one that a timer ends"
        timers += sum(i.by == 0 for i in slept)
        naps.append(recording.ns(sum(i.end - i.start for i in inside)))
    if len(naps) != recording.did["rounds"]:
        yield f"{len(naps)} naps, not {recording.did['rounds']}"
    # A wake-up that no BPF program saw (another one was running on that CPU) has no waker.
    if timers < 0.5 * len(naps):
        yield f"{timers} of {len(naps)} naps were ended by a timer"
    if median(naps) < 0.9 * recording.did["nap_ns"]:
        yield f"naps of {recording.did['nap_ns']} ns were {naps} ns off the CPU"


def check_wakers(recording):
    reader, writer = recording.threads[recording.tid("reader")], recording.tid("writer")
    begun = [(b, e) for func, _, b, e in reader.calls if func == recording.ids["take"]]
    woken = [i for i in reader.intervals if i.by == writer and i.state == "S" and
             any(b <= i.start and i.end <= e for b, e in begun)]
    if len(begun) != recording.did["rounds"] or len(woken) != recording.did["rounds"]:
        yield f"{len(begun)} calls of take, {len(woken)} sleeps in them that the writer ended"
    # The wake-up must be inside a call of give.
    gifts = [(b, e) for func, _, b, e in recording.threads[writer].calls if func == recording.ids["give"]]
    off = recording.clock_error()
    for i in woken:
        if not any(b - off <= i.wake <= e + off for b, e in gifts):
            nearest = min((max(b - i.wake, i.wake - e) for b, e in gifts), default=None)
            yield f"the reader was woken {nearest} ticks from the nearest gift, the clock's error is {off}"


def running(thread):
    """(cpu, from, to) between two off-CPU times; the time before the first one is unknown."""
    for before, after in zip(thread.intervals, thread.intervals[1:]):
        if after.start > before.end:
            yield before.cpu, before.end, after.start


def check_spins(recording):
    cpus = collections.defaultdict(list)
    for t in recording.threads.values():
        for cpu, begin, end in running(t):
            cpus[cpu].append((begin, end, t.tid))
    for cpu, slices in cpus.items():
        slices.sort()
        for one, other in zip(slices, slices[1:]):
            # If the record of a switch-in is lost, the time is known only to some microseconds.
            if recording.ns(one[1] - other[0]) > 20000:
                yield f"CPU {cpu} runs {one} and {other} at a time"
    if recording.did["cpu"] not in cpus:
        yield f"nothing ran on CPU {recording.did['cpu']}"
    on, cpus_of = [], set()
    for worker, thread, _, _ in recording.workers():
        if worker["name"] != "spinner":
            continue
        spins = [(begin, end) for func, _, begin, end in thread.calls if func == recording.ids["spin"]]
        for begin, end in spins:
            off = sum(overlap(begin, end, i.start, i.end) for i in thread.intervals)
            # At each switch the kernel's own accounting starts and ends a little earlier.
            switches = sum(begin <= i.start <= end for i in thread.intervals)
            on.append(recording.ns(end - begin - off) + 20000 * switches)
            cpus_of |= {i.cpu for i in thread.intervals if begin <= i.start and i.end <= end}
        if not any(spins[0][0] <= i.start < spins[-1][1] for i in thread.intervals):
            yield "a spinner had the CPU for itself, so this proves nothing"
    if median(on) < 0.98 * recording.did["spin_ns"]:
        yield f"spins of {recording.did['spin_ns']} ns had {on} ns on the CPU"
    if cpus_of != {recording.did["cpu"]}:
        yield f"spinners ran on the CPUs {cpus_of}, they are bound to {recording.did['cpu']}"


def check_waits(recording):
    if not any(w["wait_ns"] for w in recording.did["threads"]):
        yield "the kernel has no schedstat"
    for worker, thread, most, least in recording.workers():
        low, high = (recording.ns(sum(overlap(*w, i.wake, i.end) for i in thread.intervals))
                     for w in (least, most))
        if not low * 0.9 - 5e6 <= worker["wait_ns"] <= high * 1.1 + 5e6:
            yield (f"{worker['name']} waited {low:.0f} to {high:.0f} ns for a CPU, "
                   f"the kernel counted {worker['wait_ns']}")


def main():
    problems = list(globals()["check_" + sys.argv[1]](Recording(*sys.argv[2:])))
    print("; ".join(problems))


main()
