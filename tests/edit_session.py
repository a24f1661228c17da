# SPDX-License-Identifier: BSD-2-Clause
"""
Changes the session of a trace's map: edit_session.py MAP STATEMENT...

Each statement is Python that finds the session as `s`, for example 's["host"]["name"] = "web1"'. clocks(s, hz, [(tsc,
boottime, realtime), ...]) gives it snapshots of the clocks, in ticks and ns; CLOCK_MONOTONIC is CLOCK_BOOTTIME less 5 ns.
"""
import json
import os
import subprocess
import sys
import tempfile


def clocks(s, hz, snapshots, error=0):
    last = len(snapshots) - 1
    s.setdefault("clock", {}).update(tsc_hz=hz, snapshots=[
        {"when": "start" if not i else "end" if i == last else "flush", "tsc": tsc, "monotonic_ns": boot - 5,
         "boottime_ns": boot, "realtime_ns": real, "error_ns": error} for i, (tsc, boot, real) in enumerate(snapshots)])


def main(path, statements):
    with tempfile.TemporaryDirectory() as folder:
        section = os.path.join(folder, "session")
        subprocess.run(["objcopy", "--dump-section", ".kxray.session=" + section, path, os.path.join(folder, "copy")],
                       check=True)
        with open(section, encoding="utf-8") as f:
            whole = json.load(f)
        names = {"s": whole.setdefault("session", {}), "clocks": clocks}
        for statement in statements:
            exec(statement, names)  # pylint: disable=exec-used
        with open(section, "w", encoding="utf-8") as f:
            json.dump(whole, f)
        subprocess.run(["objcopy", "--update-section", ".kxray.session=" + section, path], check=True)


main(sys.argv[1], sys.argv[2:])
