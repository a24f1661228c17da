# SPDX-License-Identifier: BSD-2-Clause
"""Perfetto's ftrace events of the scheduler, flows and clocks: ftrace_event_bundle.proto, sched.proto.

The CPUs' switches must say the same as the threads' own tracks. Lines for the output, times from the start on:
    clocks BOOTTIME MONOTONIC REALTIME          one for each snapshot
    switch CPU TIME TID STATE                   TID runs from then on, "-": none that is traced; STATE: of the one before
    waking CPU TIME TID by WAKER                "interrupt" or a thread's id
    flow TIME TID to TID
"""
import bisect

from prototext import one
from timeline import check

MAX_CPUS, MAX_EVENTS = 1024, 512
NO_PRIORITY = 140
UNTRACED = 1 << 22
UNKNOWN = 3
HARD_INTERRUPT = 8
# The kernel's task_state_array since 4.14, and before.
STATES = ({'runnable': 0, 'new': 0, 'sleeping': 1, 'blocked': 2, 'frozen': 2, 'stopped': 4,
           'traced': 8, 'ended': 16, 'parked': 0x40, 'idle': 0x80},
          {'parked': 0x200, 'idle': 0x402})


class Ftrace:
    def __init__(self):
        self.states = {**STATES[0], **STATES[1]}
        self.cpus = {}       # cpu: [(time, state of the one before, tid)]
        self.wakings = []    # (cpu, time, tid, waker; 0: an interrupt; None: who runs there)
        self.flows = {}      # id: {is the end: (time, tid, the other thread)}
        self.snapshots = []

    def system(self, uts):
        check(one(uts, 'sysname') == 'Linux' and one(uts, 'release'), 'system')
        if int(one(uts, 'release').split('.')[0]) > 4:
            self.states = STATES[0]

    @staticmethod
    def columns(compact, *names):
        lists = [compact.get(name, []) for name in names]
        check(len({len(column) for column in lists}) == 1, f'{names} differ in length')
        return zip(*lists)

    def bundle(self, bundle):
        cpu = one(bundle, 'cpu')
        check(cpu < MAX_CPUS, f'CPU {cpu}')
        compact = one(bundle, 'compact_sched')
        names, used = compact.get('intern_table', []), set()
        time = count = 0
        switches = self.cpus.setdefault(cpu, [])
        for delta, state, tid, prio, comm in self.columns(
                compact, 'switch_timestamp', 'switch_prev_state', 'switch_next_pid',
                'switch_next_prio', 'switch_next_comm_index'):
            time += delta
            check(0 <= time < 1 << 63 and (not switches or time >= switches[-1][0]), f'CPU {cpu}: order')
            check(prio == NO_PRIORITY and 0 < tid <= UNTRACED + cpu, f'CPU {cpu}: thread {tid}')
            check(tid < UNTRACED or (tid == UNTRACED + cpu and names[comm] == 'not traced'), 'untraced')
            switches.append((time, state, tid))
            used.add(comm)
            count += 1
        check(switches and switches[0][2] == UNTRACED + cpu, f'CPU {cpu}: the first switch is not shown')
        time = 0
        for delta, tid, target, prio, comm, flags in self.columns(
                compact, 'waking_timestamp', 'waking_pid', 'waking_target_cpu', 'waking_prio',
                'waking_comm_index', 'waking_common_flags'):
            time += delta
            self.waking(cpu, time, tid, target, prio)
            check(flags in (0, HARD_INTERRUPT) and names[comm] is not None, 'flags')
            self.wakings.append((cpu, time, tid, 0 if flags else None))
            used.add(comm)
            count += 1
        for event in bundle.get('event', []):
            w = one(event, 'sched_waking')
            self.waking(cpu, one(event, 'timestamp'), one(w, 'pid'), one(w, 'target_cpu'), one(w, 'prio'))
            check(one(event, 'pid') > 0 and one(w, 'success') == 1, 'waker')
            self.wakings.append((cpu, one(event, 'timestamp'), one(w, 'pid'), one(event, 'pid')))
            count += 1
        check(used == set(range(len(names))), 'a name is not used')
        check(0 < count <= MAX_EVENTS, f'{count} events in a bundle')

    @staticmethod
    def waking(cpu, time, tid, target, prio):
        check(0 < time < 1 << 63 and 0 < tid < UNTRACED, f'CPU {cpu}: waking of {tid}')
        check(prio == NO_PRIORITY and 0 <= target <= 0xffff, f'CPU {cpu}: waking to CPU {target}')

    def flow(self, number, is_end, time, ids, name, values):
        check(name == ('is woken' if is_end else 'wakes'), f'flow {number}: {name}')
        ends = self.flows.setdefault(number, {})
        check(is_end not in ends, f'flow {number} has two ends')
        check(set(values) == {'waker' if is_end else 'woken'}, f'flow {number}: {values}')
        ends[is_end] = (time, ids[1], list(values.values())[0])

    def finish(self, start, sched):
        """@sched: the threads' own states (pid, tid, start, end, name, values). Returns lines."""
        of_thread = {}
        for _, tid, begin, end, name, values in sched:
            if tid > 0:
                of_thread.setdefault(tid, []).append((begin + start, end + start, name, values))
        for states in of_thread.values():
            states.sort(key=lambda state: state[:2])
        self.check_switches(of_thread)
        self.check_wakings(of_thread)
        lines = [('clocks', *s) for s in self.snapshots if len(s) > 1]
        for cpu, switches in sorted(self.cpus.items()):
            lines += [('switch', cpu, time - start, '-' if tid >= UNTRACED else tid, state)
                      for time, state, tid in switches]
        lines += [('waking', cpu, time - start, tid, 'by', waker or 'interrupt')
                  for cpu, time, tid, waker in sorted(self.wakings)]
        for number, ends in sorted(self.flows.items()):
            check(set(ends) == {False, True}, f'flow {number} has one end')
            (t1, waker, woken), (t2, other, by) = ends[False], ends[True]
            check((t1, waker, woken) == (t2, by, other) and waker != woken, f'flow {number}: {ends}')
            lines.append(('flow', t1 - start, waker, 'to', woken))
        return lines

    def check_switches(self, of_thread):
        """Each time that a thread ran is there once, and nothing else."""
        runs = {}
        for tid, states in of_thread.items():
            for i, (begin, end, name, values) in enumerate(states):
                if name == 'running' and values['cpu'] < MAX_CPUS:
                    after = [s for s in states[i + 1:i + 3] if s[0] == end and s[2] != 'running']
                    key = (values['cpu'], begin, tid)
                    runs.setdefault(key, []).append((end, after[0][2] if after else None))
        for cpu, switches in self.cpus.items():
            for (begin, _, tid), (end, state, after) in zip(switches, switches[1:] + [(None,) * 3]):
                if tid >= UNTRACED:
                    check(state in (None, UNKNOWN), f'CPU {cpu}: untraced, state {state}')
                    continue
                ends = runs.get((cpu, begin, tid))
                check(ends, f'CPU {cpu}: thread {tid} does not begin to run at {begin}')
                left, left_as = ends.pop(0)
                # a thread whose own record of the end is later has lost some
                check(left == end or (end is not None and left > end and after < UNTRACED),
                      f'CPU {cpu}: thread {tid} runs until {end}, by its own track {left}')
                # a state of no time at all is not on the thread's track
                if left_as in self.states and left == end:
                    check(state in (self.states[left_as], UNKNOWN) or left_as == 'runnable',
                          f'thread {tid} is left {left_as} in state {state}')
                check(state in (UNKNOWN, *self.states.values()), f'state {state}')
        check(not any(runs.values()), 'a CPU lacks a thread that ran')

    def check_wakings(self, of_thread):
        state_ends = {tid: [state[1] for state in states] for tid, states in of_thread.items()}
        switch_times = {cpu: [s[0] for s in switches] for cpu, switches in self.cpus.items()}
        for at, (cpu, time, tid, waker) in enumerate(self.wakings):
            # at the end of a state that says who ended it; 1 ns later if that had no time
            states = of_thread[tid]
            place = bisect.bisect_left(state_ends[tid], time - 1)
            near = [s for s in states[place:place + 6] if s[1] in (time, time - 1)]
            check(near, f'thread {tid} is not woken at {time}')
            if waker is None:
                waker = self.cpus[cpu][bisect.bisect_right(switch_times[cpu], time) - 1][2]
                check(waker < UNTRACED, f'CPU {cpu}: an unknown thread wakes {tid}')
                self.wakings[at] = (cpu, time, tid, waker)
            by = [s[3]['waker'] for s in near if 'waker' in s[3]]
            check(not by or waker in by, f'thread {tid} is woken by {by}, not {waker}')
