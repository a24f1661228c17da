# SPDX-License-Identifier: BSD-2-Clause
"""The target that works for ever (targets/loop.c), for orders.py and kills.py, and kxray beside it."""
import os
import select
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../live"))
from process_code import changed_bytes  # noqa: E402

BUILD = os.path.realpath(os.environ.get("BUILD", "build"))
KXRAY = os.environ.get("KXRAY", BUILD + "/kxray")
STAND_IN = "KX_STAND_IN" in os.environ
UPROBES = BUILD + "/kxray" if STAND_IN else KXRAY
HANG = int(os.environ.get("KX_TEST_WAIT", "120"))  # only ends a hang


class Harm(Exception):
    """The target does not work as it does untraced."""


class Refused(Exception):
    """A tool says why it does not attach, or ends."""


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


class Target:
    """A copy of the program of its own, in FOLDER."""

    def __init__(self, folder):
        self.folder = folder
        self.binary = shutil.copy(f"{BUILD}/tests/hazards/loop", folder)
        self.process = subprocess.Popen([self.binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.pid = self.process.pid
        self._line("ready")

    def _line(self, word):
        if not select.select([self.process.stdout], [], [], HANG)[0]:
            raise Harm("it stands still" if self.process.poll() is None else f"its status is {self.process.returncode}")
        line = self.process.stdout.readline().decode(errors="replace")
        if not line.startswith(word):
            raise Harm(f"it prints {line!r}; its status is {self.process.wait(HANG)}")
        return line

    def _send(self, byte):
        try:
            self.process.stdin.write(byte)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def step(self, slow=False):
        """Both threads go on and are right. slow: while something stops them at each call"""
        self._send(b"s" if slow else b"x")
        self._line("ran")

    def lives(self):
        return self.process.poll() is None

    def end(self):
        """It ends as it must."""
        self._send(b"q")
        line = self._line("right")
        if self.process.wait(HANG):
            raise Harm(f"its status is {self.process.returncode}")
        return line[len("right "):]

    def close(self):
        self.process.kill()
        self.process.wait()
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.stdout.close()

    def changed(self):
        return changed_bytes(self.pid)


class Tool:
    """A program that is ready when READY is in its output, and leaves at SIG."""

    def __init__(self, target, name, command, ready, sig=signal.SIGINT):
        self.name, self.path, self.sig = name, f"{target.folder}/{name}.txt", sig
        with open(self.path, "wb") as out:
            self.child = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.PIPE, cwd=target.folder)
        try:
            self.wait_for(ready)
        except Refused:
            self.close()
            raise

    def text(self):
        return read(self.path)

    def wait_for(self, text, times=1):
        deadline = time.monotonic() + HANG
        while self.text().count(text) < times:
            if self.child.poll() is not None and self.text().count(text) < times:
                raise Refused(" ".join(self.text().split())[-150:])
            if time.monotonic() > deadline:
                raise Refused(f"{self.name} does not print {text!r}")
            time.sleep(0.005)

    def leave(self):
        if self.child.poll() is None:
            self.child.send_signal(self.sig)
        try:
            self.child.wait(min(HANG, 20))  # bpftrace sometimes does not end, also without kxray: it is killed
        except subprocess.TimeoutExpired:
            raise Refused(f"{self.name} does not end") from None

    def close(self):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        self.child.stdin.close()


def in_process(target, name="in-process", functions="hz_*", options=()):
    return Tool(target, name, [KXRAY, "record", "--in-process", "-p", str(target.pid), "-f", functions, "-o",
                               f"{target.folder}/{name}.xray", *options], "kxray: recording ")


def detach(target):
    """
    `kxray detach`, which must restore every byte. It is asked again while it takes the killed recorder for a living one. Memory that stays
    mapped, because a stack holds an address in it, is harmless: status 1.
    """
    deadline = time.monotonic() + HANG
    while True:
        done = subprocess.run([KXRAY, "detach", "-p", str(target.pid)], capture_output=True, text=True, timeout=HANG, check=False)
        words = (done.stdout + done.stderr).strip()[-200:]
        if not done.returncode or done.returncode == 1 and "stays mapped" in words:
            break
        if not target.lives() or time.monotonic() > deadline or "is recording it" not in words:
            raise Harm(f"kxray detach ends with {done.returncode}: {words}")
        time.sleep(0.1)
    left = target.changed()
    if left:
        raise Harm(f"{left} bytes differ after kxray detach: {words}")


def check_code(target):
    """After the last tool: what differs from the file is inert, and `kxray detach` restores it."""
    if not STAND_IN and target.changed():
        detach(target)
