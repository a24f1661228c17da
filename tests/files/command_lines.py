# SPDX-License-Identifier: BSD-2-Clause
"""command_lines.py KXRAY FILE: whether kxray accepts the options of each line of FILE, a shell command each.

Runs the program with --help added, which it heeds after it has parsed what precedes. Of a pipeline the first command
counts, and lines of other programs do not. Prints a line for each fault; status 1 if there is one, or no command at all."""
import re
import shlex
import subprocess
import sys


def arguments(line):
    """The words of the line's first command after kxray; None if it is not kxray's."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words = []
    for word in lexer:
        if re.fullmatch(r"[|&;<>]+", word):
            break
        words.append(word)
    if words[:1] == ["sudo"]:
        words = words[1:]
    return words[1:] if words[:1] == ["kxray"] else None


def main(kxray, path):
    tried = faults = 0
    for line in open(path):
        args = arguments(line.strip())
        if args is None:
            continue
        tried += 1
        if args[:1] not in (["help"], ["--version"]):
            at = args.index("--") if "--" in args else len(args)
            args[at:at] = ["--help"]
        done = subprocess.run([kxray, *args], capture_output=True, text=True)
        if done.returncode or not done.stdout:
            faults += 1
            print(f"not valid: {line.strip()}: {done.stderr.strip()}", file=sys.stderr)
    if not tried:
        print(f"{path} has no command line of kxray", file=sys.stderr)
    return faults > 0 or not tried


sys.exit(main(*sys.argv[1:]))
