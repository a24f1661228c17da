#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Strict reader of Perun profiles.

    perun.py FILE...

Prints the profile per function, as JSON; several files must have the same values. Checks what
Perun's document requires, what Perun 0.21.8 reads without checking (add, show, showdiff,
postprocessby), and that calls are nested in their callers.
"""
import json
import re
import sys

TYPES = ("time", "mixed", "memory")


class Bad(Exception):
    pass


def check(condition, *why):
    if not condition:
        raise Bad(" ".join(str(w) for w in why))


def unique_keys(pairs):
    keys = [k for k, _ in pairs]
    check(len(set(keys)) == len(keys), "a key twice in", keys)
    return dict(pairs)


def whole(value, what):
    check(isinstance(value, int) and not isinstance(value, bool) and value >= 0, what, "is", value)


def check_head(p):
    if "origin" in p:
        check(re.fullmatch("[0-9a-f]{40}", p["origin"]), "origin", p["origin"])
    h = p["header"]
    check(h["type"] in TYPES, "header.type", h["type"])
    for key in ("cmd", "args", "workload"):
        check(isinstance(h[key], str), "header", key)
    units = h["units"]
    check(h["type"] in units and all(isinstance(u, str) for u in units.values()),
          "units without", h["type"])
    m = p["machine"]
    for key in ("architecture", "system", "release", "host"):
        check(isinstance(m[key], str) and m[key], "machine", key)
    whole(m["cpu"]["physical"], "cpu.physical")
    whole(m["cpu"]["total"], "cpu.total")
    check(re.fullmatch(r"\d+Mhz", m["cpu"]["frequency"]), "cpu.frequency")
    check(isinstance(m["memory"]["total_ram"], str), "memory")
    # Perun imports perun.collect.NAME
    check(p["collector_info"]["name"] == "trace", "collector")
    check(isinstance(p["collector_info"]["params"], dict), "collector params")
    check(p["postprocessors"] == [], "postprocessors")


def resources_of(p):
    """Every resource as one dictionary, as Profile.all_resources gives them."""
    if "snapshots" in p:
        check("resources" not in p, "two forms at once")
        for s in p["snapshots"]:
            check(re.fullmatch(r"\d+\.\d+", s["time"]), "time", s["time"])
            check(s["models"] == [], "models")
            yield from s["resources"]
        return
    check(p["models"] == [], "models")
    lists, types = p["resources"], p["resource_type_map"]
    check(list(lists) == list(types), "resources and resource_type_map differ")
    seen, numbers = set(), {}
    for key, columns in lists.items():
        constant = types[key]
        # Perun numbers the types of each uid from 0 on.
        number = numbers.setdefault(constant["uid"], 0)
        numbers[constant["uid"]] += 1
        check(key == "%s#%d" % (constant["uid"], number), "name of type", key)
        shape = json.dumps(constant, sort_keys=True)
        check(shape not in seen, "two types are the same:", key)
        seen.add(shape)
        lengths = {len(c) for c in columns.values()}
        check(len(lengths) == 1 and lengths != {0}, "lists of", key, "have lengths", lengths)
        check(not set(columns) & set(constant), "a property twice in", key)
        for values in zip(*columns.values()):
            yield dict(constant, **dict(zip(columns, values)))


def check_resource(r, header):
    check(r["type"] == header["type"], "type", r["type"])
    check("%s(%s)" % (r["type"], r["subtype"]) in header["units"], "no unit of", r["subtype"])
    check(isinstance(r["uid"], str) and r["uid"], "uid", r["uid"])
    for key in ("amount", "exclusive", "timestamp", "call-order", "tid", "pid"):
        whole(r[key], key)
    check(isinstance(r["trace"], list), "trace")
    for frame in r["trace"]:
        check(list(frame) == ["func"] and isinstance(frame["func"], str), "frame", frame)
    check(isinstance(r["location"], str), "location")
    if "cpu" in r:
        whole(r["cpu"], "cpu")
        whole(r["migrations"], "migrations")
    check(r["exclusive"] <= r["amount"], "exclusive time above amount in", r["uid"])


def check_nesting(resources):
    """
    Calls of one thread are nested, each trace has the open calls, and a call's time is its own and that of its
    callees, to the nanosecond.
    """
    threads = {}
    for r in resources:
        threads.setdefault((r["pid"], r["tid"]), []).append(r)
    for calls in threads.values():
        calls.sort(key=lambda r: (r["timestamp"], len(r["trace"])))
        stack = []
        for r in calls:
            depth = len(r["trace"])
            del stack[depth:]
            names = [f["func"] for f in r["trace"]]
            for level, (known, name) in enumerate(zip(stack, names)):
                # A call that has ended is still on the stack if its caller has not ended.
                if known is not None and known["timestamp"] + known["amount"] < r["timestamp"]:
                    stack[level] = None
                elif known is not None:
                    check(known["uid"] == name, "call of", r["uid"], "within", known["uid"],
                          "and not", name)
                    check(r["timestamp"] + r["amount"] <=
                          known["timestamp"] + known["amount"], r["uid"], "outlives", name)
            # Callers that have not ended have no resource.
            stack += [None] * (depth - len(stack)) + [r]
            r["rest"] = 0 if r.get("repaired") else r["amount"] - r["exclusive"]
            # The time of a repaired call is its caller's, that of what it called is not.
            callers = [c for c in stack[:-1] if c is None or not c.get("repaired")]
            if callers and callers[-1] and not r.get("repaired"):
                callers[-1]["rest"] -= r["amount"]
        for r in calls:
            check(r["rest"] == 0, r["uid"], "at", r["timestamp"], "and its callees differ by", r["rest"])


def read(path):
    with open(path, encoding="utf-8") as f:
        p = json.load(f, object_pairs_hook=unique_keys)
    check_head(p)
    resources = list(resources_of(p))
    is_exclusive = all(r["amount"] == r["exclusive"] for r in resources)
    functions, orders = {}, {}
    for r in resources:
        check_resource(r, p["header"])
        f = functions.setdefault(r["uid"], {
            "calls": 0, "amount": 0, "exclusive": 0, "location": r["location"], "traces": {},
            "repaired": 0})
        f["calls"] += 1
        f["amount"] += r["amount"]
        f["exclusive"] += r["exclusive"]
        f["repaired"] += r.get("repaired", 0)
        trace = ";".join(x["func"] for x in r["trace"])
        f["traces"][trace] = f["traces"].get(trace, 0) + 1
        check(r["call-order"] not in orders.setdefault(r["uid"], set()), "call-order twice in", r["uid"])
        orders[r["uid"]].add(r["call-order"])
    if not is_exclusive:
        check_nesting(resources)
    return {"header": p["header"], "machine": p["machine"], "origin": p.get("origin"),
            "collector": p["collector_info"], "resources": len(resources),
            "types": len(p.get("resources", [])), "functions": functions,
            "migrations": sum(r.get("migrations", 0) for r in resources),
            "threads": len({(r["pid"], r["tid"]) for r in resources}),
            "first": min((r["timestamp"] for r in resources), default=0),
            "last": max((r["timestamp"] + r["amount"] for r in resources), default=0)}


def main():
    said = []
    for path in sys.argv[1:]:
        try:
            said.append(read(path))
        except (Bad, ValueError, KeyError, TypeError) as e:
            sys.exit("%s: %s: %s" % (path, type(e).__name__, e))
    for path, other in zip(sys.argv[2:], said[1:]):
        for key in ("header", "functions", "resources", "threads", "first", "last"):
            if other[key] != said[0][key]:
                sys.exit("%s and %s differ in %s" % (sys.argv[1], path, key))
    json.dump(said[0], sys.stdout, indent=1)
    print()


main()
