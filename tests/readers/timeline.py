# SPDX-License-Identifier: BSD-2-Clause
"""Shared by the readers of timelines, so that the same calls give the same text.

Every reader prints, for `READER.py FILE`, one line for each item in the file, names as JSON:
    thread PID TID NAME PROCESS
    call PID TID DEPTH START DURATION NAME [KEY=VALUE...]     thread by thread; ns
    mark PID TID TIME NAME [KEY=VALUE...]
    cpu PID TID TIME CPU
    sched PID TID START DURATION NAME [KEY=VALUE...]
perfetto.py also the lines of ftrace.py.
and for `READER.py --functions FILE` one line for each function: CALLS TOTAL NAME, where
TOTAL is ns of outermost calls only. A violation of the format is an error, status 1.
"""
import json
import sys


def check(condition, what):
    if not condition:
        raise ValueError(what)


def extras(values):
    return ''.join(f' {key}={json.dumps(value)}' for key, value in sorted(values.items()))


class Timeline:
    def __init__(self):
        self.threads = []  # (pid, tid, name, process)
        self.calls = []    # [pid, tid, depth, start, end, name, extras]
        self.marks = []    # (pid, tid, time, name, extras)
        self.cpus = []     # (pid, tid, time, cpu)
        self.sched = []    # (pid, tid, start, end, name, extras)
        self.more = []     # lines that only one format has
        self.stacks = {}

    def enter(self, pid, tid, time, name, values=None):
        stack = self.stacks.setdefault((pid, tid), [])
        check(not stack or time >= stack[-1][3], f'{name!r} begins before its caller')
        call = [pid, tid, len(stack), time, None, name, dict(values or {})]
        stack.append(call)
        self.calls.append(call)

    def leave(self, pid, tid, time, values=None):
        stack = self.stacks.get((pid, tid))
        check(stack, f'thread {tid}: an end without a begin')
        call = stack.pop()
        check(time >= call[3], f'{call[5]!r} ends before it begins')
        call[4] = time
        call[6].update(values or {})
        return call

    def finish(self):
        for (_, tid), stack in self.stacks.items():
            check(not stack, f'thread {tid}: {len(stack)} calls never end')

    def write(self):
        for pid, tid, name, process in self.threads:
            print('thread', pid, tid, json.dumps(name), json.dumps(process))
        place = {thread[:2]: i for i, thread in enumerate(self.threads)}
        for call in sorted(self.calls, key=lambda call: place[call[0], call[1]]):
            pid, tid, depth, start, end, name, values = call
            print('call', pid, tid, depth, start, end - start, json.dumps(name) + extras(values))
        for pid, tid, time, name, values in sorted(self.marks, key=lambda mark: mark[:3]):
            print('mark', pid, tid, time, json.dumps(name) + extras(values))
        for cpu in sorted(self.cpus):
            print('cpu', *cpu)
        previous = (None, None, 0, 0)
        for state in self.sched:
            pid, tid, start, end, name, values = state
            check(start <= end, f'{state} ends before it begins')
            check(previous[:2] != (pid, tid) or previous[3] <= start, f'{state} begins too early')
            previous = state
            print('sched', pid, tid, start, end - start, json.dumps(name) + extras(values))
        for line in self.more:
            print(*line)

    def write_functions(self):
        count, total, open_until = {}, {}, {}
        for pid, tid, depth, start, end, name, _ in self.calls:
            path = open_until.setdefault((pid, tid), [])
            del path[depth:]
            count[name] = count.get(name, 0) + 1
            if name not in path:
                total[name] = total.get(name, 0) + end - start
            path.append(name)
        for name in sorted(count):
            print(count[name], total[name], json.dumps(name))


def main(read):
    functions = sys.argv[1] == '--functions'
    try:
        timeline = read(sys.argv[-1])
        timeline.finish()
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as e:
        sys.exit(f'{sys.argv[-1]}: {type(e).__name__}: {e}')
    timeline.write_functions() if functions else timeline.write()
