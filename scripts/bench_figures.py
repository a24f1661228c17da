#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
The figures of `scripts/bench.sh` for other programs.

    scripts/bench.sh | scripts/bench_figures.py json >FIGURES.json
    scripts/bench_figures.py chart FIGURES.json >CHART.svg

json: one object for each line of its input that begins with "bench name=": name, value, unit, limit, op and result ("PASS",
"FAIL", "NOTE", "NONE"; the last with why). chart: bars of how many times less kxray takes than another tool, or how many
times faster it is.
"""
import html
import json
import shlex
import sys


def figures(lines):
    for line in lines:
        if not line.startswith("bench name="):
            continue
        figure = dict(word.split("=", 1) for word in shlex.split(line[len("bench "):]))
        for key in ("value", "limit"):
            if key in figure:
                figure[key] = float(figure[key])
        yield figure


def others(all_figures):
    """(label, times) of the figures that compare kxray with another tool, the greatest first."""
    found = []
    for f in all_figures:
        name = f["name"]
        if f.get("unit") != "x" or not f.get("value"):
            continue
        if " / kxray" in name:
            found.append((name, f["value"]))
        elif name.startswith("kxray / "):
            other, _, what = name[len("kxray / "):].partition(", ")
            found.append((f"{other} / kxray, {what}", 1 / f["value"]))
    return sorted(found, key=lambda row: -row[1])


def chart(rows):
    height, left, width = 26, 420, 420
    most = max(times for _, times in rows)
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 90}" height="{height * len(rows) + 20}" '
           'font-family="sans-serif" font-size="13">')
    for i, (label, times) in enumerate(rows):
        y = 10 + i * height
        long = max(1, width * times / most)
        yield f'<text x="{left - 10}" y="{y + 17}" text-anchor="end">{html.escape(label)}</text>'
        yield f'<rect x="{left}" y="{y + 4}" width="{long:.0f}" height="{height - 8}" fill="#2a6f97"/>'
        yield f'<text x="{left + long + 6:.0f}" y="{y + 17}">{times:.1f} times</text>'
    yield "</svg>"


def main(arguments):
    if arguments == ["json"]:
        json.dump(list(figures(sys.stdin)), sys.stdout, indent=1)
        print()
        return 0
    if len(arguments) == 2 and arguments[0] == "chart":
        try:
            with open(arguments[1], encoding="utf-8") as f:
                rows = others(json.load(f))
        except (OSError, ValueError) as e:
            print(f"bench_figures: {arguments[1]} cannot be read: {e}", file=sys.stderr)
            return 1
        if not rows:
            print(f"bench_figures: {arguments[1]} has no comparison with another tool", file=sys.stderr)
            return 1
        print(*chart(rows), sep="\n")
        return 0
    print("usage: bench_figures.py json | chart FIGURES.json", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
