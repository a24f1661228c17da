# SPDX-License-Identifier: BSD-2-Clause
"""speedscope's file format: the rules of its JSON schema, and balanced calls, which its reader requires."""
import json
import re

import timeline
from timeline import check

SCHEMA = 'https://www.speedscope.app/file-format-schema.json'


def read(path):
    result = timeline.Timeline()
    with open(path, encoding='utf-8') as f:
        document = json.load(f)
    check(set(document) == {'$schema', 'exporter', 'name', 'profiles', 'activeProfileIndex',
                            'shared'}, list(document))
    check(document['$schema'] == SCHEMA, '$schema')
    check(set(document['shared']) == {'frames'}, 'shared')
    frames = document['shared']['frames']
    for frame in frames:
        check(set(frame) <= {'name', 'file', 'line'} and all(isinstance(v, int if k == 'line' else str) for k, v in frame.items()),
              frame)
    profiles = document['profiles']
    check(0 <= document['activeProfileIndex'] < len(profiles), 'activeProfileIndex')
    longest = max(len(p['events']) for p in profiles)
    check(len(profiles[document['activeProfileIndex']]['events']) == longest, 'not the longest')
    for profile in profiles:
        check(set(profile) == {'type', 'unit', 'events', 'startValue', 'endValue', 'name'},
              list(profile))
        check(profile['type'] == 'evented' and profile['unit'] == 'nanoseconds', 'type or unit')
        events, at, stack = profile['events'], profile['startValue'], []
        if not events:
            check(len(profiles) == 1 and not frames, 'a profile without events among others')
            continue
        name, tid, pid, lost = re.fullmatch(
            r'(?:(.*) )?t(-?\d+)\((-?\d+)\)(?:, lost (\d+) events)?', profile['name'],
            re.DOTALL).groups()
        pid, tid = int(pid), int(tid)
        result.threads.append((pid, tid, name or '', ''))
        if lost:
            result.marks.append((pid, tid, 0, f'lost {lost} events', {}))
        for event in events:
            check(set(event) == {'type', 'frame', 'at'} and isinstance(event['at'], int), event)
            check(event['at'] >= at, f'{event} is older than the one before it')
            at = event['at']
            frame = frames[event['frame']]
            if event['type'] == 'O':
                stack.append(event['frame'])
                values = {'module': frame['file']} if 'file' in frame else {}
                result.enter(pid, tid, at, frame['name'], values)
            else:
                check(event['type'] == 'C' and stack.pop() == event['frame'], f'{event} closes '
                      'another frame than the innermost')
                result.leave(pid, tid, at)
        check(not stack and at == profile['endValue'], 'the profile does not end with its calls')
        check(events[0]['at'] == profile['startValue'], 'startValue')
    return result


timeline.main(read)
