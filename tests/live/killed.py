# SPDX-License-Identifier: BSD-2-Clause
"""Interrupts recordings of a process at random moments and looks for what they leave behind.

    killed.py KXRAY PID ROUNDS SEED TRACE PATTERN...        TRACE "": of kxray top, which writes none

Each round ends kxray by SIGINT, SIGKILL, or SIGTERM and then SIGKILL, after random delays that span
attaching, recording and detaching. When its keeper has ended, too, the process must have the code of
its file, the kernel must not have given up a probe, and no temporary file may lie beside the trace.
Prints one line: a JSON object.
"""
import errno
import glob
import json
import os
import random
import signal
import sys
import time

from process_code import changed_bytes
from recording import Recording, prepare


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


def main():
    kxray, pid, rounds, seed, trace = sys.argv[1:6]
    args = [*(["record", "-o", trace] if trace else ["top"]), "-p", pid]
    args += [x for p in sys.argv[6:] for x in ("-f", p)]
    rnd = random.Random(int(seed))
    prepare()
    log = KernelLog()
    names = (os.path.basename(kxray)[:15], "kx-keeper")

    r = Recording(kxray, args)
    attach = r.wait_until_it_records()
    before = time.monotonic()
    r.process.send_signal(signal.SIGINT)
    r.end()
    detach = time.monotonic() - before

    result = {"seed": int(seed), "rounds": int(rounds), "attach_ms": round(attach * 1e3),
              "detach_ms": round(detach * 1e3), "killed": 0, "changed": changed_bytes(pid),
              "leaks": log.count_leaks(names), "temporary": 0}
    for _ in range(int(rounds)):
        r = Recording(kxray, args)
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
