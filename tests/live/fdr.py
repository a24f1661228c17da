# SPDX-License-Identifier: BSD-2-Clause
"""
A strict reader of XRay's FDR format, versions 1 to 5, for the tests. It is written from
the format's document and shares no code with kxray's own reader, so that one mistake cannot
affect both.

    python3 fdr.py TRACE [MAP]      checks the trace, prints a summary of each thread

It checks all rules of the format while it reads: the order of records, buffer
sizes, balanced call stacks, time that never decreases, the first records of every thread.
"""
import json
import struct
import sys

ENTRY, EXIT, TAIL, ENTRY_ARGS = range(4)
(NEW_BUFFER, END_OF_BUFFER, NEW_CPU, TSC_WRAP, WALL_TIME, CUSTOM, ARGUMENT, EXTENTS, TYPED,
 PID) = range(10)


class Bad(Exception):
    """The trace breaks a rule of the format."""


class Record:
    """One record of a thread: kind is entry, exit, tail, cpu, wrap or custom."""
    __slots__ = ("kind", "tsc", "cpu", "func", "args", "data", "at")

    def __init__(self, kind, tsc, cpu, at, func=0, data=None):
        self.kind, self.tsc, self.cpu, self.at = kind, tsc, cpu, at
        self.func, self.data, self.args = func, data, None


class Thread:
    def __init__(self, tid):
        self.tid, self.pid, self.records, self.buffers = tid, 0, [], 0
        self.stack, self.repairs_due, self.repaired = [], 0, 0

    def notes(self, kind):
        prefix = b"kxray:" + kind.encode() + b" "
        return [json.loads(r.data[len(prefix):]) for r in self.records
                if r.kind == "custom" and r.data.startswith(prefix)]

    @property
    def name(self):
        return self.notes("thread")[0]["name"]

    def counts(self):
        """Entries by function id."""
        counts = {}
        for r in self.records:
            if r.kind == "entry":
                counts[r.func] = counts.get(r.func, 0) + 1
        return counts


class Trace:
    """
    threads: by thread id; if several threads had the same id one after the other, all but the last one
    are under (id, 1), (id, 2), ... truncated: the last buffer is cut off, which is an error
    unless allow_truncated. allow_open allows calls that are open at a thread's end.
    """

    def __init__(self, path, allow_truncated=False, allow_open=False):
        with open(path, "rb") as f:
            self.bytes = f.read()
        self.threads, self.walls, self.truncated, self.at = {}, {}, False, 32
        if len(self.bytes) < 32:
            raise Bad("no header")
        (self.version, kind, flags, self.hz, self.buffer_size,
         reserved) = struct.unpack_from("<HHIQQQ", self.bytes, 0)
        if not 1 <= self.version <= 5 or kind != 1:
            raise Bad(f"version {self.version}, type {kind}")
        if flags & ~3 or reserved:
            raise Bad("reserved bits of the header are not 0")
        self.constant_tsc, self.nonstop_tsc = bool(flags & 1), bool(flags & 2)
        while self.at < len(self.bytes):
            start = self.at
            try:
                self._buffer()
            except (struct.error, EOFError):
                if not allow_truncated:
                    raise Bad(f"the buffer at {start} is cut off") from None
                self.truncated = True
                break
        for t in self.threads.values():
            if t.stack and not allow_open and not self.truncated:
                raise Bad(f"thread {t.tid} ends with {len(t.stack)} open calls")
        starts = {t.records[0].tsc for t in self.threads.values() if t.records}
        if len(starts) > 1:
            raise Bad(f"threads start at {len(starts)} different times")

    def _metadata(self, want):
        """The 15 bytes of a metadata record that must be here."""
        if self.at + 16 > len(self.bytes):
            raise EOFError
        if self.bytes[self.at] != want << 1 | 1:
            raise Bad(f"byte {self.bytes[self.at]:#x} at {self.at}, metadata {want} is due")
        self.at += 16
        return self.bytes[self.at - 15:self.at]

    def _buffer(self):
        begin, end = self.at, len(self.bytes)
        if self.version == 1:
            end = begin + self.buffer_size
        elif self.version >= 3:
            size, = struct.unpack_from("<Q", self._metadata(EXTENTS))
            end = self.at + size
        if end > len(self.bytes):
            raise EOFError
        tid, = struct.unpack_from("<i", self._metadata(NEW_BUFFER))
        wall = struct.unpack_from("<QI", self._metadata(WALL_TIME))
        pid = None
        if self.version >= 2:
            pid, = struct.unpack_from("<i", self._metadata(PID))
        if tid in self.threads and self._is_birth():
            life = 1
            while (tid, life) in self.threads:
                life += 1
            self.threads[tid, life] = self.threads.pop(tid)
        if tid not in self.threads:
            self.threads[tid] = Thread(tid)
            self.threads[tid].pid = pid
        t = self.threads[tid]
        t.buffers += 1
        if pid != t.pid:
            raise Bad(f"thread {tid} is of processes {t.pid} and {pid}")
        before = self.walls.get((pid, tid), (-1, -1))
        if wall[0] <= before[0] or wall[1] <= before[1]:
            raise Bad(f"wall times of thread {tid}: {before}, then {wall}")
        self.walls[pid, tid] = wall
        self._body(t, end)

    def _is_birth(self):
        """True if the buffer begins at the trace's start, with the name of its thread."""
        first = next(iter(self.threads.values())).records[0]
        _, tsc = struct.unpack_from("<HQ", self.bytes, self.at + 1)
        return tsc == first.tsc and self.bytes.startswith(b"kxray:thread ", self.at + 32)

    def _body(self, t, end):
        cpu, tsc = struct.unpack_from("<HQ", self._metadata(NEW_CPU))
        # A buffer's first CPU record is not a migration if the thread is still on the same CPU.
        if not t.records or t.records[-1].cpu != cpu:
            self._add(t, Record("cpu", tsc, cpu, self.at - 16))
        while self.at < end:
            at, first = self.at, self.bytes[self.at]
            if first & 1 == 0:
                word, delta = struct.unpack_from("<II", self.bytes, at)
                self.at += 8
                tsc += delta
                self._function(t, word >> 1 & 7, word >> 4, tsc, cpu, at, end)
            elif first >> 1 == NEW_CPU:
                before = cpu
                cpu, tsc = struct.unpack_from("<HQ", self._metadata(NEW_CPU))
                # A thread's CPU before its first event may be unknown.
                if cpu == before and any(r.func for r in t.records[-2:]):
                    raise Bad(f"a CPU change at {at} from {cpu} to {cpu}")
                self._add(t, Record("cpu", tsc, cpu, at))
            elif first >> 1 == TSC_WRAP:
                tsc, = struct.unpack_from("<Q", self._metadata(TSC_WRAP))
                self._add(t, Record("wrap", tsc, cpu, at))
            elif first >> 1 == CUSTOM:
                tsc = self._custom(t, tsc, cpu, at, end)
            elif first >> 1 == END_OF_BUFFER and self.version == 1:
                self.at += 16
                if any(self.bytes[self.at:end]) or (end - self.at) % 8:
                    raise Bad(f"the fill at {self.at} is not zeros, a multiple of 8 bytes")
                self.at = end
                return
            elif first >> 1 == NEW_BUFFER and self.version == 2:
                return
            else:
                raise Bad(f"metadata {first >> 1} at {at}")
        if self.version == 1:
            raise Bad(f"the buffer that ends at {end} has no EndOfBuffer")
        if self.at != end:
            raise Bad(f"a record at {at} reaches over the buffer's end")

    def _function(self, t, action, func, tsc, cpu, at, end):
        if func == 0:
            raise Bad(f"function id 0 at {at}")
        kind = {ENTRY: "entry", EXIT: "exit", TAIL: "tail", ENTRY_ARGS: "entry"}.get(action)
        if kind is None:
            raise Bad(f"function record {action} at {at}")
        record = Record(kind, tsc, cpu, at, func)
        if kind == "entry":
            if t.repairs_due:
                raise Bad(f"an entry at {at}, {t.repairs_due} repaired exits are due")
            t.stack.append(func)
        else:
            if not t.stack or t.stack[-1] != func:
                raise Bad(f"exit of {func} at {at} on a stack {t.stack[-3:]}")
            t.stack.pop()
            if t.repairs_due:
                t.repairs_due -= 1
                t.repaired += 1
        if action == ENTRY_ARGS:
            record.args = []
            while self.at < end and self.bytes[self.at] == ARGUMENT << 1 | 1:
                record.args += struct.unpack_from("<Q", self._metadata(ARGUMENT))
            if not record.args:
                raise Bad(f"an entry with arguments at {at} has none")
        self._add(t, record)

    def _custom(self, t, tsc, cpu, at, end):
        body = self._metadata(CUSTOM)
        if self.version == 5:
            size, delta = struct.unpack_from("<ii", body)
            event = tsc = tsc + delta
        else:
            size, event, its_cpu = struct.unpack_from("<iQH", body)
            # Version 1 has reserved bytes there.
            if its_cpu != (cpu if self.version > 1 else 0):
                raise Bad(f"a custom event at {at} of CPU {its_cpu} on CPU {cpu}")
        if size <= 0 or self.at + size > end or self.version == 1 and size % 8:
            raise Bad(f"a custom event at {at} of {size} bytes")
        record = Record("custom", event, cpu, at, 0, self.bytes[self.at:self.at + size])
        self.at += size
        if record.data.startswith(b"kxray:repaired "):
            t.repairs_due += json.loads(record.data[15:])["exits"]
        self._add(t, record)
        return tsc

    @staticmethod
    def _add(t, record):
        first = len(t.records) > 2 or [r for r in t.records if r.kind != "cpu"]
        if not first and record.kind != "cpu" and (
                record.kind != "custom" or not record.data.startswith(b"kxray:thread ")):
            raise Bad(f"thread {t.tid} does not start with its name")
        if t.records and record.tsc < t.records[-1].tsc:
            raise Bad(f"time goes back at {record.at} by {t.records[-1].tsc - record.tsc} ticks, "
                      f"{t.records[-1].kind} to {record.kind}, thread {t.tid}")
        t.records.append(record)

    def functions(self):
        return [r for t in self.threads.values() for r in t.records
                if r.kind in ("entry", "exit", "tail")]

    def notes(self, kind):
        return [n for t in self.threads.values() for n in t.notes(kind)]

    def repaired(self):
        return sum(t.repaired for t in self.threads.values())


def map_names(path):
    """Names by function id, from the ELF's xray_instr_map and symbol table (no demangling)."""
    with open(path, "rb") as f:
        elf = f.read()
    shoff, = struct.unpack_from("<Q", elf, 40)
    size, count, strings = struct.unpack_from("<HHH", elf, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, shoff + i * size) for i in range(count)]

    def text(section, offset):
        start = section[4] + offset
        return elf[start:elf.index(b"\0", start)].decode()

    sleds, symbols = None, {}
    for s in sections:
        if text(sections[strings], s[0]) == "xray_instr_map":
            sleds = s
        if s[1] == 2:  # SHT_SYMTAB
            for at in range(s[4], s[4] + s[5], s[9]):
                name, info, _, _, value, _ = struct.unpack_from("<IBBHQQ", elf, at)
                if info & 15 in (0, 2) and name:
                    symbols.setdefault(value, text(sections[s[6]], name))
    names, last, number = {}, None, 0
    for at in range(sleds[4], sleds[4] + sleds[5], 32):
        _, function, _, _, version = struct.unpack_from("<QQBBB", elf, at)
        if version >= 2:
            function = (function + sleds[3] + at - sleds[4] + 8) % (1 << 64)
        if function != last:
            number, last = number + 1, function
            names[number] = symbols.get(function)
    return names


def main():
    trace = Trace(sys.argv[1], allow_truncated=True, allow_open=True)
    names = map_names(sys.argv[2]) if len(sys.argv) > 2 else {}
    print(f"version {trace.version}, {trace.hz} Hz" + (", cut off" if trace.truncated else ""))
    for t in trace.threads.values():
        print(f"thread {t.tid} of {t.pid} {t.name}: {t.buffers} buffers, {t.repaired} repaired")
        for func, n in sorted(t.counts().items()):
            print(f"    {n:8} {names.get(func, func)}")


if __name__ == "__main__":
    try:
        main()
    except Bad as e:
        sys.exit(f"bad trace: {e}")
