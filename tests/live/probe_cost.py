# SPDX-License-Identifier: BSD-2-Clause
"""
The probes' own time: kxray's durations against this independent subtraction, and against what self_timed's
functions have measured themselves.

    probe_cost.py exact TRACE SESSION CSV       every row of the CSV export, to the tick's ns
    probe_cost.py accuracy TRACE SESSION DID    a line for each function: calls, ns of the error, what is left of it, and by how much
                                                that differs between the sixths of the calls

TRACE is read by fdr.py; SESSION is the map's .kxray.session.
"""
import csv
import json
import sys

sys.path.insert(0, "tests/live")
import fdr  # noqa: E402


class Kind:
    """The ticks of one kind of probes: offset, cost, cost of a call that leaves by a tail jump, and additions."""

    def __init__(self, kind, pauses):
        self.offset, self.cost, self.tail_cost = (kind[k + "_ticks"] for k in ("offset", "cost", "tail_cost"))
        self.pauses = pauses
        self.steps_offset = kind["entry"] == "stepped"
        self.steps_cost = self.steps_offset or kind["exit"] == "instruction"
        self.at_entry, self.at_reentry, self.at_exit = (kind.get(k + "_pauses") for k in ("entry", "reentry", "exit"))

    def taken(self, tail, since_probe, since_entry, before_exit, scale):
        """Offset and cost of a call; ticks without a probe and without an entry before its entry, without a probe
        before its exit; what they take at that time, in thousandths: cheap ones, stepped ones."""
        taken = [self.offset, self.tail_cost if tail else self.cost]
        for i, which in enumerate(("offset_ticks", "cost_ticks") if self.pauses else ()):
            reentry = [self.on_line(self.at_reentry[which], p) for p in (since_entry, since_probe)]
            taken[i] += self.on_line(self.at_entry[which], since_probe) + max(0, reentry[0] - reentry[1])
            taken[i] += self.on_line(self.at_exit[which], before_exit)
        return [t * scale[steps] // 1000 for t, steps in zip(taken, (self.steps_offset, self.steps_cost))]

    def on_line(self, ticks, pause):
        if pause <= self.pauses[0]:
            return 0
        for (t0, p0), (t1, p1) in zip(zip(ticks, self.pauses), zip(ticks[1:], self.pauses[1:])):
            if pause < p1:
                more = abs(t1 - t0) * (pause - p0) // (p1 - p0)
                return t0 + more if t1 > t0 else t0 - more
        return ticks[-1]


def kinds_of(session):
    """By function id."""
    costs = session["probe_costs"]
    kinds = [Kind(k, costs.get("pauses_ticks")) for k in costs["kinds"]]
    return {i + 1: kinds[ord(c) - ord("a")] for i, c in enumerate(costs["functions"]) if c != "-"}


class Moves:
    """Which calls' exits came from return instructions although their functions have return probes."""

    def __init__(self, session):
        costs = session["probe_costs"]
        kinds = [Kind(k, costs.get("pauses_ticks")) for k in costs["kinds"]]
        moved = costs.get("moved_exits", {"functions": "", "moves": []})
        self.moves = moved["moves"]
        self.kinds = {i + 1: (kinds[ord(c.lower()) - ord("a")], 2 if c.isupper() else 1)
                      for i, c in enumerate(moved["functions"]) if c != "-"}

    def kind(self, pid, func, entered):
        """Its kind then, or None."""
        if func not in self.kinds:
            return None
        kind, leaf_or_caller = self.kinds[func]
        for of in (0, pid):
            which = [m[4] for m in self.moves if m[0] <= entered and m[1] == of and m[2] <= func <= m[3]]
            if which and which[-1] & leaf_or_caller:
                return kind
        return None


def scales_of(session):
    """From which time on probes take how much, latest first."""
    return session["probe_costs"].get("scales", [])[::-1] + [[0, 1000, 1000]]


def calls_of(trace, kinds, scales, moves):
    """
    (tid, enter, function, ticks recorded, ticks less the probes', of which self, ticks less the probes' even if that is
    less than nothing) in order of exits.
    """
    for tid, thread in trace.threads.items():
        open_calls = []  # [function, enter, cost of nested calls' probes, time of callees, pauses before it]
        hit = entered = 0  # the newest record's time, the newest entry's
        for r in thread.records:
            if r.kind == "entry":
                open_calls.append([r.func, r.tsc, 0, 0, (r.tsc - hit, r.tsc - entered)])
                hit = entered = r.tsc
            elif r.kind in ("exit", "tail"):
                func, enter, nested, callees, paused = open_calls.pop()
                offset, cost = 0, 0
                kind = moves.kind(thread.pid, func, enter + nested) or kinds.get(func)
                if kind:
                    offset, cost = kind.taken(r.kind == "tail", *paused, r.tsc - hit,
                                              next(s[1:] for s in scales if s[0] <= r.tsc))
                hit = r.tsc
                less = r.tsc - enter - nested - offset
                took = max(callees, less)
                yield tid, enter, func, r.tsc - enter, took, took - callees, less
                if open_calls:
                    open_calls[-1][2] += nested + cost
                    open_calls[-1][3] += took


def ns(ticks, hz):
    return (2 * ticks * 10**9 + hz) // (2 * hz)


def exact(trace, session, rows):
    kinds, scales, hz = kinds_of(session), scales_of(session), trace.hz
    want = sorted((tid, ns(took, hz), ns(own, hz))
                  for tid, _, _, _, took, own, _ in calls_of(trace, kinds, scales, Moves(session)))
    got = sorted((int(r["tid"]), int(r["duration_ns"]), int(r["self_ns"])) for r in rows)
    if not want:
        return "no calls"
    return "" if got == want else next(f"{g}, want {w}" for g, w in zip(got + [None], want + [None]) if g != w)


def median(values):
    return sorted(values)[len(values) // 2]


def accuracy(trace, session, did, names):
    kinds, scales, hz = kinds_of(session), scales_of(session), trace.hz
    took = {}
    for _, enter, func, recorded, _, _, less in sorted(calls_of(trace, kinds, scales, Moves(session)), key=lambda c: c[1]):
        took.setdefault(names[func], []).append((recorded, less))
    for name, inside in did.items():
        if len(took[name]) != len(inside):
            sys.exit(f"{len(took[name])} calls of {name} are recorded, not {len(inside)}")
        n = len(inside)
        raw, left = ([(t[which] - i) * 1e9 / hz for t, i in zip(took[name], inside)] for which in (0, 1))
        sixths = [median(left[i * n // 6:(i + 1) * n // 6]) for i in range(6)]
        print(f"{name} {n} {median(raw):.0f} {median(left):.0f} {max(sixths) - min(sixths):.0f}")


def main():
    what, path, session, more = sys.argv[1:5]
    trace = fdr.Trace(path)
    with open(session) as f:
        session = json.load(f)["session"]
    with open(more) as f:
        if what == "exact":
            print(exact(trace, session, list(csv.DictReader(f))))
        else:
            accuracy(trace, session, json.load(f), fdr.map_names(path + ".map"))


main()
