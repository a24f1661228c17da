# SPDX-License-Identifier: BSD-2-Clause
"""Compares a process's code with its program's file.

    process_code.py PID             prints how many bytes differ
    process_code.py PID LIBRARY     the same for a library that it has loaded
    process_code.py PID enabled     in how many of kxray's code areas calls are recorded (tracer/patch_area.h)
    process_code.py PID switch-off  notes in the rings that the recorder has switched itself off, as behind a reader that sleeps
    process_code.py --vdso PID      in how many bytes its vDSO differs from this process's
"""
import os
import struct
import sys


def changed_bytes(pid, program=None):
    """Bytes in which the code of a program or a library differs from its file. Libraries of others may have their probes."""
    changed = looked = 0
    program = program or os.readlink(f"/proc/{pid}/exe")
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


def tables(pid, memory):
    """Addresses of kxray's head pages and rings, by code area."""
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            if " r-xs " not in line or "/dev/zero (deleted)" not in line:
                continue
            memory.seek(int(line.split("-")[0], 16))
            magic, head, *_, rings = struct.unpack("8s6Q", memory.read(56))
            if magic.startswith(b"xkpatch") or magic.startswith(b"xkpatch"[::-1]):
                yield head, rings


def enabled_areas(pid):
    """Code areas whose head page says that calls are recorded."""
    enabled = 0
    with open(f"/proc/{pid}/mem", "rb") as memory:
        for head, _ in tables(pid, memory):
            memory.seek(head)
            enabled += struct.unpack("8sI", memory.read(12))[1]
    return enabled


def note_switched_off(pid):
    with open(f"/proc/{pid}/mem", "r+b", 0) as memory:
        _, rings = next(tables(pid, memory))
        memory.seek(rings + 60)  # switched_off (tracer/target_rings.h)
        memory.write(struct.pack("I", 1))


if __name__ == "__main__":
    if sys.argv[1] == "--vdso":
        print(changed_vdso(int(sys.argv[2])))
    elif sys.argv[2:] == ["enabled"]:
        print(enabled_areas(int(sys.argv[1])))
    elif sys.argv[2:] == ["switch-off"]:
        note_switched_off(int(sys.argv[1]))
    else:
        print(changed_bytes(int(sys.argv[1]), *sys.argv[2:3]))
