#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Makes a program with much debug information, of many units with classes, members and functions of their own, and some that
all share, as a large C++ program has them:

    scripts/gen-large-dwarf.py FOLDER UNITS [CLASSES]

leaves FOLDER/program, which has the functions work_0 to work_N, 10 of each unit, and prints the bytes of its .debug_ sections.
"""
import os
import subprocess
import sys

folder, units, classes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 2500
FLAGS = os.environ.get("CXX", "g++").split() + [ "-g", "-O0", "-fno-eliminate-unused-debug-types", "-pipe"]

COMMON = "#pragma once\nstruct request { int id; const char *path; request *next; struct { long a; unsigned short len; } hdr; };\n" + "".join(
    f"struct shared_{i} {{ long value_{i}; shared_{max(i - 1, 0)} *previous; request *owner; enum kind_{i} {{ first_{i}, second_{i} }} kind; }};\n"
    for i in range(400))


def unit(u):
    out = ['#include "common.h"\n', f"namespace unit_{u} {{\n"]
    for c in range(classes):
        n = f"{u}_{c}"
        out.append(
            f"class thing_{n} {{ public: int number_{n}; const char *text_{n}; thing_{n} *next_{n}; "
            f"shared_{c % 400} *common_{c % 7}; unsigned long table_{n}[{c % 13 + 2}]; double ratio_{c % 31}; "
            f"int get_{n}(int first, const char *second, thing_{n} &third) const; "
            f"void set_{c % 97}(long value, shared_{c % 400} *where); }};\n")
    out.append("}\n")
    for f in range(10):
        out.append(
            f"int work_{u * 10 + f}(request *req, int count, unit_{u}::thing_{u}_{f} *thing) "
            f"{{ return req->id + count + thing->number_{u}_{f}; }}\n")
    return "".join(out)


os.makedirs(folder, exist_ok=True)
with open(f"{folder}/common.h", "w") as f:
    f.write(COMMON)
running = []
for u in range(units):
    with open(f"{folder}/unit_{u}.cpp", "w") as f:
        f.write(unit(u))
    running.append(subprocess.Popen(FLAGS + ["-c", "-o", f"unit_{u}.o", f"unit_{u}.cpp"], cwd=folder))
    while len(running) >= (os.cpu_count() or 1):
        if running.pop(0).wait():
            sys.exit(1)
if any(p.wait() for p in running):
    sys.exit(1)
with open(f"{folder}/main.cpp", "w") as f:
    f.write('#include "common.h"\n')
    for w in range(units * 10):
        f.write(f"namespace unit_{w // 10} {{ class thing_{w // 10}_{w % 10}; }}\n"
                f"int work_{w}(request *, int, unit_{w // 10}::thing_{w // 10}_{w % 10} *);\n")
    f.write('int main(int n, char **) { static request r; static long zero[64]; int sum = 0; r.path = "x";\n')
    for w in range(units * 10):
        f.write(f"sum += work_{w}(&r, n, (unit_{w // 10}::thing_{w // 10}_{w % 10} *)zero);\n")
    f.write("return sum == -1; }\n")
subprocess.run(FLAGS + ["-o", "program", "main.cpp"] + [f"unit_{u}.o" for u in range(units)], cwd=folder, check=True)
for u in range(units):
    os.unlink(f"{folder}/unit_{u}.o")
    os.unlink(f"{folder}/unit_{u}.cpp")
sizes = subprocess.run(["readelf", "-SW", f"{folder}/program"], capture_output=True, text=True, check=True).stdout
print(sum(int(line.split("]")[1].split()[4], 16) for line in sizes.splitlines() if ".debug_" in line))
