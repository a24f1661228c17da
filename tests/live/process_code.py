# SPDX-License-Identifier: BSD-2-Clause
"""Compares a process's code with its program's file.

    process_code.py PID          prints how many bytes differ
    process_code.py --vdso PID   in how many its vDSO differs from this process's
"""
import os
import sys


def changed_bytes(pid):
    """Bytes in which the program's code differs from its file. Libraries may have others' probes."""
    changed = looked = 0
    program = os.readlink(f"/proc/{pid}/exe")
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            field = line.split()
            if "x" not in field[1] or field[5:] != [program]:
                continue
            start, end = (int(x, 16) for x in field[0].split("-"))
            memory.seek(start)
            mapped = memory.read(end - start)
            with open(field[5], "rb") as file:
                file.seek(int(field[2], 16))
                wanted = file.read(end - start).ljust(end - start, b"\0")
            looked += len(mapped)
            if mapped != wanted:
                changed += sum(a != b for a, b in zip(mapped, wanted))
    assert looked > 0
    return changed


def vdso(pid):
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        start, end = (int(x, 16) for x in next(m for m in maps if m.endswith("[vdso]\n")).split()[0].split("-"))
        memory.seek(start)
        return memory.read(end - start)


def changed_vdso(pid):
    own, other = vdso("self"), vdso(pid)
    assert own and len(own) == len(other)
    return sum(a != b for a, b in zip(own, other))


if __name__ == "__main__":
    print(changed_vdso(int(sys.argv[2])) if sys.argv[1] == "--vdso" else changed_bytes(int(sys.argv[1])))
