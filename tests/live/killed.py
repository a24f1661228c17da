# SPDX-License-Identifier: BSD-2-Clause
"""Interrupts recordings of a process at random moments and looks for what they leave behind.

    killed.py KXRAY PID ROUNDS SEED TRACE PATTERN...        TRACE "": of kxray top, which writes none

Each round ends kxray by SIGINT, SIGKILL, or SIGTERM and then SIGKILL, after random delays that span
attaching, recording and detaching. When its keeper has ended, too, the process must have the code of
its file, the kernel must not have given up a probe, and no temporary file may lie beside the trace.
Prints one line: a JSON object.
"""
import ctypes
import errno
import glob
import json
import os
import random
import signal
import subprocess
import sys
import time

from process_code import changed_bytes

PR_SET_CHILD_SUBREAPER = 36


class KernelLog:
    """Messages of the kernel since the last look."""

    def __init__(self):
        self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.fd, 0, os.SEEK_END)

    def count_leaks(self, names):
        """Probes that threads with these names could not remove: "uprobe: NAME:TID failed to ..."."""
        n = 0
        while True:
            try:
                text = os.read(self.fd, 8192)
                if b"leaking uprobe" in text:
                    n += any(b"uprobe: %s:" % name.encode() in text for name in names)
            except OSError as e:
                if e.errno == errno.EAGAIN:
                    return n
                if e.errno != errno.EPIPE:  # EPIPE: some were overwritten
                    raise


class Recording:
    def __init__(self, kxray, pid, trace, patterns):
        args = [x for p in patterns for x in ("-f", p)]
        self.begin = time.monotonic()
        self.process = subprocess.Popen(
            [kxray, *(["record", "-o", trace] if trace else ["top"]), "-p", str(pid), *args],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def wait_until_it_records(self):
        for line in self.process.stderr:
            if line.startswith(("kxray: recording", "kxray: watching")):
                break
        return time.monotonic() - self.begin

    def end(self):
        self.process.stderr.close()
        self.process.wait()
        while True:  # its keeper became a child of this process
            try:
                os.wait()
            except ChildProcessError:
                return


def main():
    kxray, pid, rounds, seed, trace = sys.argv[1:6]
    patterns = sys.argv[6:]
    rnd = random.Random(int(seed))
    # a background shell ignores it, and kxray would lose one that comes at its very start
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    log = KernelLog()
    names = (os.path.basename(kxray)[:15], "kx-keeper")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    r = Recording(kxray, pid, trace, patterns)
    attach = r.wait_until_it_records()
    before = time.monotonic()
    r.process.send_signal(signal.SIGINT)
    r.end()
    detach = time.monotonic() - before

    result = {"seed": int(seed), "rounds": int(rounds), "attach_ms": round(attach * 1e3),
              "detach_ms": round(detach * 1e3), "killed": 0, "changed": changed_bytes(pid),
              "leaks": log.count_leaks(names), "temporary": 0}
    for _ in range(int(rounds)):
        r = Recording(kxray, pid, trace, patterns)
        how = rnd.choice(["int", "kill", "int+kill", "term+kill"])
        time.sleep(rnd.uniform(0, attach * 1.3))
        if how.startswith("int"):
            r.process.send_signal(signal.SIGINT)
        elif how.startswith("term"):
            r.process.send_signal(signal.SIGTERM)
        if "+" in how:
            time.sleep(rnd.uniform(0, detach))
        if "kill" in how:
            r.process.kill()
        r.end()
        result["killed"] += r.process.returncode == -signal.SIGKILL
        result["changed"] += changed_bytes(pid)
        result["leaks"] += log.count_leaks(names)
        result["temporary"] += len(glob.glob(glob.escape(trace) + "*.tmp") if trace else [])
    print(json.dumps(result))


main()
