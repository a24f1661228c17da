#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
The commands in documents, one a line, as "SOURCE<TAB>COMMAND": of README.md those in indented blocks after
a "$", of manual pages (rendered by mandoc) the lines of their EXAMPLES that begin with kxray. Lines that end with a
backslash are joined; comments after two spaces are dropped.

    documentation.py README.md user/man/kxray-record.1.in ...
"""
import os
import re
import subprocess
import sys


def rendered(path):
    if path.endswith(".md"):
        with open(path, encoding="utf-8") as f:
            return f.read()
    page = subprocess.run(["mandoc", "-T", "utf8", "-O", "width=300", path], check=True, capture_output=True,
                          text=True).stdout
    examples = re.search(r"^EXAMPLES\n(.*?)^\S", re.sub(".\b", "", page), re.S | re.M)
    return examples.group(1) if examples else ""


def commands(path):
    prompt = re.compile(r"^ {4}\$ (.*)$" if path.endswith(".md") else r"^ +((?:sudo )?kxray .*)$")
    lines = iter(rendered(path).split("\n"))
    for line in lines:
        match = prompt.match(line)
        if not match:
            continue
        command = match.group(1)
        while command.endswith("\\"):
            command = command[:-1] + next(lines).strip()
        yield re.sub(r"\s{2,}#.*$", "", command).strip()


for path in sys.argv[1:]:
    found = list(commands(path))
    for command in found:
        print(f"{os.path.basename(path)}\t{command}")
