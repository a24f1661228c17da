# SPDX-License-Identifier: BSD-2-Clause
"""Starts a command again and again and kills it at random moments.

    remote_kills.py ROUNDS SEED COMMAND...      prints "killed ROUNDS", and what a command printed that ended by itself

The moments span what an undisturbed start takes, and once more.
"""
import random
import subprocess
import sys
import time


def main():
    rounds, rnd, command = int(sys.argv[1]), random.Random(int(sys.argv[2])), sys.argv[3:]
    killed = 0
    for _ in range(rounds):
        p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        time.sleep(rnd.uniform(0, 0.03))
        p.kill()
        p.stdin.close()
        text = p.stdout.read()
        if p.wait() == -9:
            killed += 1
        else:
            print(text.splitlines()[-1:])
    print("killed", killed)


main()
