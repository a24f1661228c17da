#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Measures what a recording in process does to a program that works right: how much more stack its functions need, and how much
longer its waits take that threads are stopped in.

    measures.py

Status 1 if a wait takes longer that keeps its time limit (kxray-safety(7)).
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

BUILD = os.path.realpath(os.environ.get("BUILD", "build"))
KXRAY = os.environ.get("KXRAY", BUILD + "/kxray")
HANG = int(os.environ.get("KX_TEST_WAIT", "120"))  # only ends a hang
LIMIT_MS = 5000
KEPT = ("poll", "ppoll", "select", "pselect", "nanosleep", "clock_nanosleep", "futex", "sem_timedwait", "epoll_wait")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def wait_for(condition, what):
    deadline = time.monotonic() + HANG
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"measures.py: {what}")
        time.sleep(0.005)


class Run:
    """A target of the hazards, which waits for go()."""

    def __init__(self, folder, name, how):
        self.err, self.kxray_err = folder + "/target.err", folder + "/kxray.err"
        self.trace = folder + "/trace.xray"
        with open(self.err, "wb") as err, open(folder + "/target.out", "wb") as out:
            self.target = subprocess.Popen([f"{BUILD}/tests/hazards/{name}", how], stdin=subprocess.PIPE, stdout=out, stderr=err)
        wait_for(lambda: "ready" in read(folder + "/target.out"), "the target is not ready")

    def go(self):
        self.target.stdin.write(b"g")
        self.target.stdin.flush()

    def end(self):
        status = self.target.wait(HANG)
        self.target.stdin.close()
        if status:
            sys.exit(f"measures.py: the target's status is {status}: {read(self.err)}")
        return read(self.err)

    def attach(self, functions):
        with open(self.kxray_err, "wb") as err:
            kxray = subprocess.Popen([KXRAY, "record", "--in-process", "-p", str(self.target.pid), "-f", functions, "-o", self.trace],
                                     stdin=subprocess.DEVNULL, stdout=err, stderr=err)
        wait_for(lambda: "kxray: recording " in read(self.kxray_err) or kxray.poll() is not None, "kxray does not record")
        if kxray.poll() is not None and "kxray: recording " not in read(self.kxray_err):
            sys.exit("measures.py: " + read(self.kxray_err))
        return kxray


def least_stack(traced):
    with tempfile.TemporaryDirectory(prefix="kxray-measures.") as folder:
        run = Run(folder, "stacks", "least")
        kxray = run.attach("hz_leaf") if traced else None
        run.go()
        text = run.end()
        if kxray:
            kxray.wait(HANG)
        return int(text.split()[2])


def states(pid):
    """Whether each thread sleeps"""
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        found.append(read(f"/proc/{pid}/task/{tid}/stat").rsplit(")", 1)[1].split()[0])
    return found


def wait_times():
    """Times in ms by kind, of waits of LIMIT_MS that a recording begins and ends in, and how much of them had passed when it began"""
    with tempfile.TemporaryDirectory(prefix="kxray-measures.") as folder:
        run = Run(folder, "waiting", "once")
        run.go()
        begin = time.monotonic()
        wait_for(lambda: len(states(run.target.pid)) > 10 and set(states(run.target.pid)) == {"S"}, "its threads do not wait")
        time.sleep(1.5)  # what is measured: some of the time has passed
        kxray = run.attach("hz_*")
        passed = (time.monotonic() - begin) * 1000
        kxray.send_signal(signal.SIGINT)
        kxray.wait(HANG)
        ended = (time.monotonic() - begin) * 1000
        lines = [line.rsplit(": ", 1) for line in run.end().splitlines()]
        return {name: int(ms) for name, ms in lines}, passed, ended


def main():
    before, traced = least_stack(False), least_stack(True)
    print(f"stack: hz_leaf needs {before} bytes untraced, {traced} recorded in process: {traced - before} more")
    times, passed, ended = wait_times()
    print(f"waits of {LIMIT_MS} ms; threads were stopped about {passed:.0f} and {ended:.0f} ms after their beginning:")
    wrong = []
    for name, ms in sorted(times.items(), key=lambda item: item[1]):
        kind = "keeps its limit" if ms < LIMIT_MS + passed / 2 else "begins anew"
        print(f"    {name:26} {ms:5} ms  {kind}")
        if name in KEPT and kind != "keeps its limit":
            wrong.append(name)
    if wrong:
        print(f"measures: {', '.join(wrong)} must keep their limits")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
