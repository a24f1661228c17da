# SPDX-License-Identifier: BSD-2-Clause
"""Perfetto's trace_processor_shell and `kxray report --json --raw` on the same recording.

perfetto_sql.py EXPORT REPORT.json [cut]: prints what differs, "the same" if nothing does. cut: of
a part of the time, where threads that are off the CPU at its beginning have no state in Perfetto yet.
"""
import csv
import io
import json
import subprocess
import sys
import tempfile

ERRORS = """select name, idx, value from stats
    where value != 0 and severity != 'info'"""
# Of nested calls of the same function, only the outermost count.
CALLS = """select hex(s.name) as name, count(*) as calls, sum(s.dur * (not exists (
        select 1 from ancestor_slice(s.id) a where a.name = s.name))) as total,
        sum(s.dur < 0) as unended
    from slice s join thread_track t on s.track_id = t.id
    where t.name is null and not s.name glob 'lost * events' group by 1"""
# What every state of a thread has in common with each of its outermost calls.
STATES = """select hex(s.name) as name,
        sum(min(s.ts + s.dur, st.ts + st.dur) - max(s.ts, st.ts)) as off,
        sum((st.state = 'R') * (min(s.ts + s.dur, st.ts + st.dur) - max(s.ts, st.ts))) as wait,
        count(*) as times
    from slice s join thread_track t on s.track_id = t.id
    join thread_state st on st.utid = t.utid
    where t.name is null and st.state != 'Running' and st.dur > 0 and st.ts < s.ts + s.dur and st.ts + st.dur > s.ts
        and not exists (select 1 from ancestor_slice(s.id) a where a.name = s.name)
    group by 1"""
OVERLAPS = """select a.id from sched a join sched b on a.cpu = b.cpu and a.id != b.id
    where a.dur > 0 and b.dur > 0 and a.ts < b.ts + b.dur and b.ts < a.ts + a.dur"""
# The threads' own tracks say how long each ran, too.
RAN = """select th.tid, sum(s.dur) as shown, (select sum(dur) from sched where utid = th.utid) as ran,
        count(*) as times
    from slice s join track t on s.track_id = t.id join thread_track p on t.parent_id = p.id
    join thread th on p.utid = th.utid
    where t.name = 'scheduling' and s.name = 'running' group by 1"""
FLOWS = """select count(*) as flows, sum(o.ts = i.ts and o.name = 'wakes' and i.name = 'is woken') as good
    from flow f join slice o on f.slice_out = o.id join slice i on f.slice_in = i.id"""


def query(path, sql):
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as f:
        f.write(sql + ";\n")
        f.flush()
        done = subprocess.run(["trace_processor_shell", "-q", f.name, path], capture_output=True,
                              text=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr.strip()[-300:])
    return list(csv.DictReader(io.StringIO(done.stdout)))


def compare(path, report):
    wrong = [f"{e['name']}: {e['value']}" for e in query(path, ERRORS)]
    functions = {f["name"].encode().hex().upper(): f for f in report["functions"]}
    got = {r["name"]: r for r in query(path, CALLS)}
    if not functions or set(got) != set(functions):
        wrong.append(f"functions {sorted(set(got) ^ set(functions))}")
    for name in set(got) & set(functions):
        g, f = got[name], functions[name]
        calls = f["count"]
        # start and end of each call are rounded; Perfetto shows calls without a measured end, report's times are without
        off = abs(int(g["total"]) - f["total_ns"])
        if int(g["calls"]) != calls or int(g["unended"]) or \
                (off > calls + 1 and not f["open"] and not f["no_exit"]):
            wrong.append(f"{f['name']}: {g} instead of {calls} calls, {f['total_ns']} ns")
    if report["sched"]:
        wrong += compare_sched(path, report, functions)
    return wrong


def compare_sched(path, report, functions):
    wrong = [f"overlap on a CPU: {row}" for row in query(path, OVERLAPS)[:3]]
    ran = query(path, RAN)
    if not ran:
        wrong.append("no thread ran")
    flows = query(path, FLOWS)[0]
    if flows["good"] not in (flows["flows"], "[NULL]"):
        wrong.append(f"flows {flows}")
    if report["lost"]:
        return wrong
    wrong += [f"ran: {r}" for r in ran if r["ran"] != r["shown"]]
    if "cut" in sys.argv:
        return wrong
    states = {r["name"]: r for r in query(path, STATES)}
    for name, f in functions.items():
        got = states.get(name, {"off": 0, "wait": 0, "times": 0})
        slack = int(got["times"]) + f["count"]
        # report's times are without calls whose end is not known
        if f["open"] or f["no_exit"]:
            continue
        if abs(int(got["off"]) - f["off_cpu_ns"]) > slack or abs(int(got["wait"]) - f["wait_ns"]) > 2 * slack:
            wrong.append(f"{f['name']}: {got} instead of {f['off_cpu_ns']}, {f['wait_ns']} ns")
    return wrong


with open(sys.argv[2], encoding="utf-8") as file:
    print("; ".join(compare(sys.argv[1], json.load(file)))[:1500] or "the same")
