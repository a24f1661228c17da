#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
What a recording of the target `waits` with --sched must say, read by a reader of its own (fdr.py).

    sched.py CHECK TRACE DID.json REPORT.json      prints what is wrong, nothing if all is right

    switches   as many as /proc/PID/task/TID/status counted between two marks of each thread
    times      on-CPU and off-CPU of the report are what the events say, and make up the whole
    naps       sleeping is off the CPU
    wakers     the reader was woken by the writer, each time
    spins      no CPU runs two threads at a time; spinning is on the CPU, as the kernel counts it
    waits      time in which threads could have run, as the kernel counts it (schedstat)
"""
import collections
import json
import sys

import fdr

PREFIX = b"kxray:sched "
Interval = collections.namedtuple("Interval", "start end wake state by open cpu")


class Thread:
    """intervals: times off the CPU; calls: (function id, depth, begin, end), in order of ending."""

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


class Story:
    def __init__(self, trace, done, report):
        self.trace = fdr.Trace(trace, allow_open=True)
        self.did = json.loads([line for line in open(done) if line.startswith("{")][-1])
        self.report = json.load(open(report))
        self.ids = {f["name"]: f["id"] for f in self.report["functions"]}
        self.functions = {f["name"]: f for f in self.report["functions"]}
        self.threads = {t.tid: Thread(t) for t in self.trace.threads.values()}

    def ns(self, ticks):
        return ticks * 1000000000 / self.trace.hz

    def workers(self):
        """Each thread that worked, and its windows (begin, end): at most and at least."""
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


def check_switches(story):
    for worker, thread, most, least in story.workers():
        for kind, states in (("voluntary", "SDTtPIF"), ("involuntary", "R")):
            low, high = (sum(w[0] <= i.start <= w[1] and i.state in states
                             for i in thread.intervals) for w in (least, most))
            if not low <= worker[kind] <= high:
                yield (f"{worker['name']}: {low} to {high} {kind} switches, "
                       f"the kernel counted {worker[kind]}")
        # The writer never sleeps: it may have a CPU to itself.
        if worker["name"] != "writer" and worker["voluntary"] + worker["involuntary"] == 0:
            yield f"{worker['name']} has not switched at all, so this proves nothing"


def expected_times(story):
    """Function id: [total, off, wait, self, self_off] in ticks, by the definition."""
    sums = collections.defaultdict(lambda: [0] * 5)
    for t in story.threads.values():
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


def check_times(story):
    want = expected_times(story)
    for f in story.report["functions"]:
        total, off, wait, own, own_off = (story.ns(v) for v in want[f["id"]])
        for key, value in (("total_ns", total), ("off_cpu_ns", off), ("wait_ns", wait),
                           ("self_ns", own), ("self_off_cpu_ns", own_off)):
            if abs(f[key] - value) > 1:
                yield f"{f['name']}: {key} is {f[key]}, the events say {value:.1f}"
        if f["on_cpu_ns"] + f["off_cpu_ns"] != f["total_ns"]:
            yield f"{f['name']}: on-CPU and off-CPU are not its total"
        if f["self_on_cpu_ns"] + f["self_off_cpu_ns"] != f["self_ns"]:
            yield f"{f['name']}: on-CPU and off-CPU are not its self time"
        if f["wait_ns"] > f["off_cpu_ns"]:
            yield f"{f['name']} waits longer than it is off the CPU"


def check_naps(story):
    """Off the CPU is all of a nap but falling asleep and waking up. A virtual machine may be
    stopped by its host at any place, so the median is compared and not each nap."""
    sleeper, naps, timers = story.threads[story.tid("sleeper")], [], 0
    for func, _, begin, end in sleeper.calls:
        if func != story.ids["nap"]:
            continue
        if story.ns(end - begin) < story.did["nap_ns"] - 1000:
            yield f"a nap of {story.did['nap_ns']} ns took {story.ns(end - begin):.0f} ns"
        inside = [i for i in sleeper.intervals if begin <= i.start and i.end <= end]
        slept = [i for i in inside if i.state == "S"]
        # no sleep where the timer expires before the thread is off its CPU
        if len(slept) > 1 or any(i.by for i in slept):
            yield f"a nap has the sleeps {slept}, not one that a timer ends"
        timers += sum(i.by == 0 for i in slept)
        naps.append(story.ns(sum(i.end - i.start for i in inside)))
    if len(naps) != story.did["rounds"]:
        yield f"{len(naps)} naps, not {story.did['rounds']}"
    # Whose wake-up no program could see (one was running on that CPU) has no waker.
    if timers < 0.5 * len(naps):
        yield f"{timers} of {len(naps)} naps were ended by a timer"
    if median(naps) < 0.9 * story.did["nap_ns"]:
        yield f"naps of {story.did['nap_ns']} ns were {naps} ns off the CPU"


def check_wakers(story):
    reader, writer = story.threads[story.tid("reader")], story.tid("writer")
    begun = [(b, e) for func, _, b, e in reader.calls if func == story.ids["take"]]
    woken = [i for i in reader.intervals if i.by == writer and i.state == "S" and
             any(b <= i.start and i.end <= e for b, e in begun)]
    if len(begun) != story.did["rounds"] or len(woken) != story.did["rounds"]:
        yield f"{len(begun)} calls of take, {len(woken)} sleeps in them that the writer ended"
    # It was woken while the writer was in give.
    gifts = [(b, e) for func, _, b, e in story.threads[writer].calls if func == story.ids["give"]]
    for i in woken:
        if not any(b <= i.wake <= e for b, e in gifts):
            yield f"the reader was woken at {i.wake}, when the writer gave nothing"


def running(thread):
    """(cpu, from, to) between two times off the CPU; before the first one nothing is known."""
    for before, after in zip(thread.intervals, thread.intervals[1:]):
        if after.start > before.end:
            yield before.cpu, before.end, after.start


def check_spins(story):
    cpus = collections.defaultdict(list)
    for t in story.threads.values():
        for cpu, begin, end in running(t):
            cpus[cpu].append((begin, end, t.tid))
    for cpu, slices in cpus.items():
        slices.sort()
        for one, other in zip(slices, slices[1:]):
            # where the record of a return is lost, the time is known to some microseconds only
            if story.ns(one[1] - other[0]) > 20000:
                yield f"CPU {cpu} runs {one} and {other} at a time"
    if story.did["cpu"] not in cpus:
        yield f"nothing ran on CPU {story.did['cpu']}"
    on, cpus_of = [], set()
    for worker, thread, _, _ in story.workers():
        if worker["name"] != "spinner":
            continue
        spins = [(begin, end) for func, _, begin, end in thread.calls if func == story.ids["spin"]]
        for begin, end in spins:
            off = sum(overlap(begin, end, i.start, i.end) for i in thread.intervals)
            # the kernel's own account begins and ends a little earlier at each switch
            switches = sum(begin <= i.start <= end for i in thread.intervals)
            on.append(story.ns(end - begin - off) + 20000 * switches)
            cpus_of |= {i.cpu for i in thread.intervals if begin <= i.start and i.end <= end}
        if not any(spins[0][0] <= i.start < spins[-1][1] for i in thread.intervals):
            yield "a spinner had the CPU for itself, so this proves nothing"
    if median(on) < 0.98 * story.did["spin_ns"]:
        yield f"spins of {story.did['spin_ns']} ns had {on} ns on the CPU"
    if cpus_of != {story.did["cpu"]}:
        yield f"spinners ran on the CPUs {cpus_of}, they are bound to {story.did['cpu']}"


def check_waits(story):
    if not any(w["wait_ns"] for w in story.did["threads"]):
        yield "the kernel has no schedstat"
    for worker, thread, most, least in story.workers():
        low, high = (story.ns(sum(overlap(*w, i.wake, i.end) for i in thread.intervals))
                     for w in (least, most))
        if not low * 0.9 - 5e6 <= worker["wait_ns"] <= high * 1.1 + 5e6:
            yield (f"{worker['name']} waited {low:.0f} to {high:.0f} ns for a CPU, "
                   f"the kernel says {worker['wait_ns']}")


def main():
    problems = list(globals()["check_" + sys.argv[1]](Story(*sys.argv[2:])))
    print("; ".join(problems))


main()
