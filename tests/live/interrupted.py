# SPDX-License-Identifier: BSD-2-Clause
"""Interrupts the start of recordings at random moments, and looks at how they end.

    interrupted.py KXRAY PID ROUNDS SEED TRACE ARG...

ARGs are options of record. Each round sends SIGINT or SIGQUIT after a random delay that spans the start, every second round
a second one after it. kxray must either have recorded (status 0, the trace and its map are there, and it says so) or
say that it was interrupted (status 1, no file). When its keeper has ended, too, the process must have the code of its
file. Prints one line: a JSON object; slowest_ms is for readers only.
"""
import glob
import json
import os
import random
import signal
import sys
import time

from process_code import changed_bytes
from recording import Recording, prepare


def main():
    kxray, pid, rounds, seed, trace = sys.argv[1:6]
    args = ["record", "-p", pid, "-o", trace, *sys.argv[6:]]
    rnd = random.Random(int(seed))
    prepare()

    r = Recording(kxray, args)
    attach = r.wait_until_it_records()
    r.process.send_signal(signal.SIGINT)
    said = r.said + r.process.stderr.readlines()
    r.end()
    result = {"seed": int(seed), "attach_ms": round(attach * 1e3), "changed": changed_bytes(int(pid)),
              "recorded": 0, "interrupted": 0, "left": 0, "other": [], "files": 0, "slowest_ms": 0}
    if r.process.returncode:
        result["other"].append([r.process.returncode, "".join(said)])
    for i in range(int(rounds)):
        for path in glob.glob(glob.escape(trace) + "*"):
            os.unlink(path)
        r = Recording(kxray, args)
        process = r.process
        time.sleep(rnd.uniform(0.02, attach * 1.2))
        asked = time.monotonic()
        process.send_signal(rnd.choice([signal.SIGINT, signal.SIGQUIT]))
        if i % 2:
            time.sleep(rnd.uniform(0, 0.1))
            process.send_signal(signal.SIGINT)
        # its end is seen at once, although the keeper may live on
        process.wait()
        result["slowest_ms"] = max(result["slowest_ms"], round((time.monotonic() - asked) * 1e3))
        text = process.stderr.read()
        r.end()
        result["changed"] += changed_bytes(int(pid))
        result["left"] += "kx-keeper (process" in text
        files = len(glob.glob(glob.escape(trace) + "*"))
        if process.returncode == 0 and "kxray: recording" in text and files == 2:
            result["recorded"] += 1
        elif process.returncode == 1 and "interrupted" in text and files == 0:
            result["interrupted"] += 1
        elif process.returncode in (-signal.SIGINT, -signal.SIGQUIT) and not text and files == 0:
            result["interrupted"] += 1  # before kxray blocks signals
        else:
            result["other"].append([process.returncode, files, text])
    print(json.dumps(result))


main()
