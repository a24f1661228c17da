# SPDX-License-Identifier: BSD-2-Clause
"""
A strict reader of AFPerf files, version 1.0.0, for the tests, written from the format's document;
where the document contradicts itself, it follows kxray's interpretation. It shares no code with
the exporter.

    python3 afperf.py FILE      prints the file's content as JSON

References are checked after the whole file has been read, because records may come in any order.
"""
import functools
import json
import math
import re
import sys

HEADER = b"# AFPerf v1     "
RECORDS = ["", "MeasurementType", "PauseResume", "RegionAggregate", "RegionPoint", "RegionStart",
           "RegionStop", "RunAggregate", "RunInfo", "RunPoint", "SectionAggregate", "SectionInfo",
           "SectionPoint", "SectionStart", "SectionStop"]
# Number of fields including the record type; for records with measurements, of those before them.
FIELDS = {"MeasurementType": 9, "PauseResume": 4, "RegionStart": 6, "RegionStop": 3, "RunInfo": 9,
          "RunPoint": 5, "SectionInfo": 6, "SectionStart": 4, "SectionStop": 4}
PAIRS_AFTER = {"RegionAggregate": 5, "RegionPoint": 3, "RunAggregate": 5, "SectionAggregate": 6,
               "SectionPoint": 4}
TIME_UNITS = ("s", "ms", "us", "\u00b5s", "ns")
DATA_UNIT = re.compile(r"([kMGTPEZY]|[KMGTPEZY]i)?(B|bit)")
RUN_UNITS = {"seconds": 10 ** 9, "milliseconds": 10 ** 6, "microseconds": 10 ** 3, "nanoseconds": 1}


class Bad(Exception):
    """The file violates a rule."""


def need(condition, text):
    if not condition:
        raise Bad(text)


INTEGER = re.compile(r"0|-?[1-9][0-9]*|-?0[xX][0-9a-fA-F]+")
CONTROL = re.compile(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f]")
BLANK = re.compile(r"[ \t]*(\r?\n|$)")
QUOTED = re.compile(r'"((?:[^"]|"")*)"')
UNQUOTED = re.compile(r"[^,\r\n]*")
# A whole record without quotes and control characters, as most are: it is only split.
PLAIN = re.compile(r'([^"\x00-\x1f\x7f]+)(?:\r?\n|$)')


@functools.cache
def integer(text, limit=2 ** 63):
    need(INTEGER.fullmatch(text), f"no integer: {text!r}")
    value = int(text, 16 if "x" in text.lower() else 10)
    need(-limit <= value < limit, f"too large: {text}")
    return value


@functools.cache
def identity(text):
    value = integer(text, 2 ** 64)
    need(value >= 0, f"negative id {text}")
    return value


def timestamp(text):
    value = integer(text)
    need(value >= 0, f"negative time {text}")
    return value


def parse(data):
    """The records of a file as (line, fields)."""
    text = data.decode("utf-8")  # strict
    need("\ufeff" not in text, "a byte order mark")
    need(data.startswith(HEADER), "no header")
    at, line, records = 0, 1, []
    while at < len(text):
        if text[at] == "#":
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            comment = text[at:end].rstrip("\r")
            need(not comment.startswith("# AFPerf v") or comment.encode() == HEADER,
                 f"line {line}: another header {comment!r}")
            at, line = end + 1, line + 1
            continue
        blank = BLANK.match(text, at)
        if blank:
            at, line = blank.end(), line + 1
            continue
        plain = PLAIN.match(text, at)
        if plain:
            records.append((line, plain.group(1).split(",")))
            at, line = plain.end(), line + 1
            continue
        start, fields, more = line, [], True
        while more:
            if text[at:at + 1] == '"':
                match = QUOTED.match(text, at)
                need(match, f"line {line}: a quote without end")
                field = match.group(1).replace('""', '"')
                line += field.count("\n")
            else:
                match = UNQUOTED.match(text, at)
                field = match.group(0)
                need('"' not in field, f"line {line}: a quote inside of {field!r}")
            need(not CONTROL.search(field),
                 f"line {line}: control characters in {field!r}")
            fields.append(field)
            at = match.end()
            more = text[at:at + 1] == ","
            at += more
        end = re.compile(r"\r?\n|$").match(text, at)
        need(end and (end.end() > at or at == len(text)),
             f"line {line}: {text[at:at + 1]!r} after a field")
        at, line = end.end(), line + 1
        records.append((start, fields))
    return records


def tags(text):
    found = {}
    for part in text.split(";") if text else []:
        name, equals, value = part.partition("=")
        need(name and equals, f"tag {part!r}")
        need(name not in found, f"tag {name} twice")
        found[name] = value
    return found


class AFPerf:
    def __init__(self, data):
        self.runs, self.sections, self.intervals, self.types = {}, {}, {}, {}
        self.points, self.run_points, self.aggregates, self.pauses = [], [], [], []
        self.numbered = set()  # whether record types are numbers
        for line, fields in parse(data):
            try:
                self.record(fields)
            except Bad as e:
                raise Bad(f"line {line}: {e}") from None
        self.check()

    def record(self, fields):
        kind = fields[0]
        self.numbered.add(kind.isdigit())
        if kind.isdigit():
            need(0 < int(kind) < len(RECORDS) and str(int(kind)) == kind, f"record type {kind}")
            kind = RECORDS[int(kind)]
        need(kind in RECORDS[1:], f"record type {kind!r}")
        if kind in FIELDS:
            need(len(fields) == FIELDS[kind], f"{kind} with {len(fields)} fields")
        else:
            pairs = len(fields) - PAIRS_AFTER[kind]
            need(pairs >= 2 and pairs % 2 == 0, f"{kind} with {len(fields)} fields")
        need(not kind.startswith("Region"), "a region, which kxray does not write")
        getattr(self, "on_" + kind)(*fields[1:])

    def on_RunInfo(self, start, units, wallclock, version, run, name, _, tag_text):
        run = identity(run)
        need(run not in self.runs, f"run {run} twice")
        need(units in RUN_UNITS, f"units {units}")
        need(re.fullmatch(r"\d+\.\d+\.\d+", version) and version.startswith("1."),
             f"version {version}")
        need(re.fullmatch(r"\d+(\.\d+)?", wallclock), f"wallclock {wallclock}")
        need(name, "a run without the application's name")
        self.runs[run] = {"start": timestamp(start), "unit": RUN_UNITS[units], "name": name,
                          "wallclock": wallclock, "tags": tags(tag_text), "version": version}

    def on_MeasurementType(self, time, run, type_id, name, datatype, units, summary, text):
        timestamp(time)
        need(name, "a measurement type without name")
        need(datatype in ("double", "int32", "int64", "bool", "string", "enum"),
             f"datatype {datatype}")
        need(units, "no units")
        need(units != "text" or datatype == "string", f"text in {datatype}")
        need(units != "count" or datatype in ("double", "int32", "int64"), f"count in {datatype}")
        need(units in TIME_UNITS + ("text", "count") or DATA_UNIT.fullmatch(units),
             f"units {units}")
        key = (identity(run), identity(type_id))
        need(key not in self.types, f"type {type_id} defined twice in a run")
        self.types[key] = (name, datatype, units, summary, text)

    def on_PauseResume(self, end, start, run):
        end, start = timestamp(end), timestamp(start)
        need(end >= start, "a pause that ends before it starts")
        self.pauses.append((identity(run), start, end))

    def on_SectionInfo(self, time, run, section, label, tag_text):
        if time:
            timestamp(time)
        section = identity(section)
        need(section not in self.sections, f"section {section} twice")
        self.sections[section] = {"run": identity(run), "label": label, "tags": tags(tag_text)}

    def interval(self, section, number):
        key = (identity(section), identity(number))
        return key, self.intervals.setdefault(key, {})

    def on_SectionStart(self, time, section, number):
        key, interval = self.interval(section, number)
        need("start" not in interval, f"interval {key} starts twice")
        interval["start"] = timestamp(time)

    def on_SectionStop(self, time, section, number):
        key, interval = self.interval(section, number)
        need("stop" not in interval, f"interval {key} stops twice")
        interval["stop"] = timestamp(time)

    def on_SectionPoint(self, time, section, number, *pairs):
        key = (identity(section), identity(number))
        self.points.append((timestamp(time), key, list(zip(pairs[::2], pairs[1::2]))))

    def on_RunPoint(self, time, run, type_id, value):
        self.run_points.append((timestamp(time), identity(run), identity(type_id), value))

    def on_RunAggregate(self, end, start, run, kind, *pairs):
        end, start = timestamp(end), timestamp(start)
        need(end >= start, "an aggregate that ends before it starts")
        for type_id, value in zip(pairs[::2], pairs[1::2]):
            self.aggregates.append((identity(run), kind, identity(type_id), value, start, end))

    def on_SectionAggregate(self, end, start, owner, interval, kind, *pairs):
        need((kind != "") == (interval == ""), "neither raw nor processed")
        raise Bad("a section aggregate, which kxray does not write")

    def value(self, run, type_id, text):
        need((run, type_id) in self.types, f"type {type_id} is not registered in its run")
        datatype = self.types[run, type_id][1]
        if datatype in ("int32", "int64"):
            value = integer(text, 2 ** (int(datatype[3:]) - 1))
        elif datatype == "double":
            value = float.fromhex(text) if "x" in text.lower() else float(text)
            need(math.isfinite(value), "not finite")
        elif datatype == "bool":
            need(text in ("0", "1"), f"bool {text}")
            value = int(text)
        else:
            value = text
        return self.types[run, type_id][0], value

    def check(self):
        for section in self.sections.values():
            need(section["run"] in self.runs, "a section of no run")
        for run, _ in self.types:
            need(run in self.runs, "a type of no run")
        for (section, number), interval in self.intervals.items():
            need(section in self.sections, f"interval of no section {section}")
            need(set(interval) == {"start", "stop"}, f"interval {section}/{number}: {interval}")
            need(interval["start"] <= interval["stop"], "an interval ends before it starts")
            run = self.runs[self.sections[section]["run"]]
            need(interval["start"] >= run["start"], "before the start of its run")
            interval["points"] = []
        for time, key, pairs in self.points:
            need(key in self.intervals, f"a point of no interval {key}")
            interval = self.intervals[key]
            need(time in (interval["start"], interval["stop"]),
                 "a section's point neither at start nor at stop")
            run = self.sections[key[0]]["run"]
            for type_id, text in pairs:
                interval["points"].append((time,) + self.value(run, identity(type_id), text))
        self.run_points = [(time, run) + self.value(run, type_id, text)
                           for time, run, type_id, text in self.run_points]
        self.sums = {}
        for run, kind, type_id, text, _, _ in self.aggregates:
            need(kind, "an aggregate of a run without aggregation type")
            name, value = self.value(run, type_id, text)
            need((kind, name) not in self.sums.setdefault(run, {}), f"{kind} of {name} twice")
            self.sums[run][kind, name] = value
        for run, _, _ in self.pauses:
            need(run in self.runs, "a pause of no run")
        self.check_nesting()
        self.check_sums()

    def calls(self):
        """(run, tid, label, start, stop, how) of all intervals."""
        for (section, _), interval in self.intervals.items():
            s = self.sections[section]
            how = [value for _, name, value in interval["points"] if name == "Ended By"]
            need(len(how) < 2, "two ends")
            need(not how or how[0] in ("tail", "repaired", "open"), f"ended by {how}")
            yield (s["run"], s["tags"]["tid"], s["label"], interval["start"], interval["stop"],
                   how[0] if how else "")

    def check_nesting(self):
        """Calls of one thread are nested or apart."""
        threads = {}
        for run, tid, _, start, stop, _ in self.calls():
            threads.setdefault((run, tid), []).append((start, -stop))
        for calls in threads.values():
            stack = []
            for start, stop in sorted(calls):
                while stack and stack[-1] <= start:
                    stack.pop()
                need(not stack or -stop <= stack[-1], "calls of a thread overlap")
                stack.append(-stop)

    def check_sums(self):
        """Totals are those of the intervals, except for rounding each of them to nanoseconds."""
        raw = {}
        for run, _, label, start, stop, how in self.calls():
            if how != "open":
                took = raw.setdefault((run, label), [])
                took.append(stop - start if how != "repaired" else None)
        found = {(run, name.removeprefix("Call time: ")) for run, sums in self.sums.items()
                 for kind, name in sums if kind == "count"}
        need(found == set(raw), "totals are not of the functions that were called")
        for (run, label), took in raw.items():
            sums, name = self.sums[run], "Call time: " + label
            n = len(took)
            need(sums["count", name] == n, f"count of {label}: {sums['count', name]}, {n} calls")
            # The end of a repaired call is not known.
            took = [ns for ns in took if ns is not None]
            n = len(took)
            if not took:
                need(sums["sum", name] == 0 and ("mean", name) not in sums, f"times of {label}")
                continue
            for kind, want, slack in (("sum", sum(took), n), ("mean", sum(took) / n, 2),
                                      ("min", min(took), 1), ("max", max(took), 1)):
                need(abs(sums[kind, name] - want) <= slack,
                     f"{kind} of {label}: {sums[kind, name]} instead of {want}")
            need(sums["sum", "Self time: " + label] <= sums["sum", name] and
                 sums["sum", "Total time: " + label] <= sums["sum", name],
                 f"self or total time of {label}")

    def summary(self):
        runs, calls, points = [], {}, {}
        for owner, *call in self.calls():
            calls.setdefault(owner, []).append(call)
        for time, owner, name, value in self.run_points:
            points.setdefault(owner, []).append((time, name, value))
        for run, info in self.runs.items():
            functions = {}
            for tid, label, start, stop, how in calls.get(run, []):
                f = functions.setdefault(label, {"count": 0, "ns": 0, "ended": {}, "tids": {}})
                f["count"] += 1
                f["ns"] += stop - start
                f["tids"][tid] = f["tids"].get(tid, 0) + 1
                if how:
                    f["ended"][how] = f["ended"].get(how, 0) + 1
            runs.append(dict(info, id=run, functions=functions,
                             totals={f"{kind} of {name}": value for (kind, name), value
                                     in self.sums.get(run, {}).items()},
                             points=points.get(run, []),
                             pauses=[p[1:] for p in self.pauses if p[0] == run]))
        return {"runs": runs, "numbered": sorted(self.numbered),
                "sections": [dict(s, id=key) for key, s in self.sections.items()],
                "intervals": [dict(interval, section=key[0], number=key[1])
                              for key, interval in self.intervals.items()]}


def main():
    with open(sys.argv[1], "rb") as f:
        data = f.read()
    try:
        json.dump(AFPerf(data).summary(), sys.stdout)
    except (Bad, UnicodeDecodeError, ValueError) as e:
        sys.exit(f"{sys.argv[1]}: {e}")


if __name__ == "__main__":
    main()
