# SPDX-License-Identifier: BSD-2-Clause
"""A kxray that records, for tests that end it at random moments."""
import ctypes
import os
import signal
import subprocess
import time

PR_SET_CHILD_SUBREAPER = 36


def prepare():
    """Once, before the first recording: keepers whose kxray has ended become children of this process."""
    # a background shell ignores them, and kxray would lose one that comes at its very start
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Recording:
    """A kxray with the arguments @args; .process, and the lines .said before it recorded."""

    def __init__(self, kxray, args):
        self.begin = time.monotonic()
        self.said = []
        self.process = subprocess.Popen([kxray, *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)

    def wait_until_it_records(self):
        """Seconds that attaching took."""
        for line in self.process.stderr:
            self.said.append(line)
            if line.startswith(("kxray: recording", "kxray: watching")):
                break
        return time.monotonic() - self.begin

    def end(self):
        """Waits for its end and for its keeper's."""
        self.process.stderr.close()
        self.process.wait()
        while True:
            try:
                os.wait()
            except ChildProcessError:
                return
