#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Strict reader of AutoFDO GCOV version 4 (RFC of April 2026), binary and text.

    gcov_v4.py FILE...

Prints the profile as JSON. Several files must have the same profile. Written from the document
alone; where it is ambiguous, the stricter interpretation applies: no trailing bytes, no overlap,
minimal varints, sorted and unique records, a summary that matches the records.
"""
import json
import sys

STRING_TABLE, SUMMARY, FILE_NAMES, SYMBOL_NAMES, SYMBOL_INFO = range(1, 6)
ZERO, NORMAL, WIDE, CALLED_FN, CALLED_FNS, INLINED_FN = range(1, 7)
NONE = 0xFFFFFFFF
CUTOFFS = [10000, 100000, 200000, 300000, 400000, 500000, 600000, 700000, 800000, 900000,
           950000, 990000, 999000, 999900, 999990, 999999]


class Bad(Exception):
    pass


def check(condition, *why):
    if not condition:
        raise Bad(" ".join(str(w) for w in why))


class Bytes:
    def __init__(self, data, at, end, compact):
        self.data, self.at, self.end, self.compact = data, at, end, compact

    def raw(self, n):
        check(self.at + n <= self.end, "cut off at byte", self.at)
        self.at += n
        return self.data[self.at - n:self.at]

    def u8(self):
        return self.raw(1)[0]

    def uint(self, width):
        if not self.compact:
            return int.from_bytes(self.raw(width), "big")
        value, shift = 0, 0
        while True:
            byte = self.u8()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        check(byte or shift == 7, "varint with needless bytes before", self.at)
        check(value < 1 << 8 * width, "varint too large for", width, "bytes before", self.at)
        return value


def trie(b, strings, prefix, is_root, lone, depth=0):
    """One node; @lone: the edge to it has the maximum length, so a single child is allowed."""
    flags = b.u8()
    nchildren, terminal = flags & 0x7F, flags >> 7
    if terminal:
        index = b.uint(4)
        check(index not in strings, "two strings of number", index)
        check(is_root == (prefix == b""), "a string ends in the wrong node")
        strings[index] = prefix
    if not is_root and not terminal and not lone:
        check(nchildren >= 2, "trie is not path-compressed at", prefix)
    check(nchildren or terminal or is_root, "leaf that ends no string")
    firsts = []
    for i in range(nchildren):
        length = b.uint(2)
        label = b.raw(length)
        if not label:
            check(i == 126, "child without label that is not the 127th")
        else:
            check(b"\0" not in label, "NUL in a label")
            firsts.append(label[0])
        trie(b, strings, prefix + label, False, length == 0xFFFF or not label, depth + 1)
    check(firsts == sorted(set(firsts)), "siblings unsorted or with one first byte")


def strings_of(b):
    count = b.uint(4)
    strings = {}
    trie(b, strings, b"", True, False)
    check(sorted(strings) == list(range(count)), "string numbers are no permutation")
    table = [strings[i] for i in range(count)]
    check(len(set(table)) == count, "a string twice")
    return [s.decode() for s in table]


def summary_of(b):
    s = {k: b.uint(8) for k in ("total_count", "max_count", "max_fn_count", "num_counts",
                                "num_functions", "num_detailed_entries")}
    s["detailed_entries"] = [
        {"cutoff": b.uint(4), "min_count": b.uint(8), "num_counts": b.uint(8)}
        for _ in range(s["num_detailed_entries"])]
    return s


class Profile:
    def __init__(self):
        self.files, self.summary, self.symbols, self.functions = [], {}, {}, {}

    def location_key(self, line, disc):
        check(line < 1 << 24, "line offset of more than 3 bytes")
        check(disc < 1 << 16, "discriminator of more than 2 bytes")
        return "%d.%d" % (line, disc)

    def finish(self):
        """Rules for both forms."""
        counts = []

        def walk(body):
            counts.extend(body["locations"].values())
            for targets in body["calls"].values():
                check(targets, "call site without target")
                for symbol in targets:
                    check(symbol in self.symbols, "call of unknown symbol", symbol)
            for inner in body["inlined"].values():
                check(inner["symbol"] in self.symbols, "unknown inlined symbol")
                walk(inner["body"])
        for f in self.functions.values():
            walk(f["body"])
        counts.sort(reverse=True)
        total = sum(counts)
        s = self.summary
        want = {"total_count": total, "max_count": max(counts, default=0),
                "max_fn_count": max((f["head"] for f in self.functions.values()), default=0),
                "num_counts": len(counts), "num_functions": len(self.functions)}
        for key, value in want.items():
            check(s[key] == value, "summary", key, "is", s[key], "and not", value)
        entries = s["detailed_entries"]
        check(len(entries) == s["num_detailed_entries"], "number of detailed entries")
        check([e["cutoff"] for e in entries] == (CUTOFFS if total else []), "cutoffs")
        for e in entries:
            wanted, running, smallest = total * e["cutoff"] // 1000000, 0, counts[0]
            for c in counts:
                if running >= wanted and running:
                    break
                running, smallest = running + c, c
            check(e["min_count"] == smallest, "cutoff", e["cutoff"], "min_count", e["min_count"],
                  "and not", smallest)
            check(e["num_counts"] == sum(c >= smallest for c in counts), "cutoff num_counts")
        for f in self.functions.values():
            check(f["head"] == 0 or f["timestamp"] > 0, "called function without a time")

    def canonical(self):
        def name(symbol):
            return self.symbols[symbol]["name"]

        def body(b):
            return {"locations": b["locations"],
                    "calls": {at: {name(s): n for s, n in t.items()}
                              for at, t in b["calls"].items()},
                    "inlined": {"%s:%s" % (at, name(i["symbol"])): dict(
                        body(i["body"]), file=self.symbols[i["symbol"]]["file"])
                        for (at, _), i in b["inlined"].items()}}
        functions = {}
        for symbol, f in self.functions.items():
            key = name(symbol)
            if key in functions:
                key += "#%d" % symbol
            functions[key] = dict(body(f["body"]), id=symbol, head=f["head"],
                                  timestamp=f["timestamp"], file=self.symbols[symbol]["file"])
        return {"version": 4, "files": self.files, "summary": self.summary,
                "functions": functions}


# Binary

def body_of(p, b):
    body = {"locations": {}, "calls": {}, "inlined": {}}
    last = (-1, 0, 0, 0)
    for _ in range(b.uint(4)):
        flags = b.u8()
        kind = flags & 0x7F
        check(kind, "location of type 0")
        line = b.uint(3)
        disc = b.uint(2) if flags & 0x80 else 0
        check(disc or not flags & 0x80, "discriminator 0 written out")
        at = p.location_key(line, disc)
        if kind in (ZERO, NORMAL, WIDE):
            order = (line, disc, 0, 0)
            count = 0 if kind == ZERO else b.uint(4 if kind == NORMAL else 8)
            check(kind != NORMAL or count, "NORMAL count of 0")
            check(kind != WIDE or count > 0xFFFFFFFF, "WIDE count that is not wide")
            body["locations"][at] = count
        elif kind in (CALLED_FN, CALLED_FNS):
            order = (line, disc, 1, 0)
            n = 1 if kind == CALLED_FN else b.uint(4)
            check(kind == CALLED_FN or n > 1, "CALLED_FNS of", n)
            targets = {}
            for _ in range(n):
                symbol, count = b.uint(4), b.uint(8)
                check(symbol not in targets, "target twice")
                targets[symbol] = count
            body["calls"][at] = targets
        elif kind == INLINED_FN:
            symbol = b.uint(4)
            order = (line, disc, 2, symbol)
            body["inlined"][(at, symbol)] = {"symbol": symbol, "body": body_of(p, b)}
        else:
            b.raw(b.uint(4))
            continue
        check(order > last, "locations unsorted or double at", at)
        last = order
    return body


def read_binary(data):
    p = Profile()
    check(data[:8] == b"gcov\0\0\0\4", "magic or version", data[:8])
    check(len(data) > 8, "no header")
    flags = data[8]
    check(flags & 0x7F == 0, "reserved bits set")
    h = Bytes(data, 9, len(data), bool(flags & 0x80))
    nsections = h.uint(7) + 2
    table = []
    for _ in range(nsections):
        offset = h.uint(8)
        table.append((offset, h.uint(8)))
    by_offset = sorted(range(nsections), key=lambda i: table[i][0])
    end = h.at
    for i in by_offset:
        offset, size = table[i]
        check(offset >= end and size >= 1, "section at", offset, "overlaps or is empty")
        end = offset + size
        check(end <= len(data), "section past the end")
    check(end == len(data), "bytes after the last section")
    # A section's number is its rank in the file.
    sections = [table[i] for i in by_offset]
    used = set()

    def section(number, kind):
        check(number < nsections, "no section", number)
        offset, size = sections[number]
        check(data[offset] == kind | flags, "section", number, "starts with", data[offset])
        check(number not in used, "section", number, "used twice")
        used.add(number)
        return Bytes(data, offset + 1, offset + size, h.compact)

    def done(b):
        check(b.at == b.end, "bytes left in a section at", b.at)

    b = section(by_offset.index(0), SUMMARY)
    p.summary = summary_of(b)
    done(b)
    b = section(by_offset.index(1), FILE_NAMES)
    files = []
    for _ in range(b.uint(4)):
        size = b.uint(4)
        name = b.raw(size)
        check(size and name[-1] == 0 and b"\0" not in name[:-1], "file name", name)
        files.append((name[:-1].decode(), b.uint(4), b.uint(4), b.uint(4), b.uint(4)))
    done(b)
    names = [f[0] for f in files]
    check(len(set(names)) == len(names), "file twice")
    check(names and names[-1] == "", "unknown file is not the last")
    p.files = names[:-1]
    next_id = 1
    infos = {}
    for name, table_section, names_section, start, stop in files:
        check(start == next_id and stop >= start, "ids of", name, "are not in a row")
        next_id = stop
        b = section(table_section, STRING_TABLE)
        strings = strings_of(b)
        done(b)
        check(strings == sorted(strings, key=str.encode), "strings are not in byte order")
        b = section(names_section, SYMBOL_NAMES)
        seen = set()
        for _ in range(b.uint(4)):
            string, symbol, info = b.uint(4), b.uint(4), b.uint(4)
            check(start <= symbol < stop and symbol not in p.symbols, "symbol id", symbol)
            check(string < len(strings) and string not in seen, "string of symbol", symbol)
            seen.add(string)
            p.symbols[symbol] = {"name": strings[string], "file": name}
            if info != NONE:
                infos[symbol] = info
        done(b)
        check(len(seen) == len(strings) == stop - start, "ids or strings without symbol")
    for symbol, info in infos.items():
        b = section(info, SYMBOL_INFO)
        head, timestamp = b.uint(8), b.uint(8)
        p.functions[symbol] = {"head": head, "timestamp": timestamp, "body": body_of(p, b)}
        done(b)
    check(len(used) == nsections, "orphan sections")
    p.finish()
    return p


# Text

class Tokens:
    def __init__(self, text):
        self.text, self.at = text, 0

    def blanks(self):
        while self.at < len(self.text) and self.text[self.at] in " \n\t":
            self.at += 1

    def peek(self, what):
        self.blanks()
        return self.text.startswith(what, self.at)

    def take(self, what):
        check(self.peek(what), "no", what, "at", repr(self.text[self.at:self.at + 40]))
        self.at += len(what)

    def word(self):
        self.blanks()
        start = self.at
        while self.at < len(self.text) and (self.text[self.at].isalnum() or
                                            self.text[self.at] == "_"):
            self.at += 1
        check(self.at > start, "no word at", repr(self.text[start:start + 40]))
        return self.text[start:self.at]

    def number(self):
        w = self.word()
        check(w.isdecimal() and w.isascii(), "no number:", w)
        return int(w)

    def string(self):
        self.take('"')
        end = self.text.find('"', self.at)
        check(end >= 0, "string without end")
        s, self.at = self.text[self.at:end], end + 1
        return s

    def end(self):
        self.blanks()
        return self.at == len(self.text)

    def list(self, item):
        while True:
            item()
            if not self.peek(","):
                return
            self.take(",")

    def field(self, name):
        check(self.word() == name, "no", name)
        self.take("=")
        return self.number()


def text_body(p, t, symbol_of):
    body = {"locations": {}, "calls": {}, "inlined": {}}

    def location():
        line, disc = t.number(), 0
        if t.text[t.at:t.at + 1] == ".":
            t.take(".")
            disc = t.number()
        return p.location_key(line, disc)

    def count():
        at = location()
        t.take("=")
        check(at not in body["locations"], "location twice")
        body["locations"][at] = t.number()

    def call():
        at, targets = location(), {}
        t.take("->")
        t.take("{")

        def target():
            symbol = t.number()
            t.take("=")
            check(symbol not in targets, "target twice")
            targets[symbol] = t.number()
        t.list(target)
        t.take("}")
        check(at not in body["calls"], "call site twice")
        body["calls"][at] = targets

    def inlined():
        at = location()
        t.take("=")
        symbol, _, _ = symbol_of(False)
        t.take("=")
        check((at, symbol) not in body["inlined"], "inlined twice")
        body["inlined"][(at, symbol)] = {"symbol": symbol, "body": text_body(p, t, symbol_of)}

    kinds = {"locations": count, "callsites": call, "inlined": inlined}
    order = []

    def section():
        name = t.word()
        check(name in kinds and name not in order, "section", name)
        order.append(name)
        t.take("=")
        t.take("{")
        t.list(kinds[name])
        t.take("}")
    t.take("{")
    if not t.peek("}"):
        t.list(section)
    t.take("}")
    check(order == [k for k in kinds if k in order], "order of sections", order)
    return body


def read_text(data):
    p = Profile()
    t = Tokens(data.decode())
    check(t.word() == "filenames", "no filenames")
    t.take("=")
    t.take("{")
    t.list(lambda: p.files.append(t.string()))
    t.take("}")
    if p.files == [""]:
        p.files = []
    check("" not in p.files and len(set(p.files)) == len(p.files), "file names")
    check(t.word() == "summary", "no summary")
    t.take("=")
    t.take("{")
    for key in ("total_count", "max_count", "max_fn_count", "num_counts", "num_functions",
                "num_detailed_entries"):
        p.summary[key] = t.field(key)
        t.take(",")
    check(t.word() == "detailed_entries", "no detailed_entries")
    t.take("=")
    t.take("{")
    entries = p.summary["detailed_entries"] = []

    def entry():
        t.take("{")
        e = {"cutoff": t.field("cutoff")}
        for key in ("min_count", "num_counts"):
            t.take(",")
            e[key] = t.field(key)
        t.take("}")
        entries.append(e)
    if not t.peek("}"):
        t.list(entry)
    t.take("}")
    t.take("}")

    def symbol_of(is_top):
        name = t.string()
        t.take(":")
        if t.peek("-1"):
            t.take("-1")
            file = ""
        else:
            index = t.number()
            check(index < len(p.files), "no file", index)
            file = p.files[index]
        t.take("(")
        symbol, head, timestamp = t.number(), 0, 0
        if is_top:
            t.take(":")
            head = t.number()
            t.take(":")
            timestamp = t.number()
        t.take(")")
        want = {"name": name, "file": file}
        check(p.symbols.setdefault(symbol, want) == want, "two symbols have id", symbol)
        return symbol, head, timestamp
    while not t.end():
        symbol, head, timestamp = symbol_of(True)
        t.take("=")
        check(symbol not in p.functions, "function twice")
        p.functions[symbol] = {"head": head, "timestamp": timestamp,
                               "body": text_body(p, t, symbol_of)}
    p.finish()
    return p


def read(path):
    data = open(path, "rb").read()
    try:
        p = read_binary(data) if data[:4] == b"gcov" else read_text(data)
    except (Bad, UnicodeDecodeError) as e:
        sys.exit("%s: %s" % (path, e))
    return p.canonical()


def main():
    profiles = [read(path) for path in sys.argv[1:]]
    for path, p in zip(sys.argv[2:], profiles[1:]):
        if p != profiles[0]:
            sys.exit("%s and %s differ" % (sys.argv[1], path))
    json.dump(profiles[0], sys.stdout, indent=1)
    print()


main()
