# SPDX-License-Identifier: BSD-2-Clause
"""
The page of kxray export -f html: its policy allows only its own script and style, behind the page there is nothing but
data blocks, and the numbers in these agree with each other. Prints the timeline (timeline.py); of merged calls one line
with their number and the sum of their times. With --functions, a line of the table for each function: CALLS (open ones
included), TOTAL, NAME. With --head: the head, as JSON.
"""
import base64
import collections
import hashlib
import json
import re
import sys
import zlib

import timeline
from timeline import check

BLOCK = re.compile(rb'<script type="text/plain" data-kx="([a-z]+)">([A-Za-z0-9+/]*={0,2})</script>\n')
ENDS = [{}, {'end': 'tail jump'}, {'end': 'repaired'}, {'end': 'open'}]
BLOCKS = ['head', 'names', 'numbers', 'flame', 'rows', 'tags', 'gaps', 'times', 'merged']


def inline(page, tag):
    parts = re.findall(rb'<%s>(.*?)</%s>' % (tag, tag), page, re.DOTALL)
    check(len(parts) == 1, f'{len(parts)} {tag}')
    return "'sha256-%s'" % base64.b64encode(hashlib.sha256(parts[0]).digest()).decode()


def check_page(page):
    policy = re.findall(rb'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    want = (f"default-src 'none'; script-src {inline(page, b'script')}; style-src {inline(page, b'style')}; "
            "base-uri 'none'; form-action 'none'")
    check(policy == [want.encode()], f'policy {policy}, not {want}')
    check(page.index(b'Content-Security-Policy') < page.index(b'<style>') < page.index(b'<script>'), 'policy comes late')
    check(not re.search(rb'(?i)<(img|link|iframe|object|embed|base|form)\b|\s(src|href|on[a-z]+|style)=',
                        re.sub(rb'<(style|script|pre)>.*?</\1>', b'', page, flags=re.DOTALL)), 'something to load')


def read_blocks(data):
    first = data.index(b'<script type="text/plain"')
    check_page(data[:first])
    blocks, at = collections.defaultdict(bytes), first
    for match in iter(lambda: BLOCK.match(data, at), None):
        z = zlib.decompressobj()
        blocks[match[1].decode()] += z.decompress(base64.b64decode(match[2], validate=True))
        check(z.eof and not z.unused_data, 'a piece is not one whole zlib stream')
        at = match.end()
    check(data[at:] == b'</body>\n</html>\n', f'behind the data: {data[at:at + 80]}')
    check(list(blocks) == BLOCKS, list(blocks))
    return blocks


class Varints:
    def __init__(self, data):
        self.data, self.at = data, 0

    def more(self):
        return self.at < len(self.data)

    def next(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value


def bucket_start(i):
    return i if i < 4 else (4 + i % 4) << (i // 4 - 1)


def read_functions(blocks, head):
    functions, v = [], Varints(blocks['numbers'])
    for name in json.loads(blocks['names']):
        module = v.next()
        f = {'name': name, 'module': head['modules'][module - 1] if module else ''}
        for key in ('calls', 'open', 'no_exit', 'all', 'total', 'self', 'min', 'p50', 'p90', 'p99', 'max'):
            f[key] = v.next()
        if head['sched']:
            f['off'], f['wait'], f['self_off'] = v.next(), v.next(), v.next()
            check(f['wait'] <= f['off'] <= f['total'] and f['self_off'] <= f['self'], f)
        n = v.next()
        first = v.next() if n else 0
        buckets = [v.next() for _ in range(n)]
        check(sum(buckets) == f['calls'] - f['open'] - f['no_exit'], f'{f}: histogram of {sum(buckets)}')
        check(f['min'] <= f['p50'] <= f['p90'] <= f['p99'] <= f['max'], f)
        if n:  # rounding may move a bound by 1 ns
            check(buckets[0] and buckets[-1], 'empty buckets at the ends')
            check(bucket_start(first) <= f['min'] + 1 and f['min'] - 1 <= bucket_start(first + 1), (f, first))
            check(bucket_start(first + n - 1) <= f['max'] + 1 and f['max'] - 1 <= bucket_start(first + n), (f, first + n))
        check(f['all'] >= f['calls'], f)
        functions.append(f)
    check(not v.more(), 'more numbers than names')
    return functions


def check_flame(data, head, functions):
    v, nodes, counts, own = Varints(data), 0, collections.Counter(), collections.Counter()
    kinds, threads = [], []
    while v.more():
        back, name, ns, calls = v.next(), v.next(), v.next(), v.next()
        check(back <= nodes, 'a caller that comes later')
        if not back:
            threads.append(name)
            check(not ns and not calls, 'a thread with times')
        else:
            check(name <= len(functions), name)
            check(kinds[nodes - back] != len(functions), 'below added up stacks')
            counts[name] += calls
            own[name] += ns
        kinds.append(name if back else -1)
        nodes += 1
    check(sorted(threads) == list(range(len(head['threads']))), threads)
    check(sum(counts.values()) == sum(f['calls'] for f in functions), 'calls in the flame graph')
    for i, f in enumerate(functions):
        if not head['stacks_dropped']:
            check(counts[i] == f['calls'], f'{f}: {counts[i]} in the flame graph')
            # each node is rounded
            check(f['open'] or head['open'] or abs(own[i] - f['self']) <= nodes, f'{f}: self {own[i]} in the flame graph')
    check((len(functions) in counts) == (head['stacks_dropped'] > 0), 'added up stacks')


def read_rows(blocks, head):
    v, streams = Varints(blocks['rows']), [Varints(blocks[name]) for name in ('tags', 'gaps', 'times', 'merged')]
    tags, gaps, times, merged = streams
    while v.more():
        thread, kind, depth, n = v.next(), v.next(), v.next(), v.next()
        slices, time = [], 0
        for _ in range(n):
            tag, start, took = tags.next(), time + gaps.next(), times.next()
            count, busy = (merged.next(), merged.next()) if tag & 4 else (1, took)
            time = start + took
            check(busy <= took + count, 'merged calls took longer than the slice')
            slices.append((start, took, tag >> 3, tag & 3, count, busy))
        yield thread, kind, depth, slices
    check(not any(s.more() for s in streams), 'more slices than the rows have')


def read_timeline(blocks, head, functions):
    result, calls, total = timeline.Timeline(), collections.Counter(), 0
    result.threads = [(t['pid'], t['tid'], t['name'], t['process']) for t in head['threads']]
    seen = collections.defaultdict(list)
    for thread, kind, depth, slices in read_rows(blocks, head):
        pid, tid = result.threads[thread][:2]
        total += len(slices)
        for start, took, name, how, count, busy in slices:
            values = {'count': count, 'busy': busy} if count > 1 else {}
            if kind == 0:
                f = functions[name]
                values.update(ENDS[how], **({'module': f['module']} if f['module'] else {}))
                seen[pid, tid].append([pid, tid, depth, start, start + took, f['name'], values])
                calls[name] += count
            elif kind == 1:
                result.sched.append((pid, tid, start, start + took, head['texts'][name], values))
            elif kind == 2:
                check(count > 1 or not took, 'a mark that takes time')
                result.marks.append((pid, tid, start, head['texts'][name], values))
            else:
                result.marks.append((pid, tid, start + took, f'lost {count} events', {'gap_ns': busy}))
    check(total == head['slices'], f"{total} slices instead of {head['slices']}")
    check(sum(calls.values()) == sum(f['calls'] for f in functions), 'calls in the timeline')
    for i, f in enumerate(functions):
        if not head['merged_slices']:
            check(calls[i] == f['calls'], f'{f}: {calls[i]} in the timeline')
    for thread in result.threads:
        result.calls += sorted(seen.pop(thread[:2], []), key=lambda call: (call[3], call[2]))
    if not head['merged_slices']:
        check_nesting(result.calls)
    return result


def check_nesting(calls):
    stack = []
    for pid, tid, depth, start, end, name, _ in calls:
        if not depth and stack and stack[0][:2] != (pid, tid):
            stack = []
        if depth > len(stack):  # of calls without duration the order is not known
            check(start == end, f'{name} at depth {depth} without a caller')
            continue
        del stack[depth:]
        check(not stack or end <= stack[-1][3], f'{name} is longer than its caller')
        stack.append((pid, tid, start, end))


def read(path):
    with open(path, 'rb') as f:
        blocks = read_blocks(f.read())
    head = json.loads(blocks['head'])
    check(head['schema'] == 1, 'schema')
    functions = read_functions(blocks, head)
    check(sum(f['calls'] for f in functions) == head['calls'], 'calls')
    check_flame(blocks['flame'], head, functions)
    return head, functions, read_timeline(blocks, head, functions)


def main():
    option = sys.argv[1] if sys.argv[1].startswith('--') else ''
    try:
        head, functions, result = read(sys.argv[-1])
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, zlib.error) as e:
        sys.exit(f'{sys.argv[-1]}: {type(e).__name__}: {e}')
    if option == '--head':
        print(json.dumps(head, sort_keys=True))
    elif option:
        for f in sorted(functions, key=lambda f: f['name']):
            print(f['calls'], f['total'], json.dumps(f['name']))
    else:
        result.write()


main()
