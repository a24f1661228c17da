#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Windows (user/plan/windows.h) of all functions of binaries against binutils:

- each begins, and its instructions do, where objdump has instructions, and no branch that objdump prints lands behind its first byte;
- each of its instructions, moved, reads as the original one;
- the stack pointer has moved as far as the unwind tables say (readelf); at return instructions it cannot have, and tables of some hand-written code are wrong
  there.

    scripts/check-windows.py [--programs N] [FILE...]

Without FILE: the C and C++ libraries, libpython, redis-server, libsqlite3, libcrypto; half a minute. With --programs also the N programs of /usr/bin that
have most functions with windows. Needs build/tests/windows (make tests). Ends with status 1 if something differs.
"""
import argparse
import bisect
import glob
import os
import re
import subprocess
import sys
import tempfile

TOOL = os.path.join(os.environ.get("BUILD", "build"), "tests/windows")
DEFAULT = ["/lib/x86_64-linux-gnu/lib" + n for n in
           ("c.so.6", "stdc++.so.6", "python3.*.so.1.0", "sqlite3.so.0", "crypto.so.3")] + ["/usr/bin/redis-server"]


def output_of(command):
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace").stdout


def instructions(command):
    for line in output_of(command):
        m = re.match(r"\s*([0-9a-f]+):\t(.*)", line)
        if m:
            yield int(m.group(1), 16), m.group(2)


def plain(text):
    """The instruction with absolute addresses in place of displacements to RIP"""
    there = re.search(r"# (?:0x)?([0-9a-f]+)", text)
    text = re.sub(r"\s*#.*|\s*<.*?>", "", text)
    if there:
        text = re.sub(r"-?(0x)?[0-9a-f]+\(%rip\)", there.group(1) + "(%rip)", text)
    # hints of prefixes are not moved
    text = re.sub(r"^(\S*\s*j\w+\s+)0x", r"\1", text)
    return re.sub(r"\s+", " ", text).replace(",pn", "").replace(",pt", "").replace("bnd ", "").strip()


def depths(path, wanted):
    """Bytes below the stack pointer at entry at each of the addresses @wanted, where the unwind tables have it"""
    found, order, row = {}, sorted(wanted), None

    def apply(until):
        if row and row[1].startswith("rsp+"):
            for a in order[bisect.bisect_left(order, row[0]):bisect.bisect_left(order, until)]:
                found[a] = int(row[1][4:]) - 8

    end = 0
    for line in output_of(["readelf", "-wF", "--wide", path]):
        m = re.search(r"FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
        if m or " CIE" in line:
            apply(end)
            row, end = None, int(m.group(2), 16) if m else 0
            continue
        m = re.match(r"([0-9a-f]{16})\s+(\S+)", line)
        if m and end:
            apply(int(m.group(1), 16))
            row = (int(m.group(1), 16), m.group(2))
    apply(end)
    return found


def functions_of(path):
    m = re.search(r"(\d+) with windows", subprocess.run([TOOL, path], capture_output=True, text=True).stdout)
    return int(m.group(1)) if m else 0


class Check:
    def __init__(self):
        self.windows = self.moved = self.known = 0
        self.wrong = []

    def file(self, path):
        with tempfile.NamedTemporaryFile() as f:
            out = subprocess.run([TOOL, "--windows", "--moved", f.name, path], capture_output=True, text=True).stdout.splitlines()
            windows = [[int(x, 16) for x in line.split()[1:6]] + [int(x) for x in line.split()[6:]]
                       for line in out if line.startswith("window ")]
            pairs = [[int(x, 16) for x in line.split()[1:]] for line in out if line.startswith("moved ")]
            copies = dict(instructions(["objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "--adjust-vma=0x20000000",
                                        "--no-show-raw-insn", f.name]))
        code, targets, last, section_ends = {}, set(), None, set()
        for line in output_of(["objdump", "-d", "--no-show-raw-insn", path]):
            m = re.match(r"\s*([0-9a-f]+):\t(.*)", line)
            if not m:
                if line.startswith("Disassembly") and code:
                    section_ends.add(last)
                continue
            last, text = int(m.group(1), 16), m.group(2)
            code[last] = text
            t = re.match(r"(?:bnd |notrack )?(?:j\w+|call\w*|loop\w*|xbegin)(?:,p[nt])?\s+([0-9a-f]+)\b", text)
            if t:
                targets.add(int(t.group(1), 16))
        section_ends.add(last)
        wrong = self.places(windows, code, section_ends, sorted(targets))
        wrong += [f"{a:x} moved: {plain(code.get(a, '?'))} / {plain(copies.get(b, '-'))}" for a, b in pairs
                  if plain(code.get(a, "?")) != plain(copies.get(b, "-"))]
        wrong += self.frames(path, windows, code)
        self.windows += len(windows)
        self.moved += len(pairs)
        self.wrong += wrong
        print("\n".join(line for line in out if not line.startswith(("window ", "moved "))))
        print(f"  checked: {len(windows)} windows, {len(pairs)} moved instructions, {len(targets)} targets of branches; {len(wrong)} wrong")
        for w in wrong[:10]:
            print(f"    {w}")

    @staticmethod
    def places(windows, code, section_ends, targets):
        wrong, last = [], 0
        for at, length, entry, leave, starts, *_ in sorted(windows):
            ends = [at] + [at + i for i in range(1, 5) if starts >> i & 1] + ([leave] if leave else [])
            # behind the last instruction of a section objdump has nothing
            if any(a not in code for a in ends) or not (
                    at + length in code or any(a in section_ends for a in range(at, at + length))):
                wrong.append(f"{at:x}: not between instructions")
            if any(at + i in code and not starts >> i & 1 for i in range(1, 5)):
                wrong.append(f"{at:x}: an instruction that is no start")
            if not (entry or leave) or at < last:
                wrong.append(f"{at:x}: overlaps another, or is for nothing")
            if (at & 4095) > 4096 - 5:
                wrong.append(f"{at:x}: crosses a page boundary")
            last = at + length
            i = bisect.bisect_right(targets, at)
            if i < len(targets) and targets[i] < at + length:
                wrong.append(f"{at:x}: a branch lands at {targets[i]:x}")
        return wrong

    def frames(self, path, windows, code):
        wanted = {w[0]: w[5] for w in windows if w[2]}
        wanted.update({w[3]: w[6] for w in windows if w[3] and not re.search(r"\bret\b", code.get(w[3], ""))})
        known = depths(path, wanted)
        self.known += len(known)
        return [f"{a:x}: stack pointer {wanted[a]} below, {d} by the unwind tables" for a, d in known.items() if d != wanted[a]]


parser = argparse.ArgumentParser(usage=__doc__)
parser.add_argument("--programs", type=int, default=0)
parser.add_argument("files", nargs="*")
arguments = parser.parse_args()
files = arguments.files or [f for pattern in DEFAULT for f in sorted(glob.glob(pattern))]
if arguments.programs:
    programs = [f for f in glob.glob("/usr/bin/*") if os.path.isfile(f) and not os.path.islink(f)]
    programs = [f for f in programs if open(f, "rb").read(4) == b"\x7fELF"]
    files += sorted(programs, key=functions_of, reverse=True)[:arguments.programs]
check = Check()
for name in files:
    check.file(name)
print(f"{len(files)} files: {check.windows} windows, {check.moved} moved instructions, {check.known} places with unwind tables; "
      f"{len(check.wrong)} wrong")
sys.exit(bool(check.wrong) or not check.windows)
