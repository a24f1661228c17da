#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Checks a recording of the target `touch` with --faults.

    faults.py OUT DUMP [EXPORTS]

OUT is the target's output, DUMP that of `kxray dump`. The exports EXPORTS.csv, .chrome and .perfetto must
have the same faults as the dump. Prints "ok NAME" or "not ok NAME: why" for each check.
"""
import csv
import json
import re
import sys

PAGES = 64
out, dump, *exports = sys.argv[1:]


def check(name, got, expected):
    print(f'ok {name}' if got == expected else
          f'not ok {name}: got {str(got)[:200]}, want {str(expected)[:200]}')


def fault(values, function):
    return (int(values['address'], 16), int(values['write']), int(values['execute']),
            int(values['kernel']), function)


start, *counts = map(int, open(out).read().split())
# (address, write, execute, kernel, function), of the target's mapping
want = [(start + i * 4096 + i, 1, 0, 0, 'write_pages') for i in range(PAGES)]
want += [(start + (PAGES + i) * 4096, 0, 0, 0, 'read_pages') for i in range(PAGES)]
want += [(start + (2 * PAGES + i) * 4096, 1, 0, 1, 'kernel_writes') for i in range(PAGES)]

check('getrusage counts the same faults', counts, [PAGES] * 3)
dumped = []
for line in open(dump):
    m = re.search(r'"kxray:fault (.*)"(?: in (\w+))?$', line)
    if m:
        dumped.append(fault(json.loads(m[1].replace('\\"', '"')), m[2]))
check('dump', [f for f in dumped if start <= f[0] < start + 3 * PAGES * 4096], want)
if not exports:
    sys.exit()

with open(exports[0] + '.csv', newline='') as f:
    rows = [r for r in csv.DictReader(f) if r['how'] == 'fault']
check('csv', [fault(dict(v.split('=') for v in r['args'].split()), r['function'] or None)
              for r in rows], dumped)
events = json.load(open(exports[0] + '.chrome'))['traceEvents']
check('chrome', [fault(e['args'], e['args'].get('function'))
                 for e in events if e.get('name') == 'fault'], dumped)
check('instants', {e['ph'] for e in events if e.get('name') == 'fault'}, {'i'})
raw = open(exports[0] + '.perfetto', 'rb').read()
check('perfetto', [raw.count(b'0x%x' % a[0]) >= 1 for a in want], [True] * len(want))
