# SPDX-License-Identifier: BSD-2-Clause
"""
A strict reader of CPEL files for the tests, written from the format's document and from the
behaviour of VPP's tools; it shares no code with kxray's exporter.

    python3 cpel.py [--document] FILE      prints the file's content as JSON

Without --document a file must be safe for all of VPP's tools: big-endian, clock in ticks per second,
string table first, one event section in order of time, no format that one of them misinterprets.
With --document the document's rules apply: either byte order, ticks per microsecond.
"""
import json
import re
import struct
import sys

STRTAB, SYMTAB, EVTDEF, TRACKDEF, EVENT = range(1, 6)
RUNNING, READY, ENTER, EXIT, ON_CPU, LOST, CUSTOM, OFF = range(1, 9)
DATUM_FORMATS = (b"%s", b"%d", b"%u", b"0x%x", b"0x%08x")


class Bad(Exception):
    """The file violates a rule."""


def need(condition, text):
    if not condition:
        raise Bad(text)


class Cpel:
    """
    sections: their types in order. symbols: (value, name). definitions: code to (event, datum
    format). tracks: id to name. events: (ticks, track, code, datum as text or number).
    """

    def __init__(self, data, document=False):
        self.data, self.document = data, document
        need(len(data) >= 8, "no file header")
        self.little = bool(data[0] & 0x80)
        need(data[0] & 0x7f == 1, f"version {data[0] & 0x7f}")
        need(document or not self.little, "little-endian, which no tool reads")
        need(data[1] == 0, "the unused byte is not 0")
        self.order = "<" if self.little else ">"
        nsections, self.date = self.get("HI", 2)
        self.sections, self.tables, self.symbols = [], {}, []
        self.definitions, self.tracks, self.events, self.clock = {}, {}, [], None
        at = 8
        for _ in range(nsections):
            need(at + 8 <= len(data), f"section header cut off at {at}")
            kind, length = self.get("II", at)
            at += 8
            need(at + length <= len(data), f"section of type {kind} at {at} is cut off")
            self.section(kind, at, length)
            at += length
        need(at == len(data), f"{len(data) - at} bytes after the last section")
        need(self.sections.count(EVENT) == 1, "not one event section")
        self.check_calls()

    def get(self, fmt, at):
        return struct.unpack_from(self.order + fmt, self.data, at)

    def section(self, kind, at, length):
        need(STRTAB <= kind <= EVENT, f"section type {kind}")
        need(length % 4 == 0, f"section of type {kind} has {length} bytes")
        self.sections.append(kind)
        if kind == STRTAB:
            self.string_table(at, length)
            return
        header = 72 if kind == EVENT else 68
        size = {SYMTAB: 8, EVTDEF: 12, TRACKDEF: 8, EVENT: 20}[kind]
        need(length >= header, f"section of type {kind} has {length} bytes")
        name = self.data[at:at + 64]
        need(name[63] == 0 and not name.rstrip(b"\0").count(b"\0"), "table name without an end")
        name = name.rstrip(b"\0")
        need(name in self.tables, f"string table {name} is not defined before its use")
        table = self.tables[name]
        n, = self.get("I", at + 64)
        need(length == header + n * size, f"section of type {kind}: {n} entries, {length} bytes")
        entries = range(at + header, at + length, size)
        {SYMTAB: self.symbol_table, EVTDEF: self.event_definitions,
         TRACKDEF: self.track_definitions, EVENT: self.event_section}[kind](table, at, entries)

    def string_table(self, at, length):
        need(len(self.sections) == 1, "the string table is not the first section")
        need(length % (4 if self.document else 8) == 0, f"string table of {length} bytes")
        data = self.data[at:at + length]
        need(data[-1:] == b"\0", "the string table has no final NUL")
        need(len(data) - len(data.rstrip(b"\0")) <= (5 if self.document else 9),
             "too much padding")
        name = data[:data.index(b"\0")]
        need(0 < len(name) < 64, "the string table has no name")
        need(name not in self.tables, f"two string tables {name}")
        self.tables[name] = data

    @staticmethod
    def string(table, offset):
        need(offset < len(table), f"string offset {offset} of {len(table)}")
        need(offset == 0 or table[offset - 1] == 0, f"string offset {offset} is inside a string")
        return table[offset:table.index(b"\0", offset)]

    def symbol_table(self, table, _, entries):
        before = -1
        for at in entries:
            value, name = self.get("II", at)
            need(value >= before, "symbols are not sorted")
            before = value
            self.symbols.append((value, self.text(self.string(table, name))))

    @staticmethod
    def text(data):
        return data.decode("utf-8", "backslashreplace")

    def event_definitions(self, table, _, entries):
        for at in entries:
            code, event, datum = self.get("III", at)
            need(code not in self.definitions, f"event {code} is defined twice")
            need(event and datum, "format offset 0, which every tool misinterprets")
            event, datum = self.string(table, event), self.string(table, datum)
            need(b"%" not in event, f"a format in event name {event}")
            need(datum in DATUM_FORMATS, f"datum format {datum}")
            self.definitions[code] = (self.text(event), self.text(datum))

    def track_definitions(self, table, _, entries):
        for at in entries:
            track, name = self.get("II", at)
            need(track not in self.tracks, f"track {track} is defined twice")
            name = self.string(table, name)
            if self.document:
                need(b"%" not in name.replace(b"%%", b""), f"a format in track name {name}")
                name = name.replace(b"%%", b"%")
                need(re.fullmatch(rb".+ t-?\d+\(-?\d+\)", name, re.S), f"track name {name}")
            else:
                # cpelatency: the first '(', the 't' before it
                need(re.fullmatch(rb"[^%()]+ t-?\d+\(-?\d+\)", name), f"track name {name}")
                need(all(byte >= 0x20 for byte in name), f"track name {name}")
            self.tracks[track] = self.text(name)

    def event_section(self, table, at, entries):
        self.clock, = self.get("I", at + 68)
        need(self.clock > 0, "the clock has no ticks")
        before = 0
        for entry in entries:
            high, low, track, code, datum = self.get("5I", entry)
            ticks = high << 32 | low
            need(ticks > 0, "a tick 0, which cpelatency treats as absent")
            need(ticks >= before, f"events are not sorted at {entry}")
            before = ticks
            need(track in self.tracks, f"track {track} is not defined")
            need(code in self.definitions, f"event {code} is not defined")
            if self.definitions[code][1] == "%s":
                datum = self.text(self.string(table, datum))
                # It is printed to terminals as it is.
                need(datum.isprintable(), f"{datum!r} has control characters")
            self.events.append((ticks, track, code, datum))

    def ids(self, track):
        tid, pid = re.search(r" t(-?\d+)\((-?\d+)\)$", self.tracks[track]).groups()
        return int(pid), int(tid)

    def check_calls(self):
        stacks, state = {}, {}
        self.calls = []  # track, name, start, end, time in callees, whether it's the outermost
        for ticks, track, code, datum in self.events:
            stack = stacks.setdefault(track, [])
            if code == ENTER:
                stack.append([datum, ticks, len(self.calls), 0])
                self.calls.append(None)
            elif code == EXIT:
                need(stack and stack[-1][0] == datum, f"exit of {datum} at {ticks}")
                name, start, index, callees = stack.pop()
                if stack:
                    stack[-1][3] += ticks - start
                outermost = all(frame[0] != name for frame in stack)
                self.calls[index] = (track, name, start, ticks, callees, outermost)
            elif code in (RUNNING, READY):
                pid, tid = self.ids(track)
                need(datum == f"pid:{pid} tid:{tid}", f"{datum} on track {self.tracks[track]}")
                need(code == READY or self.is_kernel(track) or state.get(track) != code,
                     f"{datum} runs twice")
                state[track] = code
            elif code == OFF:
                need(state.get(track) in (None, RUNNING), f"off the CPU, but not on it, at {ticks}")
                state[track] = code
        need(not any(stacks.values()), "calls are open at the end")
        need(set(track for _, track, _, _ in self.events) == set(self.tracks),
             "a track without events")

    def is_kernel(self, track):
        """Whether cpelstate leaves the track out of its sums."""
        return self.tracks[track].startswith("kernel ")

    def cpelstate(self):
        """Per track: how often and how many ticks it is in its state, which ends with any track's next one."""
        result, since, running = {}, None, None
        for ticks, track, code, _ in self.events:
            if code != RUNNING:
                continue
            if since is not None:
                n, total = result.get(running, (0, 0))
                result[running] = n + 1, total + ticks - since
            since, running = ticks, self.tracks[track]
        return {name: value for name, value in result.items() if not name.startswith("kernel ")}

    def cpelatency(self):
        """Per track: how often and how many ticks it waits from ready to running."""
        result, since = {}, {}
        for ticks, track, code, _ in self.events:
            if code == READY:
                since[track] = ticks
            elif code == RUNNING and track in since:
                n, total = result.get(self.tracks[track], (0, 0))
                result[self.tracks[track]] = n + 1, total + ticks - since.pop(track)
        return result

    def states(self):
        """Per track: how often it is running, ready and off the CPU."""
        result = {}
        for _, track, code, _ in self.events:
            if code in (RUNNING, READY, OFF) and not self.is_kernel(track):
                counts = result.setdefault(self.tracks[track], [0, 0, 0])
                counts[(RUNNING, READY, OFF).index(code)] += 1
        return result

    def ns(self, ticks):
        hz = self.clock * (1000000 if self.document else 1)
        return (ticks * 1000000000 + hz // 2) // hz

    def summary(self):
        functions, tracks = {}, {}
        for track, name, start, end, callees, outermost in self.calls:
            f = functions.setdefault(name, {"count": 0, "ticks": 0, "total": 0, "self": 0})
            f["count"] += 1
            f["ticks"] += end - start
            f["total"] += outermost * (end - start)
            f["self"] += end - start - callees
            counts = tracks.setdefault(self.tracks[track], {})
            counts[name] = counts.get(name, 0) + 1
        for f in functions.values():
            f["total_ns"], f["self_ns"] = self.ns(f["total"]), self.ns(f["self"])
        codes = {}
        for _, _, code, _ in self.events:
            codes[self.definitions[code][0]] = codes.get(self.definitions[code][0], 0) + 1
        return {"little": self.little, "date": self.date, "clock": self.clock,
                "sections": self.sections, "events": len(self.events), "codes": codes,
                "lost": sum(e[3] for e in self.events if e[2] == LOST),
                "symbols": self.symbols, "functions": functions, "tracks": tracks,
                "cpelstate": self.cpelstate(), "cpelatency": self.cpelatency(),
                "states": self.states(),
                "all_tracks": sorted(self.tracks.values())}


def main():
    args = [a for a in sys.argv[1:] if a != "--document"]
    with open(args[0], "rb") as f:
        data = f.read()
    try:
        json.dump(Cpel(data, "--document" in sys.argv).summary(), sys.stdout)
    except (Bad, struct.error, ValueError) as e:
        sys.exit(f"{args[0]}: {e}")


if __name__ == "__main__":
    main()
