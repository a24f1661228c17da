# SPDX-License-Identifier: BSD-2-Clause
"""What run.py needs for `kxray record --in-process`: its summary, and recordings that come and go while the target works."""
import os
import random
import re
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../live"))
from process_code import changed_bytes  # noqa: E402

SUMMARY = re.compile(r"in process: ([\d,]+) functions? \(([\d,]+) jumps?\), ([\d,]+) by uprobes; "
                     r"threads were stopped for ([\d.]+) ms at most")
STAND_IN = "KX_STAND_IN" in os.environ  # a program that takes some of kxray's words has no summary

_lock = threading.Lock()
_attach = [0.2]  # seconds that recordings took to begin
_stops = []      # ms


def summary(text):
    """(functions in process, by uprobes, ms of the longest stop) of kxray's messages, or None"""
    found = SUMMARY.findall(text)
    if not found:
        return None
    functions, _, uprobes, stop = found[-1]
    return int(functions.replace(",", "")), int(uprobes.replace(",", "")), float(stop)


def judge(text):
    """'' if all functions were recorded in process, else how many were not. The words must be there."""
    found = summary(text)
    if found is None:
        if STAND_IN:
            return ""
        raise ValueError(f"no line 'in process: ...': {text[-300:]}")
    with _lock:
        _stops.append(found[2])
    return f"{found[1]} of {found[0] + found[1]} functions by uprobes" if found[1] else ""


def stops():
    """A line about all times for which threads were stopped, or ''"""
    with _lock:
        if not _stops:
            return ""
        s = sorted(_stops)
    return f"threads were stopped for at most {s[-1]:.1f} ms, in half of {len(s)} recordings for {s[len(s) // 2]:.1f} ms"


def random_pause(longest):
    """A random moment is the point of it: what happens then must be right at each."""
    time.sleep(random.random() * longest)


def check_left(run):
    """No byte of the program's code may be changed behind a recording, unless the program itself or another tool does so."""
    if run.hazard.rewrites or run.hazard.beside or not os.path.exists(run.binary) or run.target.poll() is not None:
        return
    try:
        changed = changed_bytes(run.target.pid)
    except (OSError, AssertionError):  # it ends, or executes another program
        return
    if changed:
        raise ValueError(f"{changed} bytes of the program differ from its file after a recording")


def record_once(run, options, refused, before=None):
    """One recording from beginning to end while the target works. Returns whether it recorded."""
    begin = time.monotonic()
    child = run.start_kxray("kxray", [*options, "-p", str(run.target.pid)])
    if before:
        before()
    run.wait_for(lambda: "kxray: recording " in run.out("kxray", "err") or child.poll() is not None, "kxray does not record")
    records = "kxray: recording " in run.out("kxray", "err")
    if records:
        with _lock:
            _attach[:] = [*_attach[-20:], time.monotonic() - begin]
        random_pause(0.03)
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
    status = run.end_of(child, "kxray")
    if status < 0 or (records and status and run.target.poll() is None):
        raise ValueError(f"kxray ends with {status}: {run.out('kxray', 'err')[-200:]}")
    if records:
        refused.append(judge(run.out("kxray", "err")))
        check_left(run)
    else:
        words = run.out("kxray", "err")
        time.sleep(0.05)  # a target that just ends is nothing that is refused
        if "in process" in words or run.target.poll() is None:
            refused.append(run.last_words(child, "kxray"))
    return records


def late(run, options):
    """
    Recordings come and go while the target works; the first begins at a random moment around the target's first call. Returns
    its status and what was refused.
    """
    refused = []
    beside = run.hazard.beside(run) if run.hazard.beside else None
    if beside:
        next(beside)

    def go():  # the jumps are written at the end of the attaching
        with _lock:
            attach = sum(_attach) / len(_attach)
        time.sleep(0.6 * attach)
        random_pause(0.6 * attach)
        run.go()
    again = record_once(run, options, refused, go)
    while again and run.target.poll() is None:
        again = record_once(run, options, refused)
    status = run.end_of(run.target, "the target")
    if beside:
        next(beside, None)
    return status, next((why for why in refused if why), "")
