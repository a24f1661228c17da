#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
#
# Draws a terminal's screen as an SVG: reads text with SGR escape sequences (as `tmux capture-pane -e -p` or
# a program with --color=always prints them) on standard input, writes the picture to standard output.
#
#     kxray report --color=always trace.xray | scripts/screen_svg.py --title 'kxray report' > report.svg
import argparse
import re
import sys
import unicodedata
from xml.sax.saxutils import escape

CELL, LINE, SIZE, MARGIN, BAR = 7.83, 17, 13, 14, 26
BACKGROUND, TEXT = "#16181d", "#d6d9df"
COLORS = ["#3b4048", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d6d9df"]
BRIGHT = ["#7f848e", "#f07c85", "#a8d389", "#f5d08b", "#71bfff", "#d688ed", "#66c6d2", "#ffffff"]
SGR = re.compile(r"\x1b\[([0-9;]*)m")


def apply(style, codes):
    """The style after an SGR sequence's parameters; only what terminals' text uses."""
    style = dict(style)
    codes = [int(c or 0) for c in codes.split(";")]
    for code in codes:
        if code == 0:
            style = {}
        elif code == 1:
            style["bold"] = True
        elif code == 2:
            style["dim"] = True
        elif code == 7:
            style["reverse"] = True
        elif code in (22, 27):
            style.pop("bold" if code == 22 else "reverse", None)
        elif 30 <= code <= 37:
            style["color"] = COLORS[code - 30]
        elif 90 <= code <= 97:
            style["color"] = BRIGHT[code - 90]
        elif code == 39:
            style.pop("color", None)
    return style


def pieces(line, style):
    """Yields (style, text) of a line; the last style is that of the next line."""
    at = 0
    for match in SGR.finditer(line):
        yield style, line[at:match.start()]
        style = apply(style, match.group(1))
        at = match.end()
    yield style, line[at:]


def cells(text):
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else
               0 if unicodedata.combining(c) else 1 for c in text)


def attributes(style):
    color = style.get("color", TEXT)
    out = f' fill="{color}"' if color != TEXT else ""
    if style.get("bold"):
        out += ' font-weight="bold"'
    if style.get("dim"):
        out += ' opacity="0.65"'
    return out


def draw(lines, title):
    style, body, columns = {}, [], 40
    for row, line in enumerate(lines):
        column, y = 0, BAR + MARGIN + SIZE + row * LINE
        for style, text in pieces(line, style):
            width = cells(text)
            x = MARGIN + column * CELL
            if style.get("reverse") and text:
                body.append(f'<rect x="{x:.1f}" y="{y - SIZE}" width="{width * CELL:.1f}" '
                            f'height="{LINE}" fill="{TEXT}"/>')
                style = dict(style, color=BACKGROUND)
            # Viewers differ in what they do with several spaces, so a text has none.
            for word in re.finditer(r"\S+( \S+)*", text):
                at = x + cells(text[:word.start()]) * CELL
                body.append(f'<text x="{at:.1f}" y="{y}" '
                            f'textLength="{cells(word.group()) * CELL:.1f}"'
                            f'{attributes(style)}>{escape(word.group())}</text>')
            column += width
        columns = max(columns, column)
    width, height = columns * CELL + 2 * MARGIN, BAR + len(lines) * LINE + 2 * MARGIN
    dots = "".join(f'<circle cx="{16 + 16 * i}" cy="14" r="5" fill="{c}"/>'
                   for i, c in enumerate(("#e06c75", "#e5c07b", "#98c379")))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{escape(title)}">\n'
            f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>{dots}\n'
            f'<text x="{width / 2:.0f}" y="19" fill="#7f848e" text-anchor="middle" '
            f'font-family="sans-serif" font-size="12">{escape(title)}</text>\n'
            f'<g font-family="DejaVu Sans Mono,Menlo,Consolas,monospace" font-size="{SIZE}" '
            f'fill="{TEXT}">\n' + "\n".join(body) + "\n</g>\n</svg>\n")


parser = argparse.ArgumentParser()
parser.add_argument("--title", default="kxray")
arguments = parser.parse_args()
text = sys.stdin.buffer.read().decode("utf-8", "replace").rstrip("\n")
sys.stdout.write(draw(text.split("\n"), arguments.title))
