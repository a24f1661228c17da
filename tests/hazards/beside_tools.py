# SPDX-License-Identifier: BSD-2-Clause
"""What run.py needs for the way inprocess-tools: another tool at the functions that are recorded in process, in turns of tools and orders."""
import itertools
import os
import re
import signal
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import in_process  # noqa: E402

UPROBE_EVENTS = "/sys/kernel/tracing/uprobe_events"
_turn = itertools.count()
_adding = threading.Lock()  # perf looks for a free name, then takes it


def with_tracefs():
    """perf needs tracefs. Where it is not mounted, starts again in a mount namespace of its own and mounts it there."""
    if not os.path.exists(UPROBE_EVENTS) and "KX_HAZARDS_UNSHARED" not in os.environ:
        os.environ["KX_HAZARDS_UNSHARED"] = "1"
        os.execvp("unshare", ["unshare", "-m", "sh", "-c", 'mount -t tracefs tracefs /sys/kernel/tracing; exec "$@"', "sh",
                              sys.executable, *sys.argv])


def _own(run):
    """Patterns of the target itself"""
    return [f for f in run.hazard.functions if ":" not in f]


def _bpftrace(run):
    program = "".join(f"uprobe:{run.binary}:{f} {{ @[probe] = count(); }}" for f in _own(run))
    child = run.start("tool", ["bpftrace", "-p", str(run.target.pid), "-e", 'BEGIN { printf("go\\n"); } ' + program])
    return child, lambda: "go" in run.out("tool")


def _perf(run):
    """Counted by perf stat: with -I, its first line says that it counts. The probes are removed with the run."""
    with _adding:
        for f in _own(run):
            run.end_of(run.start("probe", ["perf", "probe", "-q", "-f", "-x", run.binary, "--add", f]), "perf probe")
    with open(UPROBE_EVENTS, encoding="utf-8") as f:
        run.events = re.findall(rf"^([pr]):(\S+) {re.escape(run.binary)}:", f.read(), re.MULTILINE)
    events = ",".join(name.replace("/", ":") for _, name in run.events)
    child = run.start("tool", ["perf", "stat", "-I", "50", "-x;", "-e", events, "-p", str(run.target.pid)])
    return child, lambda: "probe" in run.out("tool", "err")


def _kxray(run):
    return run.start_kxray("tool", ["-p", str(run.target.pid)]), lambda: "kxray: recording " in run.out("tool", "err")


_TOOLS = (_bpftrace, _perf, _kxray)


def _come(run, tool):
    """A tool that cannot attach to this target ends; the target must be right with that, too."""
    child, attached = tool(run)
    run.wait_for(lambda: child.poll() is not None or attached(), tool.__name__[1:] + " does not attach")
    return child


def _before(run, tool, record):
    other = _come(run, tool)
    record()
    run.go()
    run.end_of(run.target, "the target")
    run.stop(other, "tool")


def _during(run, tool, record):
    record()
    other = _come(run, tool)
    run.go()
    in_process.random_pause(0.05)
    run.stop(other, "tool")


def _after(run, tool, record):
    record()
    run.kxray.send_signal(signal.SIGINT)
    run.end_of(run.kxray, "kxray")
    run.partial = True
    other = _come(run, tool)
    run.go()
    run.end_of(run.target, "the target")
    run.stop(other, "tool")


def recorded(run, record):
    """record() attaches kxray to the waiting target. Returns the target's status."""
    turn = next(_turn)
    order = (_before, _during, _after)[turn // len(_TOOLS) % 3]
    run.told = f"{_TOOLS[turn % len(_TOOLS)].__name__[1:]} {order.__name__[1:]}: "
    order(run, _TOOLS[turn % len(_TOOLS)], record)
    return run.end_of(run.target, "the target")
