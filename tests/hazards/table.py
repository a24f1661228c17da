# SPDX-License-Identifier: BSD-2-Clause
"""The table that run.py prints."""


def show(rows, kinds, stops):
    """Prints a line for each of @rows, (hazard, why it was not tried or None, [(way, kind, text)]), as they come, then their sum, which is
    returned as {kind: number}. @stops: returns what is said of all, or None."""
    notes, total = [], dict.fromkeys(("runs", *kinds), 0)
    print(f"{'hazard':26} {'runs':>5} " + " ".join(f"{k:>7}" for k in kinds) + "  what was not ok")
    for hazard, lacks, tried in rows:
        if lacks:
            print(f"{hazard.name:26} not tried: {lacks}", flush=True)
            continue
        counts, odd = dict.fromkeys(total, 0), {}
        for way, kind, text in tried:
            counts["runs"] += kind != "left out"
            if kind in kinds:
                counts[kind] += 1
                odd.setdefault((way, kind), []).append(text)
        for key, n in counts.items():
            total[key] += n
        print(f"{hazard.name:26} " + numbers(counts) + "  " + ", ".join(f"{way}: {kind} {len(t)}" for (way, kind), t in odd.items()), flush=True)
        notes += [f"{hazard.name}, {way}, {kind}: {t[0]}" for (way, kind), t in odd.items()]
    print(*filter(None, [stops()]))
    print(f"{'all':26} " + numbers(total))
    print(*(["", "The first of each:"] + notes if notes else []), sep="\n")
    return total


def numbers(counts):
    return " ".join(f"{n:{5 if k == 'runs' else 7}}" for k, n in counts.items())
