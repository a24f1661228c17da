# SPDX-License-Identifier: BSD-2-Clause
"""
The measurements of soak-system.sh: a mixed load before, during and after a system-wide
recording.

    soak_system.py KXRAY FOLDER SECONDS PORT

Prints the counts and measurements, and checks that nothing is lost, that memory does not
grow, and that the CPU time of the load is within 1.5 times of what `kxray functions --rate` predicted for redis-server.
"""
import json
import os
import signal
import subprocess
import sys
import time

KXRAY, FOLDER, SECONDS, PORT = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
TICK = os.sysconf("SC_CLK_TCK")
LIBC = os.path.realpath("/lib/x86_64-linux-gnu/libc.so.6")
REDIS = os.path.realpath("/usr/bin/redis-server")
# Functions of the C library that make no calls: their exit probes are cheap in every process.
PATTERNS = [f"{REDIS}:processCommand", f"{REDIS}:call", f"{LIBC}:access", f"{LIBC}:unlink",
            f"{LIBC}:dup2", "syscall:execve", "syscall:read", "syscall:clone*", "syscall:vfork"]
started, bad = [], False


def start(*command, **more):
    """A process group that does not outlive this program, however that ends."""
    process = subprocess.Popen(("setpriv", "--pdeathsig", "KILL", *command), stdin=subprocess.DEVNULL, start_new_session=True,
                               stdout=more.pop("stdout", subprocess.DEVNULL),
                               stderr=more.pop("stderr", subprocess.DEVNULL), **more)
    started.append(process)
    return process


def stop_all():
    for process in reversed(started):
        if process.poll() is None:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


def cpu_seconds(pid):
    """CPU time of the process and of its ended children."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return sum(int(n) for n in fields[11:15]) / TICK


def lines_in(name):
    with open(f"{FOLDER}/{name}", "rb") as f:
        return f.read().count(b"\n")


def commands():
    text = subprocess.run(["redis-cli", "-p", PORT, "info", "stats"], capture_output=True, text=True,
                          check=True).stdout
    return int(next(l for l in text.splitlines()
                    if l.startswith("total_commands_processed")).split(":")[1])


class Load:
    """redis-benchmark against redis-server, a compile loop, a shell loop that forks."""

    def __init__(self):
        self.redis = start("redis-server", "--port", PORT, "--save", "", "--dir", FOLDER)
        for _ in range(100):
            if subprocess.run(["redis-cli", "-p", PORT, "ping"], capture_output=True,
                              check=False).returncode == 0:
                break
            time.sleep(0.1)
        start("redis-benchmark", "-p", PORT, "-t", "set,get", "-n", "1000000", "-c", "10", "-l")
        self.compile = start("sh", "-c", f"while :; do gcc -O2 -c -o {FOLDER}/x.o {FOLDER}/x.c; "
                                         f"echo >>{FOLDER}/compiled; done")
        self.forks = start("sh", "-c", f"while :; do (:); /bin/true; echo >>{FOLDER}/forked; done")

    def state(self):
        return {"redis": (commands(), cpu_seconds(self.redis.pid)),
                "compile": (lines_in("compiled"), cpu_seconds(self.compile.pid)),
                "forks": (lines_in("forked"), cpu_seconds(self.forks.pid)),
                "time": time.monotonic()}


def between(a, b):
    """Of each kind: per second, CPU microseconds each."""
    seconds = b["time"] - a["time"]
    made = {}
    for kind in ("redis", "compile", "forks"):
        n, cpu = (b[kind][i] - a[kind][i] for i in (0, 1))
        made[kind] = (n / seconds, cpu / max(n, 1) * 1e6)
    return made


def measure(load, seconds):
    before = load.state()
    time.sleep(seconds)
    return between(before, load.state())


def memory(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return int(next(l for l in f if l.startswith("VmRSS")).split()[1])


def predict(load, patterns):
    """CPU microseconds that tracing adds to one command of redis-server, by `kxray functions`."""
    before = load.state()["redis"][0], time.monotonic()
    found = json.loads(subprocess.run(
        [KXRAY, "functions", "-p", str(load.redis.pid), *patterns, "--rate",
         str(max(2, SECONDS / 12)), "--json"], capture_output=True, text=True, check=True).stdout)
    rate = (load.state()["redis"][0] - before[0]) / (time.monotonic() - before[1])
    return found["predicted_cpu_percent"] / 100 / rate * 1e6


def holds(what, right):
    global bad
    bad |= not right
    print(f"{what:<64} {'yes' if right else 'NO'}")


def main():
    with open(f"{FOLDER}/x.c", "w", encoding="ascii") as f:
        f.write("#include <stdio.h>\nint main(void) { return printf(\"x\\n\"); }\n")
    for name in ("compiled", "forked"):
        with open(f"{FOLDER}/{name}", "w", encoding="ascii"):
            pass
    load = Load()
    time.sleep(2)
    patterns = [arg for p in PATTERNS for arg in ("-f", p)]
    first = measure(load, SECONDS / 4)
    predicted_us = predict(load, patterns)

    with open(f"{FOLDER}/err", "w", encoding="ascii") as err, \
            open(f"{FOLDER}/json", "w", encoding="ascii") as out:
        kxray = start(KXRAY, "record", "-a", *patterns, "-o", f"{FOLDER}/trace.xray", "--json",
                      stdout=out, stderr=err)
    while "kxray: recording" not in open(f"{FOLDER}/err", encoding="utf-8").read():
        if kxray.poll() is not None:
            sys.exit(open(f"{FOLDER}/err", encoding="utf-8").read())
        time.sleep(0.1)
    time.sleep(SECONDS / 10)  # until one-time allocations are done
    kib, before, cpu_before = [memory(kxray.pid)], load.state(), cpu_seconds(kxray.pid)
    for _ in range(2):
        time.sleep(SECONDS / 2)
        kib.append(memory(kxray.pid))
    traced, own = between(before, load.state()), cpu_seconds(kxray.pid) - cpu_before
    kxray.send_signal(signal.SIGINT)
    if kxray.wait(120):
        sys.exit(open(f"{FOLDER}/err", encoding="utf-8").read())
    last = measure(load, SECONDS / 4)
    stop_all()
    with open(f"{FOLDER}/json", encoding="utf-8") as f:
        summary = json.load(f)

    print(f"{SECONDS:.0f} seconds, {os.cpu_count()} CPUs: {summary['events']} events, "
          f"{summary['lost']} lost, {summary['threads']} threads, {summary['bytes']} bytes")
    print(f"memory of kxray at the start, middle, end: {kib[0]}, {kib[1]}, {kib[2]} KiB; "
          f"it took {own / SECONDS * 100:.1f} % of a CPU")
    print("                 a second                          CPU us each")
    print("                 without    traced    without      without    traced    without")
    for kind in first:
        a, t, b = first[kind], traced[kind], last[kind]
        print(f"{kind:<12} {a[0]:11.1f} {t[0]:9.1f} {b[0]:10.1f}   {a[1]:10.1f} {t[1]:9.1f} {b[1]:10.1f}")
    untraced = (first["redis"][1] + last["redis"][1]) / 2
    measured_us = traced["redis"][1] - untraced
    spread = abs(first["redis"][1] - last["redis"][1])
    print(f"redis-server: {measured_us:.2f} us more a command measured, {predicted_us:.2f} predicted; "
          f"without tracing it varied by {spread:.2f}")
    print(f"ratio of its cost: {1 + measured_us / untraced:.3f} measured, "
          f"{1 + predicted_us / untraced:.3f} predicted")
    holds("nothing was lost", summary["lost"] == 0)
    # the newest 65,536 ended processes stand in the map, about half a KiB each
    processes = min(summary["threads"], 65536) / 2
    holds("memory at the end is that of the start, within 10 % or 2 MiB,",
          kib[2] - kib[0] - processes < max(2048, kib[0] / 10))
    print(f"    but for {processes:.0f} KiB of ended processes")
    holds("the cost is within 1.5 times of the prediction (or the noise)",
          measured_us < 1.5 * predicted_us + spread)
    holds("the trace can be read", subprocess.run(
        [KXRAY, "report", f"{FOLDER}/trace.xray"], stdout=subprocess.DEVNULL, check=False).returncode == 0)


try:
    main()
finally:
    stop_all()
sys.exit(bad)
