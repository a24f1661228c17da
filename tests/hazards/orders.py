#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Other tools at functions that are recorded in process, in each order of coming and going; the target must be right at each step.

    orders.py [--runs N] [--tools TOOL,...] [--orders ORDER,...]
    orders.py --list

A run is "harmed" if the target's results are wrong, if it ends or stands still, or if bytes of its code stay changed when all have left
and `kxray detach` has run; "refused" if kxray or the tool says why it does not attach (the target must be right then, too). The last
line has the totals. Status 1 if a run was harmed.
"""
import argparse
import collections
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../live"))
import perf_probe  # noqa: E402
from looping import HANG, UPROBES, Harm, Refused, Target, Tool, check_code, in_process, read

ORDERS = {"before": "T+ P+ P- T-", "spanning": "T+ P+ T- P-", "during": "P+ T+ T- P-", "after": "P+ T+ P- T-"}
UPROBE_EVENTS = "/sys/kernel/tracing/uprobe_events"


def instructions(binary, function):
    """Addresses of a function's instructions, in order"""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", binary], capture_output=True, text=True,
                          check=True).stdout
    return [int(a, 16) for a in re.findall(r"^ +([0-9a-f]+):\t", text, re.MULTILINE)]


def place(target, where):
    """(function, address, offset from the function's start) of an instruction that "first", "second" or "inside" a window names"""
    function = random.choice(["hz_outer", "hz_branch", "hz_leaf", "hz_many_7"])
    at = instructions(target.binary, function)
    inside = [a for a in at if 0 < a - at[1] < 5] or [at[2]]
    there = {"first": at[0], "second": at[1], "inside": random.choice(inside), "any": random.choice(at)}[where]
    return function, there, there - at[0]


class Uprobe:
    """A uprobe at a file offset, in this process, which ends with its descriptor."""

    def __init__(self, target, where):
        address = place(target, where)[1]  # the first segments of the target have the same offsets and addresses
        try:
            self.fd = perf_probe.probe(target.pid, target.binary, address)
        except OSError as why:
            raise Refused(f"perf_event_open: {os.strerror(why.errno)}") from None

    def leave(self):
        self.close()

    def close(self):
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1


class Gdb(Tool):
    """gdb with a breakpoint that it passes each time; leaves by its own commands."""

    def __init__(self, target, where):
        function, _, offset = place(target, where)
        super().__init__(target, "gdb", [
            "gdb", "-nx", "-q", "-p", str(target.pid), "-ex", "set pagination off", "-ex", "set confirm off", "-ex",
            f"break *((char*){function}+{offset})", "-ex", "handle SIGSEGV SIGILL SIGBUS nostop pass", "-ex", "ignore 1 100000000",
            "-ex", "shell echo armed", "-ex", "continue"], "armed")

    def leave(self):
        deadline = 100
        while self.child.poll() is None and deadline and "SIGINT" not in self.text().split("armed", 1)[1]:
            self.child.send_signal(signal.SIGINT)
            try:
                self.child.wait(0.2)
            except subprocess.TimeoutExpired:
                deadline -= 1
        if self.child.poll() is None:
            self.child.stdin.write(b"delete\ndetach\nquit\n")
            self.child.stdin.flush()
        try:
            self.child.wait(HANG)
        except subprocess.TimeoutExpired:
            raise Refused("gdb does not end") from None


class Perf:
    """perf probe's entries and returns, counted by perf stat."""

    def __init__(self, target):
        if not os.path.exists(UPROBE_EVENTS):
            raise Refused("no uprobe_events")
        self.names, self.stat = [], None
        for f in ("hz_outer", "hz_leaf", "hz_outer%return", "hz_leaf%return"):
            done = subprocess.run(["perf", "probe", "-q", "-f", "-x", target.binary, "--add", f], capture_output=True, text=True, check=False)
            if done.returncode:
                self.close()
                raise Refused("perf probe: " + done.stderr.strip()[-150:])
            self.names = sorted(set(re.findall(rf"^[pr]:(\S+) {re.escape(target.binary)}:", read(UPROBE_EVENTS), re.MULTILINE)))
        events = ",".join(name.replace("/", ":") for name in self.names)
        # -I: its first line says that it counts
        try:
            self.stat = Tool(target, "perf", ["perf", "stat", "-I", "50", "-x;", "-e", events, "-p", str(target.pid)], "probe_")
        except Refused:
            self.close()
            raise

    def leave(self):
        if self.stat:
            self.stat.leave()
        self.close()

    def close(self):
        if self.stat:
            self.stat.close()
        for name in self.names:
            file = os.open(UPROBE_EVENTS, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(file, f"-:{name}\n".encode())
            finally:
                os.close(file)
        self.names = []


class Once:
    """A program that comes, does something and goes."""

    def __init__(self, target, command):
        done = subprocess.run(command, capture_output=True, text=True, cwd=target.folder, timeout=HANG, check=False)
        if done.returncode:
            raise Refused(done.stderr.strip()[-150:])

    def leave(self):
        pass

    def close(self):
        pass


def bpftrace(target, probes, name="bpftrace"):
    return Tool(target, name, ["bpftrace", "-p", str(target.pid), "-e", 'BEGIN { printf("go\\n"); } ' + probes], "go")


def kxray(target, *options):
    return Tool(target, "kxray", [UPROBES, "record", "-o", f"{target.folder}/k.xray", *options], "kxray: recording ")


TOOLS = {
    "bpftrace": lambda t: bpftrace(t, f"uprobe:{t.binary}:hz_* {{ @a = count(); }} uretprobe:{t.binary}:hz_* {{ @b = count(); }}"),
    "perf probe": Perf,
    "perf record": lambda t: Tool(t, "perf", ["sh", "-c", "echo go; exec perf record -g -q -o perf.data -p " + str(t.pid)], "go"),
    "strace": lambda t: Tool(t, "strace", ["strace", "-f", "-p", str(t.pid)], "attached"),
    "gcore": lambda t: Once(t, ["gdb", "-nx", "-batch", "-p", str(t.pid), "-ex", "generate-core-file core", "-ex", "detach"]),
    "kxray": lambda t: kxray(t, "-p", str(t.pid), "-f", "hz_*"),
    "kxray -a": lambda t: kxray(t, "-a", "-f", t.binary + ":hz_*"),
    "kxray --in-process": lambda t: in_process(t, "second"),
    "gdb at first": lambda t: Gdb(t, "first"),
    "gdb at second": lambda t: Gdb(t, "second"),
    "gdb inside": lambda t: Gdb(t, "inside"),
    "gdb anywhere": lambda t: Gdb(t, "any"),
    "uprobe at first": lambda t: Uprobe(t, "first"),
    "uprobe at second": lambda t: Uprobe(t, "second"),
    "uprobe inside": lambda t: Uprobe(t, "inside"),
    "uprobe anywhere": lambda t: Uprobe(t, "any"),
}
NEEDED = {"bpftrace": "bpftrace", "perf probe": "perf", "perf record": "perf", "strace": "strace", "gcore": "gdb"}


def steps(target, tool, order, live):
    """Takes the steps of an order. Returns what was refused, or ''."""
    refused = ""
    for word in order.split():
        try:
            if word[1] == "-" and word[0] in live:
                live[word[0]].leave()
                live.pop(word[0]).close()
            elif word[1] == "+":
                live[word[0]] = in_process(target) if word[0] == "P" else TOOLS[tool](target)
        except Refused as why:
            if not target.lives():
                raise Harm(f"its status is {target.process.returncode} at {word}") from why
            refused = refused or f"{word}: {why}"
        try:
            target.step(slow="gdb" in tool or tool == "strace")
        except Harm as why:
            raise Harm(f"behind {word}: {why}") from None
    return refused


def run(tool, order):
    """One run: (kind, text)"""
    with tempfile.TemporaryDirectory(prefix="kxray-orders.") as folder:
        live = {}
        target = Target(folder)
        try:
            refused = steps(target, tool, order, live)
            check_code(target)
            target.end()
            return ("refused", refused.replace("\n", " ")) if refused else ("ok", "")
        except Harm as why:
            return "harmed", str(why)
        finally:
            for one in live.values():
                one.close()
            target.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tools", type=lambda v: v.split(","), default=list(TOOLS))
    parser.add_argument("--orders", type=lambda v: v.split(","), default=list(ORDERS))
    parser.add_argument("--list", action="store_true", help="list the tools")
    args = parser.parse_args()
    if args.list:
        print(*TOOLS, sep="\n")
        return
    if unknown := [tool for tool in args.tools if tool not in TOOLS] + [order for order in args.orders if order not in ORDERS]:
        parser.error(f"unknown: {', '.join(unknown)}; --list shows the tools, and the orders are {', '.join(ORDERS)}")
    total = collections.Counter()
    for tool in args.tools:
        needed = "gdb" if tool.startswith("gdb") else NEEDED.get(tool)
        if needed and not shutil.which(needed):
            print(f"{tool:20} not tried: {needed} is not installed")
            continue
        for order in args.orders:
            got, why = collections.Counter(), {}
            for _ in range(args.runs):
                kind, text = run(tool, ORDERS[order])
                got[kind] += 1
                total[kind] += 1
                why.setdefault(kind, text)
            print(f"{tool:20} {order:9} {dict(got)} {why.get('harmed') or why.get('refused', '')}", flush=True)
    print(f"orders: {sum(total.values())} runs, {total['harmed']} harmed, {total['refused']} refused")
    sys.exit(1 if total["harmed"] else 0)


if __name__ == "__main__":
    main()
