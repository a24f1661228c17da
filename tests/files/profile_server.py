# SPDX-License-Identifier: BSD-2-Clause
"""A strict stand-in for the servers that exporters/fleet/push sends profiles to.

    profile_server.py pyroscope|parca FOLDER

Listens on a port of its own, which it writes to FOLDER/port. The first line of FOLDER/plan says what happens to the next
request, and is removed; without one it is "200":
    STATUS [RETRY_AFTER]  that status; 2xx: the profile is stored
    cut                   closes the connection unanswered
    store-cut             stores the profile, then closes the connection unanswered
    half                  stores the profile, answers 200, closes the connection within the body
    hang                  does not answer
Each request is a line of FOLDER/log: {"answer", "stored", "id", "digest", "calls", "labels", "at"}; calls: of all samples, at: seconds.
A request that the real servers would not take, or profile.proto forbids, is answered with 400 and has "error".

Paths, fields and rules: Pyroscope's reference of its server API and pkg/validation/validate.go, which also takes profiles without
period_type, but does not merge them; Parca's profilestore.proto, with its HTTP annotation, and pkg/normalizer/validate.go.
"""
import base64
import gzip
import hashlib
import http.server
import json
import os
import re
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'readers'))
from prototext import decode, one  # noqa: E402

KIND, FOLDER = sys.argv[1:]
PATH = {'pyroscope': '/push.v1.PusherService/Push', 'parca': '/api/profiles/writeraw'}[KIND]
UUID = re.compile(r'[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}')
calls_of = {}


def check(fine, what):
    if not fine:
        raise ValueError(what)


def keys(value, *names):
    check(isinstance(value, dict) and sorted(value) == sorted(names), f'fields {value if not isinstance(value, dict) else sorted(value)}')
    return [value[n] for n in names]


def only(items):
    check(isinstance(items, list) and len(items) == 1, 'a list of one')
    return items[0]


def count_calls(data):
    """The calls of all samples of a profile, which must keep the rules of both servers."""
    profile = decode(gzip.decompress(data), 'pprof.proto', 'perftools.profiles.Profile')
    strings = profile['string_table']
    check(strings[0] == '', 'the first string')
    types = [strings[one(t, 'type')] for t in profile['sample_type']]
    check(types == ['calls', 'time'] and not any('-' in t for t in types), types)
    check(one(profile, 'period_type') and one(profile, 'period') > 0, 'period')
    check(one(profile, 'time_nanos', 0) >= 0, 'time_nanos')
    count = {}
    for table in 'mapping', 'location', 'function':
        ids = [one(m, 'id') for m in profile.get(table, [])]
        check(ids == list(range(1, len(ids) + 1)), f'{table} ids are not sequential')
        count[table] = len(ids)
    for location in profile.get('location', []):
        check(one(location, 'mapping_id', 0) <= count['mapping'], 'mapping_id')
        check(1 <= one(one(location, 'line'), 'function_id') <= count['function'], 'function_id')
    total = 0
    for sample in profile.get('sample', []):
        check(len(sample['value']) == 2, 'values')
        check(all(1 <= i <= count['location'] for i in sample['location_id']), 'location_id')
        total += sample['value'][0]
    return total


def labels_of(pairs):
    labels = {}
    for pair in pairs:
        name, value = keys(pair, 'name', 'value')
        check(re.fullmatch('[a-zA-Z_][a-zA-Z0-9_]*', name) and isinstance(value, str), f'label {name}')
        check(name not in labels, f'label {name} is there twice')
        labels[name] = value
    check(labels.get('__name__') == 'kxray' and labels.get('service_name'), 'no __name__ or service_name')
    return labels


def read(handler):
    check(handler.path == PATH, handler.path)
    check(handler.headers['Content-Type'] == 'application/json', 'Content-Type')
    check('Transfer-Encoding' not in handler.headers and 'Expect' not in handler.headers, 'headers')
    body = handler.rfile.read(int(handler.headers['Content-Length']))
    check(len(body) == int(handler.headers['Content-Length']), 'a whole body')
    request = json.loads(body.decode('utf-8'))
    if KIND == 'pyroscope':
        series = only(*keys(request, 'series'))
        pairs, samples = keys(series, 'labels', 'samples')
        ident, profile = keys(only(samples), 'ID', 'rawProfile')
        check(UUID.fullmatch(ident), 'ID')
    else:
        normalized, series = keys(request, 'normalized', 'series')
        check(normalized is True, 'normalized')
        labels, samples = keys(only(series), 'labels', 'samples')
        pairs, profile = *keys(labels, 'labels'), *keys(only(samples), 'rawProfile')
        ident = None
    data = base64.b64decode(profile, validate=True)
    digest = hashlib.sha256(data).hexdigest()
    if digest not in calls_of:
        calls_of[digest] = count_calls(data)
    return {'id': ident or digest, 'digest': digest, 'calls': calls_of[digest], 'labels': labels_of(pairs)}


def next_step():
    path = os.path.join(FOLDER, 'plan')
    with open(path, 'a+', encoding='ascii') as f:
        f.seek(0)
        lines = f.read().splitlines()
    with open(path + '.new', 'w', encoding='ascii') as f:
        f.write(''.join(line + '\n' for line in lines[1:]))
    os.rename(path + '.new', path)
    return lines[0].split() if lines else ['200']


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *_):
        pass

    def cut(self):
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def answer(self, status, text, size=None, after=None):
        data = text.encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(size or len(data)))
        if after:
            self.send_header('Retry-After', after)
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def do_POST(self):
        step, at = next_step(), time.monotonic()
        try:
            entry = read(self)
        except (ValueError, KeyError, TypeError, OSError) as e:
            entry, step = {'error': f'{type(e).__name__}: {e}'}, ['400']
        entry.update(answer=step[0], at=at, stored=step[0] in ('200', '202', 'store-cut', 'half'))
        with open(os.path.join(FOLDER, 'log'), 'a', encoding='utf-8') as f:
            f.write(json.dumps(entry) + '\n')
        if step[0] in ('cut', 'store-cut'):
            self.cut()
        elif step[0] == 'half':
            self.answer(200, '{', size=100)
            self.cut()
        elif step[0] == 'hang':
            while self.connection.recv(4096):
                pass
            self.close_connection = True
        elif entry['stored']:
            self.answer(int(step[0]), '{}')
        else:
            self.answer(int(step[0]), json.dumps({'message': 'not\nnow'}), after=step[1] if len(step) > 1 else None)


server = http.server.ThreadingHTTPServer(('127.0.0.1', int(os.environ.get('PORT', '0'))), Handler)
server.daemon_threads = True
with open(os.path.join(FOLDER, 'port.new'), 'w', encoding='ascii') as f:
    f.write(str(server.server_address[1]))
os.rename(os.path.join(FOLDER, 'port.new'), os.path.join(FOLDER, 'port'))
server.serve_forever()
