#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Strict reader of AutoFDO GCOV versions 2 (gcc 12 to 15) and 3 (gcc 16).

    gcov_v2.py FILE              prints the profile as JSON
    gcov_v2.py --bare FILE OUT   writes the same functions with their head counts alone (version 2)

Written from the layout that gcc's auto-profile.cc reads, independently of the exporter.
"""
import json
import struct
import sys

NO_FILE = 0xFFFFFFFF
CUTOFFS = [10000, 100000, 200000, 300000, 400000, 500000, 600000, 700000, 800000, 900000,
           950000, 990000, 999000, 999900, 999990, 999999]


class Bad(Exception):
    pass


def check(condition, *why):
    if not condition:
        raise Bad(" ".join(str(w) for w in why))


class Reader:
    def __init__(self, data):
        self.data, self.at, self.counts = data, 0, []

    def take(self, form, size):
        check(self.at + size <= len(self.data), "cut off at byte", self.at)
        (v,) = struct.unpack_from(form, self.data, self.at)
        self.at += size
        return v

    def u32(self):
        return self.take("<I", 4)

    def u64(self):
        return self.take("<I", 4) | self.take("<I", 4) << 32  # low word first

    def string(self):
        size = self.u32()
        check(0 < size < 16384 and self.at + size <= len(self.data), "string of", size, "bytes")
        s = self.data[self.at:self.at + size]
        self.at += size
        check(s[-1] == 0 and b"\0" not in s[:-1], "string", s)
        return s[:-1].decode()

    def body(self, names):
        index, npos, ncallsites = self.u32(), self.u32(), self.u32()
        check(0 < index < len(names), "name", index)
        body = {"name": names[index], "locations": {}, "calls": {}, "inlined": {}}
        lines = {}
        for _ in range(npos):
            offset, ntargets, count = self.u32(), self.u32(), self.u64()
            at = "%d.%d" % (offset >> 16, offset & 0xFFFF)
            check(at not in body["locations"], "place twice:", at)
            body["locations"][at] = count
            self.counts.append(count)
            # gcc 12 keeps a line's last record, which must be the largest
            check(lines.get(offset >> 16, 0) <= count, "counts of line", offset >> 16, "fall")
            lines[offset >> 16] = count
            if ntargets:
                targets = body["calls"][at] = {}
            for _ in range(ntargets):
                kind, target, n = self.u32(), self.u64(), self.u64()
                check(kind == 7, "histogram of kind", kind)
                check(0 < target < len(names) and names[target] not in targets, "target", target)
                targets[names[target]] = n
        for _ in range(ncallsites):
            offset = self.u32()
            inner = self.body(names)
            at = "%d.%d:%s" % (offset >> 16, offset & 0xFFFF, inner["name"])
            check(at not in body["inlined"], "inlined twice:", at)
            body["inlined"][at] = inner
        return body


def summary_of(r):
    s = {k: r.u64() for k in ("total_count", "max_count", "max_fn_count", "num_counts",
                              "num_functions")}
    s["detailed_entries"] = [{"cutoff": r.u32(), "min_count": r.u64(), "num_counts": r.u64()}
                             for _ in range(r.u64())]
    return s


def check_summary(s, functions, counts):
    counts.sort(reverse=True)
    total = sum(counts)
    check(s["total_count"] == total, "total_count", s["total_count"], total)
    check(s["max_count"] == max(counts, default=0), "max_count")
    check(s["max_fn_count"] == max((f["head"] for f in functions), default=0), "max_fn_count")
    check(s["num_counts"] == len(counts) and s["num_functions"] == len(functions), "numbers")
    check([e["cutoff"] for e in s["detailed_entries"]] == (CUTOFFS if total else []), "cutoffs")
    for e in s["detailed_entries"]:
        running, smallest = 0, counts[0]
        for c in counts:
            if running and running >= total * e["cutoff"] // 1000000:
                break
            running, smallest = running + c, c
        check(e["min_count"] == smallest and
              e["num_counts"] == sum(c >= smallest for c in counts), "cutoff", e)


def read(data):
    r = Reader(data)
    check(r.u32() == 0x67636461, "magic")
    version = r.u32()
    check(version in (2, 3), "version", version)
    check(r.u32() == 0, "third word")
    summary = None
    if version == 3:
        check(r.u32() == 0xA8000000, "summary tag")
        summary = summary_of(r)
    check(r.u32() == 0xAA000000, "names tag")
    words, start = r.u32(), r.at
    files = [r.string() for _ in range(r.u32())] if version == 3 else []
    check(len(set(files)) == len(files), "file twice")
    names, keys = [], []
    for _ in range(r.u32()):
        name = r.string()
        file = r.u32() if version == 3 else NO_FILE
        check(file == NO_FILE or file < len(files), "file", file)
        check("." not in name[1:], "name with a clone's suffix:", name)
        names.append(name)
        keys.append((name, file))
    check(names and names[0] == "" and "" not in names[1:], "name 0")
    check(len(set(keys)) == len(keys), "name twice")
    check(words == (r.at - start + 3) // 4, "length of names")
    check(r.u32() == 0xAC000000, "functions tag")
    words, start = r.u32(), r.at
    functions = []
    for _ in range(r.u32()):
        head = r.u64()
        timestamp = r.u64() if version == 3 else None
        f = dict(r.body(names), head=head)
        if version == 3:
            f["timestamp"] = timestamp
            check(head == 0 or timestamp > 0, "called function without a time")
        functions.append(f)
    check(words == (r.at - start + 3) // 4, "length of functions")
    check([r.u32() for _ in range(3)] == [0xAE000000, 0, 0], "module group")
    check([r.u32(), r.u32()] == [0xAF000000, 384], "working set")
    r.at += 128 * 12
    check(r.at == len(data), "bytes at the end")
    if summary:
        check_summary(summary, functions, r.counts)
    by_name = {}
    for f in functions:
        by_name[f["name"] if f["name"] not in by_name else
                "%s#%d" % (f["name"], len(by_name))] = f
    return {"version": version, "files": files, "summary": summary, "functions": by_name}


def bare(profile, path):
    def u64(v):
        return struct.pack("<II", v & 0xFFFFFFFF, v >> 32)
    names = [""] + sorted(profile["functions"])
    out = struct.pack("<IIIIII", 0x67636461, 2, 0, 0xAA000000, 0, len(names))
    for n in names:
        out += struct.pack("<I", len(n) + 1) + n.encode() + b"\0"
    out += struct.pack("<III", 0xAC000000, 0, len(names) - 1)
    for i, n in enumerate(names[1:], 1):
        out += u64(profile["functions"][n]["head"]) + struct.pack("<III", i, 0, 0)
    out += struct.pack("<IIIII", 0xAE000000, 0, 0, 0xAF000000, 384) + bytes(128 * 12)
    with open(path, "wb") as f:
        f.write(out)


def main():
    args = sys.argv[1:]
    is_bare = args[0] == "--bare"
    try:
        profile = read(open(args[is_bare], "rb").read())
    except (Bad, UnicodeDecodeError) as e:
        sys.exit("%s: %s" % (args[is_bare], e))
    if is_bare:
        bare(profile, args[2])
        return
    json.dump(profile, sys.stdout, indent=1)
    print()


main()
