# SPDX-License-Identifier: BSD-2-Clause
"""
Checks what commands print with --json against the manual page kxray-json(7), and the sessions of maps against
the section SESSION of kxray-formats(5).

    json_fields.py PAGE SECTION FILE...          every field of the JSON values in the files is in that section of
                                                 the page, with its type; each object or element has "schema": 1
    json_fields.py --seen PAGE SECTION FILE...   also the other way: prints the fields of the page that no file has

The page has a line `.BR PATH " (TYPES, UNIT)"` for each field; in a path, "[]" is an element of an array and "*" any
member. A description "each has the fields of PATH" stands for these fields. Prints errors, one a line.
"""
import json
import re
import sys

TYPES = {"integer": int, "number": (int, float), "string": str, "boolean": bool, "null": type(None),
         "object": dict, "array": list}


def documented(page, section):
    """Path to (its type names, types of an array's elements or None), and aliases (path, path it is like)."""
    with open(page, encoding="utf-8") as f:
        text = f.read()
    parts = re.split(r"^\.SH (.*)$", text, flags=re.M)
    body = dict(zip(parts[1::2], parts[2::2]))[section]
    fields, aliases = {}, []
    for entry in re.split(r"^\.TP$", body, flags=re.M)[1:]:
        head, description = entry.lstrip("\n").split("\n", 1)
        match = re.fullmatch(r'\.BR (\S+) "\((.+)\)"|\.BR (\S+) " \((.+)\)"', head)
        if not match:
            raise ValueError(f"{section}: not a field: {head}")
        path, kinds = match[1] or match[3], (match[2] or match[4]).split(",")[0]
        elements = re.fullmatch(r"array of (\w+?)s", kinds)
        fields[path] = (["array"] if elements else kinds.split(" or "), elements and elements[1])
        like = re.search(r"each has the fields of\s+\\fI(\S+?)\\fR", description)
        if like:
            aliases.append((path + "[]" if path != "[]" else path, like[1]))
    return fields, aliases


def is_a(value, names):
    return any(isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))
               for name in names)


class Page:
    def __init__(self, page, section):
        self.section, self.errors, self.seen = section, [], set()
        self.fields, self.aliases = documented(page, section)

    def find(self, path):
        """The path under which the page has it; None."""
        for known in self.fields:
            if re.fullmatch(re.escape(known).replace(r"\*", "[^.]+"), path):
                return known
        for prefix, like in self.aliases:
            if path.startswith(prefix + "."):
                return self.find(like + path[len(prefix):])
        return None

    def error(self, text):
        if text not in self.errors:
            self.errors.append(text)

    def check_member(self, path, value):
        known = self.find(path)
        if known is None:
            # "checks.*.works" documents the objects in between, too.
            if isinstance(value, dict) and any(re.match(re.escape(k).replace(r"\*", "[^.]+") + "$", path)
                                               for k in (k.rsplit(".", 1)[0] for k in self.fields)):
                return
            self.error(f"{self.section}: {path} is not in the page")
            return
        self.seen.add(known)
        names, elements = self.fields[known]
        if not is_a(value, names):
            self.error(f"{self.section}: {path} is {json.dumps(value)[:40]}, not {' or '.join(names)}")
        elif elements and not all(is_a(v, [elements]) for v in value):
            self.error(f"{self.section}: {path} has elements that are no {elements}")

    def check(self, value, path=""):
        if isinstance(value, dict):
            for key, member in value.items():
                at = f"{path}.{key}" if path else key
                self.check_member(at, member)
                self.check(member, at)
        elif isinstance(value, list):
            for element in value:
                self.check(element, path + "[]")

    def check_file(self, path):
        with open(path, encoding="utf-8") as f:
            text = f.read()
        decoder, at, values = json.JSONDecoder(), 0, 0
        while text[at:].strip():
            at += len(text[at:]) - len(text[at:].lstrip())
            value, at = decoder.raw_decode(text, at)
            values += 1
            for top in value if isinstance(value, list) else [value]:
                version = "kxray" if self.section == "SESSION" else "schema" # the map's has another name for it
                if list(top)[:1] != [version] or top[version] != 1:
                    self.error(f'{self.section}: no "schema": 1 in {json.dumps(top)[:60]}')
            self.check(value)
        if not values:
            self.error(f"{path}: no JSON")


def main():
    arguments = sys.argv[1:]
    both = arguments[0] == "--seen"
    name, section, *files = arguments[both:]
    page = Page(name, section)
    for path in files:
        page.check_file(path)
    for text in page.errors:
        print(text)
    if both:
        for path in page.fields:
            if path not in page.seen:
                print(f"{section}: no output has {path}")


if __name__ == "__main__":
    main()
