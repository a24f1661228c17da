#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
SIGKILL of a kxray that records in process, at random moments: while it attaches, records, or removes its jumps.

    kills.py [--runs N] [--keeper HOW] [--steps] [--seed SEED]

The target must be right after that, and after `kxray detach -p PID`, which must restore every byte of its code. Mappings that stay even then are
counted: kxray was killed right behind the system call that made them, or a stack holds an address in them. --keeper: who is killed: "spared" (kxray
alone: its keeper restores the code), "killed" (both), "mixed" (default: at random). --steps: not at random moments, but in the Nth
of kxray's system calls that touch the target, by strace, for N from 1 on, and again when there are no more. The last line has the totals. Status 1 if a run was harmed.
"""
import argparse
import collections
import ctypes
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

from looping import HANG, KXRAY, STAND_IN, Harm, Target, detach

PR_SET_CHILD_SUBREAPER = 36
TOUCHES = "ptrace,pwrite64,process_vm_writev"


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(n) for n in f.read().split()]
    except FileNotFoundError:
        return []


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Recording:
    """kxray in process, whose keeper becomes a child of this program when kxray is killed."""

    def __init__(self, target, before=()):
        self.target = target
        self.path = target.folder + "/kxray.txt"
        with open(self.path, "wb") as out:
            self.process = subprocess.Popen([*before, KXRAY, "record", "--in-process", "-p", str(target.pid), "-f", "hz_*", "-o",
                                             target.folder + "/trace.xray"], stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.keepers = []

    def text(self):
        with open(self.path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def records(self):
        return "kxray: recording " in self.text()

    def wait_until_it_records(self):
        while not self.records() and self.process.poll() is None:
            time.sleep(0.002)

    def kill(self, both):
        """kxray, or it and its keeper in any order"""
        victims = [self.process.pid]
        self.keepers = children(self.process.pid)
        if both:
            victims += self.keepers
            random.shuffle(victims)
        for pid in victims:
            kill(pid)
        self.process.wait()

    def wait_for_keepers(self):
        """Those that were seen, and those that have become children of this program, as the target is"""
        deadline = time.monotonic() + HANG
        for pid in {*self.keepers, *children(os.getpid())} - {self.target.process.pid}:
            while time.monotonic() < deadline:
                try:
                    if os.waitpid(pid, os.WNOHANG)[0]:
                        break
                except ChildProcessError:  # it had ended before kxray did
                    break
                time.sleep(0.002)
            else:
                kill(pid)
                raise Harm("the keeper does not end")


def check(target):
    """The target is right, then and after `kxray detach`, which restores its code. Returns the kind of what was left."""
    target.step()
    left = target.changed()
    if not STAND_IN:
        detach(target)
        target.step()
    with open(f"/proc/{target.pid}/maps", encoding="utf-8") as maps:
        lost = sum("/dev/zero (deleted)" in line for line in maps)
    target.end()
    return ("inert jumps left" if left else "nothing left") + (f", {lost} mappings stay" if lost else "")


def at_random(target, attach, both):
    """Kills it at a random moment; how that went"""
    recording = Recording(target)
    detaches = random.random() < 0.3
    if detaches:
        recording.wait_until_it_records()
        recording.process.send_signal(signal.SIGINT)
        time.sleep(random.random() * 0.05)
    else:
        time.sleep(random.random() * 1.3 * attach)
    when = "removing" if detaches else "recording" if recording.records() else "attaching"
    recording.kill(both)
    recording.wait_for_keepers()
    return f"{when}, {'both' if both else 'kxray'}: {check(target)}"


def at_step(target, number, both):
    """Kills it in the number-th call that touches the target. None if it makes fewer"""
    strace = ["strace", "-qq", *(["-f"] if both else []), "-o", "/dev/null", "-e", "trace=" + TOUCHES, "-e",
              f"inject={TOUCHES}:signal=KILL:when={number}"]
    recording = Recording(target, strace)
    recording.wait_until_it_records()
    kxray = children(recording.process.pid)
    keepers = [k for pid in kxray for k in children(pid)]
    if recording.process.poll() is None:
        for pid in kxray:
            os.kill(pid, signal.SIGINT)
    status = recording.process.wait(HANG)
    recording.keepers = keepers
    recording.wait_for_keepers()
    killed = status in (-signal.SIGKILL, 128 + signal.SIGKILL)
    return f"step, {'both' if both else 'kxray'}: {check(target)}" if killed else None


def attach_time():
    with tempfile.TemporaryDirectory(prefix="kxray-kills.") as folder:
        target = Target(folder)
        try:
            begin = time.monotonic()
            recording = Recording(target)
            recording.wait_until_it_records()
            if not recording.records():
                sys.exit("kills.py: kxray does not record: " + recording.text()[-300:])
            took = time.monotonic() - begin
            recording.process.send_signal(signal.SIGINT)
            recording.process.wait(HANG)
            target.step()
            return took
        finally:
            target.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--keeper", choices=("spared", "killed", "mixed"), default="mixed")
    parser.add_argument("--steps", action="store_true")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    args = parser.parse_args()
    random.seed(args.seed)
    # A background shell ignores it, and so would kxray.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    attach = attach_time()
    got = collections.Counter()
    step = 0
    for number in range(1, args.runs + 1):
        step += 1
        both = args.keeper == "killed" or args.keeper == "mixed" and random.random() < 0.5
        with tempfile.TemporaryDirectory(prefix="kxray-kills.") as folder:
            target = Target(folder)
            try:
                how = at_step(target, step, both) if args.steps else at_random(target, attach, both)
                if how:
                    got[how] += 1
                else:
                    step = 0
            except Harm as why:
                got["harmed"] += 1
                print(f"harmed: {why} (seed {args.seed}, run {number})", flush=True)
            finally:
                target.close()
    for how, n in sorted(got.items()):
        print(f"{how:50} {n:5}")
    print(f"kills: {sum(got.values())} runs, {got['harmed']} harmed, {'steps' if args.steps else 'random moments'}, seed {args.seed}")
    sys.exit(1 if got["harmed"] or not got else 0)


if __name__ == "__main__":
    main()
