# SPDX-License-Identifier: BSD-2-Clause
"""What run.py needs for the way inprocess-tools: another tool at the functions that are recorded in process, in turns of tools and orders."""
import itertools
import os
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
    """Counted by perf stat: with -I, its first line says that it counts. -f: other runs have probes of these names."""
    with _adding:
        events, _ = run.add_perf(_own(run), "-f")
    child = run.start("tool", ["perf", "stat", "-I", "50", "-x;", "-e", events, "-p", str(run.target.pid)])
    return child, lambda: "probe" in run.out("tool", "err")


def _kxray(run):
    return run.start_kxray("tool", ["-p", str(run.target.pid)]), lambda: "kxray: recording " in run.out("tool", "err")


_TOOLS = {"bpftrace": _bpftrace, "perf": _perf, "kxray": _kxray}
_ORDERS = ("before", "during", "after")


def _come(run, tool):
    """A tool that cannot attach to this target ends; the target must be right with that, too."""
    child, attached = _TOOLS[tool](run)
    run.wait_for(lambda: child.poll() is not None or attached(), tool + " does not attach")
    return child


def _record(run, options):
    run.kxray = run.start_kxray("kxray", [*options, "-p", str(run.target.pid)])
    run.wait_for_kxray(run.kxray, "kxray")


def recorded(run, options):
    """kxray and another tool attach to the waiting target, which then works. Returns its status."""
    turn = next(_turn)
    tool, order = list(_TOOLS)[turn % len(_TOOLS)], _ORDERS[turn // len(_TOOLS) % len(_ORDERS)]
    run.told = f"{tool} {order}: "
    if order == "before":
        other = _come(run, tool)
        _record(run, options)
    else:
        _record(run, options)
        if order == "after":
            run.stop(run.kxray, "kxray")
            run.partial = True
        other = _come(run, tool)
    run.go()
    if order == "during":
        in_process.random_pause(0.05)
    else:
        run.end_of(run.target, "the target")
    run.stop(other, "tool")
    return run.end_of(run.target, "the target")
