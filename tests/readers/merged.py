# SPDX-License-Identifier: BSD-2-Clause
"""
The calls of several hosts on one time line, from what `kxray merge` writes: an archive (.tar) by the rules of Perfetto's
"Trace manifest format", version 1, or one file of Perfetto's (.pftrace) or Chrome's (.json).

    merged.py FILE                      a line `START END HOST PID TID FUNCTION` for each call, ns since the first one, by start
    merged.py --inside A=B FILE         "N of M": of M calls of B, how many are within the call of A with the same number
    merged.py --sql --inside A=B FILE   the same by Perfetto's trace_processor_shell, which KX_TRACE_PROCESSOR names
    merged.py --labels FILE             the archive's machines, offsets, and the labels of each trace
"""
import argparse
import csv
import decimal
import io
import json
import os
import subprocess
import tarfile
import tempfile

from prototext import decode, one

PIDS = 1 << 22
NEEDS_STATE = 2


def check(right, text):
    if not right:
        raise ValueError(text)


def no_twins(pairs):
    check(len({k for k, _ in pairs}) == len(pairs), f"a key is there twice: {pairs}")
    return dict(pairs)


class Trace:
    """Perfetto's packets: calls of all sequences. @host: of all of it, or None where process names tell."""

    def __init__(self, data, host=None, offset=0):
        self.host, self.offset, self.calls, self.labels = host, offset, [], {}
        self.tracks, self.open, self.names, self.sequences = {}, {}, {}, {}
        self.events, self.machine, self.snapshots = [], "", []
        for packet in decode(data, "perfetto.proto", "perfetto.protos.Trace")["packet"]:
            self.packet(packet)
        self.events.sort(key=lambda e: e[0])
        for event in self.events:
            self.event(*event)

    def packet(self, packet):
        sequence = one(packet, "trusted_packet_sequence_id")
        if one(packet, "sequence_flags", 0) & 1:
            check(sequence not in self.names, f"sequence {sequence} begins twice")
            self.names[sequence] = {}
        check(sequence in self.names, f"sequence {sequence} has no beginning")
        for data in packet.get("interned_data", []):
            for entry in data.get("event_names", []):
                check(one(entry, "iid") not in self.names[sequence], "an interned name is there twice")
                self.names[sequence][one(entry, "iid")] = one(entry, "name", "")
        for snapshot in packet.get("clock_snapshot", []):
            self.snapshots.append({one(c, "clock_id"): one(c, "timestamp") for c in snapshot["clocks"]})
        for attributes in packet.get("trace_attributes", []):
            self.labels.update((one(a, "key"), one(a, "string_value")) for a in attributes["attribute"])
        for system in packet.get("system_info", []):
            self.machine = one(system, "machine_name", "")
        for track in packet.get("track_descriptor", []):
            uuid = one(track, "uuid")
            check(self.tracks.get(uuid, (sequence,))[0] == sequence, f"track {uuid} is of two sequences")
            parent = one(track, "parent_uuid", None)
            check(parent is None or self.tracks[parent][0] == sequence, f"track {uuid}: parent of another sequence")
            self.tracks[uuid] = sequence, track
        for event in packet.get("track_event", []):
            check(one(packet, "sequence_flags", 0) & NEEDS_STATE, "an event without state")
            self.events.append((one(packet, "timestamp"), sequence, event))

    def whose(self, uuid):
        """Host, pid and tid; None of what is no thread's own track."""
        track = self.tracks[uuid][1]
        if "thread" not in track:
            return None
        thread = one(track, "thread")
        process = one(self.tracks[one(track, "parent_uuid")][1], "process")
        host, pid, tid = self.host, one(thread, "pid"), one(thread, "tid")
        check(one(process, "pid") == pid, "a thread of another process")
        if host is None:
            host, colon, _ = one(process, "process_name").partition(": ")
            check(colon, f"no host in {process}")
            check(self.sequences.setdefault(pid // PIDS, host) == host and tid // PIDS == pid // PIDS,
                  f"ids of {host} and {self.sequences[pid // PIDS]}")
            pid, tid = pid % PIDS, tid % PIDS
        return host, pid, tid

    def event(self, time, sequence, event):
        uuid = one(event, "track_uuid")
        check(self.tracks[uuid][0] == sequence, f"track {uuid} of another sequence")
        kind = one(event, "type")
        if kind == "TYPE_SLICE_BEGIN":
            name = one(event, "name", None) or self.names[sequence][one(event, "name_iid")]
            self.open.setdefault(uuid, []).append((time, name))
        elif kind == "TYPE_SLICE_END":
            start, name = self.open[uuid].pop()
            who = self.whose(uuid)
            if who:
                self.calls.append((start + self.offset, time + self.offset, *who, name))


def read_archive(path):
    """Calls, and a description of each member."""
    with tarfile.open(path, "r:", errorlevel=2) as tar:
        members = {m.name: tar.extractfile(m).read() for m in tar.getmembers()}
        check(len(members) == len(tar.getmembers()), "two members of one name")
    texts = [t for t in members.values() if t.lstrip().startswith(b'{"perfetto_manifest"') or b'"perfetto_manifest"' in t[:40]]
    check(len(texts) == 1, f"{len(texts)} manifests")
    # the reader ignores blanks when it looks for the beginning
    check(b"".join(texts[0][:60].split()).startswith(b'{"perfetto_manifest"'), "not detected as a manifest")
    top = json.loads(texts[0], object_pairs_hook=no_twins)
    check(set(top) == {"perfetto_manifest"}, "keys of the manifest")
    manifest = top["perfetto_manifest"]
    check(manifest["version"] == 1 and set(manifest) <= {"version", "trace_time", "files", "attributes"}, "manifest")
    files = {f["path"]: f for f in manifest["files"]}
    check(len(files) == len(manifest["files"]) and set(files) == {n for n, t in members.items() if t is not texts[0]},
          "files of the manifest")
    reference = manifest["trace_time"]["file"]
    check(manifest["trace_time"]["clock"] == "BOOTTIME" and reference in files, "trace_time")
    calls, described, offsets, wall = [], [], {}, []
    for name, entry in files.items():
        check(not name.startswith(".") and "/" not in name and len(name) < 100, f"member's name {name}")
        check(entry["machine"]["name"], "an empty machine name")
        clocks = entry.get("clocks")
        # Machines have clocks, of which only the reference's, and those that a file before this one related, need none.
        machine = entry["machine"]["name"]
        known = machine in offsets or machine == files[reference]["machine"]["name"]
        check((clocks is None) == known, f"{name}: clocks")
        offset = offsets.get(machine, 0)
        if clocks:
            check(clocks["clock"] == "BOOTTIME" and clocks["sync_to"] == {"file": reference, "clock": "BOOTTIME"},
                  f"{name}: clocks")
            offset = clocks["offset_ns"]
            check(isinstance(offset, int), f"{name}: offset_ns")
        offsets[machine] = offset
        trace = Trace(members[name], entry["machine"]["name"], offset)
        # A reader that aligns by REALTIME comes to the same.
        real = {s[1] - s[6] for s in trace.snapshots}
        check(len(real) == 1, f"{name}: REALTIME less BOOTTIME is {real}")
        wall.append(real.pop() - offset)
        check(wall[0] == wall[-1], f"{name}: REALTIME and offset_ns contradict each other")
        check(all(start >= 0 for start, *_ in trace.calls), f"{name}: times before the merged ones")
        calls += trace.calls
        described.append((name, entry["machine"]["name"], offset, trace))
    return calls, described


def read_chrome(path):
    with open(path, encoding="utf-8") as f:
        top = json.load(f, parse_float=decimal.Decimal, object_pairs_hook=no_twins)
    hosts, stacks, calls = {}, {}, []
    for event in top["traceEvents"]:
        if event["ph"] == "M" and event["name"] == "process_name":
            host, colon, _ = event["args"]["name"].partition(": ")
            check(colon and hosts.setdefault(event["pid"] // PIDS, host) == host, f"process {event}")
    for event in top["traceEvents"]:
        key = event["pid"], event["tid"]
        if event["ph"] == "B":
            stacks.setdefault(key, []).append((int(event["ts"] * 1000), event["name"]))
        elif event["ph"] == "E":
            start, name = stacks[key].pop()
            calls.append((start, int(event["ts"] * 1000), hosts[key[0] // PIDS], key[0] % PIDS, key[1] % PIDS, name))
    check(len(calls) == top["otherData"]["calls"], "number of calls")
    check(not any(stacks.values()), "calls do not end")
    return calls


def inside_sql(path, client, server):
    sql = f"""with c as (select ts, dur, row_number() over (order by ts) as n from slice where name = '{client}'),
        s as (select ts, dur, row_number() over (order by ts) as n from slice where name = '{server}')
        select sum(s.ts >= c.ts and s.ts + s.dur <= c.ts + c.dur) as good, count(*) as n from s join c using (n);"""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as f:
        f.write(sql)
        f.flush()
        done = subprocess.run([os.environ["KX_TRACE_PROCESSOR"], "-q", f.name, path], capture_output=True, text=True,
                              check=True)
    row = next(csv.DictReader(io.StringIO(done.stdout)))
    return int(row["good"]), int(row["n"])


def inside(calls, client, server):
    sides = [sorted(c[:2] for c in calls if c[5] == name) for name in (client, server)]
    check(len(sides[0]) == len(sides[1]) > 0, f"{len(sides[0])} and {len(sides[1])} calls")
    return sum(c[0] <= s[0] and s[1] <= c[1] for c, s in zip(*sides)), len(sides[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--inside")
    parser.add_argument("--sql", action="store_true")
    parser.add_argument("--labels", action="store_true")
    parser.add_argument("file")
    args = parser.parse_args()
    described = []
    if args.sql:
        print("%d of %d" % inside_sql(args.file, *args.inside.split("=")))
        return
    if args.file.endswith(".tar"):
        calls, described = read_archive(args.file)
    elif args.file.endswith(".json"):
        calls = read_chrome(args.file)
    else:
        with open(args.file, "rb") as f:
            trace = Trace(f.read())
        calls, described = trace.calls, [("", "", 0, trace)]
    if args.inside:
        print("%d of %d" % inside(calls, *args.inside.split("=")))
    elif args.labels:
        for name, machine, offset, trace in described:
            print(name, machine, offset, trace.machine, " ".join(f"{k}={v}" for k, v in sorted(trace.labels.items())))
    else:
        zero = min(c[0] for c in calls)
        for start, end, *rest in sorted(calls):
            print(start - zero, end - zero, *rest)


main()
