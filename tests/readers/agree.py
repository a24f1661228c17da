# SPDX-License-Identifier: BSD-2-Clause
"""
Checks that all outputs of one trace have the same calls and times.

    agree.py formats FOLDER LABEL named|unnamed [FORMAT...]
                                         FOLDER: trace.xray, its map, report.json and out.FORMAT;
                                         unnamed: do not compare names, which formats write
                                         differently. FORMATs are those of kxray. A format without a
                                         reader fails: either a method of_FORMAT here, or a script
                                         FORMAT.py beside this one that prints a line
                                         CALLS TOTAL_NS "NAME" for each function with --functions.
                                         A method without a format fails, too
    agree.py account TRACE MAP CSV       llvm-xray account of TRACE against the rows of a trace
    agree.py rows REPORT CSV             a report and a CSV export under the same filters
    agree.py counts REPORT FORMAT FILE   calls of a report and an export of a trace with open calls

The reference is llvm-xray convert -f yaml, whose records are matched to calls here, in ticks. Each
format is read by its own reader. Times may differ by the format's rounding, given at each
comparison; numbers of calls must be equal. Calls whose exits kxray added (kxray:repaired) have no time
in statistics; in timelines they end where the added exit is, as for llvm-xray. Prints "the same" or the differences; for formats one
result line each, like lib.sh.
"""
import collections
import csv
import gc
import io
import json
import os
import re
import subprocess
import sys

import afperf
import cpel

READERS = os.path.dirname(os.path.abspath(__file__))
LLVM_XRAYS = [p for p in ("/usr/lib/llvm-14/bin/llvm-xray", "/usr/lib/llvm-19/bin/llvm-xray")
              if os.path.exists(p)]
RECORD = re.compile(r"  - \{ type: \d+, func-id: (\d+), function: (.*?), (?:args: \[.*?\], )?"
                    r"cpu: \d+, thread: (\d+), (?:process: (\d+), )?kind: ([a-z-]+), "
                    r"tsc: (\d+), data: '(.*?)' \}")
REPAIRED = re.compile(r'kxray:repaired \{"exits":(\d+)')

LOSS = re.compile(r"'kxray:loss \{\"entries\":(\d+),\"exits\":(\d+),")
COUNTS = ("calls", "open", "no_exit")
UNNAMED = False


class Sum:
    """
    Of one function: total is of outermost calls only, every of all calls, own is total self time. These
    are without repaired calls, whose time is their callers'; shown_* are with them, as timelines show
    them. held: total, but of a repaired call the time of its callees, as in stacks with self times.
    """

    def __init__(self):
        self.calls = self.open = self.no_exit = self.total = self.every = self.own = 0
        self.shown_total = self.shown_every = self.shown_own = self.held = 0

    def get(self, keys):
        return tuple(getattr(self, key) for key in keys)


def output_of(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"{' '.join(command)}: status {done.returncode}: {done.stderr[-300:]}")
    return done.stdout


def truth(tool, trace, map_file):
    """Ticks a second, the Sum of every function in ticks, and the hits that were lost in gaps."""
    text = output_of(tool, "convert", "-f", "yaml", "-symbolize", "-m", map_file, trace)
    hz = int(re.search(r"cycle-frequency: (\d+)", text).group(1))
    functions, stacks = collections.defaultdict(Sum), collections.defaultdict(list)
    repairs = collections.Counter()
    for func, name, tid, pid, kind, tsc, data in RECORD.findall(text):
        stack, tsc = stacks[pid, tid], int(tsc)
        if not kind.startswith("function-"):
            note = REPAIRED.match(data)
            repairs[pid, tid] += int(note.group(1)) if note else 0
            continue
        if kind.startswith("function-enter"):
            stack.append([func, func if UNNAMED else name.strip("'"), tsc, 0, 0])
            continue
        entered, name, start, callees, shown_callees = stack.pop()
        if entered != func:
            raise ValueError(f"thread {tid} leaves {func} within {entered}")
        repaired = repairs[pid, tid] > 0
        repairs[pid, tid] -= repaired
        f, took = functions[name], tsc - start
        measured = 0 if repaired else took
        outermost = all(frame[0] != func for frame in stack)
        f.calls += 1
        f.no_exit += repaired
        f.every += measured
        f.shown_every += took
        f.own += 0 if repaired else took - callees
        f.shown_own += took - shown_callees
        if outermost:
            f.total += measured
            f.shown_total += took
            f.held += callees if repaired else took
        if stack:
            stack[-1][3] += callees if repaired else took
            stack[-1][4] += took
    if any(stacks.values()):
        raise ValueError("calls are open at the end")
    lost = sum(map(sum, (map(int, pair) for pair in LOSS.findall(text))))
    return hz, functions, lost


def in_ns(functions, hz):
    result = {}
    for name, f in functions.items():
        result[name] = Sum()
        result[name].calls, result[name].no_exit = f.calls, f.no_exit
        for key in ("total", "every", "own", "shown_total", "shown_every", "shown_own", "held"):
            setattr(result[name], key, (getattr(f, key) * 1000000000 + hz // 2) // hz)
    return result


def by_rank(functions, keys):
    return dict(enumerate(sorted(functions.values(), key=lambda f: f.get(keys))))


def differences(got, want, keys, slack=lambda calls: 0):
    """got and want: {name: Sum}; times may differ by slack(calls) nanoseconds."""
    wrong = []
    if UNNAMED:
        got, want = by_rank(got, keys), by_rank(want, keys)
    if set(got) != set(want):
        wrong.append(f"functions {sorted(set(got) ^ set(want))}")
    for name in sorted(set(got) & set(want)):
        g, w = got[name].get(keys), want[name].get(keys)
        allowed = slack(want[name].calls)
        if any(abs(a - b) > (0 if key in COUNTS else allowed) for key, a, b in zip(keys, g, w)):
            wrong.append(f"{name}: {keys} {g} instead of {w}")
    return "; ".join(wrong)


def sums(items):
    """Sums from pairs (name, {key: value})."""
    result = {}
    for name, values in items:
        result[name] = Sum()
        for key, value in values.items():
            setattr(result[name], key, value)
    return result


def report_of(path):
    with open(path, encoding="utf-8") as f:
        report = json.load(f)
    return sums((f["name"], {"calls": f["count"] - f["open"], "open": f["open"], "no_exit": f["no_exit"],
                             "total": f["total_ns"], "own": f["self_ns"]}) for f in report["functions"])


def csv_of(path):
    with open(path, encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f, strict=True))
    functions, paths = collections.defaultdict(Sum), collections.defaultdict(list)
    # A thread's rows are in the order of its calls' ends: in reverse, callers precede their callees.
    for row in reversed(rows):
        # An apostrophe keeps spreadsheets from taking a name for a formula.
        name = re.sub(r"^'(?=[=+\-@\t\r])", "", row["function"])
        f, path = functions[name], paths[row["pid"], row["tid"]]
        del path[int(row["depth"]) - 1:]
        if row["how"] == "open":  # report counts these apart
            f.open += 1
        else:
            took = int(row["duration_ns"])
            measured = 0 if row["how"] == "repaired" else took
            f.calls += 1
            f.no_exit += row["how"] == "repaired"
            f.every += measured
            f.shown_every += took
            f.own += int(row["self_ns"])
            f.total += 0 if name in path else measured
        if len(path) != int(row["depth"]) - 1:
            raise ValueError(f"{name} has depth {row['depth']} with callers {path}")
        path.append(name)
    return functions


def folded_of(path, key):
    functions, stacks = collections.defaultdict(Sum), set()
    with open(path, encoding="utf-8", newline="\n") as f:
        for line in f:
            if not re.fullmatch(r"[^;\x00-\x1f]+(;[^;\x00-\x1f]+)+ [1-9]\d*\n", line):
                raise ValueError(f"not a folded line: {line!r}")
            stack, value = line.rstrip("\n").rsplit(" ", 1)
            if stack in stacks:
                raise ValueError(f"twice: {stack}")
            stacks.add(stack)
            leaf = functions[stack.split(";")[-1]]
            setattr(leaf, key, getattr(leaf, key) + int(value))
    return functions


def reader_says(reader, *arguments):
    return output_of("python3", os.path.join(READERS, reader), *arguments)


def timeline_of(reader, path):
    lines = (line.split(" ", 2) for line in
             reader_says(reader, "--functions", path).splitlines())
    return sums((json.loads(name), {"calls": int(calls), "total": int(total),
                                    "shown_total": int(total), "held": int(total)})
                for calls, total, name in lines)


def account_of(tool, trace, map_file):
    """Sums are seconds with seven digits."""
    rows = csv.DictReader(io.StringIO(output_of(tool, "account", "-m", map_file, "-format=csv",
                                                trace)))
    return {row["funcid" if UNNAMED else "function"]: (int(row["count"]), float(row["sum"]))
            for row in rows}


def account_differences(tool, trace, map_file, want):
    """want: name to (calls, nanoseconds of all calls)."""
    got = account_of(tool, trace, map_file)
    wrong = [] if set(got) == set(want) else [f"functions {sorted(set(got) ^ set(want))}"]
    for name in set(got) & set(want):
        calls, seconds = got[name]
        # Each call has been rounded by at most a nanosecond.
        if calls != want[name][0] or \
                abs(seconds - want[name][1] / 1e9) > 1e-6 * seconds + calls * 1e-9:
            wrong.append(f"{name}: {got[name]} instead of {want[name]}")
    return "; ".join(wrong)


class Outputs:
    """The outputs in a folder; the methods return differences."""

    def __init__(self, folder):
        self.folder = folder
        self.trace, self.map = folder + "/trace.xray", folder + "/trace.xray.map"
        self.hz, self.ticks, self.lost = truth(LLVM_XRAYS[0], self.trace, self.map)
        self.want = in_ns(self.ticks, self.hz)
        if not self.ticks:
            raise ValueError("no call, so this proves nothing")

    def out(self, name):
        return f"{self.folder}/out.{name}"

    def load(self, reader, name):
        return json.loads(reader_says(reader, self.out(name)))

    def of_report(self):
        return differences(report_of(self.folder + "/report.json"), self.want,
                           ("calls", "open", "no_exit", "total", "own"))

    def of_llvm_xrays(self):
        want = {name: (f.calls, f.shown_every) for name, f in self.want.items()}
        return "; ".join(account_differences(tool, self.trace, self.map, want)
                         for tool in LLVM_XRAYS).strip("; ")

    def of_xray(self):
        hz, ticks, lost = truth(LLVM_XRAYS[-1], self.out("xray"), self.out("xray") + ".map")
        if (hz, lost) != (self.hz, self.lost):
            return f"{hz} ticks a second, {lost} lost"
        return differences(ticks, self.ticks, ("calls", "no_exit", "total", "every", "own",
                                               "shown_total", "shown_every", "shown_own"))

    def of_cpel(self):
        with open(self.out("cpel"), "rb") as f:
            read = cpel.Cpel(f.read()).summary()
        ticks = sums((name, {"calls": f["count"], "shown_total": f["total"],
                             "shown_every": f["ticks"], "shown_own": f["self"]}) for name, f in read["functions"].items())
        if (read["clock"], read["lost"]) != (self.hz, self.lost):
            return f"{read['clock']} ticks a second, {read['lost']} lost"
        return differences(ticks, self.ticks, ("calls", "shown_total", "shown_every", "shown_own"))

    def of_afperf(self):
        # One run per process; its totals are rounded once.
        with open(self.out("afperf"), "rb") as f:
            runs = afperf.AFPerf(f.read()).summary()["runs"]
        got = collections.defaultdict(Sum)
        for run in runs:
            for name, f in run["functions"].items():
                got[name].calls += f["count"]
                got[name].total += run["totals"][f"sum of Total time: {name}"]
                got[name].own += run["totals"][f"sum of Self time: {name}"]
        return differences(got, self.want, ("calls", "total", "own"), lambda calls: len(runs) - 1)

    def of_perun(self):
        # Every resource is rounded separately.
        functions = self.load("perun.py", "perun")["functions"]
        return differences(sums((name, {"calls": f["calls"], "no_exit": f["repaired"],
                                        "shown_every": f["amount"], "own": f["exclusive"]})
                                for name, f in functions.items()),
                           self.want, ("calls", "no_exit", "shown_every", "own"), lambda calls: calls)

    def of_autofdo(self):
        functions = self.load("gcov_v4.py", "autofdo")["functions"]
        # Functions without a count are callers, or are inlined into traced functions.
        got = sums((name, {"calls": f["head"]}) for name, f in functions.items() if f["head"])
        return differences(got, self.want, ("calls",))

    def of_folded(self):
        # One rounding per distinct stack; there are at most as many stacks as calls. Stacks
        # without time have no line.
        want = {name: f for name, f in self.want.items() if f.own}
        return differences(folded_of(self.out("folded"), "own"), want, ("own",),
                           lambda calls: calls)

    def of_folded_count(self):
        return differences(folded_of(self.out("folded-count"), "calls"), self.want, ("calls",))

    def of_timeline(self, name):
        text = reader_says(name + ".py", self.out(name))
        lost = sum(map(int, re.findall(r'^mark .* "lost (\d+) events"', text, re.M)))
        return f"{lost} lost" if lost != self.lost else self.of_functions(name)

    def of_functions(self, name, total="shown_total"):
        """For any format with a reader tests/readers/NAME.py that has the option --functions."""
        # Start and end are rounded, each by half a nanosecond at most.
        return differences(timeline_of(name + ".py", self.out(name)), self.want,
                           ("calls", total), lambda calls: calls + 1)

    def of_pprof(self):
        return self.of_functions("pprof", "held")

    def of_html(self):
        return self.of_functions("html", "total")

    def of_csv(self):
        return differences(csv_of(self.out("csv")), self.want,
                           ("calls", "no_exit", "total", "every", "shown_every", "own"),
                           lambda calls: calls)


def counts_of(name, path):
    """Calls of every function in an export, those without an end included; None: the format has no counts."""
    if name == "csv":
        return {n: f.calls + f.open for n, f in csv_of(path).items()}
    if name == "folded-count":
        return {n: f.calls for n, f in folded_of(path, "calls").items()}
    if name == "cpel":
        with open(path, "rb") as f:
            return {n: c["count"] for n, c in cpel.Cpel(f.read()).summary()["functions"].items()}
    if name == "afperf":
        got = collections.Counter()
        with open(path, "rb") as f:
            for run in afperf.AFPerf(f.read()).summary()["runs"]:
                got.update({n: c["count"] for n, c in run["functions"].items()})
        return got
    if name == "perun":
        found = json.loads(reader_says("perun.py", path))["functions"]
        return {n: c["calls"] for n, c in found.items()}
    if name in ("autofdo", "folded", "xray"):
        return None
    return {n: f.calls for n, f in timeline_of(name + ".py", path).items()}


def compare_counts(report, name, path):
    """With open calls: every format has them but Perun, whose export says so."""
    with open(report, encoding="utf-8") as f:
        functions = json.load(f)["functions"]
    if not any(f["open"] for f in functions):
        raise ValueError("no call is open, so this proves nothing")
    want = {f["name"]: f["count"] - (f["open"] if name == "perun" else 0) for f in functions}
    got = counts_of(name, path)
    if got is None:
        return ""
    return "; ".join(f"{n}: {got.get(n)} calls instead of {want.get(n)}" for n in sorted(set(got) | set(want))
                     if got.get(n, 0) != want.get(n, 0))


def compare_formats(folder, label, named, *formats):
    global UNNAMED
    UNNAMED = named == "unnamed"
    outputs = Outputs(folder)
    checks = {"report": outputs.of_report, "llvm-xray account": outputs.of_llvm_xrays,
              "folded, calls": outputs.of_folded_count}
    readers = {"xray": outputs.of_xray, "cpel": outputs.of_cpel, "afperf": outputs.of_afperf,
               "perun": outputs.of_perun, "autofdo": outputs.of_autofdo,
               "folded": outputs.of_folded, "csv": outputs.of_csv, "pprof": outputs.of_pprof,
               "html": outputs.of_html}
    for name in ("chrome", "perfetto", "speedscope"):
        readers[name] = lambda name=name: outputs.of_timeline(name)
    for name in set(formats) - set(readers):
        if os.path.exists(os.path.join(READERS, name + ".py")):
            readers[name] = lambda name=name: outputs.of_functions(name)
    for name in formats or readers:
        checks[name] = readers.get(name, lambda name=name: f"it has no reader tests/readers/{name}.py")
    for name in set(readers) - set(formats or readers):
        checks[name] = lambda: "kxray export --list does not have it"
    for name, check in checks.items():
        try:
            wrong = check()
        except Exception as e:  # a damaged file may make the reader fail in any way
            wrong = f"{type(e).__name__}: {e}"
        wrong = " ".join(wrong.split())[:600]
        print(f"not ok {label}: {name}: {wrong}" if wrong else f"ok {label}: {name}")


def main():
    what, *arguments = sys.argv[1:]
    gc.disable()  # millions of objects without cycles
    try:
        if what == "formats":
            compare_formats(*arguments)
            return
        if what == "counts":
            wrong = compare_counts(*arguments)
        elif what == "rows":
            # Rows round each call, the report rounds the sum.
            wrong = differences(csv_of(arguments[1]), report_of(arguments[0]),
                                ("calls", "open", "no_exit", "total", "own"), lambda calls: calls + 1)
        else:
            trace, map_file, rows = arguments
            want = {name: (f.calls, f.shown_every) for name, f in csv_of(rows).items()}
            wrong = "; ".join(account_differences(tool, trace, map_file, want)
                              for tool in LLVM_XRAYS).strip("; ")
            wrong = wrong or ("" if want else "no call, so this proves nothing")
    except (ValueError, KeyError, IndexError) as e:
        wrong = f"{type(e).__name__}: {e}"
    print(" ".join(wrong.split())[:600] or "the same")


if __name__ == "__main__":
    main()
