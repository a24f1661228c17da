# SPDX-License-Identifier: BSD-2-Clause
"""Runs a command on a terminal, does things to it, and says what stood on the screen.

    terminal.py COLUMNS STEPS COMMAND [ARG...]

STEPS are separated by ';', each is done when the one before it is:
    see TEXT        waits until the terminal has got TEXT (a regular expression) since the step before
    run COMMAND     a shell command; $PID is the process on the terminal
    type TEXT       on the keyboard; ^C, ^S and ^Q are keys
    resize COLUMNS
    hang up         the terminal goes away
Then it waits for the command's end. Prints a JSON object: "screen", the lines that are left on the screen, scrolled off or not;
"drawn", every text that stood in a status line, and how many columns the terminal had; "raw", all bytes; "status".
"""
import codecs
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

LIMIT = float(os.environ.get("KX_TEST_WAIT", "300"))


class Screen:
    """What \\r, \\n, "erase below" and colors do. Long lines wrap; nothing here resizes what stands there already."""

    def __init__(self, columns):
        self.columns, self.lines, self.row, self.column = columns, [""], 0, 0
        self.drawn, self.wrapped = [], 0

    def put(self, c):
        if self.column >= self.columns:
            self.wrapped += 1
            self.down()
            self.column = 0
        line = self.lines[self.row].ljust(self.column)
        self.lines[self.row] = line[:self.column] + c + line[self.column + 1:]
        self.column += 1

    def down(self):
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append("")

    def feed(self, text):
        at = 0
        while at < len(text):
            m = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])").match(text, at)
            if m:
                at = m.end()
                if m[2] == "J":
                    self.lines[self.row] = self.lines[self.row][:self.column]
                    del self.lines[self.row + 1:]
                    if self.column:
                        self.drawn.append([self.lines[self.row], self.columns])
                elif m[2] != "m":
                    raise SystemExit(f"an unknown sequence {m[0]!r}")
                continue
            c = text[at]
            at += 1
            if c == "\r":
                self.column = 0
            elif c == "\n":
                self.down()
            elif c >= " ":
                self.put(c)
            else:
                raise SystemExit(f"an unknown byte {c!r}")


def main():
    columns, steps, command = int(sys.argv[1]), [s.strip() for s in sys.argv[2].split(";")], sys.argv[3:]
    pid, fd = pty.fork()
    if not pid:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execvp(command[0], command)
    screen, raw, since, deadline = Screen(columns), "", 0, time.monotonic() + LIMIT
    decode = codecs.getincrementaldecoder("utf-8")("replace")
    while fd is not None:
        while steps and steps[0]:
            verb, _, rest = steps[0].partition(" ")
            if verb == "see":
                if not re.search(rest, raw[since:]):
                    break
            elif verb == "run":
                subprocess.run(["bash", "-c", rest], env={**os.environ, "PID": str(pid)}, check=True, timeout=LIMIT)
            elif verb == "type":
                for key in ("^C", "^S", "^Q"):
                    rest = rest.replace(key, chr(ord(key[1]) - 64))
                os.write(fd, rest.encode())
            elif verb == "resize":
                screen.columns = int(rest)
                fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, screen.columns, 0, 0))
            elif verb == "hang":
                os.close(fd)
                fd = None
            since = len(raw)
            steps.pop(0)
        if fd is None:
            break
        if not select.select([fd], [], [], max(0, deadline - time.monotonic()))[0]:
            os.kill(pid, signal.SIGKILL)
            raise SystemExit(f"no end, at the step {steps[:1]}: {raw!r}")
        try:
            text = decode.decode(os.read(fd, 65536))
        except OSError:
            break
        raw += text
        screen.feed(text)
    _, status = os.waitpid(pid, 0)
    print(json.dumps({"screen": screen.lines, "drawn": screen.drawn, "wrapped": screen.wrapped, "raw": raw,
                      "left": [s for s in steps if s], "status": os.waitstatus_to_exitcode(status)}))


main()
