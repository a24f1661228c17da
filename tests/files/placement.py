#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Walks all ways through the functions whose exits are not at their return instructions, in objdump's disassembly.

    placement.py BINARY PLACES...    PLACES: files with what `placement --places BINARY` prints

Each way that returns must come to the entry's place once, then to exactly one exit whose condition holds, then straight
to a return instruction, past at most one exit whose condition does not hold; and at each exit the stack pointer must be
as far below its first value as the exit's frame says. The entry of every function must be in the straight code that it begins
with, as far below as the entry's frame says. Writes to PLACES.out a line for each fault, then "N functions, N exits, N returns, N entries behind pushes".
"""
import re
import subprocess
import sys

CONDITIONS = "o no b ae e ne be a s ns p np l ge le g".split()
# Where nothing comes back from, whatever follows the call in memory.
NO_RETURN = re.compile(r"abort|exit|fail|fatal|throw|_Unwind_Resume|terminate|assert|die|report|panic|raise|longjmp|siglongjmp|"
                       r"unreachable|overflow|__libc_message|_dl_signal|error|croak|errx", re.I)
BRANCH = re.compile(r"^(?:bnd |notrack |ds )*(j[a-z]+|loop[a-z]*)(?:,p[nt])? +([0-9a-f]+)\b")
FARTHEST = 24  # instructions behind an exit


def disassemble(path):
    """Address: (text, address of the next one)."""
    out = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-w", path], stdout=subprocess.PIPE, check=True, text=True)
    code, last = {}, None
    for line in out.stdout.splitlines():
        at = re.match(r"^ +([0-9a-f]+):\t(.+?)\s*$", line)
        if not at:
            continue
        addr = int(at.group(1), 16)
        if last is not None:
            code[last][1] = addr
        code[addr] = [at.group(2), None]
        last = addr
    return code


def moved(text, depth):
    """Depth of the stack after the instruction; None: not known."""
    if depth is None:
        return None
    if re.match(r"push", text):
        return depth + 8
    if re.match(r"pop", text):
        return depth - 8
    at = re.match(r"(sub|add)q? +\$(-?)0x([0-9a-f]+),%rsp", text)
    if at:
        n = int(at.group(3), 16) * (-1 if at.group(2) else 1)
        n = n - (1 << 64) if n >= 1 << 63 else n
        return depth + (n if at.group(1) == "sub" else -n)
    at = re.match(r"lea +(-?)0x([0-9a-f]+)\(%rsp\),%rsp", text)
    if at:
        return depth - int(at.group(2), 16) * (-1 if at.group(1) else 1)
    return None if re.search(r",%r?sp$|^leave|^enter", text) else depth


class Function:
    """Checks one."""

    def __init__(self, code, words):
        self.code = code
        self.name, self.start, self.end, self.entry, self.frame = words[0], *(int(w, 16) for w in words[1:5])
        self.exits = {}
        for word in words[5:]:
            kind, addr, cost, frame, condition = word.rsplit(":", 4)
            if int(addr, 16) in self.exits:
                self.fault(int(addr, 16), "two exits at one place")
            self.exits[int(addr, 16)] = (kind, cost, int(frame, 16), None if condition == "-" else int(condition, 16))
        self.faults = []
        self.returns = set()

    def check_entry(self):
        """The way from the first instruction to the entry's place. Returns whether it is behind pushes."""
        addr, depth, pushes = self.start, 0, 0
        while addr != self.entry:
            text = self.code[addr][0] if addr in self.code else "nothing"
            if BRANCH.match(text) or re.match(r"nothing|(?:bnd |notrack )*(?:call|jmp)|(?:repz? |bnd )*ret|syscall|int|lock", text):
                self.fault(addr, f"the entry's place is behind {text.split()[0]}")
                return False
            pushes += text.startswith("push")
            addr, depth = self.code[addr][1], moved(text, depth)
        if depth != self.frame:
            self.fault(addr, f"the entry's place is {depth} bytes deep, not {self.frame}")
        return pushes > 0

    def moved(self):
        """How many exits are at jumps that lead to a return instruction."""
        return sum(kind == "exit" and cost != "stepped" for kind, cost, _, _ in self.exits.values())

    def fault(self, addr, what):
        """Notes it."""
        self.faults.append(f"{self.name}: {what} at {addr:x}")

    def edges(self, addr):
        """(next address, whether by a taken branch) after the instruction."""
        text, after = self.code[addr]
        branch = BRANCH.match(text)
        if branch:
            taken = [(int(branch.group(2), 16), True)]
            return taken if branch.group(1) in ("jmp", "jmpq") else taken + [(after, False)]
        call = re.match(r"(?:bnd |notrack )*call", text)
        if re.match(r"ud2|hlt|int3", text) or (call and (NO_RETURN.search(text) or after is None or after == self.end)):
            return []
        return [(after, False)]

    def leaves(self, addr, taken):
        """Whether the exit at @addr, if there is one, is met by this way on: None, False or its kind."""
        if addr not in self.exits:
            return None
        kind, _, _, condition = self.exits[addr]
        branch = BRANCH.match(self.code[addr][0])
        if condition is None:
            return kind
        mine = CONDITIONS.index({"z": "e", "nz": "ne", "c": "b", "nc": "ae"}.get(branch.group(1)[1:], branch.group(1)[1:]))
        if condition not in (mine, mine ^ 1):
            self.fault(addr, "a condition that is not the jump's")
        return kind if taken == (condition == mine) else False

    def step(self, state):
        """States after it; None at the end of the way."""
        addr, depth, entered, behind, passed = state
        text = self.code[addr][0]
        if addr == self.entry:
            if entered:
                self.fault(addr, "the entry comes twice")
                return []
            entered = True
        if behind is not None:
            behind += 1
            if behind > FARTHEST or re.match(r"call|syscall|int|lock|rep s|.*endbr", text) or BRANCH.match(text):
                self.fault(addr, "more than an epilogue follows an exit")
                return []
        if re.match(r"(?:repz? |bnd )*ret", text):
            self.returns.add(addr)
            if behind is None:
                self.fault(addr, "returns without an exit")
            if depth:
                self.fault(addr, f"returns {depth} bytes deep (or this walk has gone wrong)")
            if passed > 1:
                self.fault(addr, f"has passed {passed} exits")
            return []
        out = []
        for after, taken in self.edges(addr):
            left = self.leaves(addr, taken)
            if left == "tail":
                continue
            if left:
                if not entered or behind is not None:
                    self.fault(addr, "left before it is entered, or twice")
                if depth is not None and depth != self.exits[addr][2]:
                    self.fault(addr, f"{depth} bytes deep, not {self.exits[addr][2]}")
            if after not in self.code:
                self.fault(addr, "goes where nothing is")
                continue
            out.append((after, moved(text, depth), entered, 0 if left else behind, min(passed + (left is False), 2)))
        return out

    def check(self):
        """Follows all ways."""
        todo, seen = [(self.start, 0, False, None, 0)], set()
        while todo and len(self.faults) < 3:
            state = todo.pop()
            if state in seen:
                continue
            seen.add(state)
            if len(seen) > 200000:
                self.fault(state[0], "too many ways")
            todo += self.step(state)


def check(code, places, out):
    """All functions of one binary."""
    functions = exits = returns = pushed = 0
    for line in places:
        f = Function(code, line.split())
        pushed += f.check_entry()
        if f.moved():
            f.check()
            functions, exits, returns = functions + 1, exits + f.moved(), returns + len(f.returns)
        for fault in sorted(set(f.faults)):
            print(fault, file=out)
    print(f"{functions} functions, {exits} exits, {returns} returns, {pushed} entries behind pushes", file=out)


def main():
    """To disassemble the binary takes longest."""
    code = disassemble(sys.argv[1])
    for name in sys.argv[2:]:
        with open(name, encoding="utf-8") as places, open(name + ".out", "w", encoding="utf-8") as out:
            check(code, places, out)


main()
