#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks a recording of system calls. Prints the differences.

    syscalls.py threads CALLS.csv DID.json [child]        counts of each thread = its own counts
    syscalls.py same REPORT.json STRACE [IGNORED...]      counts of each call = those of strace -c
    syscalls.py results CALLS.csv DID.json                results and arguments
    syscalls.py nested CALLS N NAME...                    each function has N calls, each inside a call of
                                                          the previous function, by thread and by time
                                                          (CALLS: from tests/readers/perfetto.py)
"""
import collections
import csv
import json
import sys


def rows(path):
    with open(path, newline='') as f:
        return [r for r in csv.DictReader(f) if r['module'] == 'syscall']


def did(path):
    return json.loads([line for line in open(path) if line.startswith('{')][-1])


def threads(calls, done, child=None):
    seen = collections.defaultdict(collections.Counter)
    for r in rows(calls):
        seen[r['tid']][r['function']] += 1
    want = did(done)['threads']
    if child:
        want[str(did(done)['child'])] = did(done)['child_calls']
    for tid, counts in want.items():
        for name, n in counts.items():
            if seen[tid][name] != n:
                yield f'thread {tid}: {name} {seen[tid][name]} times, not {n}'


def same(report, strace, *ignored):
    seen = {f['name']: f['count'] + f.get('open', 0) for f in json.load(open(report))['functions']
            if f['module'] == 'syscall'}
    theirs = {}
    for line in open(strace):
        words = line.split()
        if len(words) == 2 and words[1].isdigit():
            theirs[words[0]] = int(words[1])
    theirs.pop('total')
    for name in sorted(set(seen) | set(theirs)):
        if name not in ignored and seen.get(name, 0) != theirs.get(name, 0):
            yield f'{name}: {seen.get(name, 0)} times, strace says {theirs.get(name, 0)}'
    if len(theirs) < 10:
        yield f'strace recorded only {sorted(theirs)}'


def results(calls, done):
    want = did(done)
    all_rows = rows(calls)

    def check(name, args, result, n):
        found = [r for r in all_rows if r['function'] == name and r['result'] == result and
                 all(a is None or g == a for g, a in zip(r['args'].split(), args))]
        if len(found) != n:
            some = [(r['args'], r['result']) for r in all_rows if r['function'] == name][:3]
            yield f'{name} with {args} and result {result}: {len(found)} times, not {n} ({some})'

    yield from check('write', [None, None, '0x7'], '7', 300)
    yield from check('openat', ['0xffffff9c', None, '0x0'], '-2', 50)
    yield from check('getppid', [], str(want['ppid']), 1700)
    yield from check('rt_sigsuspend', [None, '0x8'], '-514', 1)
    yield from check('fork', [], str(want['child']), 1)
    yield from check('wait4', [hex(want['child'])], str(want['child']), 1)
    yield from check('exit_group', ['0x0'], '', 1)
    for r in all_rows:
        if r['function'] != 'exit_group' and r['how'] == 'exit' and r['result'] == '':
            yield f'{r["function"]} has no result'
        if len(r['args'].split()) != 3:
            yield f'{r["function"]} has arguments {r["args"]}'


def nested(calls, n, *names):
    open_calls, found = {}, collections.Counter()
    for line in open(calls):
        if not line.startswith('call '):
            continue
        _, pid, tid, depth, start, duration, name = line.split(' ')[:7]
        depth, start = int(depth), int(start)
        end = start + int(duration)
        stack = open_calls.setdefault((pid, tid), [])
        del stack[depth:]
        stack.append((json.loads(name), start, end))
        for outer, inner in zip(stack, stack[1:]):
            if inner[1] < outer[1] or inner[2] > outer[2]:
                yield f'{inner} is not within {outer}'
        found[tuple(call[0] for call in stack)] += 1
    for i in range(1, len(names) + 1):
        if found[names[:i]] != int(n):
            yield f'{" > ".join(names[:i])} {found[names[:i]]} times, not {n}'


if __name__ == '__main__':
    print(*{'threads': threads, 'same': same, 'results': results,
             'nested': nested}[sys.argv[1]](*sys.argv[2:]),
          sep='; ')
