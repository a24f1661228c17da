# SPDX-License-Identifier: BSD-2-Clause
"""Compares a process's code with its program's file.

    process_code.py PID     prints how many bytes differ
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


if __name__ == "__main__":
    print(changed_bytes(int(sys.argv[1])))
