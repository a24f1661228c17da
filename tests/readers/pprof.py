# SPDX-License-Identifier: BSD-2-Clause
"""pprof's profile: the rules of profile.proto.

Prints for `pprof.py FILE` one line for each sample: CALLS SELF, then the names as JSON,
outermost first; then "mapping FILE BUILD_ID", "function NAME SYSTEM_NAME ADDRESS FILE", and
"duration", "time" and "comment". For `pprof.py --functions FILE`: CALLS TOTAL NAME. For
`pprof.py --labels FILE`: CALLS FUNCTION LABEL VALUE of each labelled sample, sorted.
"""
import gzip
import json
import sys

from prototext import decode, one
from timeline import check


def by_id(messages):
    table = {one(m, 'id'): m for m in messages}
    check(len(table) == len(messages) and 0 not in table, 'an id is there twice')
    return table


def read(path):
    with gzip.open(path) as f:
        profile = decode(f.read(), 'pprof.proto', 'perftools.profiles.Profile')
    strings = profile['string_table']
    check(strings[0] == '', 'the first string is not empty')
    types = [(strings[one(t, 'type')], strings[one(t, 'unit')]) for t in profile['sample_type']]
    check(types == [('calls', 'count'), ('time', 'nanoseconds')], types)
    check(strings[one(profile, 'default_sample_type')] == 'time', 'default_sample_type')
    period = one(profile, 'period_type')
    check((strings[one(period, 'type')], strings[one(period, 'unit')], one(profile, 'period'))
          == ('calls', 'count', 1), 'period')
    mappings = by_id(profile.get('mapping', []))
    locations = by_id(profile.get('location', []))
    functions = by_id(profile.get('function', []))
    for m in mappings.values():
        check(one(m, 'has_functions') and one(m, 'memory_limit') == 2**64 - 1, m)
    names, facts, samples = {}, [], []
    for i, location in locations.items():
        function = functions[one(one(location, 'line'), 'function_id')]
        mapping = mappings.get(one(location, 'mapping_id', 0))
        check(mapping or 'mapping_id' not in location, 'a mapping is not there')
        names[i] = strings[one(function, 'name')]
        facts.append((names[i], strings[one(function, 'system_name')],
                      one(location, 'address', 0),
                      strings[one(mapping, 'filename', 0)] if mapping else ''))
    for sample in profile.get('sample', []):
        calls, time = sample['value']
        samples.append((calls, time, [names[i] for i in reversed(sample['location_id'])]))
    check(len({tuple(s[2]) for s in samples}) <= len(samples), 'stacks')
    return profile, strings, mappings, facts, samples


def write_labels(profile, strings, samples):
    lines = []
    for sample, (calls, _, stack) in zip(profile.get('sample', []), samples):
        for label in sample.get('label', []):
            value = strings[one(label, 'str')] if 'str' in label else one(label, 'num', 0)
            lines.append(' '.join([str(calls), stack[-1], strings[one(label, 'key')], json.dumps(value)]))
    print(*sorted(lines), sep='\n')


def write_functions(samples):
    count, total = {}, {}
    for calls, time, stack in samples:
        count[stack[-1]] = count.get(stack[-1], 0) + calls
        for name in set(stack):
            total[name] = total.get(name, 0) + time
    for name in sorted(count):
        print(count[name], total[name], json.dumps(name))


def main():
    try:
        profile, strings, mappings, facts, samples = read(sys.argv[-1])
    except (ValueError, KeyError, TypeError, IndexError, OSError) as e:
        sys.exit(f'{sys.argv[-1]}: {type(e).__name__}: {e}')
    if sys.argv[1] == '--functions':
        write_functions(samples)
        return
    if sys.argv[1] == '--labels':
        write_labels(profile, strings, samples)
        return
    for calls, time, stack in samples:
        print(calls, time, *map(json.dumps, stack))
    for m in mappings.values():
        print('mapping', strings[one(m, 'filename', 0)], strings[one(m, 'build_id', 0)])
    for name, system_name, address, file in facts:
        print('function', json.dumps(name), json.dumps(system_name), hex(address), file)
    print('duration', one(profile, 'duration_nanos', 0), 'time', one(profile, 'time_nanos', 0))
    for comment in profile.get('comment', []):
        print('comment', strings[comment])


main()
