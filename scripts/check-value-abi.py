#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Where arguments are by their types, by chance: makes C programs with functions of random parameters and results (numbers, structures,
unions, arrays, packed, long double, vectors), records all calls with the values of random members, and compares with what was passed.

    scripts/check-value-abi.py [ROUNDS [SEED]]        needs root

A value may be unknown, but not wrong. Prints for each compiler how many values were right, unknown and wrong; status 1 if one is wrong.
"""
import csv
import json
import os
import random
import subprocess
import sys
import tempfile

rounds, seed = int(sys.argv[1]) if len(sys.argv) > 1 else 2, int(sys.argv[2]) if len(sys.argv) > 2 else 1
KXRAY = os.environ.get("KXRAY", "build/kxray")
COMPILERS = ["gcc -g -O0", "gcc -g -O2", "clang -g -O0", "clang -g -O2"]
FUNCTIONS = 120
INTEGERS = {"signed char": 8, "short": 16, "int": 32, "long": 64, "unsigned char": 8, "unsigned short": 16, "unsigned": 32}
OTHERS = ["float", "double", "long double", "__int128", "vector"]
# unsigned char and char are shown as characters
SHOWN = [t for t in INTEGERS if "char" not in t]


class Type:
    """A C type: its name, a declaration if it has one, and the paths of the integers in it with their types."""

    def __init__(self, name, declaration, leaves):
        self.name, self.declaration, self.leaves = name, declaration, leaves


def scalar(rng):
    if rng.random() < 0.25:
        return Type(rng.choice(OTHERS), "", [])
    name = rng.choice(list(INTEGERS))
    return Type(name, "", [("", name)] if name in SHOWN else [])


def structure(rng, name, depth, declarations):
    members, leaves = [], []
    union, packed = rng.random() < 0.15, rng.random() < 0.25
    for i in range(rng.randint(1, 4)):
        t = structure(rng, f"{name}_{i}", depth - 1, declarations) if depth and rng.random() < 0.2 else scalar(rng)
        count = rng.choice([0, 0, 0, 0, 1, 2, 3]) if t.name != "vector" else 0
        members.append(f"{t.name} m{i}{f'[{count}]' if count else ''};")
        at = f".m{i}" + (f"[{rng.randrange(count)}]" if count else "")
        if not union or i == 0:
            leaves += [(at + path, kind) for path, kind in t.leaves]
    kind = "union" if union else "struct"
    declarations.append(f"{kind} {name} {{ {' '.join(members)} }}{' __attribute__((packed))' if packed else ''};")
    return Type(f"{kind} {name}", "", leaves)


def any_type(rng, name, declarations):
    return structure(rng, name, 1, declarations) if rng.random() < 0.5 else scalar(rng)


def value(rng, kind):
    bits = INTEGERS[kind]
    v = rng.choice([0, 1, -1, rng.getrandbits(bits), rng.getrandbits(bits)]) & ((1 << bits) - 1)
    return v if kind.startswith("unsigned") or v < 1 << (bits - 1) else v - (1 << bits)


def literal(kind, v):
    return f"({kind})({v}{'ull' if v >= 0 else 'll'})" if v > -(1 << 63) else "(-9223372036854775807l - 1)"


def program(rng):
    declarations, functions, calls, specs, expected = [], [], [], [], {}
    for n in range(FUNCTIONS):
        types = [any_type(rng, f"t{n}_{i}", declarations) for i in range(rng.randint(1, 9))]
        result = any_type(rng, f"r{n}", declarations)
        given, items, body = {}, [], []
        for i, t in enumerate(types):
            body.append(f"{t.name} a{i}; memset(&a{i}, {rng.randint(0, 255) if t.leaves else 0}, sizeof(a{i}));")
            for path, kind in t.leaves:
                v = value(rng, kind)
                body.append(f"a{i}{path} = {literal(kind, v)};")
                given[f"a{i}{path}"] = v
        chosen = rng.sample(sorted(given), min(7, len(given)))
        items = ", ".join(chosen)
        want = {label: given[label] for label in chosen}
        body.append(f"memset(&result, 0, sizeof(result));")
        spec = f"f{n}({items})" if items else f"f{n}"
        if result.leaves:
            path, kind = rng.choice(result.leaves)
            v = value(rng, kind)
            body.append(f"result{path} = {literal(kind, v)};")
            spec += f" -> ret{path}"
            want[f"ret{path}"] = v
        if not want:
            spec = None
        parameters = ", ".join(f"{t.name} a{i}" for i, t in enumerate(types))
        uses = " ".join(f'__asm__ volatile("" : : "r"(&a{i}) : "memory");' for i in range(len(types)))
        functions.append(f"static {result.name} result{n};\nTRACED {result.name} f{n}({parameters}) {{ {uses} return result{n}; }}\n")
        text = " ".join(body).replace("result", f"result{n}")
        calls.append(f"{{ {text} f{n}({', '.join(f'a{i}' for i in range(len(types)))}); }}")
        if spec:
            specs.append(spec if "(" in spec or "->" in spec else spec)
            expected[f"f{n}"] = want
    source = ('#include <string.h>\n#define TRACED __attribute__((noinline))\ntypedef int vector __attribute__((vector_size(16)));\n' +
              "\n".join(declarations) + "\n" + "".join(functions) + "int main(void) {\n" + "\n".join(calls) + "\nreturn 0; }\n")
    return source, specs, expected


wrong_all = 0
for number in range(rounds):
    rng = random.Random(seed * 1000 + number)
    source, specs, expected = program(rng)
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/p.c", "w") as f:
            f.write(source)
        for compiler in COMPILERS:
            subprocess.run(compiler.split() + ["-w", "-o", f"{folder}/p", f"{folder}/p.c"], check=True)
            command = [KXRAY, "record", "-o", f"{folder}/t.xray"]
            for spec in specs:
                command += ["-f", spec]
            done = subprocess.run(command + ["--", f"{folder}/p"], capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{compiler}: {done.stderr}")
            subprocess.run([KXRAY, "export", "-f", "csv", "-o", f"{folder}/t.csv", f"{folder}/t.xray"], check=True, capture_output=True)
            right = unknown = wrong = 0
            seen = set()
            with open(f"{folder}/t.csv", newline="") as f:
                for row in csv.DictReader(f):
                    got = json.loads(row["values"] or "{}")
                    seen.add(row["function"])
                    for label, want in expected.get(row["function"], {}).items():
                        have = got.get(label)
                        if have is None:
                            unknown += 1
                        elif int(have) == want:
                            right += 1
                        else:
                            wrong += 1
                            line = next(l for l in source.splitlines() if l.startswith("TRACED") and f" {row['function']}(" in l)
                            print(f"{compiler}, seed {seed}, round {number}: {row['function']}: {label} is {have}, {want} was passed\n  {line}")
            missing = set(expected) - seen
            print(f"{compiler}: {right} right, {unknown} unknown, {wrong} wrong, {len(missing)} functions without a call")
            wrong_all += wrong + len(missing)
sys.exit(1 if wrong_all else 0)
