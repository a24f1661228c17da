# SPDX-License-Identifier: BSD-2-Clause
"""Protobuf through protoc --decode, as dictionaries of lists: {field: [value, ...]}."""
import os
import re
import subprocess

FOLDER = os.path.dirname(os.path.abspath(__file__))
LINE = re.compile(rb'\s*(?:(\w+): (.*)|(\w+) \{|(\}))$')
ESCAPE = re.compile(rb'\\([0-7]{3}|.)')
SHORT = {b'n': b'\n', b'r': b'\r', b't': b'\t', b'"': b'"', b"'": b"'", b'\\': b'\\'}


def text_of(quoted):
    def byte(match):
        code = match[1]
        return bytes([int(code, 8)]) if len(code) == 3 else SHORT[code]
    return ESCAPE.sub(byte, quoted[1:-1]).decode('utf-8')


def value_of(text):
    if text.startswith(b'"'):
        return text_of(text)
    if text in (b'true', b'false'):
        return text == b'true'
    return int(text) if text.lstrip(b'-').isdigit() else text.decode()


def decode(data, schema, message):
    """@data: bytes. A field that is not in the schema is an error."""
    done = subprocess.run(['protoc', f'-I{FOLDER}', f'--decode={message}', schema],
                          input=data, capture_output=True, check=False)
    if done.returncode or done.stderr:
        raise ValueError(f'protoc: {done.stderr.decode()}')
    top = {}
    path = [top]
    for line in done.stdout.split(b'\n'):
        if not line:
            continue
        match = LINE.match(line)
        if not match:
            raise ValueError(f'protoc says {line!r}')
        if match[4]:
            path.pop()
            continue
        name = (match[1] or match[3]).decode()
        if name.isdigit():
            raise ValueError(f'field {name} is not in the schema')
        value = {} if match[3] else value_of(match[2])
        path[-1].setdefault(name, []).append(value)
        if match[3]:
            path.append(value)
    return top


def one(message, name, default=None):
    values = message.get(name, [default])
    if len(values) != 1:
        raise ValueError(f'{name} is there {len(values)} times')
    return values[0]
