#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
What a flight recorder costs at a steady rate of events, for scripts/bench-fleet.sh.

    bench_fleet.py KXRAY TARGET FOLDER EVENTS SECONDS OPTIONS [URL]

Starts TARGET with EVENTS / 2 calls a second and records it with a flight recorder, that is asked for a dump every SECONDS,
ROUNDS times, or never (OPTIONS: record, dump, push). With push each dump goes through exporters/fleet/push to URL. Start and
end are not part of the figures: only whole rounds. Prints a JSON object:
    events              a second, as recorded
    size                MiB that --flight-recorder keeps of each CPU
    lost                of all
    kxray, program      CPU seconds a second; kxray: with its dumps, commands and all that these start
    plain               the program's, not recorded
    dump, map, pprof    bytes of one
    csv                 bytes of a call as csv
    memory              bytes of the recorder's that are in memory, its rings and its store included
"""
import json
import os
import signal
import subprocess
import sys
import time

KXRAY, TARGET, FOLDER, EVENTS, SECONDS, MODE = sys.argv[1:7]
EVENTS, SECONDS = int(EVENTS), float(SECONDS)
ROUNDS = int(os.environ.get('ROUNDS', '3'))
HZ = os.sysconf('SC_CLK_TCK')
TRACE = os.path.join(FOLDER, 'fleet.xray')
on_last_cpu = ['taskset', '-c', str(os.cpu_count() - 1)]


def fields(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as f:
        return f.read().rpartition(') ')[2].split()


def own_seconds(pid):
    """From the scheduler, in nanoseconds: ticks are too coarse for a recorder."""
    total = 0
    for task in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{task}/schedstat', encoding='ascii') as f:
            total += int(f.read().split()[0])
    return total / 1e9


def children_of(pid):
    with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as f:
        return [int(p) for p in f.read().split()]


def name_of(pid):
    with open(f'/proc/{pid}/comm', encoding='utf-8', errors='replace') as f:
        return f.read().strip()


def busy(pid):
    """Children whose time is not counted yet; the one that has read source lines stays unreaped until the end."""
    return [p for p in children_of(pid) if name_of(p) not in ('kx-keeper', 'kxray-lines')]


def all_seconds(pid):
    """Of a recorder, its keeper, and all children that have ended."""
    stat = fields(pid)
    keepers = [own_seconds(p) for p in children_of(pid) if name_of(p) == 'kx-keeper']
    return own_seconds(pid) + sum(keepers) + (int(stat[13]) + int(stat[14])) / HZ


def wait_for(condition):
    end = time.monotonic() + 120
    while not condition():
        if time.monotonic() > end:
            sys.exit('bench_fleet: nothing happens')
        time.sleep(0.05)


def text_of(path):
    with open(path, encoding='utf-8', errors='replace') as f:
        return f.read()


def start(argv, name):
    with open(os.path.join(FOLDER, name + '.out'), 'w', encoding='utf-8') as out, \
            open(os.path.join(FOLDER, name + '.err'), 'w', encoding='utf-8') as err:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err)


def program_share(pid, seconds):
    before = own_seconds(pid)
    time.sleep(seconds)
    return (own_seconds(pid) - before) / seconds


def record(target):
    # a record takes 32 bytes, and all of them may come from one CPU
    size = 16
    while size << 20 < 32 * EVENTS * SECONDS * 1.5:
        size *= 2
    argv = [KXRAY, 'record', '-p', str(target), '-f', 'steady_*', '--flight-recorder', f'{size}M', '--keep', f'{SECONDS:g}', '-o', TRACE, '--json']
    if MODE == 'push':
        argv += ['--on-dump', f"{os.path.abspath('exporters/fleet/push')} --spool '{FOLDER}/spool' pyroscope {sys.argv[7]} {{}}"]
    recorder = start(argv, 'record')
    messages = os.path.join(FOLDER, 'record.err')
    wait_for(lambda: 'kxray: recording' in text_of(messages) or recorder.poll() is not None)
    if recorder.poll() is not None:
        sys.exit('bench_fleet: ' + text_of(messages))
    time.sleep(SECONDS)  # until its memory has a whole round
    cpu, program, begun = all_seconds(recorder.pid), own_seconds(target), time.monotonic()
    for i in range(ROUNDS):
        time.sleep(max(0.0, begun + (i + 1) * SECONDS - time.monotonic()))
        if MODE != 'record':
            recorder.send_signal(signal.SIGUSR1)
    # the last dump belongs to the rounds, the time until it has been sent does not
    took, program = time.monotonic() - begun, own_seconds(target) - program
    if MODE != 'record':
        wait_for(lambda: text_of(messages).count('kxray: wrote') == ROUNDS)
        wait_for(lambda: not busy(recorder.pid))
    cpu = all_seconds(recorder.pid) - cpu
    memory = next(int(line.split()[1]) for line in text_of(f'/proc/{recorder.pid}/status').splitlines() if line.startswith('VmRSS:')) << 10
    recorder.send_signal(signal.SIGINT)
    recorder.wait()
    summary = json.loads(text_of(os.path.join(FOLDER, 'record.out')))
    runs = summary.get('on_dump', {'ran': ROUNDS + 1, 'failed': 0})
    if MODE == 'push' and (runs['ran'] != ROUNDS + 1 or runs['failed']):
        sys.exit(f'bench_fleet: commands failed: {runs}')
    return {'size': size, 'kxray': cpu / took, 'program': program / took, 'memory': memory, 'lost': summary['lost'],
            'events': summary['events'] / summary['seconds']}


def main():
    target = start([*on_last_cpu, TARGET, str(EVENTS / 2)], 'target')
    wait_for(lambda: 'ready' in text_of(os.path.join(FOLDER, 'target.out')))
    try:
        figures = {'plain': program_share(target.pid, min(SECONDS, 5))}
        figures.update(record(target.pid))
    finally:
        target.kill()
    dump = f'{TRACE[:-5]}.1.xray'
    figures.update(dump=os.path.getsize(dump), map=os.path.getsize(dump + '.map'))
    for form in 'pprof', 'csv':
        subprocess.run([KXRAY, 'export', '-f', form, '-o', f'{FOLDER}/{form}', dump], check=True, capture_output=True)
    figures['pprof'] = os.path.getsize(f'{FOLDER}/pprof')
    with open(f'{FOLDER}/csv', 'rb') as f:
        rows = sum(1 for _ in f) - 1
    figures['csv'] = os.path.getsize(f'{FOLDER}/csv') / rows
    print(json.dumps(figures))


main()
