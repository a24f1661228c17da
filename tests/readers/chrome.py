# SPDX-License-Identifier: BSD-2-Clause
"""Chrome's trace events: Google's document "Trace Event Format", JSON object form."""
import decimal
import json

import timeline
from timeline import check

FIELDS = {
    'M': {'name', 'ph', 'pid', 'tid', 'args'},
    'B': {'name', 'cat', 'ph', 'pid', 'tid', 'ts', 'args'},
    'E': {'ph', 'pid', 'tid', 'ts', 'args'},
    'b': {'name', 'cat', 'ph', 'id', 'pid', 'tid', 'ts', 'args'},
    'e': {'name', 'cat', 'ph', 'id', 'pid', 'tid', 'ts'},
    'i': {'name', 'cat', 'ph', 's', 'pid', 'tid', 'ts', 'args'},
}


def no_twins(pairs):
    check(len({key for key, _ in pairs}) == len(pairs), f'a key is there twice: {pairs}')
    return dict(pairs)


def ns_of(event):
    ts = event['ts']
    check(isinstance(ts, decimal.Decimal), f'{ts!r} is no number with decimals')
    ns = ts * 1000
    check(ns >= 0 and ns == int(ns), f'{ts} is no whole number of nanoseconds')
    return int(ns)


def read(path):
    result = timeline.Timeline()
    names, processes, order, newest, begun, rows = {}, {}, {}, {}, {}, {}
    with open(path, encoding='utf-8') as f:
        document = json.load(f, parse_float=decimal.Decimal, object_pairs_hook=no_twins)
    check(set(document) == {'displayTimeUnit', 'traceEvents', 'otherData'}, list(document))
    check(document['displayTimeUnit'] == 'ns', 'displayTimeUnit')
    for event in document['traceEvents']:
        phase = event['ph']
        check(set(event) <= FIELDS[phase], f'{event} has unknown fields')
        pid, tid = event['pid'], event['tid']
        check(isinstance(pid, int) and isinstance(tid, int), f'ids of {event}')
        values = event.get('args', {})
        order.setdefault((pid, tid))
        if phase == 'M':
            check(event['name'] in ('thread_name', 'process_name'), event)
            if event['name'] == 'thread_name':
                names[pid, tid] = values['name']
            else:
                processes[pid] = values['name']
            continue
        time = ns_of(event)
        if phase in 'be':
            # A row of its own for each thread.
            row = event['id']
            check(event['cat'] == 'sched' and rows.setdefault(row, (pid, tid)) == (pid, tid), event)
            if phase == 'b':
                check(row not in begun, f'{event} begins before the end of the one before it')
                begun[row] = event['name'], time, values
            else:
                name, start, values = begun.pop(row)
                check(name == event['name'], event)
                result.sched.append((pid, tid, start, time, name, values))
            continue
        check(time >= newest.get((pid, tid), 0), f'{event} is older than the one before it')
        newest[pid, tid] = time
        if phase == 'B':
            if event.get('cat'):
                values['module'] = event['cat']
            result.enter(pid, tid, time, event['name'], values)
        elif phase == 'E':
            result.leave(pid, tid, time, values)
        elif event.get('cat') == 'cpu':
            check(event['name'].startswith('CPU '), event)
            result.cpus.append((pid, tid, time, int(event['name'][4:])))
        else:
            check(event['s'] == 't', event)
            result.marks.append((pid, tid, time, event['name'], values))
    check(not begun, f'{begun} never end')
    for pid, tid in order:
        result.threads.append((pid, tid, names.get((pid, tid), ''), processes.get(pid, '')))
    check(document['otherData']['calls'] == len(result.calls), 'otherData.calls')
    return result


timeline.main(read)
