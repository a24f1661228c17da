#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Runs dangerous programs untraced and traced, and prints what kxray did to them.

    run.py [--runs N] [--ways WAY,...] [--only HAZARD,...] [--jobs N] [--short] [--compare] [--keep]

A hazard is a row of hazards.py: a target (targets/) and what happens beside it. It is run untraced, then in each WAY of
WAYS below. A run is "harmed" if the target's output or exit status differs from the untraced run or if it hangs, "refused" if kxray
says why it does not trace it (with --in-process: also if it leaves functions to uprobes), "inexact" if the trace's counts are not those
that the target counted itself (less what kxray counted as lost: "lossy"), "known" if the output differs as README's limits say.
--short: one run in the default ways, as "ok" and "not ok" lines. --compare: more tables, of bpftrace and perf on the same targets.
Status 1 if a run was harmed or inexact or kxray failed.
"""
import argparse
import concurrent.futures
import contextlib
import fcntl
import fnmatch
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import beside_tools  # noqa: E402
import in_process  # noqa: E402
import table  # noqa: E402
from beside_tools import UPROBE_EVENTS, with_tracefs  # noqa: E402
from hazards import HAZARDS, IN_PROCESS  # noqa: E402

BUILD = os.path.realpath(os.environ.get("BUILD", "build"))
KXRAY, TARGETS = os.environ.get("KXRAY", BUILD + "/kxray"), BUILD + "/tests/hazards"
FORKS = threading.Lock()  # a child of fork must not hold the descriptor by which a program is being written
HANG = int(os.environ.get("KX_TEST_WAIT", "300"))  # only ends a hang

# Options beside -f; whether kxray starts the target; which of its counts are compared: "calls" with its children's, or "own"
WAYS = {
    "attach": ([], False, "own"),
    "command": ([], True, "calls"),
    "unasked": ([], True, None),  # without -f
    "counted": ([], False, None),  # without -f: calls are counted first
    "follow": (["--follow"], False, "calls"),
    "all": (["-a"], False, "calls"),
    "return": (["--exits=return"], False, "own"),
    "instruction": (["--exits=instruction"], False, "own"),
    "none": (["--exits=none"], False, "own"),
    "multi": (["--mechanism=multi"], False, "own"),  # only for rows that name it
    "single": (["--mechanism=single"], False, "own"),  # the same
    "leave": ([], False, None),  # kxray ends while the target works
    "inprocess": (["--in-process"], False, "own"),  # these six only if asked for
    "inprocess-leave": (["--in-process"], False, None),  # kxray ends while the target works
    "inprocess-late": (["--in-process"], False, None),  # recordings begin and end while the target works
    "inprocess-follow": (["--in-process", "--follow"], False, "calls"),
    "inprocess-follow-late": (["--in-process", "--follow"], False, None),  # the same with children
    "inprocess-tools": (["--in-process"], False, "own"),  # another tool before, while or after kxray records
    "bpftrace": ([], False, "calls"),  # bpftrace in kxray's place; only with --compare
    "perf": ([], False, "calls"),  # the same with perf probe and perf stat
}
DEFAULT_WAYS = ["attach", "command"]
PEERS = ["bpftrace", "perf"]
NAMED_WAYS = ["multi", "single", *IN_PROCESS, *PEERS]


class Refused(Exception):
    """kxray or a tool says why it cannot do what it is asked for."""


class Hang(Exception):
    """Something did not end."""


def wait_until(condition, what):
    deadline = time.monotonic() + HANG
    while not condition():
        if time.monotonic() > deadline:
            raise Hang(f"{what} within {HANG} s")
        time.sleep(0.005)


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except FileNotFoundError:
        return ""


class Run:
    """One run of a hazard's target, untraced or traced; its files are in a folder of its own."""

    def __init__(self, hazard):
        self.hazard = hazard
        self.folder = tempfile.mkdtemp(prefix="kxray-hazard.")
        self.trace = self.folder + "/trace.xray"
        # A copy of its own: probes of other recordings are in the same file of other processes.
        with FORKS:
            self.binary = shutil.copy(f"{TARGETS}/{hazard.target}", self.folder)
        os.chmod(self.folder, 0o755)  # for targets of another user
        self.children = []
        self.target = self.kxray = None
        self.events = []  # of perf
        self.group = None  # a control group of the target's own
        self.partial, self.told = False, ""  # kxray left before the target worked; which tool was beside it, and when
        for library in hazard.libraries:
            shutil.copy(f"{TARGETS}/{library}", self.folder)

    def close(self, keep):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()
            if child.stdin:
                with contextlib.suppress(BrokenPipeError):  # it died before it was told to work
                    child.stdin.close()
        if self.group:
            os.rmdir(self.group)
        self.end_perf()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, name, command, **kw):
        """Starts a program; its output is in NAME.out and NAME.err."""
        with open(f"{self.folder}/{name}.out", "wb") as out, open(f"{self.folder}/{name}.err", "wb") as err:
            with FORKS:
                child = subprocess.Popen(command, stdout=out, stderr=err, cwd=self.folder,
                                         **{"stdin": subprocess.DEVNULL, **kw})
        self.children.append(child)
        return child

    def out(self, name, stream="out"):
        return read(f"{self.folder}/{name}.{stream}")

    wait_for = staticmethod(wait_until)

    def end_of(self, child, name):
        try:
            return child.wait(HANG)
        except subprocess.TimeoutExpired:
            raise Hang(f"{name} does not end") from None

    def start_target(self):
        if self.hazard.mode:
            os.chmod(self.binary, self.hazard.mode)
        self.target = self.start("target", [*self.hazard.starter, self.binary, *self.hazard.arguments], stdin=subprocess.PIPE)
        wait_until(lambda: "ready" in self.out("target") or self.target.poll() is not None, "the target is not ready")
        if self.hazard.prepare:
            self.hazard.prepare(self)

    def go(self):
        try:
            self.target.stdin.write(b"g")
            self.target.stdin.flush()
        except BrokenPipeError:
            pass

    def result(self, name="target"):
        """The target's output as it must be in each run, and its counts."""
        lines = [line for line in self.out(name).splitlines() if line and not line.startswith("ready ")]
        try:
            last = json.loads(lines[-1])
            counts = {"calls": last.pop("calls")}
            counts["own"] = last.pop("own", counts["calls"])
        except (IndexError, ValueError, KeyError, AttributeError):
            return lines, None
        return lines[:-1] + [last], counts

    def start_kxray(self, name, options, command=(), functions=True):
        trace = self.trace if name == "kxray" else f"{self.folder}/{name}.xray"
        module = self.binary + ":" if "-a" in options else ""
        if functions:
            options = options + [word for f in self.hazard.functions for word in ("-f", module + f)]
        return self.start(name, [KXRAY, "record", "-o", trace, *options, *command])

    def last_words(self, child, name):
        """Why a program has ended; without a reason it has failed."""
        lines = self.out(name, "err").strip().splitlines()
        if not lines:
            raise ValueError(f"{name} ends with status {child.returncode} and gives no reason")
        return lines[-1][:200]

    def wait_for_kxray(self, child, name):
        wait_until(lambda: "kxray: recording " in self.out(name, "err") or child.poll() is not None,
                   f"{name} does not record")
        if child.poll() is not None and "kxray: recording " not in self.out(name, "err"):
            raise Refused(self.last_words(child, name))

    def start_bpftrace(self):
        """bpftrace with probes at the entries and returns of the target's functions; "leave" and others need no more."""
        probes = [f"{kind}:{self.binary}:{f}" for f in self.hazard.functions for kind in ("uprobe", "uretprobe")]
        program = "".join(f"{p} {{ @{p.split(':')[0]}[probe] = count(); }}" for p in probes)
        child = self.start("bpftrace", ["bpftrace", "-p", str(self.target.pid), "-e", program])
        # It prints "Attaching" before it attaches, and waits for events by epoll_wait after that.
        wait_until(lambda: child.poll() is not None or "Attaching" in self.out("bpftrace") and
                   read(f"/proc/{child.pid}/syscall").startswith(("232 ", "281 ")), "bpftrace does not attach")
        if child.poll() is not None:
            raise Refused("bpftrace: " + self.out("bpftrace", "err").strip()[-200:])
        return child

    def stop(self, child, name):
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
        self.end_of(child, name)

    def add_perf(self, places, *options):
        """perf's probes, which belong to this run. Returns their names for perf stat, and what perf says of the last that it does not add."""
        why = ""
        for at in places:
            if self.end_of(self.start("probe", ["perf", "probe", "-q", *options, "-x", self.binary, "--add", at]), "perf probe"):
                why = "perf probe: " + self.out("probe", "err").strip()[-200:]
        self.events = re.findall(rf"^([pr]):(\S+) {re.escape(self.binary)}:", read(UPROBE_EVENTS), re.MULTILINE)
        return ",".join(sorted({name.replace("/", ":") for _, name in self.events})), why

    def start_perf(self):
        """perf counts the entries and returns of the target's functions."""
        if not os.path.exists(UPROBE_EVENTS):
            raise Refused("this kernel has no uprobe_events, or tracefs is not mounted")
        events, why = self.add_perf([at for f in self.hazard.functions for at in (f, f + "%return")])
        if why:
            raise Refused(why)
        pipes = []
        for name in ("ask", "told"):
            os.mkfifo(f"{self.folder}/{name}")
            # also for reading, so that it does not wait for perf
            pipes.append(os.open(f"{self.folder}/{name}", os.O_RDWR | os.O_NONBLOCK))
        child = self.start("perf", ["perf", "stat", "-x;", "-D-1", "--control=fifo:ask,told", "-e", events, "-p",
                                    str(self.target.pid)])
        os.write(pipes[0], b"enable\n")
        wait_until(lambda: child.poll() is not None or select.select(pipes[1:], [], [], 0)[0], "perf does not attach")
        for pipe in pipes:
            os.close(pipe)
        if child.poll() is not None:
            raise Refused("perf stat: " + self.out("perf", "err").strip()[-200:])
        return child

    def end_perf(self):
        """Removes the probes; perf itself has ended."""
        for name in {name for _, name in self.events}:  # one for all probes of its name
            file = os.open(UPROBE_EVENTS, os.O_WRONLY | os.O_APPEND)
            os.write(file, f"-:{name}\n".encode())
            os.close(file)

    def under_peer(self, way):
        """The target's status; the peer's counts are in its output."""
        self.start_target()
        child = self.start_perf() if way == "perf" else self.start_bpftrace()
        self.go()
        status = self.end_of(self.target, "the target")
        self.stop(child, way)
        return status

    def untraced(self):
        self.start_target()
        self.go()
        status = self.end_of(self.target, "the target")
        return status, *self.result()

    def attached(self, way):
        """Returns the target's status; kxray's is checked by the caller."""
        if way in PEERS:
            return self.under_peer(way)
        options = WAYS[way][0]
        self.start_target()
        if way != "all":
            options = options + ["-p", str(self.target.pid)]
        self.kxray = self.start_kxray("kxray", options, (), way != "counted")
        self.wait_for_kxray(self.kxray, "kxray")
        beside = self.hazard.beside(self) if self.hazard.beside else None
        if beside:
            next(beside)
        self.go()
        if way == "inprocess-leave":
            in_process.random_pause(0.05)
        if way.endswith("leave"):
            self.kxray.send_signal(signal.SIGINT)
        status = self.end_of(self.target, "the target")
        if beside:
            next(beside, None)
        if way == "all":
            self.kxray.send_signal(signal.SIGINT)
        return status

    def commanded(self, way):
        command = ["--", self.binary, "--start=now", *self.hazard.arguments]
        self.kxray = self.start_kxray("kxray", WAYS[way][0], command, way != "unasked")
        status = self.end_of(self.kxray, "kxray -- COMMAND")
        if "ready" not in self.out("kxray") and "kxray: recording " not in self.out("kxray", "err"):
            raise Refused(self.last_words(self.kxray, "kxray"))
        return status

    def entries(self, way):
        """Recorded calls by name, and the number of lost events"""
        if way == "bpftrace":
            return {name: int(n) for name, n in re.findall(r"@uprobe\[uprobe:.*:(.*)\]: (\d+)", self.out("bpftrace"))}, 0
        if way == "perf":
            entries = [name.replace("/", ":") for kind, name in self.events if kind == "p"]
            counts = {name: int(n) for n, name in re.findall(r"^(\d+);[^;]*;([^;]+);", self.out("perf", "err"), re.MULTILINE)}
            return {name.split(":")[1]: counts.get(name, 0) for name in entries}, 0
        if self.end_of(self.start("report", [KXRAY, "report", "--json", self.trace]), "kxray report"):
            raise ValueError(f"report: {self.out('report', 'err').strip()[:200]}")
        report = json.loads(self.out("report"))
        counts = {}
        for f in report["functions"]:
            counts[f["name"]] = counts.get(f["name"], 0) + f["count"]
        return counts, report["lost"]


def compare(counts, lost, want, off=0):
    """Why the counts are wrong, or ''. @off: calls that may be cut off between their entry and their own count"""
    if off and all(abs(counts.get(name, 0) - n) <= off + lost and counts.get(name, 0) for name, n in want.items()):
        return ""
    missing = {name: n - counts.get(name, 0) for name, n in want.items()}
    wrong = {name: f"{counts.get(name, 0)} of {want[name]}" for name, m in missing.items() if m}
    if not wrong or (lost and all(m >= 0 for m in missing.values()) and sum(missing.values()) <= lost):
        return ""
    return f"{wrong}, {lost} lost"


def one(hazard, way, expected, keep):
    """One traced run: (kind, text); kind is ok or one of KINDS."""
    run = Run(hazard)
    starts, which = WAYS[way][1:]
    which = hazard.counts.get(way, which)
    try:
        try:
            refused = left = None
            if way.startswith("inprocess") and way.endswith("late"):
                run.start_target()
                status, left = in_process.late(run, WAYS[way][0])
            elif way == "inprocess-tools":
                run.start_target()
                status = beside_tools.recorded(run, WAYS[way][0])
            else:
                status = run.commanded(way) if starts else run.attached(way)
        except Refused as why:
            refused = str(why)
            if starts:
                return "refused", refused
            run.go()
            status = run.end_of(run.target, "the target")
        output, counts = run.result("kxray" if starts else "target")
        if (status, output) != expected[:2]:
            return "known" if hazard.known else "harmed", f"{run.told}status {status}, output {output}; untraced {expected[0]}, {expected[1]}"
        if refused:
            return "refused", refused
        if run.kxray and not starts and run.end_of(run.kxray, "kxray"):
            return "failed", f"kxray ends with {run.kxray.returncode}: {run.out('kxray', 'err')[-200:]}"
        if way in IN_PROCESS and run.kxray:
            left = in_process.judge(run.out("kxray", "err"))
        if not which or run.partial:
            return ("refused", left) if left else ("ok", "")
        found, lost = run.entries(way)
        wrong = compare(found, lost, {name: n for name, n in counts[which].items()
                                      if any(fnmatch.fnmatch(name, f.split(":")[-1]) for f in hazard.functions)}, hazard.off)
        return ("inexact", run.told + wrong) if wrong else ("refused", left) if left else ("lossy", f"{lost} lost") if lost else ("ok", "")
    except Hang as why:
        return ("failed" if "kxray" in str(why) and run.target else "harmed"), str(why)
    except ValueError as why:
        return "failed", str(why)
    finally:
        run.close(keep)


def untraced(hazard):
    run = Run(hazard)
    try:
        return run.untraced()
    except Hang as why:
        return None, str(why), None
    finally:
        run.close(False)


KINDS = ("harmed", "known", "refused", "inexact", "lossy", "failed")
BAD = ("harmed", "inexact", "failed")


def hazards_of(args):
    unknown = set(args.only or ()) - {h.name for h in HAZARDS}
    if unknown:
        sys.exit(f"run.py: no hazard is called {', '.join(unknown)}; there are {', '.join(h.name for h in HAZARDS)}")
    return [h for h in HAZARDS if not args.only or h.name in args.only]


def why_not(hazard):
    """Why a hazard cannot be tried on this machine, or None"""
    if not os.path.exists(f"{TARGETS}/{hazard.target}"):
        return "this machine's compilers cannot build it"
    if hazard.files and not any(os.path.exists(f) for f in hazard.files):
        return f"there is no {hazard.files[0]}"
    missing = [t for t in hazard.tools if not shutil.which(t)]
    return f"{missing[0]} is not installed" if missing else None


@contextlib.contextmanager
def beside_translators(how):
    """As tests/lib.sh's: a probe in every process kills a program under valgrind or qemu."""
    if how is None:
        yield
        return
    with open(BUILD + "/translators.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, how)
        yield


def try_hazard(hazard, ways, runs, keep, tell):
    """Calls tell(way, kind, text) for each run."""
    translated = set(hazard.tools) & {"valgrind", "qemu-x86_64"}
    for number in range(runs):
        with beside_translators(fcntl.LOCK_EX if translated else None):
            expected = untraced(hazard)
        if expected[0] is None or expected[2] is None or (number == 0 and expected[0] != hazard.status):
            tell("untraced", "failed", f"status {expected[0]}: {expected[1]}")
            return
        for way in ways:
            if hazard.only and way not in hazard.only:
                continue
            if way in hazard.without:
                tell(way, "left out", hazard.without[way])
            else:
                with beside_translators(fcntl.LOCK_EX if translated else fcntl.LOCK_SH if way == "all" else None):
                    tell(way, *one(hazard, way, expected, keep))


def results(hazard, args, ways):
    """[(way, kind, text)] of all runs, or why there are none"""
    lacks, tried = why_not(hazard), []
    if not lacks:
        ways = [*ways, *(hazard.also if not args.ways and ways[0] not in PEERS else ())]
        try_hazard(hazard, ways, args.runs, args.keep, lambda *result: tried.append(result))
    return lacks, tried


def each(chosen, args, ways):
    """Yields each hazard with its results, in the order of the table; some are tried at a time."""
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        futures = [pool.submit(results, hazard, args, ways) for hazard in chosen]
        for hazard, future in zip(chosen, futures):
            yield hazard, *future.result()


def short(args, chosen):
    wrong = 0
    for hazard, lacks, tried in each(chosen, args, args.ways or DEFAULT_WAYS):
        if lacks:
            print(f"skip {hazard.name}: {lacks}")
        for way, kind, text in tried:
            if kind in BAD:
                wrong += 1
                print(f"not ok {hazard.name}, {way}: {kind}: {text}"[:600].replace("\n", " "), flush=True)
            elif kind != "left out":
                print(f"ok {hazard.name}, {way}" + (f" ({kind}: {text})" if text else ""), flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--ways", type=lambda v: v.split(","))
    parser.add_argument("--only", type=lambda v: v.split(","))
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="hazards at a time")
    parser.add_argument("--compare", action="store_true", help="then the same under bpftrace")
    parser.add_argument("--keep", action="store_true", help="keep the runs' folders")
    args = parser.parse_args()
    unknown = set(args.ways or ()) - set(WAYS)
    if unknown:
        parser.error(f"no such way: {unknown}; there are {', '.join(WAYS)}")
    if {"perf", "inprocess-tools"} & set(args.ways or ()):
        with_tracefs()
    ways = args.ways or [way for way in WAYS if way not in NAMED_WAYS]
    chosen = [h for h in hazards_of(args) if not h.only or set(h.only) & set(ways)]
    if args.short:
        sys.exit(1 if short(args, chosen) else 0)
    counted = table.show(each(chosen, args, ways), KINDS, in_process.stops)
    wrong = sum(counted[kind] for kind in BAD)
    for peer in PEERS if args.compare else ():
        print(f"\nThe same targets under {peer}, entries and returns:", flush=True)
        if shutil.which(peer):
            only = ["--only", ",".join(args.only)] if args.only else []
            subprocess.run([sys.executable, sys.argv[0], "--ways", peer, "--runs", str(args.runs), *only], check=False)
        else:
            print(f"{peer} is not installed")
    sys.exit(1 if wrong else 0)


main()
